"""What the command line writes: plain lines and tables for people, JSON for scripts.

Never colours and never decorates: the output is read over ssh and by grep.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from engine.config.durations import show_duration


def say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def note(line: str) -> None:
    """Beside the output: what a person should know and a script must not read."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def say_json(value: Any) -> None:
    say(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def say_table(rows: Sequence[Sequence[str]], nothing: str) -> None:
    """Columns as wide as need be; `nothing` when there are no rows."""
    if not rows:
        return say(nothing)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    cells = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return say(*("  ".join(row).rstrip() for row in cells))


def local(instant: datetime) -> str:
    """In the time zone of this machine, with its name."""
    return f"{instant.astimezone():%a %Y-%m-%d %H:%M %Z}"


def ago(instant: datetime, now: datetime) -> str:
    """The first unit that says something: 5m, 3h, 2d."""
    passed = max(timedelta(), now - instant)
    for unit in (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)):
        if passed >= unit:
            return f"{show_duration(passed // unit * unit)} ago"
    return "just now"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)
