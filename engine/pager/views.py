"""Incidents as people see them. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.db import Database
from engine.models import ORG, Delivery, IncidentStatus, IncidentView, TimelineEntry, TimerKind
from engine.pager.story import Tale
from engine.store import attempts, cards, deliveries, incidents, journal, timers, views

OF_INCIDENTS: Final = (
    TimerKind.ESCALATE,
    TimerKind.EXHAUST,
    TimerKind.UNSNOOZE,
    TimerKind.ACK_TIMEOUT,
    TimerKind.RAISE_URGENCY,
)


class Views:
    """Reads that wait for no writer. What answers and cards need waits for no long list either."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def incident(self, incident_id: int) -> IncidentView | None:
        return next(iter(await self.incidents([incident_id])), None)

    async def incidents(self, ids: Sequence[int]) -> Sequence[IncidentView]:
        async with self._database.look() as tx:
            return await views.by_ids(tx, ORG, ids)

    async def is_there(self, org_id: int, incident_id: int) -> bool:
        async with self._database.look() as tx:
            return await incidents.is_there(tx, org_id, incident_id)

    async def by_number(self, number: int) -> IncidentView | None:
        async with self._database.look() as tx:
            found = await incidents.id_of(tx, ORG, number)
            return None if found is None else next(iter(await views.by_ids(tx, ORG, [found])), None)

    async def list(
        self,
        statuses: Sequence[IncidentStatus] | None = None,
        limit: int = 50,
        before_id: int | None = None,
    ) -> Sequence[IncidentView]:
        """Newest first; `before_id` goes on where a page ended."""
        words = [status.value for status in statuses or ()]
        async with self._database.snapshot() as tx:
            return await views.newest(tx, ORG, words, limit, before_id)

    async def timeline(self, incident_id: int) -> Sequence[TimelineEntry]:
        async with self._database.snapshot() as tx:
            return await journal.timeline_of(tx, ORG, [incident_id])

    async def deliveries(self, incident_id: int) -> Sequence[Delivery]:
        async with self._database.snapshot() as tx:
            return await deliveries.of_incidents(tx, ORG, [incident_id])

    async def tale(self, number: int) -> Tale | None:
        """Everything that is known of an incident, for `why`."""
        async with self._database.snapshot() as tx:
            found = await incidents.id_of(tx, ORG, number)
            view = None if found is None else next(iter(await views.by_ids(tx, ORG, [found])), None)
            if found is None or view is None:
                return None
            told = await deliveries.of_incidents(tx, ORG, [found])
            ids = [one.id for one in told]
            return Tale(
                view,
                await journal.timeline_of(tx, ORG, [found]),
                told,
                await attempts.of_deliveries(tx, ORG, ids),
                await timers.of_subjects(tx, ORG, OF_INCIDENTS, [found]),
                await timers.of_subjects(tx, ORG, [TimerKind.DELIVER], ids),
                await cards.places_of(tx, ORG, found),
            )

    async def open_texted_to(self, address_hash: str) -> Sequence[IncidentView]:
        """Open incidents that were sent by SMS to the number with this keyed hash, newest first."""
        async with self._database.look() as tx:
            ids = await deliveries.incidents_texted_to(tx, ORG, address_hash)
            return await views.by_ids(tx, ORG, ids)
