"""Every error of Slack, met by a whole Midwatch: the page goes on by the next way, and an admin is told once.

Nothing is replaced: the sandbox answers as Slack and as the phone company.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import bot
from bot.app import App, build
from bot.sandbox.content import visible_text
from bot.sandbox.faults import Fault
from bot.sandbox.server import SandboxServer
from bot.sandbox.state import Message
from engine.config.parse import parse_config
from engine.models import ORG, Action, Actor, Body, DeliveryStatus, Event, Method, Severity, Via
from engine.pager.story import story
from tests.fakes import FakeClock
from tests.scenario.harness import Pager
from tests.slack.conftest import slack_settings

DEMO = (Path(bot.__file__).parent / "demo.yaml").read_text()
TO_A_CHANNEL = DEMO.replace(
    "targets: [{schedule: payments-primary}]",
    'targets: [{schedule: payments-primary}, {channel: "#gone"}]',
)
ANA, CHO = "+12025550143", "+12025550145"


def codes(first: str, *more: str) -> list[Any]:
    """All of one class: `make test` meets one of them, `make check` each."""
    return [first, *(pytest.param(one, marks=pytest.mark.slow) for one in more)]


@dataclass
class House:
    """A Midwatch, the Slack and the phone company it talks to, and time."""

    app: App
    clock: FakeClock
    sandbox: SandboxServer

    async def alert(self, summary: str = "db-1 is down", **event: Any) -> None:
        (service,) = (await self.app.roster.directory()).services
        fired = Event(Action.TRIGGER, summary[:40], summary, severity=Severity.CRITICAL, **event)
        await self.app.receiver.accept(ORG, service, Body("test", (fired,)))
        await self.app.worker.run_due()

    async def passes(self, **delta: float) -> None:
        """Time, from one due timer to the next."""
        end = self.clock.now() + timedelta(**delta)
        while (due := await self._worked()) is not None and due <= end:
            self.clock.move_to(max(due, self.clock.now() + timedelta(milliseconds=10)))
        self.clock.move_to(end)
        await self.app.worker.run_due()

    async def _worked(self) -> datetime | None:
        await self.app.worker.run_due()
        return await self.app.next_due()

    def breaks(self, kind: str, **reach: Any) -> None:
        self.sandbox.world.faults.begin(Fault("slack", kind, **reach))

    def mends(self) -> None:
        self.sandbox.world.faults.clear()

    @property
    def direct(self) -> str:
        """The id of ana's direct messages."""
        return self.sandbox.state.direct("U0ANA").id

    def said(self, channel: str) -> list[Message]:
        place = self.sandbox.state.find_channel(channel) or self.sandbox.state.channels[channel]
        return [message for message in place.seen_by(None) if message.bot]

    def alarms(self) -> list[str]:
        return [visible_text(one) for one in self.said("#ops") if "🚨" in visible_text(one)]

    def texts(self, number: str = ANA) -> list[str]:
        return [one.body for one in self.sandbox.world.exchange.phone(number).sms]

    def tried(self, method: str, channel: str) -> int:
        return len([one for one in self.sandbox.ledger.calls(method) if one.args.get("channel") == channel])

    async def why(self) -> str:
        tale = await self.app.views.tale(1)
        assert tale is not None
        people = (await self.app.roster.directory()).people
        return "\n".join(one.text for one in story(tale, {one.id: one.name for one in people.values()}))

    async def status_of(self, method: Method) -> DeliveryStatus:
        view = await self.app.views.by_number(1)
        assert view is not None
        found = await self.app.views.deliveries(view.id)
        return next(one.status for one in found if one.method is method and one.person_id is not None)

    async def ack(self) -> None:
        incident = await self.app.responder.find(1)
        assert incident is not None
        actor = await Pager.person(self, "ana")  # type: ignore[arg-type]  # it asks the roster of `app` only
        await self.app.responder.acknowledge(incident, actor)
        await self.app.worker.run_due()


