"""Reads holidays: dates with a name, and countries whose public holidays count.

Never takes a country that is not known: a holiday that is silently none would page somebody.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from engine.schedule.fields import Fields
from engine.schedule.holidays import Holidays, National, subdivisions

_KEYS = ("date", "name", "country", "subdivision")
_STAND_IN = National("")


def parse_holidays(fields: Fields, raw: object, place: str) -> Holidays:
    days: dict[date, str] = {}
    national: list[National] = []
    for where, item in fields.items(raw, place):
        entry = fields.mapping(item, where, _KEYS)
        if entry is None:
            continue
        if "country" in entry or "subdivision" in entry:
            national.append(_national(fields, entry, where))
        else:
            name = entry.get("name", "the holiday")
            days[fields.day(entry.get("date"), f"{where}.date")] = fields.text(name, f"{where}.name")
    return Holidays(days, tuple(dict.fromkeys(national)))


def _national(fields: Fields, entry: Mapping[str, object], place: str) -> National:
    if "date" in entry or "name" in entry:
        return fields.wrong(place, "is either {date: …, name: …} or {country: …, subdivision: …}", _STAND_IN)
    country, subdivision = entry.get("country"), entry.get("subdivision")
    parts = subdivisions().get(country) if isinstance(country, str) else None
    if parts is None:
        form = "must be the two capital letters of a country that is known, like DE"
        return fields.wrong(f"{place}.country", f"{form}, not {country!r}", _STAND_IN)
    if subdivision is None or subdivision in parts:
        return National(str(country), None if subdivision is None else str(subdivision))
    known = f"{country} has no {subdivision!r}; known are {', '.join(parts) or 'none'}"
    return fields.wrong(f"{place}.subdivision", known, _STAND_IN)
