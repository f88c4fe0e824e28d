"""Days of a zone side by side: where an instant stands among them.

Never takes a day for 24 hours: each is as wide as the others, however long it is.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from engine.schedule.walltime import to_instant, to_wall


@dataclass(frozen=True, slots=True)
class Days:
    """`midnights` has one more than there are days: the end of the last."""

    dates: tuple[date, ...]
    midnights: tuple[datetime, ...]

    @property
    def start(self) -> datetime:
        return self.midnights[0]

    @property
    def end(self) -> datetime:
        return self.midnights[-1]

    def place(self, t: datetime) -> float:
        """In days from the first; never outside."""
        day = min(max(bisect_right(self.midnights, t) - 1, 0), len(self.dates) - 1)
        begins, ends = self.midnights[day], self.midnights[day + 1]
        if ends <= begins:  # a day that the calendar of this zone leaves out
            return float(day)
        return day + min(max((t - begins) / (ends - begins), 0.0), 1.0)

    def length(self, day: int) -> timedelta:
        return self.midnights[day + 1] - self.midnights[day]


def days_from(now: datetime, zone: ZoneInfo, count: int) -> Days:
    """Today in that zone, and what follows."""
    today = to_wall(now, zone).date()
    dates = [today + timedelta(days=number) for number in range(count + 1)]
    midnights = tuple(to_instant(datetime.combine(day, time()), zone) for day in dates)
    return Days(tuple(dates[:count]), midnights)
