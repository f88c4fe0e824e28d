"""Warnings about contact rules: what can never run, and what would leave somebody unreached.

Pure; never changes a rule. An address is not named: the kind of method is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from engine.contact import Step, steps
from engine.directory import (
    BY_CODE,
    STOPPED,
    ContactMethod,
    ContactRule,
    Directory,
    Level,
    Person,
    TargetKind,
)
from engine.models import Method, Urgency

LATE: Final = timedelta(minutes=5)  # for the first message of something urgent
RINGS: Final = frozenset({Method.SMS, Method.VOICE, Method.PUSH})
NAMES: Final = {
    Method.SLACK: "Slack",
    Method.SMS: "SMS",
    Method.VOICE: "call",
    Method.EMAIL: "email",
    Method.PUSH: "push",
}


@dataclass(frozen=True, slots=True)
class RuleWarning:
    """`text` is a whole sentence for the person; `method_id` the contact method it is about, if one."""

    text: str
    urgency: Urgency | None = None
    method_id: int | None = None


def warnings(
    person: Person, directory: Directory, ways: Collection[Method] | None = None
) -> tuple[RuleWarning, ...]:
    """The gravest first. `ways`: what this install can send by; None: not known, and not judged."""
    high = [step for step in steps(person, Urgency.HIGH) if _sendable(step.method, ways)]
    found = [*_unreached(person, high), *_unused(person, ways)]
    for urgency in (Urgency.HIGH, Urgency.LOW):
        for rule in person.rules.get(urgency, ()):
            found += _never_runs(person, urgency, rule, ways)
    found += [*_late(high), *_overtaken(person, high, directory)]
    return tuple({(one.text, one.urgency): one for one in found}.values())


def _unreached(person: Person, high: list[Step]) -> Iterator[RuleWarning]:
    usable = [one for one in person.methods if one.usable]
    if not high:
        yield RuleWarning("Nothing reaches you: add a number or an app with `/oncall me`, and verify it.")
        return
    if not usable:
        yield RuleWarning(
            "Nothing of yours is verified: pages go to what was imported, wherever that leads. Verify it "
            "with `/oncall me`."
        )
    kinds = {step.method.kind for step in high}
    if not kinds & RINGS:
        named = _listed(NAMES[one] for one in NAMES if one in kinds)
        yield RuleWarning(
            f"Nothing wakes you: high urgency goes by {named} alone, which telephones keep silent at night. "
            "Add a number or an app that rings, with `/oncall me`.",
            Urgency.HIGH,
        )
    elif kinds <= {Method.SLACK, Method.PUSH} and Method.SLACK in kinds:
        yield RuleWarning(
            "No telephone number: when your phone has no data, neither Slack nor push arrives. Add SMS or a "
            "call with `/oncall me`.",
            Urgency.HIGH,
        )


def _unused(person: Person, ways: Collection[Method] | None) -> Iterator[RuleWarning]:
    """Methods that no page goes by, and that no rule names: those are said with their rules."""
    named = {rule.method_id for rules in person.rules.values() for rule in rules}
    for one in person.methods:
        if one.id in named or one.disabled_reason not in {None, STOPPED}:
            continue
        why = _why_not(person, one, ways)
        if why is None and named and one.verified_by == BY_CODE:  # they added it to be reached by it
            why = "none of your contact rules uses it. Add a step, or go back to the usual order"
        if why is not None:
            name = NAMES.get(one.kind, one.kind.value)
            yield RuleWarning(f"No page goes by your {name}: {why}.", method_id=one.id)


def _never_runs(
    person: Person, urgency: Urgency, rule: ContactRule, ways: Collection[Method] | None
) -> Iterator[RuleWarning]:
    method = next((one for one in person.methods if one.id == rule.method_id), None)
    said = "A step" if method is None else _in_words(method.kind, rule.delay)
    why = "its contact method was removed" if method is None else _why_not(person, method, ways)
    if why is not None:
        text = f"{said} never runs for {urgency} urgency, and pages go by the others: {why}."
        yield RuleWarning(text, urgency, rule.method_id)


def _why_not(person: Person, method: ContactMethod, ways: Collection[Method] | None) -> str | None:
    """Why no page goes there, and what can be done about it."""
    if method.disabled_reason == STOPPED:
        return "its number replied STOP. Text START from it to have texts again"
    if method.disabled_reason is not None:
        return f"it is off ({method.disabled_reason})"
    if not method.usable:
        last = method.last_resort and not any(one.usable for one in person.methods)
        return None if last else "it is not verified. Have a code sent with `/oncall me`"
    if _sendable(method, ways):
        return None
    return "this install has nothing to send it by. `midwatch doctor` tells whoever runs it how"


def _late(high: list[Step]) -> Iterator[RuleWarning]:
    if high and high[0].delay > LATE:
        yield RuleWarning(
            f"The first message about something urgent comes {_long(high[0].delay)} late: let the first step "
            "begin at once.",
            Urgency.HIGH,
            high[0].method.id,
        )


def _overtaken(person: Person, high: list[Step], directory: Directory) -> Iterator[RuleWarning]:
    """Steps that come after somebody else was paged, wherever a policy pages this person."""
    longest = max((level.timeout for level in _levels(person, directory)), default=None)
    for step in high if longest is not None else ():
        if longest is not None and step.delay >= longest and step.delay > timedelta():
            yield RuleWarning(
                f"{_in_words(step.method.kind, step.delay)} comes after the next level is paged: no policy "
                f"gives you more than {_long(longest)}. Give it a shorter delay.",
                Urgency.HIGH,
                step.method.id,
            )


def _levels(person: Person, directory: Directory) -> Iterator[Level]:
    theirs = {one.id for one in directory.schedules.values() if person.id in one.people}
    for policy in directory.policies.values():
        for level in policy.levels:
            if any(
                (one.kind is TargetKind.PERSON and one.ref == person.id)
                or (one.kind is TargetKind.SCHEDULE and one.ref in theirs)
                for one in level.targets
            ):
                yield level


def _sendable(method: ContactMethod, ways: Collection[Method] | None) -> bool:
    return ways is None or method.kind in ways


def _in_words(kind: Method, delay: timedelta) -> str:
    name = NAMES.get(kind, kind.value)
    named = f"{name[:1].upper()}{name[1:]}"
    return f"{named} after {_long(delay)}" if delay else f"{named} at once"


def _long(delay: timedelta) -> str:
    seconds = int(delay.total_seconds())
    hours, minutes = divmod(seconds // 60, 60)
    each = ((hours, "h"), (minutes, "min"), (seconds % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in each if count) or "no time"


def _listed(names: Iterable[str]) -> str:
    return " and ".join(names)
