"""Questions about shifts as people type them: of whom, when, how many, from when to when.

Never looks anything up: names are kept as typed, and `who` finds what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar
from zoneinfo import ZoneInfo

from bot.slack.grammar.times import Span, read_moment
from bot.slack.grammar.tokens import MENTION, mentioned, name_in
from bot.slack.grammar.typed import folded
from bot.slack.grammar.when import read, read_at
from bot.slack.grammar.when_parts import BadTime, looks_like_time
from engine.errors import BadCommand

T = TypeVar("T")
MOST: Final = 50
USUAL: Final = 5
FORM: Final = "`/oncall who payments next 5`"
_TALK: Final = re.compile(
    r"^(?:(?:is|was|be|will be)\s+)?(?:on[ -]?call(?![\w-]))?\s*(?:(?:right )?now|currently)?\s*"
)
_NOW: Final = re.compile(r"\s+(?:(?:right )?now|currently)$")
_NEXT: Final = re.compile(r"(?:^|\s)next(?:\s+(\d{1,4}))?$")


@dataclass(frozen=True, slots=True)
class Who:
    """Who is on call, at a moment or now; `following`: so many shifts from then on."""

    name: str | None = None
    slack_user_id: str | None = None
    at: datetime | None = None
    following: int | None = None


@dataclass(frozen=True, slots=True)
class Shifts:
    """Of a schedule, of a person, or (neither) of the person asking; without a span the coming weeks."""

    name: str | None = None
    slack_user_id: str | None = None
    span: Span | None = None


def parse_who(raw: str, now: datetime, zone: ZoneInfo) -> Who:
    """ "payments at fri 18:00", "is on call for payments?", "@ana next 5"; each part may be missing."""
    words = _TALK.sub("", _NOW.sub("", folded(raw).rstrip("? "))).strip()
    following = _NEXT.search(words)
    words = words[: following.start()].strip() if following else words
    count = int(following[1] or USUAL) if following else None
    if count is not None and not 1 <= count <= MOST:
        raise BadCommand(f"Between 1 and {MOST} shifts: {FORM}.")
    words, at = _moment_in(words, now, zone)
    user = mentioned(words)
    return Who(None if user else name_in(words), user, at, count)


def _moment_in(words: str, now: datetime, zone: ZoneInfo) -> tuple[str, datetime | None]:
    """What stands before the moment, and the moment: at the end, or else behind "at"."""
    before, found = _at_end(words.split(), lambda said: read_at(said, now, zone))
    if found is not None:
        return " ".join(before), found
    name, at, moment = f" {words}".rpartition(" at ")
    return (name.strip(), read_moment(moment, now, zone)) if at else (words, None)


def parse_shifts(raw: str, now: datetime, zone: ZoneInfo) -> Shifts:
    """Whose, and from when to when; ".." stands between two times as well as "to"."""
    words = folded(raw).rstrip("? ").replace("..", " to ")
    user = mentioned(words)
    said = MENTION.sub(" ", words).split()
    before, span = _at_end(said, lambda typed: read(typed, now, zone, past=True))
    name = name_in(" ".join(before))
    return Shifts(None if user or name in {"me", "my", "mine"} else name, user, span)


def _at_end(said: list[str], reader: Callable[[str], T]) -> tuple[list[str], T | None]:
    """The words before the longest time at the end, and what that means; a schedule may be called "day"."""
    start = len(said)
    while start and looks_like_time(said[start - 1]):
        start -= 1
    for at in range(start, len(said)):
        try:
            return said[:at], reader(" ".join(said[at:]).removeprefix("at "))
        except BadTime:
            continue
    return said, None
