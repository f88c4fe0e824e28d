"""Holidays as people write them, one a line: "DE-BY" for those of Bavaria, "2026-12-25 Christmas" for a day.

Never guesses: a country that is not known is refused, with the line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bot.slack.grammar.typed import tidy
from engine.errors import BadInput
from engine.schedule.fields import Fields
from engine.schedule.parse_holidays import parse_holidays

FORM: Final = "write DE or DE-BY for a country's, or a date and a name like 2026-12-25 Christmas"

_COUNTRY: Final = re.compile(r"([a-z]{2})(?:-(\S+))?", re.IGNORECASE)
_DAY: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?:\s+(.*))?")


def read_holidays(typed: str) -> list[dict[str, str]]:
    """As a schedule's mapping has them."""
    return [_read(line) for line in map(tidy, typed.splitlines()) if line]


def show_holidays(mappings: Sequence[Mapping[str, Any]]) -> str:
    """The text that reads as these."""
    return "\n".join(_shown(one) for one in mappings)


def _shown(one: Mapping[str, Any]) -> str:
    if "country" in one:
        return "-".join(filter(None, (one["country"], one.get("subdivision"))))
    return f"{one['date']} {one['name']}"


def _read(line: str) -> dict[str, str]:
    country, day = _COUNTRY.fullmatch(line), _DAY.fullmatch(line)
    if country:
        found = {"country": country[1].upper()} | ({"subdivision": country[2]} if country[2] else {})
    elif day:
        found = {"date": day[1], "name": day[2] or "holiday"}
    else:
        raise BadInput(f"I don't understand “{line[:60]}”: {FORM}.")
    fields = Fields()
    parse_holidays(fields, [found], "holidays")
    if fields.mistakes:
        said = fields.mistakes[0].partition(": ")[2]
        raise BadInput(f"“{line[:60]}”: {said[:200]}.")
    return found
