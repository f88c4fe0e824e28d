"""From wall clock to instant and back, in a zone.

Never measures: the difference of two local times says nothing about how long something lasts.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

# Why: clocks have been moved by up to a whole day (Pacific/Apia 2011). What is looked up around
# an instant by its local time is looked up this far to both sides.
LARGEST_JUMP = timedelta(days=2)


def to_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """A time that comes twice is its first; one that the clock jumps over takes the offset before."""
    return wall.replace(tzinfo=zone).astimezone(UTC)


def on_day(day: date, clock: time) -> datetime:
    """The same for a day and a time of a zone's clock: `clock` has the zone."""
    return datetime.combine(day, clock).astimezone(UTC)


def to_wall(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)
