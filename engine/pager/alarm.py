"""Alarms to whoever runs Midwatch: one delivery per cause and quarter of an hour.

Sends nothing itself: an alarm is a delivery of kind `ops`, with its own retries and its own end.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.db import Tx
from engine.directory import ContactMethod, Directory
from engine.models import Delivery, DeliveryKind, DeliveryStatus, Method, NewDelivery, Rank
from engine.pager.apply import deliver_armings
from engine.store import deliveries, notices, timers

log = structlog.get_logger(__name__)

ONCE_PER: Final = timedelta(minutes=15)

# Looked up when it is sent: the settings may have changed, and a URL holds a secret.
OPS_CHANNEL: Final = "ops"  # MIDWATCH_OPS_CHANNEL
ALL_URLS: Final = "all"  # each of MIDWATCH_FALLBACK_URLS
CAUSE_LENGTH: Final = 60  # of a reason: what follows may be about one message alone
WITHOUT_SLACK: Final = (Method.SMS, Method.PUSH, Method.VOICE, Method.EMAIL)


async def raise_alarm(
    tx: Tx, org_id: int, cause: str, text: str, now: datetime, *, phones: Directory | None = None
) -> None:
    """Say it in the ops channel and to the fallback URLs; the same cause once per quarter of an hour.

    `phones`: Slack itself is the trouble, so each admin of this directory hears of it by another way.
    """
    log.error("ops.alarm", cause=cause)
    window = int(now.timestamp() // ONCE_PER.total_seconds())
    new = [
        NewDelivery(
            incident_id=None,
            kind=DeliveryKind.OPS,
            method=method,
            idem_key=f"ops:{cause}:{window}:{address}",
            due_at=now,
            address=address,
            body={"text": text},
        )
        for method, address in ((Method.CHANNEL, OPS_CHANNEL), (Method.URL, ALL_URLS))
    ]
    if phones is not None:
        new += [_to_phone(f"ops:{cause}:{window}", one, text, now) for one in ops_phones(phones)]
    queued = await deliveries.queue(tx, org_id, new, now)
    await timers.arm(tx, org_id, deliver_armings(queued, Rank.NOTICE))


def channel_cause(channel: str, reason: str) -> str:
    """The cause of alarms about a channel in which nothing can be said: one, whoever finds out."""
    return f"channel:{channel}:{reason[:CAUSE_LENGTH]}"


async def pass_on(
    tx: Tx, org_id: int, failed: Sequence[Delivery], directory: Directory, now: datetime
) -> None:
    """Alarms that did not get through: unless they did by the other way, or it is under way, the admins
    hear them by telephone."""
    ours = {_other(one): one for one in failed if one.person_id is None}
    found = {one.idem_key: one for one in await notices.by_keys(tx, org_id, sorted(ours))}
    unheard = [one for key, one in ours.items() if not _may_be_heard(found.get(key), directory)]
    phones = ops_phones(directory) if unheard else []
    if unheard and not phones:
        log.error("ops.alarm_unheard", alarms=len(unheard))
    new = [
        _to_phone(one.idem_key.rpartition(":")[0], phone, str(one.body.get("text", "")), now)
        for one in unheard
        for phone in phones
    ]
    queued = await deliveries.queue(tx, org_id, new, now)
    await timers.arm(tx, org_id, deliver_armings(queued, Rank.NOTICE))


def _other(one: Delivery) -> str:
    """The key of the same alarm by the other way."""
    said, _, address = one.idem_key.rpartition(":")
    return f"{said}:{ALL_URLS if address == OPS_CHANNEL else OPS_CHANNEL}"


def _may_be_heard(other: Delivery | None, directory: Directory) -> bool:
    if other is None or (other.method is Method.URL and not directory.fallback_urls):
        return False
    fresh = not other.attempts and not other.reason
    under_way = other.status in {DeliveryStatus.QUEUED, DeliveryStatus.SENDING} and fresh
    return under_way or other.status in {DeliveryStatus.SENT, DeliveryStatus.DELIVERED}


def _to_phone(said: str, phone: ContactMethod, text: str, now: datetime) -> NewDelivery:
    return NewDelivery(
        incident_id=None,
        kind=DeliveryKind.OPS,
        method=phone.kind,
        idem_key=f"{said}:{phone.person_id}",
        due_at=now,
        person_id=phone.person_id,
        method_id=phone.id,
        body={"text": text},
    )


def ops_phones(directory: Directory) -> list[ContactMethod]:
    """How each admin is told without Slack: by the first of these ways that they have."""
    admins = [directory.people[one] for one in directory.admins]
    usable = [{one.kind: one for one in reversed(person.methods) if one.usable} for person in admins]
    ways = [next((one[kind] for kind in WITHOUT_SLACK if kind in one), None) for one in usable]
    return [one for one in ways if one is not None]
