"""Who is on call, as a pure function of a schedule and an instant.

Never reads the clock, the database or the network, and never measures in local time: local times
are only used to find instants (PEP 495, `fold=0`), and every interval is half open.
"""

from engine.schedule.dump import dump_schedule
from engine.schedule.gaps import Gap, gaps
from engine.schedule.holidays import Holidays, National
from engine.schedule.model import (
    Layer,
    OverrideKind,
    Restriction,
    Rotation,
    Schedule,
    ScheduleOverride,
    Shift,
    Unit,
    Weekday,
    with_overrides,
)
from engine.schedule.parse import parse_schedule
from engine.schedule.resolve import OnCall, next_change, on_call, people_at, shifts

__all__ = [
    "Gap",
    "Holidays",
    "Layer",
    "National",
    "OnCall",
    "OverrideKind",
    "Restriction",
    "Rotation",
    "Schedule",
    "ScheduleOverride",
    "Shift",
    "Unit",
    "Weekday",
    "dump_schedule",
    "gaps",
    "next_change",
    "on_call",
    "parse_schedule",
    "people_at",
    "shifts",
    "with_overrides",
]
