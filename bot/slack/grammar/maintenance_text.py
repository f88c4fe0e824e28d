"""Maintenance as people type it: the service, then for how long, then why; or list, or end.

Never looks anything up: a service is kept as typed, and `bot.slack.maintenance` finds what it means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.slack.grammar.times import FORMS, Span, read_span
from bot.slack.grammar.typed import folded, plainly
from engine.errors import BadCommand

FORM: Final = (
    "`/oncall maintenance checkout 2h [reason]`, or `all` in place of the service; "
    "`/oncall maintenance end checkout` ends it early"
)
READ_AT_MOST: Final = 24  # words in which a time is looked for; a reason may be longer


@dataclass(frozen=True, slots=True)
class StartMaintenance:
    service: str | None  # None: all of them
    span: Span
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EndMaintenance:
    service: str | None


@dataclass(frozen=True, slots=True)
class ListMaintenance:
    pass


Command = StartMaintenance | EndMaintenance | ListMaintenance


def parse(raw: str, now: datetime, zone: ZoneInfo) -> Command:
    """The service, then for how long, then why; or list, or end and the service."""
    typed = raw.split()
    first = folded(typed[0]) if typed else "list"
    if first in {"list", "ls"}:
        return ListMaintenance()
    if first in {"end", "stop", "cancel", "over"}:
        if not typed[1:]:
            raise BadCommand(f"Say of what: {FORM}.")
        return EndMaintenance(_service(typed[1:]))
    return _start(typed[1:] if first in {"start", "begin"} else typed, now, zone)


def _start(typed: list[str], now: datetime, zone: ZoneInfo) -> StartMaintenance:
    """The first words that are a time, as many as belong to it; what stands before is the service."""
    last = min(len(typed), READ_AT_MOST)
    for a in range(1, last):
        for b in range(last, a, -1):
            span = read_span(folded(" ".join(typed[a:b])), now, zone)
            if span is not None:
                return StartMaintenance(_service(typed[:a]), span, plainly(" ".join(typed[b:])))
    raise BadCommand(f"Say of what, and for how long: {FORM}. Times: {FORMS}.")


def _service(typed: Sequence[str]) -> str | None:
    name = folded(" ".join(typed)).removeprefix("for ").strip("\"'")
    return None if name in {"all", "everything", "all services"} else name
