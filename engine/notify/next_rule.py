"""A person's next contact rule, pulled to now when the one before it failed them. Never sends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from engine.db import Tx
from engine.models import ORG, Delivery, TimerKind
from engine.store import deliveries, timers


async def pull_next_rules(tx: Tx, failed: Sequence[Delivery], now: datetime) -> None:
    """For each of these, the same person's next step of the same page fires now."""
    of = {one.incident_id for one in failed if one.incident_id is not None}
    waiting = await deliveries.queued(tx, ORG, sorted(of)) if of else []
    if following := next_steps(failed, waiting):
        await timers.pull(tx, ORG, TimerKind.DELIVER, sorted(following), now)


def next_steps(failed: Sequence[Delivery], waiting: Iterable[Delivery]) -> set[int]:
    """Which of those waiting (by step) come next. Never one that has just failed too: it waits for its
    own next try."""
    just_failed = {one.id for one in failed}
    of_page: dict[tuple[object, ...], list[Delivery]] = defaultdict(list)
    for before in failed:
        of_page[_page(before)].append(before)
    following: dict[int, int] = {}
    for one in waiting:
        if one.id not in just_failed:
            for before in of_page.get(_page(one), ()):
                if one.step > before.step:
                    following.setdefault(before.id, one.id)
    return {*following.values()}


def _page(one: Delivery) -> tuple[object, ...]:
    return one.incident_id, one.person_id, one.kind, one.round, one.pass_, one.level
