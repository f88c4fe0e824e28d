"""The steps of a page: which contact methods of a person, in which order, after which delays.

Never leaves a person unpaged who can be reached: where their rules name nothing usable, the usual
order takes their place, and where nothing of theirs is verified, what an importer wrote down does.
Never asks whether they should be paged at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from engine.directory import ContactMethod, ContactRule, Person
from engine.models import Method, Urgency

# Slack is silent on many phones at night, so a text follows soon, and then a call that rings.
_HIGH_DELAYS = {
    Method.SLACK: timedelta(0),
    Method.PUSH: timedelta(0),
    Method.SMS: timedelta(minutes=1),
    Method.VOICE: timedelta(minutes=3),
}
_LOW_ORDER = (Method.SLACK, Method.EMAIL, Method.PUSH, Method.SMS, Method.VOICE)


@dataclass(frozen=True, slots=True)
class Step:
    """One message of a page; `delay` counts from the start of the level."""

    index: int
    method: ContactMethod
    delay: timedelta


def steps(person: Person, urgency: Urgency) -> tuple[Step, ...]:
    """What a page of this urgency does; empty only if nothing reaches the person."""
    usable = {method.id: method for method in reachable(person.methods)}
    rules = _rules(person, urgency, usable)
    kept = [rule for rule in rules if rule.method_id in usable]
    if not kept:
        rules = kept = list(default_rules(usable.values(), urgency))
    if not kept:
        return ()
    # Why: when the first methods cannot be used nothing would happen for as long as they had been
    # given; the others move up by that time.
    lost = kept[0].delay - rules[0].delay
    return tuple(Step(index, usable[rule.method_id], rule.delay - lost) for index, rule in enumerate(kept))


def reachable(methods: Iterable[ContactMethod]) -> tuple[ContactMethod, ...]:
    """Those that may be used: the verified ones; without any, those that were imported and never verified."""
    known = tuple(methods)
    usable = tuple(method for method in known if method.usable)
    return usable or tuple(method for method in known if method.last_resort)


def default_rules(methods: Iterable[ContactMethod], urgency: Urgency) -> tuple[ContactRule, ...]:
    """The usual order for somebody without rules: high by all that wakes, low by the quietest alone."""
    usable = reachable(methods)
    if urgency is not Urgency.HIGH:
        return tuple(ContactRule(method.id, timedelta(0)) for method in _quietest(usable)[:1])
    waking = [ContactRule(m.id, _HIGH_DELAYS[m.kind]) for m in usable if m.kind in _HIGH_DELAYS]
    rules = sorted(waking, key=_delay) or [ContactRule(method.id, timedelta(0)) for method in usable]
    return tuple(ContactRule(rule.method_id, rule.delay - rules[0].delay) for rule in rules)


def _rules(person: Person, urgency: Urgency, usable: Collection[int]) -> list[ContactRule]:
    """The person's rules, soonest first. Without low ones, the first of the high ones."""
    if urgency is Urgency.HIGH:
        return sorted(person.rules.get(Urgency.HIGH, ()), key=_delay)
    low = sorted(person.rules.get(Urgency.LOW, ()), key=_delay)
    if low:
        return low
    high = sorted(person.rules.get(Urgency.HIGH, ()), key=_delay)
    first = next((rule for rule in high if rule.method_id in usable), None)
    return [ContactRule(first.method_id, timedelta(0))] if first else []


def _quietest(methods: Sequence[ContactMethod]) -> list[ContactMethod]:
    order = {kind: position for position, kind in enumerate(_LOW_ORDER)}
    return sorted(methods, key=lambda method: order.get(method.kind, len(order)))


def _delay(rule: ContactRule) -> timedelta:
    return rule.delay