@pytest.fixture
async def house(sqlite_url: str, clock: FakeClock, sandbox: SandboxServer) -> AsyncIterator[House]:
    settings = slack_settings(
        sandbox,
        database_url=sqlite_url,
        secret_key=SecretStr("a secret for tests only"),
        twilio_account_sid="AC" + "0" * 32,
        twilio_auth_token="demo",
        twilio_from="+12025550100",
        twilio_api_url=sandbox.api_url.removesuffix("/api/"),
    )
    app = build(settings, clock)
    await app.setup.apply(parse_config(DEMO))
    yield House(app, clock, sandbox)
    await app.pipeline.drain()
    await app.transports.close()
    await app.database.close()


# --- this channel or person cannot be written to (F-47, B098) ----------------------------------------


@pytest.mark.parametrize(
    "code",
    codes(
        "channel_not_found",
        "is_archived",
        "not_in_channel",
        "restricted_action",
        "user_not_found",
        "cannot_dm_bot",
    ),
)
async def test_a_person_who_cannot_be_written_to_is_texted_at_once(house: House, code: str) -> None:
    """The next way now, no second try, one alarm that names the person and the code (F-47)."""
    opening = code in {"user_not_found", "cannot_dm_bot"}
    house.breaks(code, **({"method": "conversations.open"} if opening else {"channel": house.direct}))
    await house.alert()
    await house.passes(seconds=2)
    assert len(house.texts()) == 1
    assert await house.status_of(Method.SLACK) is DeliveryStatus.DEAD
    await house.ack()
    await house.passes(minutes=4)
    (alarm,) = house.alarms()
    assert "#1: a message by slack to ana could not be delivered" in alarm
    assert code in alarm
    assert f"page by slack to ana (level 1): dead, Slack: {code}" in await house.why()


@pytest.mark.parametrize("code", codes("is_archived", "channel_not_found", "restricted_action"))
async def test_a_broken_channel_is_said_once_however_often_it_is_met(house: House, code: str) -> None:
    """By the page for it and by its card, for one incident after the other: one alarm that names the channel,
    one try for each, and people are paged all the same (F-47, B098, B099)."""
    config = TO_A_CHANNEL.replace('channel: "#payments"', 'channel: "#gone"')
    await house.app.setup.apply(parse_config(config))
    house.app.receiver.known.forget()
    house.breaks(code, method="chat.postMessage", channel="#gone")
    for number in range(3):
        await house.alert(f"db-{number} is down")
        await house.passes(seconds=5)
    (alarm,) = house.alarms()
    assert "#gone" in alarm
    assert code in alarm
    assert house.tried("chat.postMessage", "#gone") == 2 * 3
    assert len(house.said(house.direct)) == 3


# --- our own mistake (F-48, B094, B095) --------------------------------------------------------------


@pytest.mark.parametrize("code", codes("invalid_blocks", "msg_blocks_too_long", "msg_too_long"))
async def test_a_page_that_slack_finds_malformed_is_sent_plainly_at_once(house: House, code: str) -> None:
    """In the same attempt, at most 3,000 characters; nobody is alarmed and no text is needed (F-48)."""
    house.breaks(code, method="chat.postMessage", channel=house.direct, times=1)
    await house.alert("x" * 5000)
    refused, plain = [
        one.args
        for one in house.sandbox.ledger.calls("chat.postMessage")
        if one.args["channel"] == house.direct
    ]
    assert refused.get("attachments")
    assert not plain.get("attachments")
    assert len(plain["text"]) <= 3000
    assert len(house.said(house.direct)) == 1
    await house.passes(seconds=30)
    assert (house.texts(), house.alarms()) == ([], [])
    await house.ack()


async def test_a_page_that_is_refused_even_plainly_goes_by_text(house: House) -> None:
    """Two refusals are the end of it: the next way now, and one alarm (F-48)."""
    house.breaks("invalid_blocks", method="chat.postMessage", channel=house.direct)
    await house.alert()
    await house.passes(seconds=2)
    assert len(house.texts()) == 1
    assert house.tried("chat.postMessage", house.direct) == 2
    (alarm,) = house.alarms()
    assert "refused even plain text: invalid_blocks" in alarm
    await house.ack()


async def test_an_alert_of_any_length_is_paged(house: House) -> None:
    """A summary of 3,001 characters and labels of five times 2,900: the page stands, and keeps Slack's limits
    (B094, B095)."""
    await house.alert("s" * 3001, labels={f"label{n}": "v" * 2900 for n in range(5)})
    (message,) = house.said(house.direct)
    assert message.text.startswith("🔴 FIRING")
    assert len(visible_text(message)) <= 9_000
    await house.ack()


