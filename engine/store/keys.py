"""Integration keys and API tokens as rows: hashes and hints.

Never sees a key in clear.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from engine.db import Tx, given, upsert
from engine.schema import api_tokens, integration_keys, people, services


@dataclass(frozen=True, slots=True)
class KeyRow:
    """What a sender's key opens; a revoked one opens nothing."""

    org_id: int
    service_id: int
    key_id: int
    revoked: bool


@dataclass(frozen=True, slots=True)
class TokenRow:
    """For whom an API token acts; None: for nobody in particular."""

    org_id: int
    token_id: int
    person_id: int | None
    revoked: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """A key or token as people see it: never more of it than its hint."""

    id: int
    name: str  # of the service for a key, of the token for a token
    person: str | None
    hint: str
    created_at: datetime
    revoked_at: datetime | None


_SERVICE_BY_KEY_HASH = (
    sa.select(
        integration_keys.c.org_id,
        integration_keys.c.service_id,
        integration_keys.c.id,
        sa.or_(integration_keys.c.revoked_at.is_not(None), services.c.deleted_at.is_not(None)),
    )
    .join(services, services.c.id == integration_keys.c.service_id)
    .where(integration_keys.c.key_hash == given("hash", integration_keys.c.key_hash))
)


async def service_by_key_hash(tx: Tx, key_hash: str) -> KeyRow | None:
    row = (await tx.execute(_SERVICE_BY_KEY_HASH, {"hash": key_hash})).first()
    return None if row is None else KeyRow(row[0], row[1], row[2], bool(row[3]))


_TOKEN_BY_HASH = (
    sa.select(
        api_tokens.c.org_id,
        api_tokens.c.id,
        api_tokens.c.person_id,
        sa.or_(api_tokens.c.revoked_at.is_not(None), people.c.deactivated_at.is_not(None)),
    )
    .outerjoin(people, people.c.id == api_tokens.c.person_id)
    .where(api_tokens.c.token_hash == given("hash", api_tokens.c.token_hash))
)


async def token_by_hash(tx: Tx, token_hash: str) -> TokenRow | None:
    """A token of somebody who was deactivated counts as revoked."""
    row = (await tx.execute(_TOKEN_BY_HASH, {"hash": token_hash})).first()
    return None if row is None else TokenRow(row[0], row[1], row[2], bool(row[3]))


async def insert_key(
    tx: Tx, org_id: int, service_id: int, key_hash: str, hint: str, now: datetime
) -> int | None:
    """Its id; None if this key is there already."""
    insert = upsert(tx, integration_keys).values(
        org_id=org_id, service_id=service_id, key_hash=key_hash, hint=hint, created_at=now
    )
    key_id: int | None = await tx.scalar(insert.on_conflict_do_nothing().returning(integration_keys.c.id))
    return key_id


async def insert_token(
    tx: Tx, org_id: int, name: str, token_hash: str, hint: str, person_id: int | None, now: datetime
) -> int | None:
    """Its id; None if this token is there already."""
    insert = upsert(tx, api_tokens).values(
        org_id=org_id, name=name, token_hash=token_hash, hint=hint, person_id=person_id, created_at=now
    )
    token_id: int | None = await tx.scalar(insert.on_conflict_do_nothing().returning(api_tokens.c.id))
    return token_id


async def read_keys(tx: Tx, org_id: int) -> list[Listed]:
    keys = integration_keys.c
    rows = await tx.execute(
        sa.select(keys.id, services.c.name, keys.hint, keys.created_at, keys.revoked_at)
        .join(services, services.c.id == keys.service_id)
        .where(keys.org_id == org_id)
        .order_by(keys.id)
    )
    return [Listed(r.id, r.name, None, r.hint, r.created_at, r.revoked_at) for r in rows]


async def read_tokens(tx: Tx, org_id: int) -> list[Listed]:
    tokens = api_tokens.c
    rows = await tx.execute(
        sa.select(
            tokens.id,
            tokens.name,
            people.c.name.label("person"),
            tokens.hint,
            tokens.created_at,
            tokens.revoked_at,
        )
        .outerjoin(people, people.c.id == tokens.person_id)
        .where(tokens.org_id == org_id)
        .order_by(tokens.id)
    )
    return [Listed(r.id, r.name, r.person, r.hint, r.created_at, r.revoked_at) for r in rows]


async def revoke_key(tx: Tx, org_id: int, key_id: int, now: datetime) -> bool:
    """Was there one that still opened?"""
    keys = integration_keys.c
    mine = sa.update(integration_keys).where(keys.org_id == org_id, keys.id == key_id)
    done = await tx.execute(mine.where(keys.revoked_at.is_(None)).values(revoked_at=now))
    return done.rowcount == 1


async def revoke_token(tx: Tx, org_id: int, token_id: int, now: datetime) -> bool:
    """Was there one that still opened?"""
    tokens = api_tokens.c
    mine = sa.update(api_tokens).where(tokens.org_id == org_id, tokens.id == token_id)
    done = await tx.execute(mine.where(tokens.revoked_at.is_(None)).values(revoked_at=now))
    return done.rowcount == 1
