"""Alarms to whoever runs Midwatch: one delivery per cause and quarter of an hour.

Sends nothing itself: an alarm is a delivery of kind `ops`, with its own retries and its own end.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.db import Tx
from engine.models import DeliveryKind, Method, NewDelivery, Rank
from engine.pager.apply import deliver_armings
from engine.store import deliveries, timers

log = structlog.get_logger(__name__)

ONCE_PER: Final = timedelta(minutes=15)

# Looked up when it is sent: the settings may have changed, and a URL holds a secret.
OPS_CHANNEL: Final = "ops"  # MIDWATCH_OPS_CHANNEL
ALL_URLS: Final = "all"  # each of MIDWATCH_FALLBACK_URLS


async def raise_alarm(tx: Tx, org_id: int, cause: str, text: str, now: datetime) -> None:
    """Say it in the ops channel and to the fallback URLs; the same cause once per quarter of an hour."""
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
    queued = await deliveries.queue(tx, org_id, new, now)
    await timers.arm(tx, org_id, deliver_armings(queued, Rank.NOTICE))
