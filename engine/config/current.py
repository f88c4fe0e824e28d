"""The directory as the Config that would make it: what `export` writes and a plan compares with.

Never shows what the form cannot say: overrides, keys, people who were deactivated. Nor what people added
for themselves: such a number is theirs, and stays when a file is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from engine.config.form import (
    CONTACTS,
    Config,
    Known,
    LevelForm,
    PersonForm,
    PolicyForm,
    ScheduleForm,
    ServiceForm,
    Step,
    TargetForm,
)
from engine.directory import (
    BY_CONFIG,
    STOPPED,
    Directory,
    NamedSchedule,
    Person,
    Policy,
    Service,
    Target,
    TargetKind,
)
from engine.models import Method, Urgency
from engine.schedule import Schedule

GONE = "(gone)"  # a name for an id that nothing has any more; equal to no name that can be written


def config_of(directory: Directory) -> Config:
    people = [_person(person) for person in directory.people.values() if person.active]
    return Config(
        people=_by_name(people),
        schedules=_by_name(_schedule(directory, named) for named in directory.schedules.values()),
        policies=_by_name(_policy(directory, policy) for policy in directory.policies.values()),
        services=_by_name(_service(directory, service) for service in directory.services.values()),
        fallback=tuple(_target(directory, target) for target in directory.fallback),
    )


def known_in(directory: Directory) -> Known:
    return Known(
        people=frozenset(person.name for person in directory.people.values() if person.active),
        schedules=frozenset(schedule.name for schedule in directory.schedules.values()),
        policies=frozenset(policy.name for policy in directory.policies.values()),
    )


def rename_users(schedule: Schedule, name: Callable[[str], str]) -> Schedule:
    """The schedule with other words for its people: names for ids, or ids for names."""
    layers = tuple(
        replace(layer, users=tuple(tuple(map(name, together)) for together in layer.users))
        for layer in schedule.layers
    )
    fallback = None if schedule.fallback is None else name(schedule.fallback)
    return replace(schedule, layers=layers, fallback=fallback)


Form = TypeVar("Form", PersonForm, ScheduleForm, PolicyForm, ServiceForm)


def _by_name(forms: Iterable[Form]) -> dict[str, Form]:
    return {form.name: form for form in forms}


def _names(directory: Directory) -> Callable[[str], str]:
    return lambda user: directory.people[int(user)].name if int(user) in directory.people else GONE


def _person(person: Person) -> PersonForm:
    # One that is off by STOP is in the file all the same: applying it again must not undo that.
    there = [method for method in person.methods if method.disabled_reason in {None, STOPPED}]
    named = [method for method in there if method.in_file or method.kind is Method.SLACK]
    addresses = {method.kind: method.address for method in named}
    return PersonForm(
        name=person.name,
        slack=person.slack_user_id,
        timezone=person.timezone,
        admin=person.admin,
        contact={kind: addresses[kind] for kind in CONTACTS if kind in addresses},
        rules=_rules(person, {method.id: method.kind for method in named}),
    )


def _rules(person: Person, kinds: Mapping[int, Method]) -> dict[Urgency, tuple[Step, ...]] | None:
    if person.rules_by != BY_CONFIG:
        return None  # the person's own: their numbers are not in the file, so their rules cannot be
    return {
        urgency: tuple(
            Step(kinds[rule.method_id], rule.delay)
            for rule in person.rules.get(urgency, ())
            if rule.method_id in kinds
        )
        for urgency in (Urgency.HIGH, Urgency.LOW)
    }


def _schedule(directory: Directory, named: NamedSchedule) -> ScheduleForm:
    return ScheduleForm(
        name=named.name,
        schedule=rename_users(replace(named.schedule, overrides=()), _names(directory)),
        channel=named.channel,
        user_group=named.user_group,
        topic=named.topic,
    )


def _policy(directory: Directory, policy: Policy) -> PolicyForm:
    return PolicyForm(
        name=policy.name,
        levels=tuple(
            LevelForm(tuple(_target(directory, target) for target in level.targets), level.timeout)
            for level in policy.levels
        ),
        repeat=policy.repeat,
        on_exhaustion=policy.on_exhaustion,
        ack_timeout=policy.ack_timeout,
    )


def _service(directory: Directory, service: Service) -> ServiceForm:
    policy = directory.policies.get(service.policy_id or 0)
    return ServiceForm(
        name=service.name,
        policy=policy.name if policy else None,
        channel=service.channel,
        group_by=service.group_by,
        group_window=service.group_window,
        flap_window=service.flap_window,
        urgency=service.urgency,
    )


def _target(directory: Directory, target: Target) -> TargetForm:
    if target.kind is TargetKind.CHANNEL:
        return TargetForm(target.kind, str(target.ref))
    owners = directory.people if target.kind is TargetKind.PERSON else directory.schedules
    found = owners.get(int(target.ref))
    return TargetForm(target.kind, found.name if found else GONE)
