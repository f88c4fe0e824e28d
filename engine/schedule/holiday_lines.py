"""Holidays as lines that people type: `2026-12-24 Christmas Eve`, `DE`, `DE-BY`.

Never checks what it reads: it makes the entries that `parse_holidays` reads, and that tells mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_COUNTRY = re.compile(r"([A-Za-z]{2})(?:[-\s]+(\S+))?")


def show_lines(entries: Iterable[Mapping[str, str]]) -> str:
    """One line for each entry of a schedule's mapping."""
    return "\n".join(_shown(entry) for entry in entries)


def read_lines(text: str) -> list[dict[str, str]]:
    """An entry for each line that is not empty."""
    return [_read(line) for line in map(str.strip, text.splitlines()) if line]


def _shown(entry: Mapping[str, str]) -> str:
    if "country" in entry:
        return "-".join(filter(None, (entry["country"], entry.get("subdivision"))))
    return f"{entry['date']} {entry['name']}"


def _read(line: str) -> dict[str, str]:
    if country := _COUNTRY.fullmatch(line):
        code, part = country.groups()
        return {"country": code.upper()} | ({"subdivision": part} if part else {})
    day, *name = line.split(maxsplit=1)
    return {"date": day} | ({"name": name[0]} if name else {})
