"""Whoever was paged and is needed no more hears what became of it, once, by the quietest way they have."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from engine.models import Method
from tests.fakes import FakeClock
from tests.scenario.harness import Pager
from tests.scenario.sending import LADDER

WITH_MAIL = LADDER.replace(
    '{name: ben, timezone: UTC, contact: {sms: "+12025550112"}',
    '{name: ben, timezone: UTC, contact: {sms: "+12025550112", email: ben@example.com}',
)


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Pager(any_database_url, clock, LADDER).start()
    yield made
    await made.close()
    made.silence_ops()
    made.expect_silence()


def news(pager: Pager) -> list[tuple[str | None, str, str]]:
    """Who was told what became of it, and how; taken."""
    heard = [page for page in pager.pages() if page.kind == "status" and page.person]
    for page in heard:
        pager._heard.remove(page)
    return [(page.person, page.method.value, page.text) for page in heard]


async def test_who_was_texted_hears_who_has_it(pager: Pager) -> None:
    """After a minute, in which it might change again; whoever acknowledged hears nothing."""
    await pager.alert(service="search")
    pager.expect_page("ben", "sms")
    await pager.ack(by="ann")
    assert news(pager) == []
    await pager.advance(minutes=1)
    ((person, method, text),) = news(pager)
    assert (person, method) == ("ben", "sms")
    assert "acknowledged by ann" in text
    await pager.advance(hours=1)
    assert news(pager) == []


async def test_who_answered_is_not_told_what_they_did(pager: Pager) -> None:
    """ben was paged and acknowledged it by himself."""
    await pager.alert(service="search")
    pager.expect_page("ben", "sms")
    await pager.ack(by="ben")
    await pager.advance(hours=1)
    assert news(pager) == []


async def test_what_changes_again_within_a_minute_is_told_once_as_it_is_then(pager: Pager) -> None:
    """Acknowledged and resolved half a minute later: one message, and it says resolved."""
    await pager.alert(service="search")
    pager.expect_page("ben", "sms")
    await pager.ack(by="ann")
    await pager.advance(seconds=30)
    await pager.resolve(by="ann")
    await pager.advance(minutes=2)
    ((_, _, text),) = news(pager)
    assert text.startswith("resolved")


async def test_news_that_is_not_so_any_more_is_not_told(pager: Pager) -> None:
    """Taken back before it was sent: ben is paged again instead."""
    await pager.alert(service="search")
    pager.expect_page("ben", "sms")
    await pager.ack(by="ann")
    await pager.answer("unacknowledge", by="ann")
    await pager.advance(minutes=2)
    assert news(pager) == []
    pager.expect_page("ben", "sms")
    await pager.resolve(by="ben")


async def test_the_quietest_way_is_taken_and_never_a_call(any_database_url: str, clock: FakeClock) -> None:
    """ben has mail: he hears it there, though he was paged by text."""
    pager = await Pager(any_database_url, clock, WITH_MAIL).start()
    await pager.alert(service="search")
    pager.expect_page("ben", "sms")
    await pager.ack(by="ann")
    await pager.advance(minutes=2)
    assert [(person, method) for person, method, _ in news(pager)] == [("ben", "email")]
    await pager.close()


async def test_who_was_never_reached_hears_nothing(pager: Pager) -> None:
    """The level after the one that answered was not told that it began."""
    await pager.alert()
    pager.expect_page("ann", "sms")
    await pager.ack(by="ann")
    await pager.advance(hours=1)
    assert news(pager) == []
    assert not [page for page in pager.pages() if page.method is Method.VOICE]
