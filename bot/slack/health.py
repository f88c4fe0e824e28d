"""How Slack is doing as this process sees it: its socket, its Web API, our token.

Never connects to anything; others report, and whoever asks reads. A Slack outage is a detail of
Midwatch's health, never its end. What all processes go by is the standing of `SlackWatch`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog

from bot.slack.errors import Kind, Trouble
from engine.clock import Clock
from engine.outage import FAILURES, Report
from engine.outage import State as SlackState

__all__ = ["SlackHealth", "SlackState"]

log = structlog.get_logger(__name__)

COUNTED: Final = timedelta(minutes=5)
COUNTED_MOST: Final = 1_000


def nobody_hears() -> None:
    """Where nobody waits for news."""


class SlackHealth:
    """`listening` is the socket (in HTTP mode: that Slack can reach us is taken for granted)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.state = SlackState.DOWN
        self.since: datetime = clock.now()
        self.reason = "not connected yet"
        self.hears = False  # is it for this process to hear Slack?
        self.listening = False
        self.posting = False
        self.cards_stale = False  # Slack came back: every open card must be shown anew
        self.last_event_at: datetime | None = None
        self.connects = 0
        self.connections = 0  # sockets of this app, as Slack counts them
        self.rebuilds = 0  # of the socket, one after the other in vain
        self.clock_skew = timedelta()
        self.missing_scopes: tuple[str, ...] = ()
        self.probe_off = ""  # why nobody asks for an echo
        self.on_news: Callable[[], None] = nobody_hears
        self._echo_at: datetime | None = None
        self._ok_at: datetime | None = None
        self._failed: deque[datetime] = deque(maxlen=FAILURES)
        self._code = ""
        self._dead: tuple[str, datetime] | None = None  # our token: Slack's word, and since when
        self._cut_at: datetime | None = None
        self._calls: deque[tuple[datetime, bool]] = deque(maxlen=COUNTED_MOST)

    def will_hear(self) -> None:
        """From now on this process should hear Slack."""
        self.hears, self._cut_at = True, self._clock.now()

    def heard(self, *, echo: bool = False) -> None:
        """Slack sent something: a click, a command, an event, maybe one of our own doing."""
        self.last_event_at = self._clock.now()
        if echo:
            self._echo_at = self.last_event_at
            self.on_news()

    def socket_up(self, connections: int) -> None:
        self.connects += 1
        # A socket that takes the place of another is counted beside it.
        self.connections = max(0, connections - self.listening)
        self.listening, self._cut_at, self.rebuilds = True, None, 0
        self.cards_stale = True
        self._settle()

    def socket_down(self, reason: str) -> None:
        if self.listening:
            self._cut_at = self._clock.now()
        self.listening = False
        self._settle(reason)

    def works(self) -> None:
        """The Web API answered."""
        news = self._dead is not None or bool(self._failed)
        self._answered()
        if not self.posting:
            self.posting = True
            self.cards_stale = True
            self._settle()
        if news:
            self.on_news()

    def doubt(self) -> None:
        """Slack says that something happened to our install: whoever probes does so at once."""
        self.posting = False
        self._settle("in doubt")

    def failed(self, trouble: Trouble) -> None:
        """A call failed; only an outage or a dead token says something about Slack itself."""
        if not trouble.outage:
            if trouble.kind is not Kind.TRANSIENT:
                self._answered()
            return
        now = self._clock.now()
        self._calls.append((now, False))
        self._failed.append(now)
        self._code = trouble.code
        if trouble.kind is Kind.DOWN:
            self._dead = (trouble.code, now)
        self.posting = False
        self._settle(trouble.code)
        self.on_news()

    def report(self, owner: str) -> Report:
        """What the other processes should know of it."""
        now = self._clock.now()
        counted = [well for at, well in self._calls if now - at <= COUNTED]
        return Report(
            owner,
            now,
            ok_at=self._ok_at,
            failed=tuple(self._failed),
            code=self._code,
            dead_token=self._dead[0] if self._dead else "",
            dead_at=self._dead[1] if self._dead else None,
            heard_at=self.last_event_at,
            echo_at=self._echo_at,
            listening=self.listening if self.hears else None,
            cut_at=self._cut_at,
            rebuilds=self.rebuilds,
            connections=self.connections if self.listening else 0,
            skew=self.clock_skew,
            calls=len(counted),
            failures=counted.count(False),
        )

    def _answered(self) -> None:
        self._ok_at = self._clock.now()
        self._calls.append((self._ok_at, True))
        self._failed.clear()
        self._code, self._dead = "", None

    def _settle(self, reason: str = "") -> None:
        up = (self.listening, self.posting)
        state = SlackState.UP if all(up) else SlackState.DEGRADED if any(up) else SlackState.DOWN
        if state is not self.state:
            log.info("slack.state", state=state.value, was=self.state.value, reason=reason)
            self.state, self.since = state, self._clock.now()
            self.on_news()
        self.reason = "" if state is SlackState.UP else reason or self.reason
