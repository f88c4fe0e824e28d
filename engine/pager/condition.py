"""How Midwatch is, from its rows alone: Slack, workers, what is open. For a phone and for a terminal, too.

Changes nothing, and asks nobody but the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine import outage
from engine.db import Database
from engine.models import ORG, IncidentStatus, IncidentView
from engine.outage import Figures, Standing
from engine.store import dead_letters, marks, slack_state, views

OPEN = tuple(status for status in IncidentStatus if status is not IncidentStatus.RESOLVED)
LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Condition:
    """`slack` is None where no process has Slack; `ticked_at` where no worker ever ran."""

    now: datetime
    slack: Standing | None
    figures: Figures
    open: Sequence[IncidentView]  # newest first
    ticked_at: datetime | None
    dead_letters: int

    @property
    def waiting(self) -> Sequence[IncidentView]:
        """What nobody has acknowledged."""
        return [view for view in self.open if view.status is not IncidentStatus.ACKNOWLEDGED]


async def condition(database: Database, now: datetime) -> Condition:
    async with database.snapshot() as tx:
        reports = await slack_state.reports(tx, ORG)
        return Condition(
            now,
            await slack_state.standing(tx, ORG),
            outage.figures(reports, now),
            await views.newest(tx, ORG, [status.value for status in OPEN], LOOKED_AT, None),
            await marks.last_tick(tx, ORG),
            await dead_letters.count(tx, ORG),
        )
