"""Pages and incidents with defaults, for tests of what is said and sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from engine.models import (
    Alert,
    AlertStatus,
    DeliveryKind,
    IncidentStatus,
    IncidentView,
    Method,
    Page,
    Severity,
    Urgency,
)

NOW = datetime(2026, 11, 5, 14, 0, tzinfo=UTC)
NUMBER = "+12025550143"


def alert(**changes: Any) -> Alert:
    usual = Alert(
        id=1,
        incident_id=7,
        service_id=1,
        dedup_key="db-1",
        source_group=None,
        status=AlertStatus.FIRING,
        severity=Severity.CRITICAL,
        raw_severity="critical",
        urgency=Urgency.HIGH,
        summary="db-1 is down",
        labels={},
        links=(),
        event_count=3,
        flap_count=0,
        started_at=NOW,
        first_seen_at=NOW,
        last_seen_at=NOW,
    )
    return replace(usual, **changes)


def view(**changes: Any) -> IncidentView:
    usual = IncidentView(
        id=7,
        org_id=1,
        number=42,
        status=IncidentStatus.TRIGGERED,
        urgency=Urgency.HIGH,
        title="db-1 is down",
        service_id=1,
        service="checkout",
        channel="#payments",
        policy="payments",
        severity=Severity.CRITICAL,
        raw_severity="critical",
        epoch=1,
        round=1,
        pass_=0,
        level=0,
        opened_at=NOW,
        alerts=(alert(),),
        alert_count=1,
        firing_count=1,
        event_count=3,
    )
    return replace(usual, **changes)


def page(**changes: Any) -> Page:
    usual = Page(
        id=901,
        attempt=1,
        kind=DeliveryKind.PAGE,
        method=Method.SMS,
        address=NUMBER,
        person="ana",
        incident=view(),
    )
    return replace(usual, **changes)


def told(text: str, **changes: Any) -> Page:
    """A page that says `text` and shows no incident."""
    return page(**{"incident": None, "kind": DeliveryKind.NOTICE, "text": text, **changes})
