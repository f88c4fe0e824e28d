"""How Slack is, decided from what each process sees of it: up, degraded or down, and what follows.

Pure: never calls Slack, never reads a clock, and takes one lost message for no outage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

FAILURES: Final = 3  # calls in a row, of all processes together: one may be lost by itself
FAILURES_CUT: Final = 1  # and as many are enough where the socket is cut, too
WINDOW: Final = timedelta(minutes=2)  # failures longer ago tell nothing of now
FRESH: Final = timedelta(seconds=30)  # a process that has not reported for longer may be gone
CUT_FOR: Final = timedelta(seconds=10)  # sockets are refreshed every few hours: that is no trouble
SETTLED: Final = timedelta(seconds=5)  # without a failure, before Slack counts as back
ECHO_WITHIN: Final = timedelta(seconds=10)
TOLD_AFTER: Final = timedelta(seconds=60)  # then somebody is told of an outage by another way
REBUILDS: Final = 2  # of a deaf socket, in vain: then it does not come right by itself
WAITS: Final = "Slack is down"  # how the reason of a message begins that waits for Slack
WAIT: Final = timedelta(minutes=10)  # so long at most: it is pulled forward when Slack is back
SKEW_ALARM: Final = timedelta(minutes=5)  # Slack refuses our signatures, and we its requests, at five


class State(StrEnum):
    UP = "up"
    DEGRADED = "degraded"  # pages go out by Slack, and clicks may not come back
    DOWN = "down"  # Slack steps of pages count as failed at once


@dataclass(frozen=True, slots=True)
class Report:
    """What one process sees; what it cannot see is None or empty."""

    owner: str
    at: datetime
    ok_at: datetime | None = None  # the last call that Slack answered
    failed: tuple[datetime, ...] = ()  # the last calls since then that failed for no fault of theirs
    code: str = ""  # of the last of them
    dead_token: str = ""  # Slack refuses our token, and this is its word
    dead_at: datetime | None = None
    heard_at: datetime | None = None  # the last click, command or event
    echo_at: datetime | None = None  # the last reaction of our own among them
    listening: bool | None = None  # None: it is not for this process to hear Slack
    cut_at: datetime | None = None  # since when it has none, while it should
    rebuilds: int = 0  # of the socket, one after the other in vain
    connections: int = 0  # sockets of this app, as Slack counts them
    skew: timedelta = timedelta()  # how far our clock is ahead of Slack's
    calls: int = 0  # in the last minutes
    failures: int = 0  # of those


@dataclass(frozen=True, slots=True)
class Probe:
    """The echo that is waited for: a reaction of ours on a message of ours, seen again as an event."""

    sent_at: datetime | None = None
    waiting: bool = False
    echoed_at: datetime | None = None  # None: this install has never heard one
    missed: int = 0  # one after the other


@dataclass(frozen=True, slots=True)
class Standing:
    """What all processes go by."""

    state: State
    since: datetime
    reason: str = ""
    heard_at: datetime | None = None
    ok_at: datetime | None = None
    probe: Probe = Probe()
    told: str = ""  # the worst state of this trouble that somebody was told of
    down_from: datetime | None = None  # of an outage of which the ops channel has no word yet
    down_until: datetime | None = None

    @property
    def down(self) -> bool:
        return self.state is State.DOWN

    @property
    def deaf(self) -> bool:
        return self.probe.missed > 0


@dataclass(frozen=True, slots=True)
class Figures:
    """What is counted over all processes."""

    calls: int = 0
    failures: int = 0
    connections: int = 0
    listeners: int = 0
    skew: timedelta = timedelta()

    @property
    def unexpected(self) -> int:
        """Sockets of this app that none of our processes holds: another install, or somebody else."""
        return max(0, self.connections - self.listeners)


def fresh(reports: Sequence[Report], now: datetime) -> list[Report]:
    return [one for one in reports if abs(now - one.at) <= FRESH]


def figures(reports: Sequence[Report], now: datetime) -> Figures:
    seen = fresh(reports, now)
    return Figures(
        sum(one.calls for one in seen),
        sum(one.failures for one in seen),
        max((one.connections for one in seen), default=0),
        sum(one.listening is not None for one in seen),
        max((one.skew for one in seen), key=abs, default=timedelta()),
    )


def decide(before: Standing, reports: Sequence[Report], now: datetime) -> Standing:
    """The standing now. What nobody reports any more changes nothing."""
    seen = fresh(reports, now)
    # Why not later than now: a clock that was set back must not make old successes outweigh new failures.
    after = replace(
        before,
        heard_at=_latest(before.heard_at, *(one.heard_at for one in seen), until=now),
        ok_at=_latest(before.ok_at, *(one.ok_at for one in seen), until=now),
    )
    echoed_at = _latest(before.probe.echoed_at, *(one.echo_at for one in seen), until=now)
    after = replace(after, probe=_heard(replace(before.probe, echoed_at=echoed_at), after.heard_at, now))
    state, reason = _state(after, seen, now)
    if state is before.state:
        return replace(after, reason=reason or before.reason)
    return _moved(after, state, reason, seen, now)


def _moved(after: Standing, state: State, reason: str, seen: Sequence[Report], now: datetime) -> Standing:
    moved = replace(after, state=state, since=now, reason=reason)
    if state is State.DOWN:
        began = min((at for one in seen for at in _since_ok(one, after.ok_at)), default=now)
        # An outage that goes on before it was summed up is one outage.
        return replace(moved, down_from=after.down_from or began, down_until=None)
    if after.down:
        moved = replace(moved, down_until=now)
    return replace(moved, told="") if state is State.UP else moved


def _state(standing: Standing, seen: Sequence[Report], now: datetime) -> tuple[State, str]:
    if (down := _why_down(standing, seen, now)) is not None:
        return State.DOWN, down
    if standing.down and not _is_back(standing, seen, now):
        return State.DOWN, ""
    if (cut := _why_cut(seen, now)) is not None:
        return State.DEGRADED, cut
    if standing.deaf:
        return State.DEGRADED, "no event arrives"
    if seen and all(one.listening is None for one in seen):
        return State.DEGRADED, "no process listens to Slack"
    if standing.state is State.DEGRADED and not any(one.listening for one in seen):
        return State.DEGRADED, ""
    return State.UP, ""


def _why_down(standing: Standing, seen: Sequence[Report], now: datetime) -> str | None:
    """A dead token at once; else failures in a row that no success of any process came between."""
    dead = [one for one in seen if one.dead_at is not None and _newer(one.dead_at, standing.ok_at)]
    if dead:
        return dead[-1].dead_token
    failed = [at for one in seen for at in _since_ok(one, standing.ok_at) if now - at <= WINDOW]
    enough = FAILURES_CUT if _why_cut(seen, now, timedelta()) is not None else FAILURES
    if len(failed) < enough:
        return None
    return next((one.code for one in reversed(seen) if one.failed and one.code), "no answer")


def _since_ok(report: Report, ok_at: datetime | None) -> list[datetime]:
    return [at for at in report.failed if _newer(at, ok_at)]


def _is_back(standing: Standing, seen: Sequence[Report], now: datetime) -> bool:
    """A call was answered since, and for a moment none failed."""
    failed = [at for one in seen for at in one.failed]
    return _newer(standing.ok_at, standing.since) and all(now - at >= SETTLED for at in failed)


def _why_cut(seen: Sequence[Report], now: datetime, allowed: timedelta = CUT_FOR) -> str | None:
    """Every process that should hold a socket has held none for a while."""
    hearers = [one for one in seen if one.listening is not None]
    cut = [one for one in hearers if not one.listening and one.cut_at and now - one.cut_at >= allowed]
    return "no socket to Slack" if hearers and len(cut) == len(hearers) else None


def _heard(probe: Probe, heard_at: datetime | None, now: datetime) -> Probe:
    """Whatever is heard ends the silence. Where no echo ever came, silence is no sign of anything."""
    if probe.sent_at is None:
        return probe
    if heard_at is not None and heard_at >= probe.sent_at:
        return replace(probe, waiting=False, missed=0)
    if not probe.waiting or now - probe.sent_at < ECHO_WITHIN:
        return probe
    return replace(probe, waiting=False, missed=probe.missed + 1 if probe.echoed_at else 0)


def to_tell(standing: Standing, reports: Sequence[Report], now: datetime) -> str | None:
    """What somebody must be told now by another way than Slack; once for a trouble, and again if it got
    worse."""
    if standing.down and standing.told != State.DOWN:
        refused = any(one.dead_token for one in fresh(reports, now))
        if refused:
            return (
                f"Slack refuses our token ({standing.reason}): pages go out by the other methods. "
                "Install the app again and set SLACK_BOT_TOKEN."
            )
        if now - standing.since >= TOLD_AFTER:
            return (
                f"Slack is down ({standing.reason}) since {standing.since:%H:%M} UTC: "
                "pages go by SMS, call and mail. SMS STATUS shows more."
            )
    if standing.state is State.DEGRADED and not standing.told:
        rebuilds = max((one.rebuilds for one in fresh(reports, now)), default=0)
        if standing.probe.missed > REBUILDS or rebuilds >= REBUILDS:
            return (
                f"Midwatch does not hear Slack ({standing.reason}) since {standing.since:%H:%M} UTC: "
                "clicks on cards are lost. Answer pages by SMS, and see that it runs."
            )
    return None


def _latest(*instants: datetime | None, until: datetime) -> datetime | None:
    return max((min(one, until) for one in instants if one is not None), default=None)


def _newer(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and (other is None or one > other)
