"""What `apply` would change: the difference between two Configs, line by line.

Never shows a phone number or an address, and never touches what the file does not name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import yaml

from engine.config.dump import dump_person, dump_policy, dump_schedule_form, dump_service
from engine.config.form import Config, PersonForm, PolicyForm, ScheduleForm, ServiceForm, TargetForm

LONGEST_VALUE: Final = 60

Form = PersonForm | ScheduleForm | PolicyForm | ServiceForm


@dataclass(frozen=True, slots=True)
class Change:
    """One object that is made, changed or (of the fallback) emptied. `was` is its name until now."""

    sign: str  # + ~ -
    noun: str
    name: str
    details: tuple[str, ...] = ()
    was: str | None = None

    def __str__(self) -> str:
        renamed = f" (was {self.was})" if self.was else ""
        lines = [f"{self.sign} {self.noun} {self.name}".rstrip() + renamed]
        return "\n".join([*lines, *(f"    {detail}" for detail in self.details)])


@dataclass(frozen=True, slots=True)
class Plan:
    changes: tuple[Change, ...]
    left: tuple[str, ...] = ()  # "person ana": not in the file

    def __str__(self) -> str:
        lines = [str(change) for change in self.changes] or ["nothing to change"]
        if self.left:
            lines.append(f"not in the file, left as it is: {', '.join(self.left)}")
        return "\n".join(lines)

    def names(self, noun: str) -> set[str]:
        """Of the objects of this noun that change."""
        return {change.name for change in self.changes if change.noun == noun}


def make_plan(current: Config, wanted: Config) -> Plan:
    """In the order in which it is applied: people, schedules, policies, services, fallback."""
    sections: tuple[tuple[str, Mapping[str, Form], Mapping[str, Form]], ...] = (
        ("person", current.people, wanted.people),
        ("schedule", current.schedules, wanted.schedules),
        ("policy", current.policies, wanted.policies),
        ("service", current.services, wanted.services),
    )
    renamed = renamed_people(current, wanted)
    changes: list[Change] = []
    left: list[str] = []
    for noun, before, after in sections:
        was = renamed if noun == "person" else {}
        changes += _section(noun, before, after, was)
        left += [f"{noun} {name}" for name in before if name not in after and name not in was.values()]
    changes += _fallback(current.fallback or (), wanted.fallback)
    return Plan(tuple(changes), tuple(left))


def renamed_people(current: Config, wanted: Config) -> dict[str, str]:
    """New name to old, for those whose Slack id we know under a name that the file does not use."""
    old = {person.slack: person.name for person in current.people.values() if person.slack}
    return {
        person.name: old[person.slack]
        for person in wanted.people.values()
        if person.name not in current.people
        and person.slack in old
        and old[person.slack] not in wanted.people
    }


def _section(
    noun: str, before: Mapping[str, Form], after: Mapping[str, Form], was: Mapping[str, str]
) -> Iterator[Change]:
    for name, form in after.items():
        old = before.get(was.get(name, name))
        if old is None:
            yield Change("+", noun, name)
        elif old != form:
            yield Change("~", noun, name, tuple(_differences(old, form)), was.get(name))


def _fallback(before: tuple[TargetForm, ...], after: tuple[TargetForm, ...] | None) -> Iterator[Change]:
    if after is not None and after != before:
        words = [f"{target.kind.value} {target.name}" for target in after]
        sign = "-" if not after else "~" if before else "+"
        yield Change(
            sign, "fallback", "", (", ".join(words) or "empty: nobody is paged when nobody is found",)
        )


def _differences(old: Form, new: Form) -> Iterator[str]:
    before, after = _fields(old), _fields(new)
    for field in dict.fromkeys([*before, *after]):
        if before.get(field) == after.get(field):
            continue
        if field == "contact":
            yield from _contacts(before.get(field, {}), after.get(field, {}))
        elif field != "name":
            yield f"{field}: {_shown(before.get(field))} -> {_shown(after.get(field))}"


def _contacts(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for method in dict.fromkeys([*before, *after]):
        if before.get(method) != after.get(method):
            word = "added" if method not in before else "changed" if method in after else "removed"
            yield f"{method}: {word}"


def _fields(form: Form) -> dict[str, Any]:
    if isinstance(form, PersonForm):
        return dump_person(replace(form, admin=False)) | {"admin": form.admin}
    if isinstance(form, ScheduleForm):
        return dump_schedule_form(form)
    return dump_policy(form) if isinstance(form, PolicyForm) else dump_service(form)


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=1000, sort_keys=False)
    text = text.strip().removesuffix("\n...")
    return text if len(text) <= LONGEST_VALUE else "(long)"
