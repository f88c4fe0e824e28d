"""Writes a Config into the directory: only what differs, in the caller's one transaction.

Never deletes: what the file does not name is left as it is, and schedules and policies get a new
version, so that the past stays true.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from engine.config.current import config_of, rename_users
from engine.config.form import Config, PersonForm, PolicyForm, ScheduleForm, ServiceForm, TargetForm
from engine.config.plan import Plan, make_plan
from engine.db import Tx
from engine.directory import (
    BY_CODE,
    BY_CONFIG,
    STOPPED,
    ContactMethod,
    ContactRule,
    Directory,
    Level,
    Person,
    Policy,
    Service,
    Target,
    TargetKind,
)
from engine.errors import BadConfig
from engine.models import Method
from engine.schedule import dump_schedule
from engine.store import contacts, people, policies, schedules, services
from engine.store import directory as store
from engine.store.people import PersonRow
from engine.vault import Vault

NOT_IN_FILE = "not in midwatch.yaml"


def plan_for(directory: Directory, wanted: Config, admins: Collection[str]) -> tuple[Plan, Config]:
    """The plan, and the Config it leads to: who is an admin by a setting is one whatever the file says."""
    wanted = replace(
        wanted,
        people={
            name: replace(person, admin=person.admin or person.slack in admins)
            for name, person in wanted.people.items()
        },
    )
    current = config_of(directory)
    plan = make_plan(current, wanted)
    _check_slack(directory, wanted, plan)
    return plan, wanted


async def apply_config(
    tx: Tx, directory: Directory, wanted: Config, plan: Plan, vault: Vault, now: datetime
) -> None:
    org_id = directory.org_id
    await _apply_people(tx, directory, wanted, plan, vault, now)
    ids = Ids(await people.names(tx, org_id), {s.name: s.id for s in directory.schedules.values()})
    for name in [name for name in wanted.schedules if name in plan.names("schedule")]:
        await _apply_schedule(tx, directory, wanted.schedules[name], ids, now)
    policy_ids = {policy.name: policy.id for policy in directory.policies.values()}
    for name in [name for name in wanted.policies if name in plan.names("policy")]:
        policy_ids[name] = await policies.name_policy(tx, org_id, name)
        await policies.append_policy(tx, org_id, _policy(wanted.policies[name], policy_ids[name], ids), now)
    for name in plan.names("service"):
        await services.save_service(tx, org_id, _service(wanted.services[name], policy_ids))
    if plan.names("fallback"):
        await services.replace_fallback(tx, org_id, [ids.target(target) for target in wanted.fallback or ()])
    await store.bump(tx, org_id)


class Ids:
    """Names to ids. A name that vanished since the file was checked is a mistake like any other."""

    def __init__(self, people: Mapping[str, int], schedules: dict[str, int]) -> None:
        self._people = people
        self.schedules = schedules

    def person(self, name: str) -> int:
        if name not in self._people:
            raise BadConfig([f"people: there is no {name!r} any more"])
        return self._people[name]

    def target(self, target: TargetForm) -> Target:
        if target.kind is TargetKind.CHANNEL:
            return Target(target.kind, target.name)
        if target.kind is TargetKind.PERSON:
            return Target(target.kind, self.person(target.name))
        if target.name not in self.schedules:
            raise BadConfig([f"schedules: there is no {target.name!r} any more"])
        return Target(target.kind, self.schedules[target.name])


# --- people -----------------------------------------------------------------------------------------


async def _apply_people(
    tx: Tx, directory: Directory, wanted: Config, plan: Plan, vault: Vault, now: datetime
) -> None:
    by_name = {person.name: person for person in directory.people.values()}
    changed = {c.name: by_name.get(c.was or c.name) for c in plan.changes if c.noun == "person"}
    # Why first: two people may exchange their names or Slack ids, which are unique at every instant.
    for known in [person for person in changed.values() if person]:
        await people.release_names(tx, directory.org_id, known.id)
    for name, person in changed.items():
        await _apply_person(tx, directory.org_id, wanted.people[name], person, vault, now)


async def _apply_person(
    tx: Tx, org_id: int, form: PersonForm, person: Person | None, vault: Vault, now: datetime
) -> None:
    row = PersonRow(form.name, form.slack, form.timezone, form.admin)
    if person is None:
        person_id = await people.insert_person(tx, org_id, row, now)
    else:
        person_id = person.id
        await people.update_person(tx, org_id, person_id, row)
    ids: dict[Method, int] = {}
    for kind, address in form.addresses.items():
        ids[kind] = await contacts.save_method(
            tx,
            org_id,
            person_id,
            kind,
            address,
            vault=vault,
            verified_by=BY_CONFIG,
            now=now,
            in_file=True,
        )
    for method in person.methods if person else ():
        if method.id not in ids.values() and method.disabled_reason in {None, STOPPED}:
            await _not_in_file(tx, org_id, method)
    await _apply_rules(tx, org_id, person_id, form, person, ids)


async def _not_in_file(tx: Tx, org_id: int, method: ContactMethod) -> None:
    """What a person added, or proved by a code, is theirs and stays; a Slack id says who they are."""
    if method.kind is Method.SLACK or (method.in_file and method.verified_by != BY_CODE):
        await contacts.disable_method(tx, org_id, method.id, NOT_IN_FILE)
    elif method.in_file:
        await contacts.leave_file(tx, org_id, method.id)


async def _apply_rules(
    tx: Tx, org_id: int, person_id: int, form: PersonForm, person: Person | None, ids: Mapping[Method, int]
) -> None:
    """The file's, if it gives some; else the person's own, or the usual order."""
    if form.rules is not None:
        rules = {
            urgency: [ContactRule(ids[step.method], step.delay) for step in steps]
            for urgency, steps in form.rules.items()
        }
        await contacts.replace_rules(tx, org_id, person_id, rules, BY_CONFIG)
    elif person is not None and person.rules_by == BY_CONFIG:
        await contacts.replace_rules(tx, org_id, person_id, {}, "")


def _check_slack(directory: Directory, wanted: Config, plan: Plan) -> None:
    """Nobody in the file may have the Slack id of somebody who keeps it."""
    moved = {change.was or change.name for change in plan.changes if change.noun == "person"}
    kept = {p.slack_user_id: p.name for p in directory.people.values() if p.name not in moved}
    mistakes = [
        f"people[{number}].slack: {person.slack} is {kept[person.slack]}'s; name them or their new id too"
        for number, person in enumerate(wanted.people.values(), start=1)
        if person.slack and kept.get(person.slack, person.name) != person.name
    ]
    if mistakes:
        raise BadConfig(mistakes)


# --- schedules, policies and services ---------------------------------------------------------------


async def _apply_schedule(tx: Tx, directory: Directory, form: ScheduleForm, ids: Ids, now: datetime) -> None:
    org_id = directory.org_id
    before = {named.name: named.schedule for named in directory.schedules.values()}
    schedule_id = ids.schedules[form.name] = await schedules.name_schedule(tx, org_id, form.name)
    await schedules.show_schedule(tx, org_id, schedule_id, form.channel, form.user_group, form.topic)
    by_id = rename_users(form.schedule, lambda user: str(ids.person(user)))
    # Why not always: where Slack shows a schedule changes nobody's shift, and a version says one did.
    if form.name not in before or replace(before[form.name], overrides=()) != by_id:
        await schedules.append_schedule(tx, org_id, schedule_id, dump_schedule(by_id), now)


def _policy(form: PolicyForm, policy_id: int, ids: Ids) -> Policy:
    return Policy(
        id=policy_id,
        version_id=0,
        name=form.name,
        levels=tuple(
            Level(tuple(ids.target(target) for target in level.targets), level.timeout)
            for level in form.levels
        ),
        repeat=form.repeat,
        on_exhaustion=form.on_exhaustion,
        ack_timeout=form.ack_timeout,
    )


def _service(form: ServiceForm, policy_ids: Mapping[str, int]) -> Service:
    if form.policy is not None and form.policy not in policy_ids:
        raise BadConfig([f"policies: there is no {form.policy!r} any more"])
    return Service(
        id=0,
        name=form.name,
        policy_id=None if form.policy is None else policy_ids[form.policy],
        channel=form.channel,
        group_by=form.group_by,
        group_window=form.group_window,
        flap_window=form.flap_window,
        urgency=form.urgency,
    )
