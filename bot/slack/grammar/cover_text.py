"""Cover as people type it: ask for it, take it or a part of it, say no, list, take back.

Never looks anything up: a schedule is kept as typed, and `bot.slack.rota.cover` finds what it means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.slack.grammar.times import Span, read_interval
from bot.slack.grammar.typed import folded
from engine.errors import BadCommand

FORM: Final = "`/oncall cover me fri 18:00-22:00 [schedule]`"
FORMS: Final = f"{FORM} · `/oncall cover list` · `take 3 [18:00-20:00]` · `decline 3` · `cancel 3`"
_CLOCK: Final = re.compile(r"\d{1,2}(?:[:.]\d\d)?(?:am|pm)?")
_NAME_MAX: Final = 4  # words of a schedule's name
_MENTION: Final = re.compile(r"<@[uw]")


@dataclass(frozen=True, slots=True)
class AskCover:
    span: Span
    schedule: str | None


@dataclass(frozen=True, slots=True)
class AnswerCover:
    """take, decline or cancel; `span` is the part that is taken."""

    verb: str
    number: int
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class ListCovers:
    pass


Command = AskCover | AnswerCover | ListCovers
VERBS: Final[Mapping[str, str]] = {
    "take": "take", "accept": "take", "decline": "decline", "no": "decline",
    "cancel": "cancel", "withdraw": "cancel", "stop": "cancel", "end": "cancel",
}  # fmt: skip


def parse(raw: str, now: datetime, zone: ZoneInfo) -> Command:
    """The time, and before or after it the schedule; or a verb and the number of a request."""
    typed = folded(raw).split()
    if not typed or typed[0] in {"list", "ls"}:
        return ListCovers()
    verb = VERBS.get(typed[0])
    if verb is not None:
        return _answer(verb, typed[1:], now, zone)
    if any(_MENTION.match(word) for word in typed):
        raise BadCommand(f"Cover is asked for oneself: {FORM}. `/override @user 2h` puts somebody on call.")
    for lead in (["for", "me"], ["me"], ["my", "shift"]):
        if typed[: len(lead)] == lead:
            typed = typed[len(lead) :]
    if not typed:
        raise BadCommand(f"Say for when: {FORM}.")
    return _ask(typed, now, zone)


def _answer(verb: str, typed: Sequence[str], now: datetime, zone: ZoneInfo) -> AnswerCover:
    number = typed[0].lstrip("#") if typed else ""
    if not number.isascii() or not number.isdigit() or len(number) > 15:
        raise BadCommand(f"Name the request by its number: `/oncall cover {verb} 3`; {FORMS}.")
    part = " ".join(typed[1:]) if verb == "take" else ""
    return AnswerCover(verb, int(number), read_interval(part, now, zone) if part else None)


def _ask(typed: list[str], now: datetime, zone: ZoneInfo) -> AskCover:
    """As much as can be is the time; what is left at one end of it is the schedule."""
    said: BadCommand | None = None
    for left in range(min(_NAME_MAX + 1, len(typed))):
        for time, name in ((typed[left:], typed[:left]), (typed[: len(typed) - left], typed[-left:])):
            if left and any(_CLOCK.fullmatch(word) for word in name):
                continue
            try:
                span = read_interval(" ".join(time), now, zone)
            except BadCommand as wrong:
                said = said or wrong
            else:
                return AskCover(span, _name(name) if left else None)
    raise BadCommand(f"{said} The form is {FORM}.")


def _name(typed: Sequence[str]) -> str | None:
    return " ".join(word for word in typed if word not in {"on", "for"}).strip("\"'") or None
