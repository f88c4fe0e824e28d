"""Midwatch asks Slack for an echo when it is quiet, and notices a socket that is up and deaf."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.sandbox.faults import Fault
from bot.sandbox.server import SandboxServer
from bot.sandbox.state import Message
from bot.slack.connection import Rhythm
from bot.slack.health import SlackState
from bot.slack.probe import QUIET, QUIET_DEAF, REACTED, REACTION, TEXT
from engine.db import Database
from engine.outage import ECHO_WITHIN, Standing
from engine.schema import deliveries
from tests.fakes import FakeClock
from tests.slack.conftest import Desk, build_desk, slack_settings, until

SECOND = timedelta(seconds=1)


@pytest.fixture
def rhythm() -> Rhythm:
    """Everything a hundred times as fast."""
    return Rhythm(tick=0.05, ping=0.25, hello_within=1.5, probe=0.1, rebuild_first=0.02, rebuild_last=0.1)


def standing(desk: Desk) -> Standing:
    found = desk.slack.watch.standing
    assert found is not None
    return found


async def connects(desk: Desk) -> None:
    await desk.connect()
    await until(lambda: desk.slack.watch.standing is not None)


def spots(desk: Desk) -> list[Message]:
    """The messages in the ops channel on which the reaction is toggled."""
    return [one for one in desk.said("#ops") if one.text == TEXT and not one.deleted]


def toggles(desk: Desk) -> int:
    return len(desk.sandbox.ledger.calls("reactions.add")) + len(
        desk.sandbox.ledger.calls("reactions.remove")
    )


async def is_asked(desk: Desk, after: timedelta = QUIET) -> None:
    """Time passes in silence, and the reaction is toggled once more."""
    before = toggles(desk)
    desk.clock.move_to(desk.clock.now() + after)
    await until(lambda: toggles(desk) == before + 1)


async def hears_an_echo(desk: Desk) -> None:
    await is_asked(desk)
    await until(lambda: not standing(desk).probe.waiting and standing(desk).heard_at == desk.clock.now())


async def goes_deaf(desk: Desk) -> None:
    """Sockets stay up, and no event comes through them."""
    desk.sandbox.world.faults.begin(Fault("slack_socket", "deaf"))
    await is_asked(desk)
    await until(lambda: standing(desk).probe.waiting)
    desk.clock.move_to(desk.clock.now() + ECHO_WITHIN)
    await until(lambda: standing(desk).probe.missed == 1)


async def misses_another(desk: Desk, missed: int) -> None:
    """It was rebuilt, is asked again, and hears nothing."""
    await until(lambda: desk.slack.health.connects >= missed and desk.slack.health.listening)
    await is_asked(desk, QUIET_DEAF)
    await until(lambda: standing(desk).probe.waiting)
    desk.clock.move_to(desk.clock.now() + ECHO_WITHIN)
    await until(lambda: standing(desk).probe.missed == missed)


async def test_the_reaction_is_seen_again_and_leaves_no_trace(desk: Desk) -> None:
    """Put on, seen as an event, taken off the next time: one message in the ops channel, for ever."""
    await connects(desk)
    await hears_an_echo(desk)
    assert standing(desk).probe.echoed_at == desk.clock.now()
    (spot,) = spots(desk)
    assert list(spot.reactions) == [REACTION]
    await hears_an_echo(desk)
    assert spots(desk) == [spot]
    assert spot.reactions == {}
    assert desk.slack.health.state is SlackState.UP


async def test_nothing_is_asked_while_something_is_heard(desk: Desk) -> None:
    """A command within the minute is sign enough."""
    await connects(desk)
    desk.clock.move_to(desk.clock.now() + QUIET - SECOND)
    await desk.types("ana", "/oncall")
    await until(lambda: standing(desk).heard_at == desk.clock.now())
    desk.clock.move_to(desk.clock.now() + QUIET - SECOND)
    await desk.types("ana", "/oncall")
    assert toggles(desk) == 0
    assert spots(desk) == []


async def test_a_deleted_message_is_posted_anew(desk: Desk) -> None:
    """Somebody tidied the ops channel up."""
    await connects(desk)
    await hears_an_echo(desk)
    (spot,) = spots(desk)
    spot.deleted = True
    before = len(spots(desk))
    desk.clock.move_to(desk.clock.now() + QUIET)
    await until(lambda: len(spots(desk)) == before + 1)
    await until(lambda: standing(desk).heard_at == desk.clock.now())


async def test_a_reaction_that_somebody_took_off_is_followed(desk: Desk) -> None:
    """Our note says it is on, and it is not: the other way round is tried, and the echo comes."""
    await connects(desk)
    await hears_an_echo(desk)
    (spot,) = spots(desk)
    spot.reactions.clear()
    desk.clock.move_to(desk.clock.now() + QUIET)
    await until(lambda: standing(desk).heard_at == desk.clock.now())
    assert list(spot.reactions) == [REACTION]


async def test_a_deaf_socket_is_rebuilt_and_then_told(desk: Desk) -> None:
    """No echo within ten seconds: another socket, twice; then an alarm, by another way (F-45, B088)."""
    await connects(desk)
    await hears_an_echo(desk)
    await goes_deaf(desk)
    found = standing(desk)
    assert (found.state, found.reason) == (SlackState.DEGRADED, "no event arrives")
    for missed in (2, 3):
        assert standing(desk).told == ""
        await misses_another(desk, missed)
    await until(lambda: standing(desk).told == SlackState.DEGRADED)
    async with desk.database.snapshot() as tx:
        told = list(await tx.execute(deliveries.select()))
    assert {row.method for row in told} >= {"sms", "url"}
    assert all("does not hear Slack (no event arrives)" in row.body["text"] for row in told)


async def test_it_hears_again(desk: Desk) -> None:
    """The socket is mended: the next echo ends the trouble, and clicks work."""
    await connects(desk)
    await hears_an_echo(desk)
    await goes_deaf(desk)
    desk.mends()
    await until(lambda: desk.slack.health.listening)
    await is_asked(desk, QUIET_DEAF)
    await until(lambda: standing(desk).state is SlackState.UP)
    assert "payments-primary" in await desk.types("ana", "/oncall")


async def test_without_an_echo_ever_nothing_is_called_deaf(desk: Desk) -> None:
    """An app that was installed before the event was asked for gets none: that is no trouble."""
    options = desk.sandbox.world.options
    desk.sandbox.world.options = replace(options, events=options.events - REACTED)
    await connects(desk)
    await is_asked(desk)
    await until(lambda: standing(desk).probe.waiting)
    desk.clock.move_to(desk.clock.now() + ECHO_WITHIN)
    await until(lambda: not standing(desk).probe.waiting)
    assert standing(desk).state is SlackState.UP
    assert desk.slack.health.connects == 1


async def test_a_missing_scope_is_said(desk: Desk) -> None:
    """Installed without reactions:write: no probe, and the status says why."""
    options = desk.sandbox.world.options
    desk.sandbox.world.options = replace(options, scopes=options.scopes - {"reactions:write"})
    await connects(desk)
    await is_asked(desk)
    await until(lambda: desk.slack.health.probe_off != "")
    assert "reactions:write is missing" in await desk.types("ana", "/oncall status")


@pytest.fixture
async def pair(desk: Desk, sandbox: SandboxServer, rhythm: Rhythm) -> AsyncIterator[tuple[Desk, Desk]]:
    """Two processes on one database."""
    database = Database(desk.database.url)
    other = build_desk(desk.clock, database, sandbox, slack_settings(sandbox), rhythm)
    other.slack.watch.owner = "there"
    yield desk, other
    await other.slack.stop()
    await other.slack.transport.close()
    await database.close()


async def test_of_two_processes_one_asks_and_any_hears(pair: tuple[Desk, Desk]) -> None:
    """Slack gives each event to one of the sockets; both know of it."""
    one, other = pair
    await connects(one)
    await connects(other)
    for _ in range(3):
        await is_asked(one)
        now = one.clock.now()
        await until(lambda: {standing(one).heard_at, standing(other).heard_at} == {now})  # noqa: B023  # met at once
    assert toggles(one) == 3
    # Each is counted once it has reported: for a moment the other's socket may be nobody's.
    await until(lambda: {each.slack.watch.figures.unexpected for each in pair} == {0})


async def test_without_an_ops_channel_there_is_no_probe(
    clock: FakeClock, sqlite_url: str, sandbox: SandboxServer, rhythm: Rhythm
) -> None:
    """There is no place for the message, and the status says so."""
    database = Database(sqlite_url)
    desk = build_desk(clock, database, sandbox, slack_settings(sandbox, ops_channel=None), rhythm)
    await connects(desk)
    clock.move_to(clock.now() + 2 * QUIET)
    await until(lambda: desk.slack.watch.standing is not None)
    assert toggles(desk) == 0
    assert "MIDWATCH_OPS_CHANNEL is not set" in await desk.types("ana", "/oncall status")
    await desk.slack.stop()
    await desk.slack.transport.close()
    await database.close()
