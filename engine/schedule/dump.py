"""From a schedule back to the mapping it was read from: for the database, and for `export`.

Never leaves anything out: `parse_schedule(dump_schedule(schedule))` equals the schedule.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from engine.schedule.holidays import Holidays
from engine.schedule.model import Layer, Restriction, Schedule, ScheduleOverride


def dump_schedule(schedule: Schedule) -> dict[str, Any]:
    """Plain lists, mappings, text and numbers, fit for JSON and YAML."""
    return {
        "timezone": schedule.timezone,
        "layers": [_layer(layer) for layer in schedule.layers],
        "overrides": [_override(override) for override in schedule.overrides],
        "holidays": _holidays(schedule.holidays),
        "fallback": schedule.fallback,
    }


def _layer(layer: Layer) -> dict[str, Any]:
    own = {} if layer.holidays is None else {"holidays": _holidays(layer.holidays)}
    return {
        "name": layer.name,
        "users": [entry[0] if len(entry) == 1 else list(entry) for entry in layer.users],
        "start": _wall(layer.start),
        "rotation": {"every": layer.rotation.every, "unit": layer.rotation.unit.value},
        "until": None if layer.until is None else _wall(layer.until),
        "restrictions": [_restriction(restriction) for restriction in layer.restrictions],
        "skip_holidays": layer.skip_holidays,
        **own,
    }


def _holidays(holidays: Holidays) -> list[dict[str, str]]:
    national = [
        {"country": of.country} | ({} if of.subdivision is None else {"subdivision": of.subdivision})
        for of in holidays.national
    ]
    return national + [{"date": day.isoformat(), "name": name} for day, name in holidays.days.items()]


def _restriction(restriction: Restriction) -> dict[str, Any]:
    return {
        "days": [day.word for day in sorted(restriction.days)],
        "from": f"{restriction.opens:%H:%M}",
        "to": f"{restriction.closes:%H:%M}",
    }


def _override(override: ScheduleOverride) -> dict[str, Any]:
    covers = {} if override.covers is None else {"covers": override.covers}
    return {
        "kind": override.kind.value,
        "user": override.user,
        **covers,
        "start": _instant(override.start),
        "end": _instant(override.end),
    }


def _wall(wall: datetime) -> str:
    return wall.isoformat(timespec="seconds" if wall.second else "minutes")


def _instant(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
