"""The `people` of midwatch.yaml: who they are, how they are reached, and in which order.

Never accepts somebody who cannot be reached at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from engine.config.durations import parse_duration
from engine.config.form import CONTACTS, PersonForm, Step
from engine.config.reading import FormFields, did_you_mean
from engine.models import Method, Urgency

PERSON_KEYS: Final = ("name", "slack", "timezone", "admin", "contact", "rules")
LONGEST_DELAY: Final = timedelta(days=1)


def parse_people(fields: FormFields, raw: object) -> dict[str, PersonForm]:
    found = {
        name: _person(fields, name, entry, place)
        for place, name, entry in fields.named(raw, "people", PERSON_KEYS)
    }
    owners: dict[str, str] = {}
    for number, person in enumerate(found.values(), start=1):
        owner = owners.setdefault(person.slack or "", person.name)
        if person.slack and owner != person.name:
            fields.wrong(f"people[{number}].slack", f"{person.slack} is {owner}'s already", None)
    return found


def _person(fields: FormFields, name: str, entry: Mapping[str, Any], place: str) -> PersonForm:
    slack, zone = entry.get("slack"), entry.get("timezone")
    contact = _contact(fields, entry.get("contact"), f"{place}.contact")
    person = PersonForm(
        name=name,
        slack=None if slack is None else fields.slack_user(slack, f"{place}.slack"),
        timezone="UTC" if zone is None else fields.zone(zone, f"{place}.timezone"),
        admin=fields.flag(entry.get("admin", False), f"{place}.admin"),
        contact=contact,
        rules=None,
    )
    if slack is None and not entry.get("contact"):
        instead = 'add slack: U012AB3CD or contact: {sms: "+12025550143"}'
        fields.wrong(place, f"{name or 'this person'} cannot be reached; {instead}", None)
    rules = entry.get("rules")
    given = {method for method in (Method.SLACK, *CONTACTS) if _is_given(method, entry)}
    if rules is None:
        return person
    return replace(person, rules=_rules(fields, rules, f"{place}.rules", given))


def _is_given(method: Method, entry: Mapping[str, Any]) -> bool:
    """Also when it is given wrongly: that is one mistake, not two."""
    contact = entry.get("contact")
    inside = isinstance(contact, Mapping) and contact.get(method.value) is not None
    return inside or (method is Method.SLACK and entry.get("slack") is not None)


def _contact(fields: FormFields, raw: object, place: str) -> dict[Method, str]:
    if raw is None:
        return {}
    entry = fields.mapping(raw, place, [method.value for method in CONTACTS]) or {}
    return {
        method: fields.address(method, entry[method.value], f"{place}.{method.value}")
        for method in CONTACTS
        if entry.get(method.value) is not None
    }


def _rules(
    fields: FormFields, raw: object, place: str, given: set[Method]
) -> dict[Urgency, tuple[Step, ...]]:
    entry = fields.mapping(raw, place, [Urgency.HIGH.value, Urgency.LOW.value]) or {}
    found = {}
    for urgency in (Urgency.HIGH, Urgency.LOW):
        where = f"{place}.{urgency.value}"
        steps = [
            _step(fields, item, spot, given) for spot, item in fields.items(entry.get(urgency.value), where)
        ]
        if urgency is Urgency.HIGH and not steps:
            fields.wrong(where, "needs at least one step, like [slack, sms after 1m]", None)
        found[urgency] = tuple(steps)
    return found


def _step(fields: FormFields, raw: object, place: str, given: set[Method]) -> Step:
    words = raw.split() if isinstance(raw, str) else []
    known = {method.value: method for method in (Method.SLACK, *CONTACTS)}
    delay = timedelta() if len(words) == 1 else parse_duration(words[2]) if _is_after(words) else None
    if delay is None or not words:
        return fields.wrong(place, f'must be like "slack" or "sms after 1m", not {raw!r}', Step(Method.SLACK))
    if delay > LONGEST_DELAY:
        return fields.wrong(place, f"waits too long: at most 1d, not {words[2]}", Step(Method.SLACK))
    method = known.get(words[0])
    if method is None:
        instead = did_you_mean(words[0], known) or f"; known are {', '.join(known)}"
        return fields.wrong(place, f"there is no method {words[0]!r}{instead}", Step(Method.SLACK))
    if method not in given:
        field = "slack: U012AB3CD" if method is Method.SLACK else f"contact: {{{method.value}: …}}"
        return fields.wrong(place, f"no {method.value} is given for this person; add {field}", Step(method))
    return Step(method, delay)


def _is_after(words: list[str]) -> bool:
    return len(words) == 3 and words[1] == "after"
