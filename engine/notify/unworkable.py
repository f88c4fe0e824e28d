"""A delivery that cannot even be begun: tried again later, and in the end dead and loud.

Never reads the delivery, since that may be what fails.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from engine.db import Tx
from engine.models import DeliveryStatus, Timer
from engine.pager.alarm import raise_alarm
from engine.store import deliveries, timers

TRIES: Final = 5
AGAIN: Final = timedelta(seconds=30)


async def put_off(tx: Tx, now: datetime, *, timer: Timer) -> int:
    """Returns how many timers ended: 1 once it is given up."""
    tries = await timers.defer_failed(tx, timer, now + AGAIN)
    return 0 if tries < TRIES else await give_up(tx, now, timer=timer, tries=tries)


async def give_up(tx: Tx, now: datetime, *, timer: Timer, tries: int) -> int:
    """Returns 1, to be counted as dead once that has committed."""
    await timers.finish_all(tx, [timer.id])
    await deliveries.set_status(tx, timer.subject_id, DeliveryStatus.DEAD, "it could not be worked", now)
    text = f"delivery {timer.subject_id} could not be worked {tries} times, and is given up"
    await raise_alarm(tx, timer.org_id, "deliver:unworkable", text, now)
    return 1
