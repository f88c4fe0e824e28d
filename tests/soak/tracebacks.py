"""What a process's log tells of errors that nobody expected: their kinds, and where in our code.

Never shows what an error says: that may hold what was sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

BEGINS: Final = "Traceback (most recent call last):"
FRAME: Final = re.compile(r'File "[^"]*?\b((?:bot|engine|migrations)/[^"]+)", line (\d+), in (\S+)')
KIND: Final = re.compile(r"[A-Za-z_][\w.]*")
OF_A_GROUP: Final = re.compile(r"^ +[|+] ")  # in front of each line that belongs to an exception group


def tracebacks(log: Path) -> list[str]:
    """A line each: `process-0.log: sweep.failed: OSError at engine/db.py:12 write, Unavailable at …`."""
    told = [entry for entry in _entries(log) if BEGINS in entry[1]]
    return [f"{log.name}: {event}: {', '.join(_errors(text))}" for event, text in told]


def _entries(log: Path) -> Iterator[tuple[str, str]]:
    """The name and the traceback of each event; what is no event is the interpreter's own words."""
    lines = log.read_text(errors="replace").splitlines()
    for is_event, run in groupby(lines, lambda line: line.startswith("{")):
        if not is_event:
            yield "not logged", "\n".join(run)
            continue
        for line in run:
            try:
                event = json.loads(line)
            except ValueError:  # killed in the middle of a line
                continue
            name = str(event.get("event", "")).partition("\n")[0]
            yield name, str(event.get("exception", ""))


def _errors(text: str) -> Iterator[str]:
    """Each with the innermost place of ours, the first cause first."""
    at, inside = "", False
    for line in (OF_A_GROUP.sub("", each) for each in text.splitlines()):
        if BEGINS in line:
            at, inside = "", True
        elif inside and (frame := FRAME.search(line)):
            at = " at {}:{} {}".format(*frame.groups())
        elif inside and (kind := KIND.match(line)):  # the first line that is not indented
            yield kind.group().rpartition(".")[2] + at
            inside = False
