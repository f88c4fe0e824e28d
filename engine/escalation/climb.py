"""Walks the ladder: which level is paged next, and what happens at its end.

Never reads the clock or the database: the ladder comes in resolved at `now`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from engine.directory import OnExhaustion
from engine.escalation.fate import (
    FALLBACK,
    REASSIGNED,
    Arm,
    Effect,
    Fate,
    Ladder,
    PageFallback,
    PageLevel,
    Rung,
)
from engine.models import TimerKind

GRACE: Final = timedelta(minutes=5)  # between the end of the ladder and `unanswered`

Changed = Mapping[str, Any]  # fields of the fate, and what they are from now on
Step = tuple[Changed, tuple[Effect, ...], str]


def climb(fate: Fate, ladder: Ladder, now: datetime, *, forced: bool = False) -> Step:
    """Page the next level that holds somebody. `forced`: a human asked, so passes have no end."""
    step = _page_from(_next_level(fate, ladder), ladder, now, reached=fate.reached)
    if step is not None:
        return step
    return _end_of_pass(fate, ladder, now, forced=forced)


def _next_level(fate: Fate, ladder: Ladder) -> int:
    if fate.level_started_at is None:
        # "the level after the one acknowledged" may lie past the last one: then it is the first
        return fate.level if fate.level < len(ladder.rungs) else 0
    if fate.level == FALLBACK:
        return len(ladder.rungs)
    return fate.level + 1


def _page_from(level: int, ladder: Ladder, now: datetime, *, reached: bool) -> Step | None:
    for index in range(level, len(ladder.rungs)):
        rung = _rung(ladder, index)
        if rung is not None and (rung.people or rung.channels):
            return _page(index, rung, now, reached=reached)
    return None


def _rung(ladder: Ladder, level: int) -> Rung | None:
    return ladder.reassigned if level == REASSIGNED else ladder.rungs[level]


def _page(level: int, rung: Rung, now: datetime, *, reached: bool) -> Step:
    changed = {
        "level": level,
        "level_started_at": now,
        "reached": reached or bool(rung.people),
        "held_until": None,
    }
    effects: tuple[Effect, ...] = (
        PageLevel(level, rung.people, rung.channels),
        Arm(TimerKind.ESCALATE, now + rung.timeout),
    )
    name = "the person it was assigned to" if level == REASSIGNED else f"level {level + 1}"
    return changed, effects, f"paging {name}"


def _end_of_pass(fate: Fate, ladder: Ladder, now: datetime, *, forced: bool) -> Step:
    # Why the level: who asks for more when the fallback was paged wants the ladder tried again,
    # since somebody may be on call by now.
    if not fate.reached and not (forced and fate.level == FALLBACK):
        return fallback(fate, now)
    goes_on = fate.pass_ < ladder.repeat or ladder.on_exhaustion is OnExhaustion.REPEAT or forced
    if not goes_on:
        return {}, (Arm(TimerKind.EXHAUST, now + GRACE),), "the ladder is at its end"
    again = {"pass_": fate.pass_ + 1, "level": 0, "level_started_at": None, "reached": False}
    changed, effects, reason = _page_from(0, ladder, now, reached=False) or fallback(fate, now)
    return {**again, **changed}, effects, reason


def fallback(fate: Fate, now: datetime) -> Step:
    """Nobody was found in a whole pass: whoever is in the fallback chain is paged at once."""
    links = fate.links + 1
    changed = {"level": FALLBACK, "level_started_at": now, "links": links, "held_until": None}
    effects = (PageFallback(links), Arm(TimerKind.EXHAUST, now + GRACE))
    return changed, effects, "nobody is on call on any level: paging the fallback"
