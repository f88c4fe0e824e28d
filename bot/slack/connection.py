"""Slack as a supervised task: connected when it can be, and Midwatch runs either way.

Never awaited at start, never ends the process. In HTTP mode there is no socket, and this only
looks from time to time whether Slack's Web API answers.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

import structlog
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.slack.client import SlackClient
from bot.slack.errors import trouble_of
from bot.slack.health import SlackHealth
from bot.slack.probe import is_echo
from bot.slack.socket import Socket
from bot.slack.workspace import Workspace
from engine.clock import Clock, monotonic
from engine.outage import Standing

log = structlog.get_logger(__name__)

SKEW_ALLOWED: Final = timedelta(seconds=60)
NEEDED_SCOPES: Final = frozenset({"chat:write", "commands", "im:write", "users:read"})
STOP_WITHIN: Final = timedelta(seconds=1)  # what it asks Slack then, nobody needs any more


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Seconds, on the monotonic clock."""

    tick: float = 2.0
    ping: float = 5.0
    hello_within: float = 30.0
    probe: float = 10.0
    rebuild_first: float = 1.0
    rebuild_last: float = 30.0


class Connection:
    """`on_back` is called whenever Slack works again."""

    def __init__(
        self,
        app: AsyncApp,
        client: SlackClient,
        health: SlackHealth,
        workspace: Workspace,
        clock: Clock,
        *,
        app_token: str | None,
        on_back: Callable[[], Awaitable[None]],
        standing: Callable[[], Standing | None],
        rhythm: Rhythm | None = None,
    ) -> None:
        self._app = app
        self._client = client
        self._health = health
        self._workspace = workspace
        self._clock = clock
        self._app_token = app_token
        self._on_back = on_back
        self._standing = standing
        self._rhythm = rhythm or Rhythm()
        self._stopping = asyncio.Event()
        self._wake = asyncio.Event()
        self._probe_at = 0.0
        self._failures = 0
        self._task: asyncio.Task[None] | None = None
        self.ticked_at = monotonic()  # that Slack is away is no reason not to

    @property
    def tick_s(self) -> float:
        return self._rhythm.tick

    async def start(self) -> None:
        self._health.will_hear()
        self._task = asyncio.create_task(self._run(), name="slack")

    async def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=STOP_WITHIN.total_seconds())
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        """Until stopped: a socket for as long as it lives, then another."""
        while not self._stopping.is_set():
            try:
                reason = await (self._by_socket(self._app_token) if self._app_token else self._by_http())
            except Exception as error:
                log.exception("slack.connection_failed")
                reason = type(error).__name__
            if self._stopping.is_set():
                return
            self._failures += 1
            self._health.socket_down(reason)
            self._health.rebuilds = self._failures  # told by whoever looks at all processes
            log.warning("slack.rebuilding", reason=reason, failures=self._failures)
            await self._pause(self._delay())

    def _delay(self) -> float:
        grown = self._rhythm.rebuild_first * float(2 ** min(self._failures, 10))
        return min(self._rhythm.rebuild_last, grown) * random.uniform(0.5, 1)  # noqa: S311  # so that not all connect at once

    async def _by_socket(self, app_token: str) -> str:
        """Keep one socket; why it was given up."""
        self._client.session()
        socket = Socket(
            self._app,
            app_token,
            self._client.web,
            ping_interval=self._rhythm.ping * random.uniform(0.9, 1.1),  # noqa: S311  # likewise
            hello_within=self._rhythm.hello_within,
            on_hello=self._hello,
            on_request=self.heard,
        )
        missed = self._missed()
        try:
            while not self._stopping.is_set():
                reason = await socket.trouble()
                if reason is None and self._missed() > missed:
                    reason = "deaf"  # it pings, and no event arrives: some socket of ours must be new
                if reason is not None:
                    return reason
                missed = min(missed, self._missed())
                self._note(socket)
                await self._tick()
        finally:
            await socket.close()
        return "stopping"

    def heard(self, payload: Mapping[str, Any]) -> None:
        """Whatever Slack sends, before Bolt drops what is of our own doing."""
        self._health.heard(echo=is_echo(payload, self._workspace.bot_user_id))

    def _missed(self) -> int:
        standing = self._standing()
        return standing.probe.missed if standing is not None else 0

    def _note(self, socket: Socket) -> None:
        """Pass on whether the socket lives; one that missed a few pings may come back by itself."""
        if socket.up and not self._health.listening:
            self._health.socket_up(self._health.connections)
        elif not socket.up and (socket.refused or self._health.listening):
            self._health.socket_down(socket.refused or "disconnected")

    async def _by_http(self) -> str:
        self._health.socket_up(0)
        while not self._stopping.is_set():
            await self._tick()
        return "stopping"

    def _hello(self, connections: int) -> None:
        self._failures = 0
        self._probe_at = 0.0
        self._health.socket_up(connections)
        log.info("slack.connected", connections=connections)
        self._wake.set()

    async def _tick(self) -> None:
        """Ask Slack who we are when that is due, show the cards when they may be stale, then wait."""
        standing = self._standing()
        sure = self._health.posting and self._health.listening and self._workspace.team_id is not None
        sure = sure and not (standing is not None and standing.down)
        if self._probe_at == 0.0 or (not sure and monotonic() >= self._probe_at):
            await self._probe()
        if self._health.cards_stale and self._health.posting:
            self._health.cards_stale = False
            try:
                await self._on_back()
            except Exception:
                log.exception("slack.cards_not_armed")
                self._health.cards_stale = True
        await self._pause(self._rhythm.tick)

    async def _probe(self) -> None:
        self._probe_at = monotonic() + self._rhythm.probe
        try:
            answer = await self._client.call(self._client.web.auth_test())
        except Exception as error:
            trouble = trouble_of(error)
            self._health.failed(trouble)
            log.warning("slack.probe_failed", code=trouble.code)
            return
        self._workspace.team_id = answer.get("team_id")
        self._workspace.bot_user_id = answer.get("user_id")
        self._workspace.bot_id = answer.get("bot_id")
        self._look_at(answer)
        self._health.works()

    def _look_at(self, answer: AsyncSlackResponse) -> None:
        """What the headers tell: Slack's clock against ours, and the scopes we were given."""
        headers = answer.headers or {}
        with suppress(KeyError, ValueError, TypeError):
            self._health.clock_skew = self._clock.now() - parsedate_to_datetime(headers["Date"])
            if abs(self._health.clock_skew) > SKEW_ALLOWED:
                log.warning("slack.clock_skew", seconds=int(self._health.clock_skew.total_seconds()))
        given = {scope.strip() for scope in (headers.get("x-oauth-scopes") or "").split(",")}
        if given != {""}:
            self._health.missing_scopes = tuple(sorted(NEEDED_SCOPES - given))
            if self._health.missing_scopes:
                log.error("slack.missing_scopes", scopes=self._health.missing_scopes)

    async def _pause(self, seconds: float) -> None:
        """Wait, or until there is something to do."""
        self.ticked_at = monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        if not self._stopping.is_set():
            self._wake.clear()
