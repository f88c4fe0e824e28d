"""The story that `why` tells: of whom was tried how, with each reason, and of what comes next."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from engine.models import Method, Rejected, Retry
from engine.pager.story import story
from tests.fakes import FakeClock
from tests.scenario.harness import Pager
from tests.scenario.sending import LADDER


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Pager(any_database_url, clock, LADDER).start()
    yield made
    await made.close()
    made.silence_ops()


async def told(pager: Pager) -> list[str]:
    tale = await pager.app.views.tale(1)
    assert tale is not None
    people = (await pager.app.roster.directory()).people
    return [
        ("next: " if line.ahead else "") + line.text
        for line in story(tale, {one.id: one.name for one in people.values()})
    ]


async def test_every_attempt_is_told_with_its_reason(pager: Pager) -> None:
    """What failed and why, what was sent, what was called off by the ack, and no address of anybody."""
    pager.transports[Method.SMS].fail_next(
        Retry("Twilio answered 503"), Rejected("the number does not exist")
    )
    await pager.alert()
    before = await told(pager)
    assert any(line.startswith("page by sms to ann (level 1), attempt 1: retry") for line in before)
    assert any("Twilio answered 503" in line for line in before)
    assert "next: the next level is paged" in before
    await pager.advance(minutes=1)
    await pager.ack(by="ann")
    after = await told(pager)
    assert any("attempt 2: rejected" in line and "the number does not exist" in line for line in after)
    assert any(line.startswith("acknowledged by ann") for line in after)
    assert not any(line.startswith("next: ") for line in after)
    assert "+1" not in " ".join(after)
    pager.pages()
