"""Overrides as people type them: who takes over, for how long, on which schedule, in any order.

Never looks anything up: names are kept as typed, and `overrides` finds what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.slack.escape import code
from bot.slack.grammar.times import FORMS, Span
from bot.slack.grammar.tokens import MENTION, QUOTED, UNKNOWN, name_in, numbers
from bot.slack.grammar.typed import folded, plainly, tidy
from bot.slack.grammar.when import read
from bot.slack.grammar.when_parts import BadTime, looks_like_time
from engine.errors import BadCommand

FORM: Final = (
    "`/override @user 2h [schedule]`, for example `/override payments @ana tomorrow 9am to 5pm`; "
    "`/override` alone opens a form"
)
CANCEL: Final = "`/override cancel 7`"
READ_AT_MOST: Final = 24  # words
_APART: Final = "\0"  # where a quoted name stood
_BETWEEN: Final = re.compile(r"<@[UW][A-Z0-9]{1,30}(?:\|[^>]*)?>|\0", re.IGNORECASE)
_SMALL: Final = frozenset({"on", "for", "in", "at", "to"})


@dataclass(frozen=True, slots=True)
class SetOverride:
    slack_user_id: str | None  # None: the person asking
    span: Span
    schedule: str | None


@dataclass(frozen=True, slots=True)
class OverrideForm:
    """Nothing was said besides: the form asks for it."""


@dataclass(frozen=True, slots=True)
class Stranger:
    """@name as plain text: Slack makes a mention of whom it knows, so it knows nobody of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOverrides:
    schedule: str | None = None


@dataclass(frozen=True, slots=True)
class CancelOverride:
    override_id: int


Command = SetOverride | OverrideForm | Stranger | ListOverrides | CancelOverride


def parse(text: str, now: datetime, zone: ZoneInfo) -> Command:
    raw = tidy(text)
    words = folded(raw)
    first, _, rest = words.partition(" ")
    if not first:
        return OverrideForm()
    if first in {"list", "ls"}:
        return ListOverrides(name_in(rest))
    if first in {"cancel", "remove", "delete", "end"}:
        named = numbers(rest, CANCEL, "number of an override")
        if len(named) != 1:
            raise BadCommand(f"Name one override by its number: {CANCEL}; `/override list` shows them.")
        return CancelOverride(named[0])
    unknown = UNKNOWN.search(words)
    if unknown and not MENTION.search(raw):
        return Stranger(unknown[1])
    return _set(words, now, zone)


def _set(words: str, now: datetime, zone: ZoneInfo) -> SetOverride:
    users = {match.upper() for match in MENTION.findall(words)}
    if len(users) > 1:
        raise BadCommand(f"Mention one person only: {FORM}.")
    quoted = QUOTED.search(words)
    pieces = [piece.split() for piece in _BETWEEN.split(QUOTED.sub(_APART, words))]
    if not users:
        pieces = _without_me(pieces)
    if sum(map(len, pieces)) > READ_AT_MOST:
        raise BadCommand(f"That is more than I can read: {FORM}.")
    span, left = _time_in(pieces, now, zone)
    name = quoted[1].strip() if quoted else name_in(" ".join(left))
    return SetOverride(users.pop() if users else None, span, name or None)


def _without_me(pieces: Sequence[list[str]]) -> list[list[str]]:
    """A time does not go on behind "me", as it does not behind a name."""
    for number, piece in enumerate(pieces):
        if "me" in piece:
            at = piece.index("me")
            return [*pieces[:number], piece[:at], piece[at + 1 :], *pieces[number + 1 :]]
    raise BadCommand(f"Mention with @ who takes over: {FORM}.")


def _time_in(pieces: Sequence[list[str]], now: datetime, zone: ZoneInfo) -> tuple[Span, list[str]]:
    """The longest run of words that is a time, and the words that are none."""
    runs = [
        (a - b, number, a, b)
        for number, piece in enumerate(pieces)
        for a in range(len(piece))
        for b in range(a + 1, len(piece) + 1)
        if looks_like_time(piece[a]) and looks_like_time(piece[b - 1])
    ]
    for _, number, a, b in sorted(runs):
        try:
            span = read(" ".join(pieces[number][a:b]), now, zone)
        except BadTime:
            continue
        parts = [*pieces[:number], pieces[number][:a], pieces[number][b:], *pieces[number + 1 :]]
        if any(looks_like_time(word) and word not in _SMALL for part in parts for word in part):
            break  # "2h ago" is no two hours
        return span, [word for part in parts for word in part]
    raise _no_time([word for piece in pieces for word in piece])


def _no_time(words: Sequence[str]) -> BadCommand:
    """Quotes what was meant as a time; where nothing looks like one, all that was said."""
    timely = [at for at, word in enumerate(words) if looks_like_time(word) and word not in _SMALL]
    meant = words[timely[0] : timely[-1] + 1] if timely else words
    said = code(plainly(" ".join(meant)))
    quotes = " (if it is a schedule, put it in quotes)" if len(words) > 1 else ""
    lead = f"I don't understand {said} as a time{quotes}" if said else "Say for how long"
    return BadCommand(f"{lead}. The form is {FORM}. Times: {FORMS}.")
