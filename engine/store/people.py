"""People as rows; how each is reached is in `contacts` beside this module. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from engine.db import Tx
from engine.directory import IMPORTED, STOPPED, ContactMethod, ContactRule, Person
from engine.models import Urgency
from engine.schema import contact_methods, people
from engine.store import contacts
from engine.vault import Vault


@dataclass(frozen=True, slots=True)
class PersonRow:
    """What a person is, without how they are reached."""

    name: str
    slack_user_id: str | None
    timezone: str
    admin: bool


async def read_people(tx: Tx, org_id: int, vault: Vault) -> dict[int, Person]:
    """Everybody, also those who were deactivated, by id."""
    methods = await contacts.read_methods(tx, org_id, vault)
    rules = await contacts.read_rules(tx, org_id)
    rows = await tx.execute(sa.select(people).where(people.c.org_id == org_id).order_by(people.c.id))
    return {row.id: _person(row, methods.get(row.id, ()), rules.get(row.id, {})) for row in rows}


async def person_by_slack(tx: Tx, org_id: int, slack_user_id: str) -> int | None:
    """The id of the person with this Slack id, also when deactivated."""
    return await tx.scalar(
        sa.select(people.c.id).where(people.c.org_id == org_id, people.c.slack_user_id == slack_user_id)
    )


async def persons_by_address(tx: Tx, org_id: int, address_hash: str) -> list[int]:
    """Whose verified method of any kind has this address; a shared phone has several people. Who is texted
    no more, by STOP, may still answer what was. While nothing of a person is verified, what was imported
    is paged, so that is answered from too."""
    methods = contact_methods.c
    verified = contact_methods.alias("verified")
    anything = sa.exists().where(
        verified.c.org_id == methods.org_id,
        verified.c.person_id == methods.person_id,
        verified.c.verified_at.is_not(None),
        verified.c.disabled_reason.is_(None),
    )
    last_resort = sa.and_(methods.verified_by == IMPORTED, ~anything)
    rows = await tx.scalars(
        sa.select(methods.person_id)
        .distinct()
        .join(people, people.c.id == methods.person_id)
        .where(methods.org_id == org_id, methods.address_hash == address_hash)
        .where(sa.or_(methods.verified_at.is_not(None), last_resort))
        .where(sa.or_(methods.disabled_reason.is_(None), methods.disabled_reason == STOPPED))
        .where(people.c.deactivated_at.is_(None))
        .order_by(methods.person_id)
    )
    return list(rows)


async def lock(tx: Tx, org_id: int) -> None:
    """One at a time, for whoever changes how people are reached. First in its transaction.

    Why a person, the first: a row that is there whenever there is somebody to change, while counters are
    locked last.
    """
    first = sa.select(people.c.id).where(people.c.org_id == org_id).order_by(people.c.id).limit(1)
    await tx.execute(first.with_for_update(key_share=True))


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
        rules_by=row.rules_by,
    )


def _columns(person: PersonRow) -> dict[str, Any]:
    return {
        "name": person.name,
        "slack_user_id": person.slack_user_id,
        "timezone": person.timezone,
        "admin": person.admin,
    }
