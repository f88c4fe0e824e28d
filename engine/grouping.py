"""What belongs together and how loud it is: dedup key, group key, severity, urgency.

Never drops anything: an unknown severity is high urgency, and an alert without any of the labels
that a service groups by is a problem of its own.
"""

from __future__ import annotations

import hashlib
import json

from engine.directory import Service
from engine.models import Event, Severity, Urgency

# Why: keys stand in unique indexes, and PostgreSQL refuses an index row of more than 2,704 bytes;
# a sender with a longer key would get an error for ever. The organisation and a suffix join it.
LONGEST_KEY = 1024  # bytes
_KEPT_OF_LONG_KEY = 200  # characters, so that people recognise it

_SEVERITIES = {
    Severity.CRITICAL: ("critical", "crit", "disaster", "emerg", "emergency", "fatal"),
    Severity.ERROR: ("error", "err"),
    Severity.WARNING: ("warning", "warn"),
    Severity.INFO: ("info", "information", "informational", "notice"),
}
_BY_WORD = {word: severity for severity, words in _SEVERITIES.items() for word in words}

# Why an unknown severity weighs as much as an error: it pages like one.
_WEIGHTS = {None: 3, Severity.CRITICAL: 4, Severity.ERROR: 3, Severity.WARNING: 2, Severity.INFO: 1}

_URGENCIES = {Severity.WARNING: Urgency.LOW, Severity.INFO: Urgency.LOW}


def bounded_key(key: str) -> str:
    """The key itself or, if it is too long for an index, its beginning and a hash: always the same."""
    if len(key) * 4 <= LONGEST_KEY or len(key.encode("utf-8", "replace")) <= LONGEST_KEY:
        return key
    digest = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
    return f"{key[:_KEPT_OF_LONG_KEY]}…{digest[:32]}"


def group_key(event: Event, service: Service) -> str:
    """What the event's incident is found by: the service's grouping, else the source's own."""
    alone = bounded_key(f"key:{event.dedup_key}")
    if service.group_by is None:
        return bounded_key(event.group_key) if event.group_key else alone
    values = {name: event.labels[name] for name in sorted(service.group_by) if name in event.labels}
    if not values:
        return alone
    return bounded_key(f"labels:{json.dumps(values, ensure_ascii=False, separators=(',', ':'))}")


def parse_severity(word: str) -> Severity | None:
    """The severity that a word of some tool means; None if nobody can tell ("page", "P1")."""
    return _BY_WORD.get(word.strip().lower())


def severity_weight(severity: Severity | None) -> int:
    """A number to compare severities by: higher is worse."""
    return _WEIGHTS[severity]


def urgency(event: Event, service: Service) -> Urgency:
    """As the service says for the source's own word, or for the severity; else by the severity."""
    chosen = {word.strip().lower(): urgency for word, urgency in service.urgency.items()}
    words = [event.raw_severity.strip().lower(), event.severity.value if event.severity else ""]
    for word in words:
        if word in chosen:
            return chosen[word]
    return _URGENCIES.get(event.severity, Urgency.HIGH) if event.severity else Urgency.HIGH
