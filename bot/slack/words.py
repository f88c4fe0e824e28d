"""How states, ways and times are put into words on cards and in answers.

Never builds blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from bot.slack import escape
from engine.models import IncidentStatus, IncidentView, Method, Severity, Via
from engine.schedule.zones import zone_named


class State(StrEnum):
    """What a card says first; the value is the colour of its bar."""

    FIRING = "#d92d20"
    ACKED = "#e8a90c"
    UNANSWERED = "#1f2937"
    SNOOZED = "#98a1ad"
    RESOLVED = "#1f9d55"


EMOJI: Final[Mapping[State, str]] = {
    State.FIRING: "🔴",
    State.ACKED: "🟡",
    State.UNANSWERED: "⚫",
    State.SNOOZED: "⚪",
    State.RESOLVED: "🟢",
}

VIA: Final[Mapping[Via, str]] = {
    Via.SLACK_BUTTON: "via Slack button",
    Via.SLACK_COMMAND: "via Slack command",
    Via.SLACK_MENTION: "via Slack mention",
    Via.SMS: "via SMS",
    Via.VOICE: "via phone call",
    Via.WEB: "via web",
    Via.API: "via API",
    Via.CLI: "via command line",
    Via.SOURCE: "by its source",
    Via.TIMER: "by a timer",
    Via.CONFIG: "via midwatch.yaml",
}

# Why not for all: a source, a token or the command line is no person one could address.
_PEOPLE: Final = frozenset(
    {Via.SLACK_BUTTON, Via.SLACK_COMMAND, Via.SLACK_MENTION, Via.SMS, Via.VOICE, Via.WEB}
)

METHOD: Final[Mapping[Method, str]] = {
    Method.SLACK: "DM",
    Method.SMS: "SMS",
    Method.VOICE: "call",
    Method.EMAIL: "e-mail",
    Method.PUSH: "push",
    Method.CHANNEL: "channel",
    Method.URL: "notification",
}


def state_of(view: IncidentView) -> State:
    if view.status is IncidentStatus.RESOLVED:
        return State.RESOLVED
    if view.status is IncidentStatus.UNANSWERED:
        return State.UNANSWERED
    if view.status is IncidentStatus.ACKNOWLEDGED:
        return State.SNOOZED if view.snoozed_until else State.ACKED
    return State.FIRING


def state_words(view: IncidentView) -> str:
    """Emoji and state word, and for an ack whose it is."""
    state = state_of(view)
    words = f"{EMOJI[state]} {state.name}"
    if state is State.ACKED and view.acknowledged_by:
        return f"{words} by {who(view.acknowledged_by, view.acknowledged_via)}"
    return words


def who(name: str, via: Via | None) -> str:
    shown = escape.line(name, 80)
    return f"@{shown}" if via in _PEOPLE and not shown.startswith("@") else shown


def how(via: Via | None) -> str:
    return VIA[via] if via else ""


def severity(view: IncidentView) -> str:
    if view.severity is None:
        return escape.line(view.raw_severity, 40) or "severity unknown"
    known = view.severity.value
    raw = escape.line(view.raw_severity, 40)
    return known if not raw or raw.lower() in set(Severity) else f"{known} ({raw})"


def level(number: int) -> str:
    """Rungs count from 1 for people; a reassignment and the fallback chain have names."""
    return {-1: "reassigned", -2: "fallback chain"}.get(number, f"level {number + 1}")


def duration(length: timedelta) -> str:
    """ "1 h 30 min"; the two largest units."""
    seconds = max(0, int(length.total_seconds()))
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def wall(at: datetime, timezone: str) -> str:
    """An instant as the wall clock of that zone shows it, with the zone."""
    zone = zone_of(timezone)
    return f"{at.astimezone(zone):%a %d %b %H:%M} {zone.key}"


def zone_of(name: str) -> ZoneInfo:
    """The zone of that name; UTC for a name that is none."""
    return zone_named(name) or ZoneInfo("UTC")
