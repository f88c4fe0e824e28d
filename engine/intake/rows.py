"""Rows of one batch: what an event becomes as an alert, a count and a line of the journal.

Pure: never reads the clock or the database.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from engine.intake.fold import Item, Plan
from engine.models import Alert, Event
from engine.store.alerts import NewAlert, Refresh
from engine.store.journal import EventRow

TITLE_LENGTH: Final = 300


def title(event: Event) -> str:
    first = event.summary.strip().splitlines()[0].strip() if event.summary.strip() else ""
    title = first or "No summary provided"
    return title if len(title) <= TITLE_LENGTH else f"{title[: TITLE_LENGTH - 1]}…"


def latest(*starts: datetime | None) -> datetime | None:
    """The start that is kept. Why not the newest message's: two senders of one alert may differ, and
    each change to and fro would look like a new occurrence."""
    return max((start for start in starts if start is not None), default=None)


def refresh(alert: Alert, plan: Plan, *, flaps: int) -> Refresh:
    item = plan.newest
    event = item.event
    return Refresh(
        alert_id=alert.id,
        times=len(plan.triggers),
        flaps=flaps,
        severity=event.severity.value if event.severity else None,
        raw_severity=event.raw_severity,
        urgency=item.urgency.value,
        summary=event.summary,
        started_at=latest(alert.started_at, *(one.event.started_at for one in plan.triggers)),
    )


def new_alert(incident_id: int, plan: Plan) -> NewAlert:
    item = plan.newest
    event = item.event
    return NewAlert(
        service_id=plan.service.id,
        incident_id=incident_id,
        dedup_key=plan.dedup_key,
        source_group=event.group_key,
        severity=event.severity.value if event.severity else None,
        raw_severity=event.raw_severity,
        urgency=item.urgency.value,
        summary=event.summary,
        labels=dict(event.labels),
        links=[{"url": link.url, "text": link.text} for link in event.links],
        event_count=len(plan.triggers),
        started_at=latest(*(one.event.started_at for one in plan.triggers)),
    )


def event_row(service_id: int, item: Item, outcome: str, reason: str, incident_id: int | None) -> EventRow:
    event = item.event
    return EventRow(
        service_id=service_id,
        source=item.source,
        action=event.action.value,
        dedup_key=event.dedup_key,
        outcome=outcome,
        reason=reason,
        summary=event.summary,
        incident_id=incident_id,
        raw_severity=event.raw_severity,
        content=event.details,
        started_at=event.started_at,
        ended_at=event.ended_at,
    )
