"""Slack may be away, refuse, go deaf or come back: Midwatch runs, and connects when it can."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from aiohttp import web

from bot.sandbox.faults import Fault
from bot.sandbox.server import SandboxServer
from bot.slack.connection import Rhythm
from bot.slack.health import SlackState
from engine.db import Database
from engine.models import Actor, DeliveryKind, Via
from engine.schema import deliveries
from tests.fakes import FakeClock
from tests.slack.conftest import Desk, build_desk, slack_settings, until


@pytest.fixture
def rhythm() -> Rhythm:
    """Everything a hundred times as fast."""
    return Rhythm(tick=0.05, ping=0.25, hello_within=1.5, probe=0.1, rebuild_first=0.02, rebuild_last=0.1)


def breaks_socket(desk: Desk, kind: str) -> None:
    desk.sandbox.world.faults.begin(Fault("slack_socket", kind))


async def test_a_dead_ticket_is_not_tried_for_ever(desk: Desk) -> None:
    """Slack gave a ticket and refused the socket: a new ticket is asked for, and it connects."""
    breaks_socket(desk, "outage")
    await desk.slack.start()
    await until(lambda: len(desk.sandbox.ledger.calls("apps.connections.open")) >= 3)
    assert desk.slack._connection._failures == 0, "the ticket was replaced, not the client"
    desk.mends()
    await until(lambda: desk.slack.health.state is SlackState.UP)


async def test_starting_without_slack(desk: Desk) -> None:
    """Slack unreachable at boot: start returns at once, nothing fails, and it connects later."""
    desk.breaks("outage")
    async with asyncio.timeout(1):
        await desk.slack.start()
    await until(lambda: desk.sandbox.ledger.calls("apps.connections.open", ok=False) != [])
    assert desk.slack.health.state is SlackState.DOWN
    desk.mends()
    await until(lambda: desk.slack.health.state is SlackState.UP)
    assert desk.slack.health.reason == ""


async def test_a_hanging_slack_does_not_hold_the_start(desk: Desk) -> None:
    """A Slack that takes calls and never answers is given up again and again."""
    breaks_socket(desk, "hang")
    await desk.slack.start()
    await until(lambda: desk.slack.health.state is not SlackState.UP)
    desk.mends()
    await until(lambda: desk.slack.health.state is SlackState.UP)


async def test_a_lost_socket_is_replaced(desk: Desk) -> None:
    """Cut off, it connects anew and commands work again."""
    await desk.connect()
    connects = desk.slack.health.connects
    await desk.sandbox.world.socket.drop()
    await until(lambda: desk.slack.health.connects > connects)
    await until(lambda: desk.slack.health.state is SlackState.UP)
    assert "payments-primary" in await desk.types("ana", "/oncall")


async def test_a_refresh_by_slack_is_followed(desk: Desk) -> None:
    """Slack asks to connect anew every few hours."""
    await desk.connect()
    connects = desk.slack.health.connects
    await desk.sandbox.world.socket.disconnect("refresh_requested")
    await until(lambda: desk.slack.health.connects > connects)


async def test_cards_show_the_truth_after_an_outage(desk: Desk) -> None:
    """What was acknowledged while Slack was away is on every open card once it is back."""
    await desk.connect()
    incident = await desk.open()
    await desk.card(incident, "#payments")
    await desk.slack.cards.show(incident.id)
    await desk.run_cards()
    desk.breaks("outage")
    await desk.sandbox.world.socket.drop()
    await until(lambda: desk.slack.health.state is SlackState.DOWN)
    await desk.responder.acknowledge(incident.id, Actor("ana", Via.SMS))
    await desk.run_cards()
    (due,) = await desk.card_due()
    assert due > desk.clock.now()
    desk.mends()
    await until(lambda: desk.slack.health.state is SlackState.UP)
    desk.clock.move_to(due - timedelta(seconds=1))
    await desk.cards_come_due()
    assert await desk.run_cards() == 1
    assert desk.said("#payments")[0].text.startswith("🟡 ACKED by @ana")


async def test_a_refused_token_is_an_alarm(desk: Desk) -> None:
    """Slack refuses our token: the state says why, and one alarm goes out by every way there is."""
    desk.breaks("token_revoked")
    await desk.slack.start()
    await until(lambda: desk.slack.health.reason == "token_revoked")
    await until(lambda: len(desk.sandbox.ledger.calls("auth.test")) >= 3)
    async with desk.database.snapshot() as tx:
        told = list(await tx.execute(deliveries.select()))
    assert {row.kind for row in told} == {DeliveryKind.OPS.value}
    texts = {row.body["text"] for row in told}
    assert any("refuses our token (token_revoked)" in text for text in texts)
    assert len({(row.method, row.body["text"]) for row in told}) == len(told)


async def test_stopping_leaves_nothing_behind(desk: Desk) -> None:
    """After the end no task of ours is alive."""
    before = asyncio.all_tasks()

    def ours() -> list[str]:
        """Where they come from; tasks of the sandbox run beside them."""
        frames = [frame for task in asyncio.all_tasks() - before for frame in task.get_stack(limit=1)]
        places = [frame.f_code.co_filename for frame in frames]
        return [place for place in places if "/bot/slack/" in place or "/slack_sdk/" in place]

    await desk.connect()
    assert ours()
    await desk.slack.stop()
    await until(lambda: not desk.sandbox.world.socket.connected)
    await until(lambda: not ours())


async def test_stopping_while_slack_is_away(desk: Desk) -> None:
    """An outage does not hold the end, though a call of ours waits for its answer."""
    hanging = Fault("slack", "hang", times=1000)
    desk.sandbox.world.faults.begin(hanging)
    await desk.slack.start()
    await until(lambda: hanging.times != 1000)
    async with asyncio.timeout(3):
        await desk.slack.stop()


async def test_a_clock_that_is_off_is_seen(desk: Desk) -> None:
    """Ten minutes apart from Slack's own date: the difference is kept for status and doctor."""
    desk.sandbox.world.clock.move_to(desk.clock.now() + timedelta(minutes=10))
    await desk.connect()
    assert abs(desk.slack.health.clock_skew) > timedelta(minutes=9)
    assert "The clock here is" in await desk.types("ana", "/oncall status")


