"""People, their contact methods and contact rules as rows.

Never decides who is told. An address leaves the database only through the vault.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
import structlog

from engine.db import Tx, upsert
from engine.directory import STOPPED, ContactMethod, ContactRule, Person
from engine.errors import BadConfig
from engine.models import Method, Urgency
from engine.schema import contact_methods, contact_rules, people
from engine.vault import Vault

log = structlog.get_logger(__name__)

UNREADABLE = "written with another MIDWATCH_SECRET_KEY"


@dataclass(frozen=True, slots=True)
class PersonRow:
    """What a person is, without how they are reached."""

    name: str
    slack_user_id: str | None
    timezone: str
    admin: bool


async def read_people(tx: Tx, org_id: int, vault: Vault) -> dict[int, Person]:
    """Everybody, also those who were deactivated, by id."""
    methods = await _methods(tx, org_id, vault)
    rules = await _rules(tx, org_id)
    rows = await tx.execute(sa.select(people).where(people.c.org_id == org_id).order_by(people.c.id))
    return {row.id: _person(row, methods.get(row.id, ()), rules.get(row.id, {})) for row in rows}


async def person_by_slack(tx: Tx, org_id: int, slack_user_id: str) -> int | None:
    """The id of the person with this Slack id, also when deactivated."""
    return await tx.scalar(
        sa.select(people.c.id).where(people.c.org_id == org_id, people.c.slack_user_id == slack_user_id)
    )


async def persons_by_address(tx: Tx, org_id: int, address_hash: str) -> list[int]:
    """Whose verified method of any kind has this address; a shared phone has several people. Who is texted
    no more, by STOP, may still answer what was."""
    methods = contact_methods.c
    rows = await tx.scalars(
        sa.select(methods.person_id)
        .distinct()
        .join(people, people.c.id == methods.person_id)
        .where(methods.org_id == org_id, methods.address_hash == address_hash)
        .where(methods.verified_at.is_not(None))
        .where(sa.or_(methods.disabled_reason.is_(None), methods.disabled_reason == STOPPED))
        .where(people.c.deactivated_at.is_(None))
        .order_by(methods.person_id)
    )
    return list(rows)


async def names(tx: Tx, org_id: int) -> dict[str, int]:
    rows = await tx.execute(sa.select(people.c.name, people.c.id).where(people.c.org_id == org_id))
    return {row.name: row.id for row in rows}


async def insert_person(tx: Tx, org_id: int, person: PersonRow, now: datetime) -> int:
    statement = sa.insert(people).values(org_id=org_id, created_at=now, **_columns(person))
    return int((await tx.execute(statement.returning(people.c.id))).scalar_one())


async def update_person(tx: Tx, org_id: int, person_id: int, person: PersonRow) -> None:
    """Also takes back a deactivation: whoever is written down again is here again."""
    await tx.execute(
        sa.update(people)
        .where(people.c.org_id == org_id, people.c.id == person_id)
        .values(deactivated_at=None, **_columns(person))
    )


async def release_names(tx: Tx, org_id: int, person_id: int) -> None:
    """Make way for an update: a name nobody can have, and no Slack id."""
    await tx.execute(
        sa.update(people)
        .where(people.c.org_id == org_id, people.c.id == person_id)
        .values(name=f"@{person_id}", slack_user_id=None)
    )


async def deactivate_person(tx: Tx, org_id: int, person_id: int, now: datetime) -> bool:
    done = await tx.execute(
        sa.update(people)
        .where(people.c.org_id == org_id, people.c.id == person_id, people.c.deactivated_at.is_(None))
        .values(deactivated_at=now)
    )
    return done.rowcount == 1


async def mark_admins(tx: Tx, org_id: int, slack_user_ids: Sequence[str]) -> int:
    """How many people became admins."""
    wanted = [people.c.slack_user_id == slack_user_id for slack_user_id in slack_user_ids]
    done = await tx.execute(
        sa.update(people)
        .where(people.c.org_id == org_id, people.c.admin.is_(False), sa.or_(sa.false(), *wanted))
        .values(admin=True)
    )
    return done.rowcount


async def save_method(
    tx: Tx,
    org_id: int,
    person_id: int,
    kind: Method,
    address: str,
    *,
    vault: Vault,
    verified_by: str,
    now: datetime,
) -> int:
    """Write down a verified method, or verify and enable the one that is there; its id."""
    insert = upsert(tx, contact_methods).values(
        org_id=org_id,
        person_id=person_id,
        kind=kind,
        address=vault.encrypt(address),
        address_hash=vault.fingerprint(address),
        verified_at=now,
        verified_by=verified_by,
        created_at=now,
    )
    statement = insert.on_conflict_do_update(
        index_elements=["org_id", "person_id", "kind", "address_hash"],
        set_={
            "address": insert.excluded.address,
            "verified_at": sa.func.coalesce(contact_methods.c.verified_at, insert.excluded.verified_at),
            "verified_by": sa.case(
                (contact_methods.c.verified_at.is_(None), insert.excluded.verified_by),
                else_=contact_methods.c.verified_by,
            ),
            # Whoever replied STOP is texted again when they reply START, whatever a file says.
            "disabled_reason": sa.case(
                (contact_methods.c.disabled_reason == STOPPED, STOPPED), else_=sa.null()
            ),
        },
    ).returning(contact_methods.c.id)
    return int((await tx.execute(statement)).scalar_one())


async def disable_method(tx: Tx, org_id: int, method_id: int, reason: str) -> None:
    await tx.execute(
        sa.update(contact_methods)
        .where(contact_methods.c.org_id == org_id, contact_methods.c.id == method_id)
        .values(disabled_reason=reason)
    )


async def stop_methods(tx: Tx, org_id: int, method_ids: Sequence[int]) -> None:
    """Off until the person replies START; one that is off for another reason stays as it is."""
    await tx.execute(
        sa.update(contact_methods)
        .where(contact_methods.c.org_id == org_id, contact_methods.c.id.in_(method_ids))
        .where(contact_methods.c.disabled_reason.is_(None))
        .values(disabled_reason=STOPPED)
    )


async def texts_to(tx: Tx, org_id: int, address_hash: str, *, stopped: bool) -> dict[int, int]:
    """The person of each SMS method with this address that is off by STOP, or not off at all."""
    methods = contact_methods.c
    off = methods.disabled_reason == STOPPED if stopped else methods.disabled_reason.is_(None)
    rows = await tx.execute(
        sa.select(methods.id, methods.person_id)
        .where(methods.org_id == org_id, methods.address_hash == address_hash, methods.kind == Method.SMS)
        .where(off)
        .order_by(methods.id)
    )
    return {row.id: row.person_id for row in rows}


async def start_methods(tx: Tx, org_id: int, method_ids: Sequence[int]) -> None:
    await tx.execute(
        sa.update(contact_methods)
        .where(contact_methods.c.org_id == org_id, contact_methods.c.id.in_(method_ids))
        .values(disabled_reason=None)
    )


async def replace_rules(
    tx: Tx, org_id: int, person_id: int, rules: Mapping[Urgency, Sequence[ContactRule]]
) -> None:
    await tx.execute(
        sa.delete(contact_rules).where(
            contact_rules.c.org_id == org_id, contact_rules.c.person_id == person_id
        )
    )
    rows = [
        {
            "org_id": org_id,
            "person_id": person_id,
            "urgency": urgency,
            "position": position,
            "method_id": rule.method_id,
            "delay": rule.delay,
        }
        for urgency, steps in rules.items()
        for position, rule in enumerate(steps)
    ]
    if rows:
        await tx.execute(sa.insert(contact_rules), rows)


async def _methods(tx: Tx, org_id: int, vault: Vault) -> dict[int, list[ContactMethod]]:
    methods: dict[int, list[ContactMethod]] = defaultdict(list)
    statement = sa.select(contact_methods).where(contact_methods.c.org_id == org_id)
    for row in await tx.execute(statement.order_by(contact_methods.c.id)):
        methods[row.person_id].append(_method(row, vault))
    return methods


def _method(row: Any, vault: Vault) -> ContactMethod:
    # Why not raise: a lost key must not keep those from being paged whose addresses can be read.
    try:
        address, disabled = vault.decrypt(row.address), row.disabled_reason
    except BadConfig:
        log.error("method.unreadable", method=row.id)  # noqa: TRY400  # the trace says nothing more
        address, disabled = "", UNREADABLE
    return ContactMethod(
        id=row.id,
        person_id=row.person_id,
        kind=Method(row.kind),
        address=address,
        verified=row.verified_at is not None,
        disabled_reason=disabled,
    )


async def _rules(tx: Tx, org_id: int) -> dict[int, dict[Urgency, list[ContactRule]]]:
    rules: dict[int, dict[Urgency, list[ContactRule]]] = defaultdict(lambda: defaultdict(list))
    statement = sa.select(contact_rules).where(contact_rules.c.org_id == org_id)
    for row in await tx.execute(statement.order_by(contact_rules.c.position)):
        delay: timedelta = row.delay
        rules[row.person_id][Urgency(row.urgency)].append(ContactRule(row.method_id, delay))
    return rules


def _person(
    row: Any, methods: Sequence[ContactMethod], rules: Mapping[Urgency, Sequence[ContactRule]]
) -> Person:
    known = {method.id for method in methods}
    return Person(
        id=row.id,
        name=row.name,
        slack_user_id=row.slack_user_id,
        timezone=row.timezone,
        admin=row.admin,
        active=row.deactivated_at is None,
        methods=tuple(methods),
        rules={u: tuple(rule for rule in steps if rule.method_id in known) for u, steps in rules.items()},
    )


def _columns(person: PersonRow) -> dict[str, Any]:
    return {
        "name": person.name,
        "slack_user_id": person.slack_user_id,
        "timezone": person.timezone,
        "admin": person.admin,
    }
