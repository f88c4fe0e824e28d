"""PagerDuty's Events API v2, for senders that were built for it: /v2/enqueue, /v2/change/enqueue.

Never checks the routing key: it only reads it. Never takes `timestamp` for the start of a problem,
since senders renew it with each repeat, and a later start would page again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.errors import BadPayload
from engine.grouping import parse_severity
from engine.models import Body, Event
from engine.sources import clean
from engine.sources.events_api import action_of, dedup_key_of

SOURCE = "pagerduty"
_LABELS = ("source", "component", "group", "class")


def routing_key(payload: object) -> str | None:
    """The sender's key, which stands in the body here; None if there is none."""
    key = payload.get("routing_key") if isinstance(payload, dict) else None
    return key if isinstance(key, str) and key else None


def parse_pagerduty(payload: object, new_key: Callable[[], str]) -> Body:
    """`new_key` makes the dedup key of a trigger that has none."""
    body = _envelope(payload)
    action = action_of(body.get("event_action"), "event_action")
    inner = clean.optional_mapping(body.get("payload"), "payload")
    severity = clean.cut(clean.text_of(inner.get("severity")), clean.LONGEST_SEVERITY)
    event = Event(
        action=action,
        dedup_key=dedup_key_of(body, action, new_key),
        summary=clean.summary(inner.get("summary"), inner.get("source")),
        severity=parse_severity(severity),
        raw_severity=severity,
        labels=clean.labels({name: inner[name] for name in _LABELS if clean.text_of(inner.get(name))}),
        links=clean.links(
            *clean.link_list(body.get("links"), ("href",), ("text",)),
            clean.link(body.get("client_url"), body.get("client")),
            *clean.link_list(body.get("images"), ("href", "src"), ("alt",)),
        ),
        details=_details(inner),
    )
    return Body(SOURCE, (event,))


def parse_change(payload: object, _new_key: Callable[[], str]) -> Body:
    """A change event: accepted, so that the sender is content, and nothing to wake anybody for."""
    clean.optional_mapping(_envelope(payload).get("payload"), "payload")
    return Body(SOURCE)


def _envelope(payload: object) -> Mapping[str, Any]:
    if not isinstance(payload, dict):
        raise BadPayload("the body must be an object, as PagerDuty's Events API v2 takes it")
    return payload


def _details(inner: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: inner[name] for name in ("timestamp", "custom_details") if inner.get(name)}
    return clean.details(found)