class MuteSlack:
    """A Slack whose sockets open and then say nothing more: not even a pong."""

    def __init__(self, *, says_hello: bool) -> None:
        self.says_hello = says_hello
        self.sockets = 0
        self.over = asyncio.Event()
        self.url = ""

    async def api(self, request: web.Request) -> web.Response:
        about = {"url": f"{self.url}/socket", "team_id": "T0SANDBOX", "user_id": "UM", "bot_id": "BM"}
        return web.json_response({"ok": True, **about})

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=False, autoclose=False)
        await socket.prepare(request)
        self.sockets += 1
        if self.says_hello:
            await socket.send_json({"type": "hello", "num_connections": 1})
        await self.over.wait()
        return socket


@pytest.mark.parametrize("says_hello", [True, False])
async def test_a_socket_that_falls_silent_is_replaced(
    clock: FakeClock, sqlite_url: str, sandbox: SandboxServer, rhythm: Rhythm, says_hello: bool
) -> None:
    """No frame for four pings, or no hello at all: another connection is made."""
    mute = MuteSlack(says_hello=says_hello)
    app = web.Application()
    app.router.add_route("*", "/api/{method}", mute.api)
    app.router.add_get("/socket", mute.socket)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    mute.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    database = Database(sqlite_url)
    desk = build_desk(
        clock, database, sandbox, slack_settings(sandbox, slack_api_url=f"{mute.url}/api"), rhythm
    )
    await desk.slack.start()
    await until(lambda: mute.sockets >= 3)
    mute.over.set()
    await desk.slack.stop()
    await desk.slack.transport.close()
    await database.close()
    await runner.cleanup()


@pytest.fixture
async def by_http(
    clock: FakeClock, sqlite_url: str, sandbox: SandboxServer, rhythm: Rhythm
) -> AsyncIterator[Desk]:
    """Slack by HTTP: no app-level token, so no socket."""
    database = Database(sqlite_url)
    desk = build_desk(clock, database, sandbox, slack_settings(sandbox, slack_app_token=None), rhythm)
    yield desk
    await desk.slack.stop()
    await desk.slack.transport.close()
    await database.close()


async def test_without_a_socket_the_web_api_is_watched(by_http: Desk) -> None:
    """HTTP mode: up once auth.test answers, degraded when it stops answering."""
    await by_http.connect()
    assert by_http.sandbox.ledger.calls("apps.connections.open") == []
