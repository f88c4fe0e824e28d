"""From a Config back to plain mappings and to the text of midwatch.yaml.

Never leaves out what `parse` would not put back: parse(dump(config)) equals the config.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from engine.config.durations import show_duration
from engine.config.form import (
    Config,
    PersonForm,
    PolicyForm,
    ScheduleForm,
    ServiceForm,
    Step,
    TargetForm,
)
from engine.models import Urgency
from engine.schedule import dump_schedule


def dump_config(config: Config) -> str:
    """The text of the file."""
    document: dict[str, Any] = {
        "people": [dump_person(person) for person in config.people.values()],
        "schedules": [dump_schedule_form(schedule) for schedule in config.schedules.values()],
        "policies": [dump_policy(policy) for policy in config.policies.values()],
        "services": [dump_service(service) for service in config.services.values()],
        "fallback": [_target(target) for target in config.fallback or ()],
    }
    return yaml.safe_dump(
        document, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100, indent=2
    )


def dump_person(person: PersonForm) -> dict[str, Any]:
    # Why not empty ones: the form wants a first step for high urgency.
    rules = person.rules if person.rules and person.rules.get(Urgency.HIGH) else {}
    return _without_nothing(
        {
            "name": person.name,
            "slack": person.slack,
            "timezone": person.timezone,
            "admin": person.admin or None,
            "contact": {method.value: address for method, address in person.contact.items()},
            "rules": {urgency.value: [_step(s) for s in steps] for urgency, steps in rules.items()},
        }
    )


def dump_schedule_form(form: ScheduleForm) -> dict[str, Any]:
    mapping = dump_schedule(form.schedule)
    layers = [
        # Why the flag too: holidays of its own want it said, be it false.
        _without_nothing(layer, keep=("users", "skip_holidays") if "holidays" in layer else ("users",))
        for layer in mapping["layers"]
    ]
    return _without_nothing(
        {
            "name": form.name,
            "timezone": mapping["timezone"],
            "layers": layers,
            "holidays": mapping["holidays"],
            "fallback": mapping["fallback"],
            "channel": form.channel,
            "user_group": form.user_group,
            "topic": form.topic,
        },
        keep=("layers",),
    )


def dump_policy(policy: PolicyForm) -> dict[str, Any]:
    return _without_nothing(
        {
            "name": policy.name,
            "levels": [
                {
                    "targets": [_target(target) for target in level.targets],
                    "timeout": show_duration(level.timeout),
                }
                for level in policy.levels
            ],
            "repeat": policy.repeat or None,
            "on_exhaustion": policy.on_exhaustion.value,
            "ack_timeout": None if policy.ack_timeout is None else show_duration(policy.ack_timeout),
        }
    )


def dump_service(service: ServiceForm) -> dict[str, Any]:
    group_by = None if service.group_by is None else list(service.group_by)
    flap = None if service.flap_window == ServiceForm("").flap_window else show_duration(service.flap_window)
    return _without_nothing(
        {
            "name": service.name,
            "policy": service.policy,
            "channel": service.channel,
            "group_by": group_by,
            "group_window": None if service.group_window is None else show_duration(service.group_window),
            "flap_window": flap,
            "urgency": {word: urgency.value for word, urgency in service.urgency.items()},
        },
        keep=() if group_by is None else ("group_by",),
    )


def _without_nothing(mapping: Mapping[str, Any], keep: tuple[str, ...] = ()) -> dict[str, Any]:
    """Without what is empty, false or missing, which is how the form leaves it out."""
    return {key: value for key, value in mapping.items() if key in keep or value not in (None, [], {}, False)}


def _step(step: Step) -> str:
    return f"{step.method.value} after {show_duration(step.delay)}" if step.delay else step.method.value


def _target(target: TargetForm) -> dict[str, str]:
    return {target.kind.value: target.name}
