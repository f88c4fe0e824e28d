"""Alertmanager's webhook, version 4, and whoever imitates it.

Never trusts the group's status for an alert that has its own, and never takes an alert that is
missing from a body for resolved.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from engine.errors import BadPayload
from engine.grouping import bounded_key, parse_severity
from engine.models import Action, Body, Event, GroupResolve, Link
from engine.sources import clean

SOURCE = "alertmanager"
_RESOLVED = "resolved"
_MOST_HIDDEN = 1_000_000  # alerts that a body may say it left out


def parse_alertmanager(payload: object, _new_key: Callable[[], str]) -> Body:
    """One event for each alert; its fingerprint is the dedup key, so none is ever generated."""
    body, alerts = _envelope(payload)
    status = clean.text_of(body.get("status"))
    group_key = bounded_key(clean.key_text(body.get("groupKey"), "groupKey")) or None
    shown_at = clean.link(body.get("externalURL"), "Alertmanager")
    events = tuple(
        _event(alert, f"alerts[{index}]", status, group_key, shown_at) for index, alert in enumerate(alerts)
    )
    over = _is_resolved(status) and bool(events)
    return Body(
        source=SOURCE,
        events=events,
        group_resolves=(_group_resolve(group_key, events),) if group_key and over else (),
        truncated=_truncated(body.get("truncatedAlerts")),
    )


def _envelope(payload: object) -> tuple[Mapping[str, Any], list[Any]]:
    if not isinstance(payload, dict):
        raise BadPayload("the body must be an object, as Alertmanager's webhook sends it")
    alerts = payload.get("alerts")
    if not isinstance(alerts, list):
        raise BadPayload("alerts must be a list; is this the body of Alertmanager's webhook?")
    return payload, alerts


def _event(raw: object, place: str, group_status: str, group_key: str | None, shown_at: Link | None) -> Event:
    if not isinstance(raw, dict):
        raise BadPayload(f"{place} must be an object")
    labels = clean.optional_mapping(raw.get("labels"), f"{place}.labels")
    annotations = clean.optional_mapping(raw.get("annotations"), f"{place}.annotations")
    resolved = _is_resolved(clean.text_of(raw.get("status")) or group_status)
    severity = clean.cut(clean.text_of(labels.get("severity")), clean.LONGEST_SEVERITY)
    return Event(
        action=Action.RESOLVE if resolved else Action.TRIGGER,
        dedup_key=_dedup_key(raw.get("fingerprint"), labels, place),
        summary=clean.summary(
            annotations.get("summary"),
            annotations.get("description"),
            annotations.get("message"),
            labels.get("alertname"),
        ),
        group_key=group_key,
        severity=parse_severity(severity),
        raw_severity=severity,
        labels=clean.labels(labels),
        links=clean.links(
            clean.link(annotations.get("runbook_url"), "Runbook"),
            clean.link(annotations.get("dashboard_url"), "Dashboard"),
            clean.link(raw.get("generatorURL"), "Source"),
            shown_at,
        ),
        details={"annotations": clean.details(annotations)} if annotations else {},
        started_at=clean.instant(raw.get("startsAt")),
        # Why: while an alert fires its end is Go's zero time, or a guess in the future.
        ended_at=clean.instant(raw.get("endsAt")) if resolved else None,
    )


def _is_resolved(status: str) -> bool:
    """Any other word is firing: rather a page too many than one too few."""
    return status.strip().lower() == _RESOLVED


def _dedup_key(fingerprint: object, labels: Mapping[str, Any], place: str) -> str:
    """The fingerprint; without one the same thing from the labels, in any order."""
    key = clean.key_text(fingerprint, f"{place}.fingerprint")
    if key:
        return bounded_key(key)
    text = json.dumps(labels, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _group_resolve(group_key: str, events: tuple[Event, ...]) -> GroupResolve:
    """Members may have been cut off: whatever began before the newest end is over as well."""
    ends = [event.ended_at for event in events if event.ended_at is not None]
    return GroupResolve(group_key, max(ends, default=None))


def _truncated(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        return 0
    return min(max(raw, 0), _MOST_HIDDEN)
