"""Alarms to whoever runs Midwatch: one delivery per cause and quarter of an hour.

Sends nothing itself: an alarm is a delivery of kind `ops`, with its own retries and its own end.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.db import Tx
from engine.directory import ContactMethod, Directory
from engine.models import DeliveryKind, Method, NewDelivery, Rank
from engine.pager.apply import deliver_armings
from engine.store import deliveries, timers

log = structlog.get_logger(__name__)

ONCE_PER: Final = timedelta(minutes=15)

# Looked up when it is sent: the settings may have changed, and a URL holds a secret.
OPS_CHANNEL: Final = "ops"  # MIDWATCH_OPS_CHANNEL
ALL_URLS: Final = "all"  # each of MIDWATCH_FALLBACK_URLS
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
    new += [
        NewDelivery(
            incident_id=None,
            kind=DeliveryKind.OPS,
            method=one.kind,
            idem_key=f"ops:{cause}:{window}:{one.person_id}",
            due_at=now,
            person_id=one.person_id,
            method_id=one.id,
            body={"text": text},
        )
        for one in (ops_phones(phones) if phones is not None else ())
    ]
    queued = await deliveries.queue(tx, org_id, new, now)
    await timers.arm(tx, org_id, deliver_armings(queued, Rank.NOTICE))


def ops_phones(directory: Directory) -> list[ContactMethod]:
    """How each admin is told without Slack: by the first of these ways that they have."""
    admins = [directory.people[one] for one in directory.admins]
    usable = [{one.kind: one for one in reversed(person.methods) if one.usable} for person in admins]
    ways = [next((one[kind] for kind in WITHOUT_SLACK if kind in one), None) for one in usable]
    return [one for one in ways if one is not None]
