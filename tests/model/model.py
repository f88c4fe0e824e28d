"""What the machine believes: who has answered, and what silence then means. Knows no ladder and no schedule.

Values in, complaints out; never asks the pager.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from engine.models import DeliveryKind, Page

PAGING = {"triggered", "unanswered"}


class Model:
    """Silence is right for an incident that somebody has answered and that has not moved since; for any
    other it must end in somebody being told."""

    def __init__(self) -> None:
        self.answered: set[int] = set()
        self.sends: Counter[int] = Counter()  # by delivery, what a provider took
        self.excused: Counter[int] = Counter()  # of these, how many more than one there may be

    def moved(self, number: int) -> None:
        """It fired anew, was taken back, or ends its silence by itself: somebody will be told."""
        self.answered.discard(number)

    def silenced(self, number: int) -> None:
        """Acknowledged for good, or resolved: nobody is paged for it."""
        self.answered.add(number)

    def in_doubt(self, deliveries: Iterable[int]) -> None:
        """A provider may have taken these and nobody knows: each may come once more."""
        self.excused.update(deliveries)

    def heard(self, page: Page) -> str | None:
        """What is wrong with this message."""
        self.sends[page.id] += 1
        if self.sends[page.id] - 1 > self.excused[page.id]:
            return f"{page.id} was sent {self.sends[page.id]} times, with {self.excused[page.id]} in doubt"
        if page.kind is not DeliveryKind.PAGE or page.incident is None:
            return None
        if page.incident.status.value not in PAGING:
            return f"#{page.incident.number} is {page.incident.status} and {page.person} is paged"
        if page.incident.number in self.answered:
            return f"#{page.incident.number} was answered and {page.person} is paged"
        return None
