"""Cover requests as values: what is asked for, what was said, and what is taken.

Pure. Never says who is asked or for how long: the rules of cover do (engine.rota.cover_rules).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.parts import Part

ASKED: Final = "asked"
ACCEPTED: Final = "accepted"
DECLINED: Final = "declined"

OPEN: Final = "open"
FILLED: Final = "filled"
EXPIRED: Final = "expired"
WITHDRAWN: Final = "withdrawn"


@dataclass(frozen=True, slots=True)
class Request:
    """Somebody seeks cover for `whole` of their time on a schedule."""

    id: int
    schedule_id: int
    asker_id: int
    whole: Part
    status: str
    rev: int

    @property
    def open(self) -> bool:
        return self.status == OPEN


@dataclass(frozen=True, slots=True)
class Taken:
    """A part that somebody covers."""

    request_id: int
    person_id: int
    part: Part
    override_id: int
