"""One line of the doctor: good, worth knowing, or to be repaired, and how.

Never holds a secret: findings are pasted into tickets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    about: str
    text: str
    advice: str = ""


def ok(about: str, text: str) -> Finding:
    return Finding(Level.OK, about, text)


def warning(about: str, text: str, advice: str) -> Finding:
    return Finding(Level.WARNING, about, text, advice)


def problem(about: str, text: str, advice: str) -> Finding:
    return Finding(Level.PROBLEM, about, text, advice)
