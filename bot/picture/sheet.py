"""What is drawn, worked out: the days, the rows, what people are called, and where things stand.

Never draws. Lengths are in pixels of a phone that is 390 wide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.picture import colors, svg
from bot.picture.days import Days, days_from
from bot.picture.rows import Row, people_in, rows_of
from engine.schedule import Schedule, Shift

WIDTH: Final = 390.0
MARGIN: Final = 8.0
LABELS: Final = 62.0  # the column of the rows' names
GRID: Final = WIDTH - 2 * MARGIN - LABELS
WEEK: Final = 7
DAY: Final = GRID / WEEK
HEADING: Final = 18.0
LAYER, FINAL = 17.0, 26.0
HANDOFFS: Final = 14.0
BETWEEN: Final = 8.0  # two weeks
SMALL, NORMAL = 10.0, 11.5
NOBODY: Final = "nobody"
GAP: Final = "gap"  # where "nobody" does not fit


@dataclass(frozen=True, slots=True)
class Sheet:
    title: str
    schedule: Schedule
    days: Days
    rows: tuple[Row, ...]
    names: Mapping[str, str]
    shades: Mapping[str, str]  # the colour of everybody in the picture
    now: datetime

    @property
    def zone(self) -> ZoneInfo:
        return self.schedule.zone

    @property
    def weeks(self) -> int:
        return len(self.days.dates) // WEEK

    @property
    def week_height(self) -> float:
        return HEADING + LAYER * (len(self.rows) - 1) + FINAL + HANDOFFS + BETWEEN

    def called(self, people: Sequence[str]) -> str:
        return " + ".join(svg.plain(self.names.get(user, user)) or "?" for user in people) or NOBODY

    def shade(self, row: Row, one: Shift) -> str:
        if not one.people:
            return colors.GAP
        shade = self.shades[one.people[0]]
        return shade if row.final else colors.pale(shade)

    def bounds(self, week: int) -> tuple[datetime, datetime]:
        return self.days.midnights[week * WEEK], self.days.midnights[(week + 1) * WEEK]

    def x(self, at: datetime, week: int) -> float:
        return column(self.days.place(at) - week * WEEK)


def sheet_of(title: str, schedule: Schedule, names: Mapping[str, str], now: datetime) -> Sheet:
    days = days_from(now, schedule.zone, weeks_for(schedule) * WEEK)
    rows = rows_of(schedule, days.start, days.end)
    shades = {user: colors.color(number) for number, user in enumerate(people_in(rows))}
    return Sheet(title, schedule, days, tuple(rows), names, shades, now)


def weeks_for(schedule: Schedule) -> int:
    """Fewer where there are many layers: the picture must be read in one look."""
    return 4 if len(schedule.layers) <= 3 else 3 if len(schedule.layers) <= 6 else 2


def column(day: float) -> float:
    return MARGIN + LABELS + day * DAY
