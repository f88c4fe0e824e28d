"""Codes written down, handed to their deliveries, and taken back, inside the caller's transaction.

Never sends: a code is a delivery like any other, and the only one that goes to a method nobody verified
(docs/decisions/0024). In a body it is a cipher.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from engine.contacts import codes
from engine.db import Tx
from engine.directory import ContactMethod
from engine.errors import BadInput
from engine.models import ORG, DeliveryKind, Method, NewDelivery, Rank
from engine.notify.begin import NOT_AFTER
from engine.pager.apply import deliver_armings
from engine.store import deliveries, notices, timers
from engine.store import verifications as store
from engine.vault import Vault

PHONES: Final = frozenset({Method.SMS, Method.VOICE})
REPLACED: Final = "there is another code by now, or none is wanted"


async def issue(tx: Tx, method: ContactMethod, vault: Vault, now: datetime, *, by_call: bool) -> None:
    """A new code for this method, on its way; one before it is worth nothing. Raises TooMany.

    The lock of people is held: two who ask at once would both pass the limits.
    """
    if by_call and method.kind not in PHONES:
        raise BadInput("Only a telephone number can be called.")
    way = Method.VOICE if by_call else method.kind
    address_hash = vault.fingerprint(method.address)
    counts = await store.asked(tx, ORG, method.person_id, address_hash, now - codes.HOUR, now - codes.DAY)
    codes.check(codes.Asked(*counts))
    await take_back(tx, [method.id], now)
    code, expires_at = codes.new_code(), now + codes.GOOD_FOR
    kept = store.NewCode(
        method.person_id, method.id, address_hash, hashed(vault, method.id, code), expires_at
    )
    code_id = await store.insert(tx, ORG, kept, now)
    brings = NewDelivery(
        incident_id=None,
        kind=DeliveryKind.VERIFICATION,
        method=way,
        idem_key=f"code:{code_id}",
        due_at=now,
        person_id=method.person_id,
        method_id=method.id,
        body={codes.SEALED: vault.encrypt(code), NOT_AFTER: expires_at.isoformat()},
    )
    ((delivery_id, due_at),) = await deliveries.queue(tx, ORG, [brings], now)
    await store.brought_by(tx, ORG, code_id, delivery_id)
    await timers.arm(tx, ORG, deliver_armings([(delivery_id, due_at)], Rank.NOTICE))
    await store.forget(tx, ORG, now - codes.DAY)


async def take_back(tx: Tx, method_ids: Sequence[int], now: datetime) -> None:
    """Codes of these methods are worth nothing, and are not sent where they were not yet."""
    brought = await store.end(tx, ORG, method_ids, now)
    await timers.disarm_unsent(tx, ORG, brought)  # first: where no incident is locked, before deliveries
    await notices.cancel(tx, brought, REPLACED, now)


def hashed(vault: Vault, method_id: int, code: str) -> str:
    """Keyed, and another one for each method."""
    return vault.fingerprint(f"code:{method_id}:{code}")
