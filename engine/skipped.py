"""Which of a person's contact methods a page leaves out, and why: kept with the page that goes by the others.

Pure. Never shows an address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from engine.contact import Step
from engine.directory import REMOVED, ContactMethod, Person
from engine.models import Method

SKIPPED: Final = "skipped"  # in the body of a person's first step
Skip = tuple[Method, str]


def skipped(person: Person, steps: Sequence[Step]) -> tuple[Skip, ...]:
    """Those that their rules name, or without rules that they have, and that no step goes by."""
    used = {step.method.id for step in steps}
    named = {rule.method_id for rules in person.rules.values() for rule in rules}
    left = [one for one in person.methods if one.id not in used and not one.usable]
    return tuple(
        (one.kind, one.disabled_reason or "not verified")
        for one in left
        if (one.id in named or not named) and not _removed(one)
    )


def _removed(method: ContactMethod) -> bool:
    return method.disabled_reason == REMOVED


def noted(skips: Iterable[Skip]) -> dict[str, Any]:
    """As it is kept in the body of a delivery."""
    kept = [[method.value, why] for method, why in skips]
    return {SKIPPED: kept} if kept else {}


def read(body: Mapping[str, Any]) -> tuple[Skip, ...]:
    return tuple((Method(method), str(why)) for method, why in body.get(SKIPPED) or ())
