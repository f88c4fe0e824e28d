"""Escalation policies as rows: a name, and a version for every change of what it says.

Never changes a version: an incident walks the one that was in force when it opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from engine.db import Tx, given, upsert
from engine.directory import Level, OnExhaustion, Policy, Target, TargetKind
from engine.errors import NotFound
from engine.schema import policies, policy_versions
from engine.store.reading import read_all

_VERSIONS = (
    sa.select(
        policy_versions.c.id.label("version_id"),
        policy_versions.c.policy_id,
        policy_versions.c.definition,
        policy_versions.c.created_at,
        policies.c.name,
    )
    .select_from(policy_versions.join(policies, policies.c.id == policy_versions.c.policy_id))
    .where(policy_versions.c.org_id == given("org", policy_versions.c.org_id))
)


async def read_policies(tx: Tx, org_id: int) -> dict[int, Policy]:
    """The newest version of each policy that was not deleted, by policy id."""
    newest = (
        sa.func.row_number()
        .over(
            partition_by=policy_versions.c.policy_id,
            order_by=(policy_versions.c.created_at.desc(), policy_versions.c.id.desc()),
        )
        .label("age")
    )
    ranked = _VERSIONS.add_columns(newest).where(policies.c.deleted_at.is_(None)).subquery()
    found = sa.select(ranked).where(ranked.c.age == 1).order_by(ranked.c.policy_id)
    rows = await tx.execute(found, {"org": org_id})
    return read_all(rows, lambda row: row.policy_id, _policy)


async def policy_version(tx: Tx, org_id: int, policy_id: int, at: datetime) -> Policy:
    """The version in force at `at`, else the oldest."""
    versions = _VERSIONS.where(policy_versions.c.policy_id == policy_id)
    past = versions.where(policy_versions.c.created_at <= at)
    newest = past.order_by(policy_versions.c.created_at.desc(), policy_versions.c.id.desc()).limit(1)
    org = {"org": org_id}
    row = (await tx.execute(newest, org)).first()
    if row is None:
        row = (await tx.execute(versions.order_by(policy_versions.c.id).limit(1), org)).first()
    if row is None:
        raise NotFound("There is no such escalation policy.")
    return _policy(row)


_BY_VERSION = _VERSIONS.where(policy_versions.c.id == given("version", policy_versions.c.id))


async def policy_by_version(tx: Tx, org_id: int, version_id: int) -> Policy | None:
    row = (await tx.execute(_BY_VERSION, {"org": org_id, "version": version_id})).first()
    return None if row is None else _policy(row)


async def name_policy(tx: Tx, org_id: int, name: str) -> int:
    """The id of the policy of this name, made or brought back if need be."""
    insert = upsert(tx, policies).values(org_id=org_id, name=name)
    statement = insert.on_conflict_do_update(index_elements=["org_id", "name"], set_={"deleted_at": None})
    return int((await tx.execute(statement.returning(policies.c.id))).scalar_one())


async def append_policy(tx: Tx, org_id: int, policy: Policy, now: datetime) -> int:
    """Store a new version of `policy`; its id. The version it carries is not looked at."""
    statement = sa.insert(policy_versions).values(
        org_id=org_id, policy_id=policy.id, definition=dump_policy(policy), created_at=now
    )
    return int((await tx.execute(statement.returning(policy_versions.c.id))).scalar_one())


def dump_policy(policy: Policy) -> dict[str, Any]:
    """What is stored of a version."""
    return {
        "levels": [
            {
                "targets": [{"kind": target.kind.value, "ref": target.ref} for target in level.targets],
                "timeout_s": level.timeout.total_seconds(),
            }
            for level in policy.levels
        ],
        "repeat": policy.repeat,
        "on_exhaustion": policy.on_exhaustion.value,
        "ack_timeout_s": policy.ack_timeout.total_seconds() if policy.ack_timeout else None,
    }


def _policy(row: Any) -> Policy:
    definition: Mapping[str, Any] = row.definition
    ack_timeout = definition.get("ack_timeout_s")
    return Policy(
        id=row.policy_id,
        version_id=row.version_id,
        name=row.name,
        levels=tuple(_level(level) for level in definition["levels"]),
        repeat=definition["repeat"],
        on_exhaustion=OnExhaustion(definition["on_exhaustion"]),
        ack_timeout=timedelta(seconds=ack_timeout) if ack_timeout else None,
        created_at=row.created_at,
    )


def _level(level: Mapping[str, Any]) -> Level:
    targets = tuple(Target(TargetKind(target["kind"]), target["ref"]) for target in level["targets"])
    return Level(targets, timedelta(seconds=level["timeout_s"]))
