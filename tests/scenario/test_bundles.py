"""Many incidents for one person: the first is told at once, the others together, and all share one end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from itertools import pairwise
from random import Random

import pytest

from engine.models import DeliveryStatus, Method, Page, Rejected, Retry
from tests.fakes import FakeClock
from tests.scenario.harness import Pager, fire
from tests.scenario.sending import LADDER, alarms, provider, stored


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Pager(any_database_url, clock, LADDER).start()
    yield made
    await made.close()


async def many(pager: Pager, *titles: str, service: str = "search", **more: object) -> None:
    """All in the same moment, each an incident of its own."""
    await pager.receive(*(fire(one, group_key=one, **more) for one in titles), service=service)  # type: ignore[arg-type]  # each test gives other fields
    await pager.app.worker.run_due()


def texts(pager: Pager, person: str = "ben") -> list[list[int]]:
    """The incidents of each text that a person got, in order; taken."""
    heard = [page for page in pager._collect() if page.method is Method.SMS and page.person == person]
    for page in heard:
        pager._heard.remove(page)
    return [_numbers(page) for page in heard if page.kind == "page"]


def _numbers(page: Page) -> list[int]:
    return sorted(view.number for view in page.incidents)


async def statuses_of(pager: Pager, *numbers: int) -> list[DeliveryStatus]:
    """Of the first page of each."""
    return [(await stored(pager, Method.SMS, number))[0].status for number in numbers]


async def test_what_fires_together_is_one_text(pager: Pager) -> None:
    """Five incidents, one message; each has its own row, which says that it was sent."""
    await many(pager, *"abcde")
    assert texts(pager) == [[1, 2, 3, 4, 5]]
    assert await statuses_of(pager, 1, 2, 3, 4, 5) == [DeliveryStatus.SENT] * 5
    (carrier,) = {(await stored(pager, Method.SMS, n))[0].carried_by for n in range(1, 6)} - {None}
    assert carrier in {(await stored(pager, Method.SMS, n))[0].id for n in range(1, 6)}


async def test_the_first_goes_at_once_and_the_others_together_a_minute_after(pager: Pager) -> None:
    """The pace of a number silences no first page, and holds no other for longer than its interval."""
    for title in "abc":
        await many(pager, title)
        pager.clock.move(seconds=5)
    assert texts(pager) == [[1]]
    await pager.advance(seconds=44)
    assert texts(pager) == []
    await pager.advance(seconds=2)
    assert texts(pager) == [[2, 3]]
    await pager.advance(minutes=8)
    assert texts(pager) == []  # nobody is told twice of the same step


async def test_nobody_is_called_early_because_they_were_texted_before(pager: Pager) -> None:
    """The call of the second incident comes when its rule says so, though its text had to wait."""
    await many(pager, "a", service="checkout")
    await many(pager, "b", service="checkout")
    await pager.advance(minutes=2, seconds=50)
    assert not [page for page in pager.pages() if page.method is Method.VOICE]
    await pager.advance(minutes=1)
    assert [page for page in pager.pages() if page.method is Method.VOICE]
    pager._heard.clear()


async def test_an_answer_takes_only_its_own_out_of_what_waits(pager: Pager) -> None:
    """Of three that wait for their number one is acknowledged: the text is about the other two."""
    await many(pager, "first")
    await many(pager, *"abc")
    assert texts(pager) == [[1]]
    await pager.ack(3, by="ann")
    await pager.advance(minutes=1)
    assert texts(pager) == [[2, 4]]
    assert await statuses_of(pager, 3) == [DeliveryStatus.CANCELLED]


@pytest.mark.parametrize(
    ("word", "code", "expected"),
    [
        ("delivered", None, DeliveryStatus.DELIVERED),
        ("undelivered", "30005", DeliveryStatus.DEAD),
    ],
)
async def test_what_became_of_the_message_became_of_all_in_it(
    pager: Pager, word: str, code: str | None, expected: DeliveryStatus
) -> None:
    """The phone company says one word about one text: it counts for every page that it carried."""
    await many(pager, *"abc")
    assert texts(pager) == [[1, 2, 3]]
    rows = [(await stored(pager, Method.SMS, n))[0] for n in (1, 2, 3)]
    (ref,) = {row.provider_ref for row in rows if row.provider_ref}
    assert await provider(pager)(ref, word, code)
    assert await statuses_of(pager, 1, 2, 3) == [expected] * 3
    if expected is DeliveryStatus.DEAD:
        await pager.app.worker.run_due()
        assert texts(pager, "ann") == [[1, 2, 3]]  # the ladder of each goes on past it


async def test_a_message_that_fails_fails_for_all_and_is_tried_again_for_all(pager: Pager) -> None:
    """A transient failure loses nobody: the next try tells of each."""
    pager.transports[Method.SMS].fail_next(Retry("the provider is lost"))
    await many(pager, *"abc")
    assert texts(pager) == []
    await pager.advance(seconds=40)
    assert sorted(number for text in texts(pager) for number in text) == [1, 2, 3]


async def test_a_message_that_is_refused_is_dead_for_all_and_loud(pager: Pager) -> None:
    """No such number: three dead pages, each of its incident, and the next level hears of all three."""
    pager.transports[Method.SMS].fail_next(Rejected("no such number"))
    await many(pager, *"abc")
    assert await statuses_of(pager, 1, 2, 3) == [DeliveryStatus.DEAD] * 3
    assert {text for text, _ in await alarms(pager)}
    assert texts(pager, "ann") == [[1, 2, 3]]


async def test_a_process_that_ends_in_the_middle_loses_none_of_them(pager: Pager) -> None:
    """Begun as one message and never recorded: all of them are told by the next process."""

    class Ends(BaseException):
        """Here the process ends."""

    pager.transports[Method.SMS].fail_next(Ends())  # type: ignore[arg-type]  # a transport may raise anything
    await many(pager, *"abc")
    await pager.restart()
    await pager.outage(seconds=31)
    await pager.advance(minutes=2)
    assert {number for text in texts(pager) for number in text} == {1, 2, 3}


async def test_two_workers_put_no_page_into_two_messages(postgresql_url: str, clock: FakeClock) -> None:
    """Both look at the same moment: each page is in one message, and the number is told once."""
    one = await Pager(postgresql_url, clock, LADDER).start()
    two = await Pager(postgresql_url, clock, LADDER).start()
    two.transports = one.transports
    await two.restart()
    await one.receive(*(fire(title, group_key=title) for title in "abcdef"), service="search")
    fates, sends, *_ = one.app.worker.lanes
    await fates.run_due()
    others = two.app.worker.lanes[1]
    await asyncio.gather(sends.run_due(), others.run_due())
    await asyncio.gather(one.app.pipeline.drain(), two.app.pipeline.drain())
    told = texts(one)
    assert len(told) == 1
    await one.advance(minutes=2)
    everything = Counter(number for text in (*told, *texts(one)) for number in text)
    assert everything == dict.fromkeys(range(1, 7), 1)
    await two.close()
    await one.close()


@pytest.mark.parametrize("seed", range(5))
async def test_however_they_come_each_is_told_once(pager: Pager, seed: int) -> None:
    """Incidents at random moments, some answered: each page went out once, alone or carried, or its incident
    was answered before; and between two texts to one number a minute passed."""
    random = Random(seed)
    told: list[int] = []
    at: list[float] = []
    answered: set[int] = set()
    for number in range(1, 13):
        await many(pager, f"{number}")
        if random.random() < 0.3:
            await pager.ack(number, by="ann")
            answered.add(number)
        for _ in range(random.randint(1, 40)):
            if new := texts(pager):
                at += [pager.clock.now().timestamp()] * len(new)
                told += [one for text in new for one in text]
            pager.clock.move(seconds=1)
            await pager.app.worker.run_due()
    await pager.advance(minutes=2)
    told += [one for text in texts(pager) for one in text]
    counted = Counter(told)
    assert max(counted.values()) == 1
    assert {*range(1, 13)} - counted.keys() <= answered
    assert all(later - before >= 60 for before, later in pairwise(at))


async def test_a_clock_that_is_set_back_holds_no_text(pager: Pager) -> None:
    """An hour back, between two incidents: the second is texted at once, not an hour later."""
    await many(pager, "before")
    assert texts(pager) == [[1]]
    await pager.ack(1, by="ben")
    pager.clock.move(hours=-1)
    await many(pager, "after")
    assert texts(pager) == [[2]]