# --- how the app is installed (F-49, B103) -----------------------------------------------------------


async def test_a_missing_scope_is_named_and_the_page_goes_by_text(house: House) -> None:
    """The alarm says which scope, and what to do (F-49, B103)."""
    house.breaks("missing_scope", method="conversations.open")
    await house.alert()
    await house.passes(seconds=2)
    assert len(house.texts()) == 1
    (alarm,) = house.alarms()
    assert "missing_scope, needs im:write: reinstall the app from manifest.yaml" in alarm
    await house.ack()


@pytest.mark.parametrize("code", codes("token_revoked", "account_inactive", "invalid_auth", "not_authed"))
async def test_a_dead_token_is_no_page_lost_and_an_admin_is_told_by_telephone(
    house: House, code: str
) -> None:
    """Every page goes by text now, and what the ops channel cannot hear an admin is texted, once (F-46)."""
    house.breaks(code)
    await house.alert()
    await house.passes(seconds=2)
    assert len(house.texts()) == 1
    await house.passes(minutes=5)
    assert house.texts(CHO) == [
        f"Midwatch: no message by slack goes out this way until it is put right: Slack is down for us: {code}"
    ]
    await house.ack()


async def test_a_token_that_is_known_to_be_dead_is_not_tried_again(house: House) -> None:
    """Neither for the page that met it nor for the next one, which goes by text at once; only the card asks
    now and then. All of it is posted once the app is installed again (F-46)."""
    house.breaks("token_revoked")
    await house.alert()
    assert house.app.slack is not None
    await house.app.slack.outage.once()
    await house.passes(minutes=1)
    await house.alert("db-2 is down")
    await house.passes(seconds=2)
    assert len(house.texts()) == 2
    await house.passes(minutes=5)
    assert len(house.sandbox.ledger.calls("conversations.open")) == 1
    house.mends()
    await house.passes(minutes=1)
    await house.app.slack.outage.once()
    await house.passes(seconds=5)
    assert len(house.said(house.direct)) == 2
    assert len(house.said("#payments")) == 2


# --- not now (F-41, F-42, B091, B092, B093) ----------------------------------------------------------


async def test_a_throttle_is_waited_for_and_no_attempt(house: House) -> None:
    """Retry-After 7: that conversation waits so long and no longer, others go on, nobody is texted for it,
    and it is no attempt (F-41, B091)."""
    house.breaks("429", retry_after=7, method="chat.postMessage", channel=house.direct, times=1)
    await house.alert()
    await house.passes(seconds=6)
    assert len(house.said("#payments")) == 1
    assert house.said(house.direct) == []
    await house.passes(seconds=3)
    assert len(house.said(house.direct)) == 1
    assert house.texts() == []
    view = await house.app.views.by_number(1)
    assert view is not None
    assert [one.tries for one in view.receipts if one.method is Method.SLACK] == [1]
    await house.ack()


async def test_a_throttle_that_takes_long_starts_the_text_now(house: House) -> None:
    """More than half a minute is too long for a page: both go out (F-41)."""
    house.breaks("429", retry_after=45, method="chat.postMessage", channel=house.direct, times=1)
    await house.alert()
    await house.passes(seconds=2)
    assert len(house.texts()) == 1
    await house.passes(seconds=50)
    assert len(house.said(house.direct)) == 1
    await house.ack()


async def test_a_throttle_that_says_nothing_is_half_a_minute(house: House) -> None:
    """429 with neither header nor body (F-42, B092, B093)."""
    house.breaks("429_empty", method="chat.postMessage", channel=house.direct, times=1)
    await house.alert()
    await house.passes(seconds=29)
    assert house.said(house.direct) == []
    await house.passes(seconds=3)
    assert len(house.said(house.direct)) == 1
    await house.ack()


