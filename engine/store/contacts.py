"""Contact methods and contact rules as rows.

Never decides who is told. An address leaves the database only through the vault, and with its method.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
import structlog

from engine.db import Tx, any_of, upsert
from engine.directory import REMOVED, STOPPED, ContactMethod, ContactRule
from engine.errors import BadConfig
from engine.models import Method, Urgency
from engine.schema import contact_methods, contact_rules, people
from engine.vault import Vault

log = structlog.get_logger(__name__)

UNREADABLE: Final = "written with another MIDWATCH_SECRET_KEY"
_THERE: Final = sa.or_(
    contact_methods.c.disabled_reason.is_(None), contact_methods.c.disabled_reason != REMOVED
)


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
    in_file: bool = False,
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
        in_file=in_file,
    )
    statement = insert.on_conflict_do_update(
        index_elements=["org_id", "person_id", "kind", "address_hash"],
        set_={
            "address": insert.excluded.address,
            "in_file": sa.or_(contact_methods.c.in_file, insert.excluded.in_file),
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


async def add_method(
    tx: Tx, org_id: int, person_id: int, kind: Method, address: str, *, vault: Vault, now: datetime
) -> int:
    """Write down a method that nobody verified, or make one of the one that is there; its id."""
    insert = upsert(tx, contact_methods).values(
        org_id=org_id,
        person_id=person_id,
        kind=kind,
        address=vault.encrypt(address),
        address_hash=vault.fingerprint(address),
        created_at=now,
    )
    statement = insert.on_conflict_do_update(
        index_elements=["org_id", "person_id", "kind", "address_hash"],
        set_={
            "address": insert.excluded.address,
            "verified_at": None,
            "verified_by": "",
            "disabled_reason": None,
            "in_file": False,
        },
    ).returning(contact_methods.c.id)
    return int((await tx.execute(statement)).scalar_one())


async def readdress(tx: Tx, org_id: int, method_id: int, address: str, vault: Vault) -> None:
    """Another address, which nobody verified; the rules that use the method stay."""
    await tx.execute(
        sa.update(contact_methods)
        .where(contact_methods.c.org_id == org_id, contact_methods.c.id == method_id)
        .values(
            address=vault.encrypt(address),
            address_hash=vault.fingerprint(address),
            verified_at=None,
            verified_by="",
            disabled_reason=None,
            in_file=False,
        )
    )


async def mark_verified(
    tx: Tx, org_id: int, method_ids: Sequence[int], verified_by: str, now: datetime
) -> None:
    await tx.execute(
        sa.update(contact_methods)
        .where(contact_methods.c.org_id == org_id, any_of(contact_methods.c.id, method_ids))
        .values(verified_at=now, verified_by=verified_by)
    )


async def remove_method(tx: Tx, org_id: int, method_id: int, vault: Vault) -> None:
    """Forget its address, and the rules that use it; deliveries go on to name the row."""
    await tx.execute(
        sa.delete(contact_rules).where(
            contact_rules.c.org_id == org_id, contact_rules.c.method_id == method_id
        )
    )
    await tx.execute(
        sa.update(contact_methods)
        .where(contact_methods.c.org_id == org_id, contact_methods.c.id == method_id)
        .values(
            address=vault.encrypt(""),
            address_hash=f"{REMOVED}:{method_id}",  # matches no message that comes in
            verified_at=None,
            verified_by="",
            disabled_reason=REMOVED,
            in_file=False,
        )
    )


async def leave_file(tx: Tx, org_id: int, method_id: int) -> None:
    """midwatch.yaml names it no more, and it stays: it is the person's own."""
    await tx.execute(
        sa.update(contact_methods)
        .where(contact_methods.c.org_id == org_id, contact_methods.c.id == method_id)
        .values(in_file=False)
    )


async def disable_method(tx: Tx, org_id: int, method_id: int, reason: str) -> None:
    await tx.execute(
        sa.update(contact_methods)
        .where(contact_methods.c.org_id == org_id, contact_methods.c.id == method_id)
        .values(disabled_reason=reason, in_file=False)
    )


async def stop_methods(tx: Tx, org_id: int, method_ids: Sequence[int]) -> set[int]:
    """Off until the person replies START; the people of those that were on. One that is off stays so."""
    stopped = await tx.scalars(
        sa.update(contact_methods)
        .where(contact_methods.c.org_id == org_id, contact_methods.c.id.in_(method_ids))
        .where(contact_methods.c.disabled_reason.is_(None))
        .values(disabled_reason=STOPPED)
        .returning(contact_methods.c.person_id)
    )
    return {*stopped}


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
    tx: Tx, org_id: int, person_id: int, rules: Mapping[Urgency, Sequence[ContactRule]], by: str
) -> None:
    """`by`: who gave them: config, person, or nobody, and then there are none."""
    await tx.execute(
        sa.update(people).where(people.c.org_id == org_id, people.c.id == person_id).values(rules_by=by)
    )
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


async def read_methods(tx: Tx, org_id: int, vault: Vault) -> dict[int, list[ContactMethod]]:
    methods: dict[int, list[ContactMethod]] = defaultdict(list)
    statement = sa.select(contact_methods).where(contact_methods.c.org_id == org_id, _THERE)
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
        verified_by=row.verified_by,
        in_file=row.in_file,
    )


async def read_rules(tx: Tx, org_id: int) -> dict[int, dict[Urgency, list[ContactRule]]]:
    rules: dict[int, dict[Urgency, list[ContactRule]]] = defaultdict(lambda: defaultdict(list))
    statement = sa.select(contact_rules).where(contact_rules.c.org_id == org_id)
    for row in await tx.execute(statement.order_by(contact_rules.c.position)):
        delay: timedelta = row.delay
        rules[row.person_id][Urgency(row.urgency)].append(ContactRule(row.method_id, delay))
    return rules
