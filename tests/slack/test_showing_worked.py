"""A whole Midwatch against the sandbox Slack: an edit, an override and a handoff move the user group."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

import bot
from bot.app import App, build
from bot.sandbox.content import visible_text
from bot.sandbox.server import SandboxServer
from engine.config.parse import parse_config
from engine.models import Actor, Via
from tests.fakes import FakeClock
from tests.slack.conftest import slack_settings

DEMO = (Path(bot.__file__).parent / "demo.yaml").read_text()
PRIMARY = "- name: payments-primary\n"
SHOWN = DEMO.replace(
    PRIMARY, f'{PRIMARY}  user_group: "@payments-oncall"\n  channel: "#payments"\n  topic: true\n'
)


@pytest.fixture
async def app(sqlite_url: str, clock: FakeClock, sandbox: SandboxServer) -> AsyncIterator[App]:
    settings = slack_settings(
        sandbox, database_url=sqlite_url, secret_key=SecretStr("a secret for tests only")
    )
    made = build(settings, clock)
    await made.setup.apply(parse_config(SHOWN))
    yield made
    await made.pipeline.drain()
    assert made.slack is not None
    await made.slack.transport.close()
    await made.database.close()


async def pass_(app: App, clock: FakeClock, **delta: float) -> None:
    """Time passes: what changed is noticed, and what is due is worked."""
    end = clock.now() + timedelta(**delta)
    while True:
        await app.sweeps.abreast.go()
        await app.worker.run_due()
        due = await app.next_due()
        if due is None or due > end:
            break
        clock.move_to(max(due, clock.now() + timedelta(milliseconds=10)))
    clock.move_to(end)


def group(sandbox: SandboxServer) -> list[str]:
    users: list[str] = sandbox.state.groups["S0PAYMENTS"]["users"]
    return users


async def test_group_and_topic_follow_every_change(
    app: App, clock: FakeClock, sandbox: SandboxServer
) -> None:
    """At once after an override, at its end, and at the handoff; one call for each change."""
    await pass_(app, clock, seconds=1)
    channel = sandbox.state.channels["C0PAYMENTS"]
    assert (group(sandbox), channel.topic) == (["U0ANA"], "📟 payments-primary: ana |")
    directory = await app.roster.directory()
    cho = next(one.id for one in directory.people.values() if one.name == "cho")
    await app.roster.overrides.set(
        schedule_id=min(directory.schedules),
        person_id=cho,
        start_at=clock.now(),
        end_at=clock.now() + timedelta(hours=1),
        actor=Actor("cho", Via.CLI),
    )
    await pass_(app, clock, seconds=1)
    assert (group(sandbox), channel.topic) == (["U0CHO"], "📟 payments-primary: cho |")
    await pass_(app, clock, hours=1)
    assert group(sandbox) == ["U0ANA"]
    clock.move_to(datetime(2026, 3, 9, 7, 59, 30, tzinfo=UTC))
    await pass_(app, clock, seconds=31)
    assert (group(sandbox), channel.topic) == (["U0BEN"], "📟 payments-primary: ben |")
    for method, changes in (("usergroups.users.update", 3), ("conversations.setTopic", 4)):
        assert len(sandbox.ledger.calls(method)) == changes


async def test_the_look_ahead_asks_slack_who_left_and_tells_the_channel(
    app: App, clock: FakeClock, sandbox: SandboxServer
) -> None:
    """Ben was deactivated in Slack, and is on call next week."""
    sandbox.state.users["U0BEN"].deleted = True
    await pass_(app, clock, minutes=1)
    said = [visible_text(message) for message in sandbox.state.channels["C0PAYMENTS"].messages.values()]
    assert any("ben was deactivated in Slack and is on call, first Mon 09 Mar 09:00" in one for one in said)
