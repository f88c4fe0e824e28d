"""Any JSON object from any tool: title, state, severity and identity are guessed from usual names.

Never guesses that something is over unless a word says so: what is not understood pages.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.errors import BadPayload
from engine.grouping import bounded_key, parse_severity
from engine.models import Action, Body, Event
from engine.sources import clean

SOURCE = "generic"

# In order of preference; compared without case, `_`, `-` and spaces.
_TITLES = (
    "title",
    "summary",
    "subject",
    "alertname",
    "alerttitle",
    "name",
    "message",
    "text",
    "msg",
    "description",
)
_SHORT_TITLES = 6  # of the titles, those that do not tell what is different each time
_ACTIONS = ("action", "eventaction", "eventtype")
_STATES = ("status", "state", "alertstate", "alertstatus")
_SEVERITIES = ("severity", "level", "criticality", "priority")
_KEYS = ("dedupkey", "deduplicationkey", "incidentkey", "fingerprint", "alias", "alertid", "uid", "id", "key")
_RULES = ("ruleid", "monitorid", "checkid")  # may be broken in many places at once
_PLACES = ("host", "hostname", "instance", "source", "service", "resource", "node", "device", "check")
_GROUPS = ("groupkey",)
_LINKS = {
    "url": "Link",
    "link": "Link",
    "permalink": "Link",
    "runbookurl": "Runbook",
    "dashboardurl": "Dashboard",
}
_STARTS = ("startedat", "startsat", "starttime")
_ENDS = ("endedat", "endsat", "endtime")

_WORDS = {
    Action.TRIGGER: frozenset(
        {
            "trigger",
            "triggered",
            "firing",
            "alerting",
            "alert",
            "problem",
            "down",
            "open",
            "failed",
            "critical",
        }
    ),
    Action.RESOLVE: frozenset(
        {"resolve", "resolved", "ok", "okay", "up", "recovered", "recovery", "clear", "cleared", "close"}
        | {"closed", "normal", "inactive", "healthy", "success", "green"}
    ),
    Action.ACKNOWLEDGE: frozenset({"ack", "acked", "acknowledge", "acknowledged"}),
}


def parse_generic(payload: object, _new_key: Callable[[], str]) -> Body:
    """One event, or one for each object of a list. The key always comes from the object's fields."""
    if isinstance(payload, dict):
        return Body(SOURCE, (_event(payload),))
    if not isinstance(payload, list) or not all(isinstance(item, dict) for item in payload):
        raise BadPayload("the body must be a JSON object, or a list of objects")
    return Body(SOURCE, tuple(_event(item) for item in payload))


def _event(raw: Mapping[str, Any]) -> Event:
    fields = {_plain(name): value for name, value in raw.items()}
    severity = clean.cut(_first(fields, _SEVERITIES), clean.LONGEST_SEVERITY)
    action = _action(fields)
    return Event(
        action=action,
        dedup_key=_dedup_key(raw, fields),
        summary=clean.summary(_first(fields, _TITLES)),
        group_key=bounded_key(_first(fields, _GROUPS)) or None,
        severity=parse_severity(severity),
        raw_severity=severity,
        labels=clean.labels(_labels(raw)),
        links=clean.links(*(clean.link(fields.get(name), text) for name, text in _LINKS.items())),
        details=clean.details(raw),
        started_at=clean.instant(_value(fields, _STARTS)),
        ended_at=clean.instant(_value(fields, _ENDS)) if action is Action.RESOLVE else None,
    )


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


def _value(fields: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first that is text with something in it, or a number; never an object or a list."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip():
            return value
    return None


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> str:
    return clean.first_text(_value(fields, names))


def _action(fields: Mapping[str, Any]) -> Action:
    """What the sender asks for, else what it says of the state; where words disagree, it fires."""
    for names in (_ACTIONS, _STATES):
        said = {clean.text_of(fields.get(name)).strip().lower() for name in names}
        for action, words in _WORDS.items():
            if said & words:
                return action
    return Action.TRIGGER


def _dedup_key(raw: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    """What the tool calls it; else its rule or title and where it is; else all of it."""
    named = _first(fields, _KEYS)
    if named:
        return bounded_key(named)
    names = _RULES if _first(fields, _RULES) else _TITLES[:_SHORT_TITLES]
    identity: Any = [_first(fields, [name]) for name in (*names, *_PLACES)]
    if not any(identity):
        identity = raw
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


def _labels(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The labels it has, else its short fields."""
    for name in ("labels", "tags"):
        if isinstance(raw.get(name), dict):
            return dict(raw[name])
    return {name: value for name, value in raw.items() if isinstance(value, str | int | float)}
