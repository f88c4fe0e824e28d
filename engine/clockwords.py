"""Instants as the wall clocks of people show them, for messages of plain text.

Pure. Never measures in local time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from engine.schedule.zones import zone_named

ALMOST_A_WEEK: Final = timedelta(days=6)  # a weekday alone says which day


def wall(at: datetime, timezone: str) -> str:
    """ "Fri 06 Mar 18:00"; the zone is said once for the message: `between`."""
    return f"{at.astimezone(zone_named(timezone) or UTC):%a %d %b %H:%M}"


def span(start: datetime, end: datetime, timezone: str) -> str:
    """ "Tue 01 Dec 20:00 to Wed 08:00": no more of the end than it takes, for a telephone's narrow lines."""
    zone = zone_named(timezone) or UTC
    ends = end.astimezone(zone)
    if start.astimezone(zone).date() == ends.date():
        until = f"{ends:%H:%M}"
    else:
        until = f"{ends:%a %H:%M}" if end - start < ALMOST_A_WEEK else wall(end, timezone)
    return f"{wall(start, timezone)} to {until}"


def between(start: datetime, end: datetime | None, timezone: str) -> str:
    """ "Fri 06 Mar 18:00 to 22:00 Europe/Berlin"; without an end it is open."""
    zone = zone_named(timezone) or UTC
    if end is None:
        return f"from {wall(start, timezone)} {zone} on"
    return f"{span(start, end, timezone)} {zone}"


def length(delta: timedelta) -> str:
    """ "23 h" or "40 min": as precise as somebody needs who looks ahead."""
    minutes = max(1, round(delta / timedelta(minutes=1)))
    if minutes < 90:
        return f"{minutes} min" if minutes != 60 else "1 h"
    return f"{round(minutes / 60)} h"
