"""What could not be delivered is listed, said once, sent again while it is wanted, or put aside."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from engine.errors import NotFound, Refused
from engine.models import ORG, Actor, DeliveryStatus, Method, Outcome, Rejected, Retry, Via
from engine.pager.dead_letters import DeadLetters
from engine.store import dead_letters as store
from tests.fakes import FakeClock
from tests.scenario.harness import Pager
from tests.scenario.sending import LADDER, alarms, counted, only, stored, tries

ADMIN = Actor("root", Via.CLI)
WITH_ADMINS = LADDER.replace("{name: ben, timezone", "{name: ben, admin: true, timezone")
GONE = Rejected("the number does not exist")


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Pager(any_database_url, clock, LADDER).start()
    yield made
    await made.close()


@pytest.fixture
def letters(pager: Pager) -> DeadLetters:
    app = pager.app
    return DeadLetters(app.database, app.clock, app.roster.directory, app.nudge)


async def dead_sms(pager: Pager, letters: DeadLetters) -> int:
    """An incident whose text to ann died; the id of the letter."""
    pager.transports[Method.SMS].fail_next(GONE)
    await pager.alert()
    (letter,) = await letters.list()
    return letter.delivery.id


async def test_they_are_grouped_by_what_they_died_of(pager: Pager, letters: DeadLetters) -> None:
    """Newest cause first, each with its count and the newest letter, whom it was for and about what."""
    pager.transports[Method.SMS].always = GONE
    for name in ("db-1 is down", "db-2 is down"):
        await pager.alert(name)
    pager.transports[Method.VOICE].always = Rejected("a landline")
    await pager.alert("db-3 is down")
    await pager.advance(minutes=4)
    found = await letters.overview()
    said = {(one.method, one.reason): (one.count, one.newest.incident) for one in found.causes}
    assert said.keys() == {(Method.SMS, GONE.reason), (Method.VOICE, "a landline")}
    assert said[Method.VOICE, "a landline"] == (2, 3)
    assert [one.newest.delivery.id for one in found.causes] == sorted(
        (one.newest.delivery.id for one in found.causes), reverse=True
    )
    assert found.count == sum(count for count, _ in said.values()) == await letters.count()
    newest = await letters.list(limit=1)
    assert [one.delivery.id for one in newest] == [max(one.delivery.id for one in await letters.list())]
    older = await letters.list(before_id=newest[0].delivery.id)
    assert len(older) == found.count - 1


async def test_a_retry_sends_it_again_with_all_of_its_tries(pager: Pager, letters: DeadLetters) -> None:
    """The same delivery, a new series of attempts whose numbers go on, and a line that says who did it."""
    letter = await dead_sms(pager, letters)
    pager.transports[Method.SMS].fail_next(Retry("the carrier is busy"))
    assert (await letters.retry(ADMIN, letter)).done == 1
    await pager.app.worker.run_due()
    await pager.advance(seconds=40)
    assert [(n, outcome) for n, outcome, _ in await tries(pager, letter)] == [
        (1, "rejected"),
        (2, "retry"),
        (3, "sent"),
    ]
    assert (await only(pager, Method.SMS)).status is DeliveryStatus.SENT
    assert await letters.count() == 0
    (entry,) = [
        one for one in await pager.app.views.timeline((await pager.incident()).id) if one.kind == "retried"
    ]
    assert (entry.actor, entry.via) == ("root", "cli")
    assert entry.text == "page by sms to ann, given up: the number does not exist"


async def test_what_is_wanted_no_more_is_not_sent(pager: Pager, letters: DeadLetters) -> None:
    """After the ack nobody is paged by a retry: it says so, and the letter stays until it is put aside."""
    letter = await dead_sms(pager, letters)
    await pager.ack(by="ann")
    pager.pages()
    dealt = await letters.retry(ADMIN)
    assert (dealt.done, dict(dealt.left)) == (0, {"the incident is acknowledged": 1})
    await pager.advance(minutes=1)
    assert [one.status for one in await stored(pager, Method.SMS)] == [DeliveryStatus.DEAD]
    assert (await letters.put_aside(ADMIN, letter)).done == 1
    assert await letters.count() == 0


async def test_those_open_are_counted_for_whoever_watches(pager: Pager, letters: DeadLetters) -> None:
    """The gauge goes up with what dies, and down with what is dealt with; each death is counted for good."""
    dead = counted("deliveries_dead_total", method="sms")
    letter = await dead_sms(pager, letters)
    await pager.app.sweeps.audit.run()
    assert counted("dead_letters") == 1
    assert counted("deliveries_dead_total", method="sms") == dead + 1
    await letters.put_aside(ADMIN, letter)
    await pager.app.sweeps.audit.run()
    assert counted("dead_letters") == 0


async def test_all_that_died_of_the_same_go_together(pager: Pager, letters: DeadLetters) -> None:
    """`alike` takes the whole cause and nothing else."""
    pager.transports[Method.SMS].fail_next(GONE, GONE, Rejected("another reason"))
    for name in ("db-1 is down", "db-2 is down", "db-3 is down"):
        await pager.alert(name)
    mine = [one for one in await letters.list() if one.delivery.reason == GONE.reason]
    assert (await letters.retry(ADMIN, mine[0].delivery.id, alike=True)).done == 2
    assert [one.delivery.reason for one in await letters.list()] == ["another reason"]


async def test_one_put_aside_can_still_be_retried_and_dies_anew(pager: Pager, letters: DeadLetters) -> None:
    """By its number; should it die again, it stands in the list again and is alarmed again."""
    letter = await dead_sms(pager, letters)
    await letters.put_aside(ADMIN)
    assert (await letters.put_aside(ADMIN)).done == 0
    await pager.advance(minutes=16)
    before = len(await alarms(pager))
    pager.transports[Method.SMS].fail_next(GONE)
    assert (await letters.retry(ADMIN, letter)).done == 1
    await pager.app.worker.run_due()
    assert [one.delivery.id for one in await letters.list()] == [letter]
    assert len(await alarms(pager)) > before


async def test_who_may(pager: Pager, letters: DeadLetters) -> None:
    """Admins, the command line and a token of nobody; somebody else is told so, and nothing changes."""
    letter = await dead_sms(pager, letters)
    ann = await pager.person("ann")
    for deed in (letters.retry, letters.put_aside):
        with pytest.raises(Refused, match="Only an admin"):
            await deed(ann, letter)
    assert await letters.count() == 1
    assert (await letters.put_aside(Actor("ci", Via.API), letter)).done == 1


async def test_what_is_no_dead_letter_is_said(pager: Pager, letters: DeadLetters) -> None:
    """An unknown number, and one of a message that arrived."""
    await pager.alert()
    sent = await only(pager, Method.SMS)
    with pytest.raises(NotFound, match="no dead letter 99999"):
        await letters.retry(ADMIN, 99999)
    with pytest.raises(NotFound, match="it is sent"):
        await letters.retry(ADMIN, sent.id)
    with pytest.raises(NotFound, match="it is sent"):
        await letters.put_aside(ADMIN, sent.id, alike=True)


async def test_two_who_retry_at_once_send_it_once(pager: Pager, letters: DeadLetters) -> None:
    """The row decides: the second finds it queued."""
    letter = await dead_sms(pager, letters)
    now = pager.clock.now()

    async def twice(tx: object) -> list[set[int]]:
        return [await store.queue_again(tx, ORG, [letter], "x", now) for _ in range(2)]  # type: ignore[arg-type]  # a Tx

    assert await pager.app.database.write(twice) == [{letter}, set()]


# --- alarms that the ops channel does not take -------------------------------------------------------


class Urlless(Pager):
    """No MIDWATCH_FALLBACK_URLS: the ops channel is all there is."""

    fallback_urls = ()


@pytest.fixture(params=[Pager, Urlless])
async def governed(
    any_database_url: str, clock: FakeClock, request: pytest.FixtureRequest
) -> AsyncIterator[Pager]:
    """With an admin, who has a telephone."""
    made = await request.param(any_database_url, clock, WITH_ADMINS).start()
    yield made
    await made.close()


def told_by_phone(pager: Pager) -> list[str]:
    return [page.text for page in pager.pages() if page.kind == "ops" and page.method is Method.SMS]


@pytest.mark.parametrize(
    "trouble", [Retry("Slack: http_503"), Rejected("Slack: is_archived"), Retry("Slack is down", down=True)]
)
async def test_an_alarm_that_slack_does_not_take_reaches_the_admins(
    governed: Pager, trouble: Outcome
) -> None:
    """At the first failure, by SMS and once, where no URL told them; with one that works, not at all."""
    governed.transports[Method.CHANNEL].always = trouble
    governed.transports[Method.SMS].fail_next(GONE)
    await governed.alert()
    await governed.advance(seconds=2)
    said = told_by_phone(governed)
    if isinstance(governed, Urlless):
        assert said == [f"#1: a message by sms to ann could not be delivered: {GONE.reason}"]
    else:
        assert said == []
    await governed.advance(minutes=5)
    assert len(told_by_phone(governed)) == len(said)


async def test_an_alarm_that_nothing_takes_reaches_the_admins(governed: Pager) -> None:
    """The URLs failed as well: by SMS, whichever of the two failed first."""
    for method in (Method.CHANNEL, Method.URL):
        governed.transports[method].always = Retry("nobody answers")
    governed.transports[Method.SMS].fail_next(GONE)
    await governed.alert()
    await governed.advance(seconds=2)
    assert len(told_by_phone(governed)) == 1


async def test_an_alarm_that_arrived_wakes_no_admin(governed: Pager) -> None:
    """The ops channel has it: nobody is texted."""
    governed.transports[Method.SMS].fail_next(GONE)
    await governed.alert()
    await governed.advance(minutes=2)
    assert told_by_phone(governed) == []


async def test_a_provider_that_refuses_us_is_one_alarm(pager: Pager) -> None:
    """Texts and calls of one company, many pages, a breaker between: one alarm, not one for each (F-57)."""
    down = Retry("provider down: the credentials are wrong (Twilio 20003)", down=True)
    for method in (Method.SMS, Method.VOICE):
        pager.transports[method].always = down
    for number in range(8):
        await pager.alert(f"db-{number} is down")
    await pager.advance(minutes=9)
    texts = [text for text, address in await alarms(pager) if address == "ops"]
    about = [text for text in texts if "provider" in text]
    assert len(about) == 1, texts
    assert all(one.status is DeliveryStatus.DEAD for one in await stored(pager, Method.SMS) if one.level == 0)
