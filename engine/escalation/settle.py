"""What is left of the effects of several decisions when the later ones undo the earlier.

Never adds an effect. A batch of events may decide several times about one incident before it is
written: armed and then acknowledged must end with nothing armed.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.escalation.fate import (
    Arm,
    CancelPages,
    Disarm,
    Effect,
    EndResponder,
    PageFallback,
    PageLevel,
    PageResponder,
    RevivePages,
)


def settled(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """In their order, without those that a later one takes back."""
    left: list[Effect] = []
    for effect in effects:
        left = [earlier for earlier in left if not _undoes(effect, earlier)]
        left.append(effect)
    return tuple(left)


def _undoes(effect: Effect, earlier: Effect) -> bool:
    if isinstance(effect, Disarm):
        return isinstance(earlier, Arm)
    if isinstance(effect, CancelPages):
        ends = (PageLevel, PageFallback, RevivePages, *((PageResponder,) if effect.responders else ()))
        return isinstance(earlier, ends)
    if isinstance(effect, EndResponder):
        return isinstance(earlier, PageResponder) and earlier.person_id == effect.person_id
    return False
