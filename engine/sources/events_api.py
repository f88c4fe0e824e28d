"""Midwatch's own event: POST /v1/events.

Never invents a dedup key for an acknowledge or a resolve: they must name what they are about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.errors import BadPayload
from engine.grouping import bounded_key, parse_severity
from engine.models import Action, Body, Event
from engine.sources import clean

SOURCE = "events"


def parse_events(payload: object, new_key: Callable[[], str]) -> Body:
    """`new_key` makes the dedup key of a trigger that has none."""
    if not isinstance(payload, dict):
        raise BadPayload('the body must be an object like {"action": "trigger", "summary": "…"}')
    action = action_of(payload.get("action"), "action", default=Action.TRIGGER)
    severity = clean.cut(clean.text_of(payload.get("severity")), clean.LONGEST_SEVERITY)
    group_key = clean.key_text(payload.get("group_key"), "group_key")
    event = Event(
        action=action,
        dedup_key=dedup_key_of(payload, action, new_key),
        summary=clean.summary(payload.get("summary")),
        group_key=bounded_key(group_key) or None,
        severity=parse_severity(severity),
        raw_severity=severity,
        labels=clean.labels(clean.optional_mapping(payload.get("labels"), "labels")),
        links=clean.links(*clean.link_list(payload.get("links"), ("url", "href"), ("text",))),
        details=_details(payload.get("details")),
        started_at=clean.instant(payload.get("started_at")),
        ended_at=clean.instant(payload.get("ended_at")) if action is Action.RESOLVE else None,
    )
    return Body(SOURCE, (event,))


def action_of(raw: object, name: str, default: Action | None = None) -> Action:
    if raw is None and default is not None:
        return default
    word = raw.strip().lower() if isinstance(raw, str) else ""
    if word not in set(Action):
        raise BadPayload(f"{name} must be one of {', '.join(Action)}")
    return Action(word)


def dedup_key_of(payload: Mapping[str, Any], action: Action, new_key: Callable[[], str]) -> str:
    key = clean.key_text(payload.get("dedup_key"), "dedup_key")
    if key:
        return bounded_key(key)
    if action is not Action.TRIGGER:
        raise BadPayload(f"to {action.value} something, say what by its dedup_key")
    return bounded_key(new_key())


def _details(raw: object) -> dict[str, Any]:
    if raw is None:
        return {}
    return clean.details(raw if isinstance(raw, dict) else {"details": raw})
