"""Contact rules as people give them: which may stand.

Pure; whether a rule can ever run is for `warnings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from engine.directory import ContactRule, Person
from engine.errors import BadInput
from engine.models import Urgency

LONGEST_DELAY: Final = timedelta(days=1)
MOST: Final = 20  # steps of an urgency


def checked(
    person: Person, urgency: Urgency, steps: Sequence[tuple[int, timedelta]]
) -> tuple[ContactRule, ...]:
    """Soonest first; of the same delay as they were given."""
    if urgency is Urgency.NONE:
        raise BadInput("Urgency none pages nobody, so it has no contact rules.")
    if urgency is Urgency.HIGH and not steps:
        raise BadInput("High urgency needs at least one step. To have the usual order, reset the rules.")
    if len(steps) > MOST:
        raise BadInput(f"That is more than {MOST} steps.")
    theirs = {method.id for method in person.methods}
    if any(method_id not in theirs for method_id, _ in steps):
        raise BadInput("A rule names a contact method that is not there any more.")
    if any(not timedelta() <= delay <= LONGEST_DELAY for _, delay in steps):
        raise BadInput("A delay is between nothing and 24 hours, from the start of the page.")
    if len(set(steps)) < len(steps):
        raise BadInput("Two steps do the same at the same time.")
    ordered = sorted(steps, key=lambda step: step[1])
    return tuple(ContactRule(method_id, delay) for method_id, delay in ordered)
