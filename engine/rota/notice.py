"""Messages about shifts: durable deliveries of kind `notice`, and what they show when things changed.

Sends nothing itself. A notice never delays a page: it has the last rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from engine.backoff import MOST_ATTEMPTS
from engine.db import Tx
from engine.models import Delivery, DeliveryKind, DeliveryStatus, Method, NewDelivery, Rank
from engine.pager.apply import deliver_armings
from engine.rota.addressed import Body
from engine.store import deliveries, notices, timers

IN_FLIGHT: Final = timedelta(seconds=15)  # longer than a send may take: then it is known where it stands
SHOWN: Final = frozenset({DeliveryStatus.SENT, DeliveryStatus.DELIVERED})
LIVES: Final = SHOWN | {DeliveryStatus.QUEUED, DeliveryStatus.SENDING}


async def tell(tx: Tx, org_id: int, new: Sequence[NewDelivery | None], now: datetime) -> None:
    """Each once, however often it is told: `idem_key` says which are the same."""
    queued = await deliveries.queue(tx, org_id, [one for one in new if one is not None], now)
    await timers.arm(tx, org_id, deliver_armings(queued, Rank.NOTICE))


async def try_again(tx: Tx, org_id: int, keys: Sequence[str], now: datetime) -> bool:
    """Send those of these once more that died in an outage; False if none did. What was refused stays."""
    found = await notices.by_keys(tx, org_id, sorted(keys))
    tried = [one for one in found if one.attempts >= MOST_ATTEMPTS]
    dead = [one.id for one in tried if one.status is DeliveryStatus.DEAD]
    # Why first: where no incident is locked, timers come before deliveries.
    await timers.arm(tx, org_id, deliver_armings([(one, now) for one in dead], Rank.NOTICE))
    await notices.revive(tx, dead)
    return bool(dead)


async def show_anew(
    tx: Tx, org_id: int, bodies: Mapping[str, Body], rev: int, now: datetime, *, unsent: bool = True
) -> None:
    """Let the messages with these keys say this instead. `rev` counts how often they changed.

    What was not sent yet is sent with these words, or with `unsent` False not at all. What says this
    already is left as it is.
    """
    all_keys = {f"{key}:r{number}": key for key in bodies for number in range(1, rev)}
    all_found = await notices.by_keys(tx, org_id, sorted([*bodies, *all_keys]))
    says = {all_keys.get(one.idem_key, one.idem_key): one.body for one in all_found if one.status in LIVES}
    new = {key for key, body in bodies.items() if key in says and _words(says[key]) != _words(body)}
    found = [one for one in all_found if one.idem_key in new]
    older = [one for one in all_found if all_keys.get(one.idem_key) in new]
    waiting = [one for one in found if one.status is DeliveryStatus.QUEUED]
    over = [*(one for one in older if one.status is DeliveryStatus.QUEUED), *([] if unsent else waiting)]
    # Why first: where no incident is locked, timers come before deliveries.
    await timers.disarm_unsent(tx, org_id, [one.id for one in over])
    again = [_anew(one, bodies[one.idem_key], rev, now) for one in found]
    await tell(tx, org_id, again, now)
    await notices.cancel(tx, [one.id for one in over], "it says something else by now", now)
    if unsent:
        await notices.reword(tx, {one.id: bodies[one.idem_key] for one in waiting})


def _words(body: Body) -> tuple[Any, Any]:
    return body.get("text"), body.get("buttons")


def _anew(one: Delivery, body: Body, rev: int, now: datetime) -> NewDelivery | None:
    """A change of the message that was sent; None where there is none to change."""
    if one.method not in {Method.SLACK, Method.CHANNEL}:
        return None
    due_at = now if one.status in SHOWN else now + IN_FLIGHT
    if one.status not in SHOWN and one.status is not DeliveryStatus.SENDING:
        return None
    return NewDelivery(
        incident_id=None,
        kind=DeliveryKind.NOTICE,
        method=one.method,
        idem_key=f"{one.idem_key}:r{rev}",
        due_at=due_at,
        person_id=one.person_id,
        method_id=one.method_id,
        address=one.address,
        body={**body, "replaces": one.id, "at": one.provider_ref},
    )
