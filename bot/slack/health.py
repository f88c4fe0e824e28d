"""How Slack is doing as seen from here: its socket, its Web API, our token.

Never connects to anything; others report, and whoever asks reads. A Slack outage is a detail of
Midwatch's health, never its end.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import structlog

from bot.slack.errors import Kind, Trouble
from engine.clock import Clock

log = structlog.get_logger(__name__)


class SlackState(StrEnum):
    UP = "up"
    DEGRADED = "degraded"  # one of the two ways works: posting, or hearing clicks
    DOWN = "down"


class SlackHealth:
    """`listening` is the socket (in HTTP mode: that Slack can reach us is taken for granted)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.state = SlackState.DOWN
        self.since: datetime = clock.now()
        self.reason = "not connected yet"
        self.listening = False
        self.posting = False
        self.cards_stale = False  # Slack came back: every open card must be shown anew
        self.last_event_at: datetime | None = None
        self.connects = 0
        self.connections = 0  # sockets of this app, as Slack counts them
        self.clock_skew = timedelta()
        self.missing_scopes: tuple[str, ...] = ()

    def heard(self) -> None:
        """Slack sent something: a click, a command, an event."""
        self.last_event_at = self._clock.now()

    def socket_up(self, connections: int) -> None:
        self.connects += 1
        self.connections = connections
        self.listening = True
        self.cards_stale = True
        self._settle()

    def socket_down(self, reason: str) -> None:
        self.listening = False
        self._settle(reason)

    def works(self) -> None:
        """The Web API answered."""
        if not self.posting:
            self.posting = True
            self.cards_stale = True
            self._settle()

    def failed(self, trouble: Trouble) -> None:
        """A call failed; only an outage or a dead token says something about Slack itself."""
        if trouble.kind in {Kind.TRANSIENT, Kind.DOWN}:
            self.posting = False
            self._settle(trouble.code)

    def _settle(self, reason: str = "") -> None:
        up = (self.listening, self.posting)
        state = SlackState.UP if all(up) else SlackState.DEGRADED if any(up) else SlackState.DOWN
        if state is not self.state:
            log.info("slack.state", state=state.value, was=self.state.value, reason=reason)
            self.state, self.since = state, self._clock.now()
        self.reason = "" if state is SlackState.UP else reason or self.reason
