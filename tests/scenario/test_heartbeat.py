"""The dead man's switch: hears from us while all is well, and nothing else does."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest
import structlog
from aiohttp import web

from engine import heartbeat
from engine.clock import monotonic
from engine.errors import Unavailable
from engine.heartbeat import Heartbeat
from engine.pulse import SILENT, Pulse
from tests.notify.phone_company import serving
from tests.scenario.harness import Pager
from tests.scenario.sending import counted

SECRET = "a-uuid-that-is-the-whole-secret"


class Receiver:
    """Counts the pings, and answers what it is told to; `hangs` until it is let go."""

    def __init__(self, status: int = 200) -> None:
        self.heard: list[str] = []
        self.status = status
        self.hangs = False
        self.let_go = asyncio.Event()

    async def ping(self, request: web.Request) -> web.Response:
        self.heard.append(request.path)
        if self.hangs:
            await self.let_go.wait()
        return web.Response(status=self.status, headers={"Location": "/elsewhere"})

    @property
    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get(f"/{SECRET}", self.ping)
        app.router.add_get("/elsewhere", self.ping)
        return app


@pytest.fixture
def pulse() -> Pulse:
    return Pulse()


def beating(pager: Pager, pulse: Pulse, url: str) -> Heartbeat:
    return Heartbeat(pager.app.database, pulse, f"{url}/{SECRET}")


async def test_it_hears_from_us_while_every_loop_ticks(pager: Pager, pulse: Pulse) -> None:
    """A ping while all is well, and none when one loop has stopped: silence is the alarm (B040, F-40)."""
    ticked_at = monotonic()
    pulse.expect("fate", lambda: ticked_at)
    receiver = Receiver()
    async with serving(receiver.app) as url:
        beat = beating(pager, pulse, url)
        assert await beat.ping() is True
        ticked_at -= 2 * SILENT.total_seconds()
        pulse._loops["fate"].since = ticked_at
        assert await beat.ping() is False
    assert receiver.heard == [f"/{SECRET}"]


async def test_it_hears_nothing_while_commits_fail(
    pager: Pager, pulse: Pulse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops that tick and a database that takes nothing are not well."""

    async def full(*_: Any, **__: Any) -> None:
        raise Unavailable

    receiver = Receiver()
    async with serving(receiver.app) as url:
        beat = beating(pager, pulse, url)
        with monkeypatch.context() as patched:
            patched.setattr(pager.app.database, "write", full)
            assert await beat.ping() is False
        assert receiver.heard == []
        assert await beat.ping() is True


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_only_a_yes_counts(pager: Pager, pulse: Pulse, status: int) -> None:
    """An error is no beat, and a redirect is not followed: its end may be anybody's login page."""
    receiver = Receiver(status)
    async with serving(receiver.app) as url:
        before = counted("heartbeats_total", outcome="failed")
        assert await beating(pager, pulse, url).ping() is False
    assert receiver.heard == [f"/{SECRET}"]
    assert counted("heartbeats_total", outcome="failed") == before + 1


async def test_one_that_hangs_holds_up_nothing(
    pager: Pager, pulse: Pulse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up in time, and while it hangs alerts are taken and pages go out (B126)."""
    assert timedelta(seconds=5) == heartbeat.PING_TIMEOUT
    monkeypatch.setattr(heartbeat, "PING_TIMEOUT", timedelta(seconds=1))
    receiver = Receiver()
    receiver.hangs = True
    async with serving(receiver.app) as url:
        beat = asyncio.create_task(beating(pager, pulse, url).ping())
        await asyncio.sleep(0)
        await pager.alert()
        pager.expect_page("alice", "slack")
        assert await asyncio.wait_for(beat, 10) is False
        receiver.let_go.set()
    await pager.ack()


async def test_its_url_is_never_shown(pager: Pager, pulse: Pulse, caplog: pytest.LogCaptureFixture) -> None:
    """The URL is a secret: no way to fail puts it into a log (B119)."""
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as logs:
        for url in ("http://127.0.0.1:1", "http://no-such-host.invalid", "http://[broken"):
            assert await beating(pager, pulse, url).ping() is False
        receiver = Receiver(500)
        async with serving(receiver.app) as url:
            assert await beating(pager, pulse, url).ping() is False
    assert len(logs) == 4
    assert SECRET not in f"{logs}{caplog.text.replace(f'GET /{SECRET}', '')}"
