"""When each person may be told again by each of their contact methods, over all workers.

The sent messages are the pace: nothing is kept beside them. Never sends, and holds nobody's first page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from engine.db import Tx
from engine.models import ORG, Delivery
from engine.notify.bundle import FLIGHT, LONGEST, LOOK_AGAIN, line_of, start_at
from engine.store import lines


async def waiting(tx: Tx, found: Iterable[Delivery], now: datetime) -> dict[int, datetime]:
    """Of these, those whose line was told too short a time ago, and until when they wait."""
    travelling = {one.id: one for one in found if line_of(one) is not None}
    told = await _told(tx, travelling.values(), now)
    slowed = [one.id for one in travelling.values() if one.method_id in told]
    if not slowed:
        return {}
    high = await lines.high(tx, slowed)
    until = {one: _start_at(travelling[one], told, now, high=one in high) for one in slowed}
    return {one: at for one, at in until.items() if at > now}


async def not_ours(tx: Tx, wanted: Collection[Delivery], high: Collection[int], now: datetime) -> set[int]:
    """Keeps the lines of these to this transaction. Returns those that cannot begin now: another worker is
    beginning a message there, or has begun one since they were admitted. One that may takes all along."""
    travelling = [one for one in wanted if line_of(one) is not None]
    ours = await lines.hold(tx, {one.method_id for one in travelling if one.method_id is not None})
    told = await _told(tx, travelling, now)
    free = {
        line_of(one)
        for one in travelling
        if one.method_id in ours and _start_at(one, told, now, high=one.id in high) <= now
    }
    pages = {line[0] for line in free if line is not None and not line[1]}
    free -= {(line, True) for line in pages}  # what only tells waits for what asks
    return {one.id for one in travelling if line_of(one) not in free}


def _start_at(one: Delivery, told: Mapping[int, lines.Told], now: datetime, *, high: bool) -> datetime:
    """High urgency waits for high urgency only."""
    line = told.get(one.method_id or 0, lines.NOTHING)
    last = line.high_at if high else line.any_at
    return start_at(one.method, last, now, flying=line.flying_high if high else line.flying)


async def _told(tx: Tx, travelling: Iterable[Delivery], now: datetime) -> dict[int, lines.Told]:
    of = {one.method_id for one in travelling if one.method_id is not None}
    return await lines.told(tx, ORG, of, now - LONGEST, now - FLIGHT)


def later(now: datetime) -> datetime:
    """When to look again at what cannot begin now."""
    return now + LOOK_AGAIN