async def test_a_throttled_list_delays_no_page(house: House) -> None:
    """429 on the list of user groups and on its members: the page is there at once (B097)."""
    for method in ("usergroups.list", "usergroups.users.list", "usergroups.users.update", "users.list"):
        house.breaks("429", retry_after=600, method=method)
    shown = DEMO.replace(
        "- name: payments-primary\n", '- name: payments-primary\n  user_group: "@payments-oncall"\n'
    )
    await house.app.setup.apply(parse_config(shown))
    await house.app.sweeps.abreast.go()
    await house.app.worker.run_due()
    await house.alert()
    assert len(house.said(house.direct)) == 1
    await house.ack()


# --- it may pass (F-43, F-44, B096, B104) ------------------------------------------------------------


async def test_after_the_first_failure_the_text_is_started_and_slack_tried_again(house: House) -> None:
    """503 once: the text goes now, and the message comes after half a minute (F-43)."""
    house.breaks("outage", method="chat.postMessage", channel=house.direct, times=1)
    await house.alert()
    await house.passes(seconds=2)
    assert len(house.texts()) == 1
    await house.passes(seconds=40)
    assert len(house.said(house.direct)) == 1
    assert house.alarms() == []
    await house.ack()


@pytest.mark.parametrize("code", codes("message_limit_exceeded", "something_nobody_knows"))
async def test_an_answer_that_nobody_knows_is_tried_four_times_and_then_loud(house: House, code: str) -> None:
    """As an outage of this message, bounded: dead with one alarm (slack.md: unknown errors)."""
    house.breaks(code, method="chat.postMessage", channel=house.direct)
    await house.alert()
    await house.passes(minutes=4, seconds=30)
    assert house.tried("chat.postMessage", house.direct) == 4
    assert await house.status_of(Method.SLACK) is DeliveryStatus.DEAD
    (alarm,) = house.alarms()
    assert code in alarm
    await house.ack()


@pytest.mark.parametrize("where", ["direct", "card"])
async def test_what_was_taken_before_the_connection_broke_stands_once(house: House, where: str) -> None:
    """Taken, then reset: found by its metadata and not posted again; a post that failed is not counted as
    done, and not doubled (F-44, B096, B104)."""
    channel = house.direct if where == "direct" else "#payments"
    house.breaks("reset_after", method="chat.postMessage", channel=channel, times=1)
    await house.alert()
    await house.passes(seconds=50)
    assert len(house.said(house.direct)) == 1
    assert len(house.said("#payments")) == 1
    await house.ack()
    for place in (house.direct, "#payments"):
        (message,) = house.said(place)
        assert message.text.startswith("🟡 ACKED by @ana")


async def test_a_message_that_somebody_deleted_is_posted_anew(house: House) -> None:
    """The card and the direct message are gone: the next change brings them back as they are now (F-54)."""
    await house.alert()
    await house.passes(seconds=2)
    for place in (house.direct, "#payments"):
        (message,) = house.said(place)
        house.sandbox.state.remove(message)
    await house.ack()
    await house.passes(seconds=5)
    for place in (house.direct, "#payments"):
        (again,) = house.said(place)
        assert again.text.startswith("🟡 ACKED by @ana")


async def test_of_four_changes_in_a_minute_the_last_is_shown_within_another(house: House) -> None:
    """ana, ben, cho and ben again take over: the user group and the topic say who it is now, and no limiter
    holds that back (B100)."""
    shown = DEMO.replace(
        "- name: payments-primary\n",
        '- name: payments-primary\n  user_group: "@payments-oncall"\n  channel: "#payments"\n  topic: true\n',
    )
    await house.app.setup.apply(parse_config(shown))
    directory = await house.app.roster.directory()
    people = {one.name: one for one in directory.people.values()}
    schedule = next(one.id for one in directory.schedules.values() if one.name == "payments-primary")
    by = Actor("cho", Via.CLI)
    for name in ("ana", "ben", "cho", "ben"):
        now = house.clock.now()
        await house.app.roster.overrides.set(
            schedule_id=schedule,
            person_id=people[name].id,
            start_at=now,
            end_at=now + timedelta(hours=2),
            actor=by,
        )
        await house.app.sweeps.abreast.go()
        await house.passes(seconds=15)
    await house.app.sweeps.abreast.go()
    await house.passes(seconds=45)
    assert house.sandbox.state.groups["S0PAYMENTS"]["users"] == ["U0BEN"]
    assert "payments-primary: ben" in house.sandbox.state.channels["C0PAYMENTS"].topic
