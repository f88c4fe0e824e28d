"""What became of each event of a batch: its receipt, and its line in the journal.

Pure: never reads the clock or the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.intake.fold import Item, Place, Plan
from engine.intake.rows import event_row
from engine.models import Receipt
from engine.store.journal import EventRow


@dataclass(frozen=True, slots=True)
class Outcome:
    service_id: int
    item: Item
    status: str
    reason: str = ""
    incident_id: int | None = None

    @property
    def kept(self) -> bool:
        """Unchanged repeats are counted on their alert and take no row; a group resolve has no event."""
        return self.item.place is not None and (self.status != "repeat" or bool(self.reason))


def of_triggers(plan: Plan, status: str, reason: str = "", incident_id: int | None = None) -> list[Outcome]:
    """The first trigger did it; those behind it in the batch repeat it."""
    first, *others = plan.triggers
    outcomes = [Outcome(plan.service.id, first, status, reason, incident_id)]
    again = "repeated in the same batch"
    return outcomes + [Outcome(plan.service.id, item, "repeat", again, incident_id) for item in others]


def event_rows(outcomes: Sequence[Outcome]) -> list[EventRow]:
    return [
        event_row(one.service_id, one.item, one.status, one.reason, one.incident_id)
        for one in outcomes
        if one.kept
    ]


def receipts(outcomes: Sequence[Outcome], numbers: Mapping[int, int | None]) -> dict[Place, Receipt]:
    return {
        one.item.place: Receipt(
            one.item.event.dedup_key,
            one.status,
            one.reason,
            one.incident_id,
            numbers.get(one.incident_id or 0),
        )
        for one in outcomes
        if one.item.place is not None
    }
