"""Times as people type them, read on their own wall clock: intervals, and single moments.

Never guesses in silence: what the grammar does not know is refused with the forms that it knows.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.slack.escape import code
from bot.slack.grammar.typed import folded, plainly, tidy
from bot.slack.grammar.when import Span, read, read_at
from bot.slack.grammar.when_parts import BadTime
from engine.errors import BadCommand

__all__ = ["FORMS", "Span", "read_interval", "read_moment", "read_span"]

FORMS: Final = "`2h`, `1h30m`, `until 18:00`, `tomorrow 9am to 5pm`, `fri 18:00 - mon 9:00`"
MOMENTS: Final = "`18:00`, `fri 6pm`, `tomorrow 9am`, `2026-12-24 18:00`, `in 2h`"
READ_AT_MOST: Final = 120


def read_interval(text: str, now: datetime, zone: ZoneInfo, *, past: bool = False) -> Span:
    """An interval, exactly: a bare day at its end is included, and what there is not is refused.

    With `past` it may lie behind, as a question about it may.
    """
    words = _words(text)
    try:
        return read(words, now, zone, past=past)
    except BadTime as wrong:
        raise BadCommand(f"{_lead(words, wrong)}. Times: {FORMS}.") from None


def read_moment(text: str, now: datetime, zone: ZoneInfo) -> datetime:
    """One moment, exactly."""
    words = _words(text)
    try:
        return read_at(words, now, zone)
    except BadTime as wrong:
        raise BadCommand(f"{_lead(words, wrong)}. Times: {MOMENTS}.") from None


def read_span(words: str, now: datetime, zone: ZoneInfo) -> Span | None:
    """An interval in which one waits for its end, as of a snooze; None for what is no time."""
    if len(words) > READ_AT_MOST:
        return None
    try:
        return read(words.strip(), now, zone, lenient=True)
    except BadTime:
        return None


def _words(text: str) -> str:
    words = folded(tidy(text))
    if len(words) > READ_AT_MOST:
        raise BadCommand(f"That is more than I can read. Times: {FORMS}.")
    return words


def _lead(words: str, wrong: BadTime) -> str:
    understood, rest = words[: wrong.at].strip(), words[wrong.at :].strip()
    if not words:
        return "Say for how long"
    if not understood:
        return f"I don't understand {code(plainly(words))} as a time"
    if wrong.ended:
        return f"{code(plainly(words))} is not a whole time"
    return f"I understand {code(plainly(understood))}, but not {code(plainly(rest))} after it"
