"""The story that `why` tells: of whom was tried how, with each reason, and of what comes next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from bot.slack import blocks
from engine.models import ORG, Method, Rejected, Retry
from engine.notify.transport import Transports
from engine.pager.consent import Consent
from engine.pager.story import story
from engine.store import cards
from tests.fakes import FakeClock, FakeTransport
from tests.scenario.harness import Pager
from tests.scenario.sending import LADDER, only, provider


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


async def test_a_call_that_was_hung_up_rang_before(pager: Pager) -> None:
    """It was sent, and its end comes after the answer that ended it, not at the moment at which it rang."""
    await pager.alert()
    await pager.advance(minutes=3)
    pager.clock.move(seconds=12)
    await pager.ack(by="ann")
    pager.clock.move(seconds=1)
    rang = (await only(pager, Method.VOICE)).provider_ref
    assert await provider(pager)(rang, "canceled")
    lines = [line for line in await told(pager) if "voice" in line or line.startswith("acknowledged")]
    assert lines == [
        "page by voice to ann (level 1), attempt 1: sent by voice after 0.0 s",
        "acknowledged by ann (slack_button): acknowledged",
        "page by voice to ann (level 1): hung up",
    ]
    pager.pages()


FULL = """
people:
  - {name: ann, slack: U0ANN, timezone: UTC, contact: {sms: "+12025550111", voice: "+12025550111"},
     rules: {high: [slack, sms after 1m, voice after 3m]}}
  - {name: ben, slack: U0BEN, timezone: UTC, contact: {sms: "+12025550112"}, rules: {high: [slack]}}
schedules:
  - name: primary
    timezone: UTC
    layers:
      - {name: week, users: [ann], start: "2026-01-05T09:00", rotation: {every: 1, unit: week}}
policies:
  - name: ladder
    levels:
      - {targets: [{schedule: primary}, {channel: "#war-room"}], timeout: 10m}
      - {targets: [{person: ben}], timeout: 10m}
services:
  - {name: checkout, policy: ladder, channel: "#checkout"}
"""


@pytest.fixture
async def full(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Pager(any_database_url, clock, FULL).start()
    yield made
    await made.close()


async def test_each_level_says_why_it_pages_whom_it_pages(full: Pager) -> None:
    """The version of the policy and the rung, and who is on call by which turn; as it was then."""
    await full.alert()
    said = await told(full)
    version = (await full.app.roster.directory()).policies
    (policy,) = version.values()
    assert f"why: policy ladder in version {policy.version_id}, level 1 of 2" in said
    assert "why: on call on primary: ann (layer week: the turn of ann)" in said
    assert "why: #war-room is named by the policy" in said
    await full.advance(minutes=10)
    later = await told(full)
    assert "why: ben is named by the policy" in later
    assert f"why: policy ladder in version {policy.version_id}, level 2 of 2" in later
    await full.configure(FULL.replace("users: [ann]", "users: [ben]"))
    assert "why: on call on primary: ann (layer week: the turn of ann)" in await told(full)


async def test_an_override_is_named(full: Pager) -> None:
    """Whoever is paged in somebody's place: the story says by what."""
    people = {one.name: one.id for one in (await full.app.roster.directory()).people.values()}
    (schedule,) = (await full.app.roster.directory()).schedules
    now = full.clock.now()
    await full.app.roster.overrides.set(
        schedule_id=schedule,
        person_id=people["ben"],
        start_at=now,
        end_at=now + timedelta(hours=2),
        actor=await full.person("ann"),
    )
    await full.alert()
    said = await told(full)
    (why,) = [line for line in said if line.startswith("why: on call on primary")]
    assert "ben" in why
    assert "override: ben" in why


async def test_a_way_that_is_left_out_is_told_with_its_reason(full: Pager) -> None:
    """ann replied STOP: the story and the card say that no text went to her, and why."""
    hashed = full.app.vault.fingerprint("+12025550111")
    await Consent(full.app.database, full.clock, full.app.vault).stop(hashed)
    await full.alert()
    assert "page by sms to ann: left out, the person replied STOP" in await told(full)
    view = await full.incident()
    assert [one.skipped for one in view.receipts if one.skipped] == [
        ((Method.SMS, "the person replied STOP"),)
    ]
    assert "SMS skipped: the person replied STOP" in str(blocks.card(view).payload())


async def test_what_comes_next_is_told_by_its_timers(full: Pager) -> None:
    """Each later rule with when it is due, and one that failed with what of."""
    full.transports[Method.SLACK].fail_next(*[Retry("Slack: http_503")] * 2)
    await full.alert()
    said = await told(full)
    assert any(
        line.startswith("next: page by slack to ann (level 1): again, after Slack: http_503") for line in said
    ), said
    assert "next: page by voice to ann (level 1)" in said
    assert "next: the next level is paged" in said


async def test_the_answer_that_called_off_the_rest_is_named(full: Pager) -> None:
    """The rules that were still to come end with whoever answered."""
    await full.alert()
    await full.ack(by="ann")
    (text,) = [line for line in await told(full) if line.startswith("page by voice to ann")]
    assert text.startswith("page by voice to ann (level 1): not sent, ")
    assert "acknowledged" in text


async def test_providers_that_were_passed_over_are_told(full: Pager) -> None:
    """Why the first company did not take it, with its code, and which one did."""
    second = FakeTransport(frozenset({Method.SMS}), "second company")
    first = full.transports[Method.SMS]
    first.always = Retry("provider down: the credentials are wrong (Twilio 20003)", down=True)
    full.app.pipeline._transports = Transports([first, second, full.transports[Method.SLACK]])
    await full.alert()
    await full.advance(minutes=1)
    (line,) = [one for one in await told(full) if one.startswith("page by sms to ann (level 1), attempt 1")]
    assert "sent by second company" in line
    assert "sms: provider down: the credentials are wrong (Twilio 20003)" in line


async def test_a_card_that_cannot_stand_is_told(full: Pager) -> None:
    """Where the incident is shown, and where it cannot be."""
    await full.alert()

    async def unit(tx: Any) -> None:
        (card, *_) = await cards.of_incidents(tx, ORG, [(await full.incident()).id])
        await cards.broken(tx, card.id, "is_archived")

    await full.app.database.write(unit)
    assert "card in #checkout: cannot stand there, is_archived" in await told(full)
