"""Which due deliveries may start now; what may not is moved to when it may, before anybody claims it.

Never sends, and never holds a lease: who waits here is free for any other worker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.db import Database, Tx, Writer, waiting_at_most
from engine.errors import Unavailable
from engine.models import ORG, Card, Delivery, DeliveryKind, Method, Timer
from engine.notify import lines
from engine.notify.bundle import line_of
from engine.notify.next_rule import pull_next_rules
from engine.notify.paces import Asking, Paces, admit, held, is_spent
from engine.notify.verdict import LONG_WAIT, PAGES
from engine.pager.alarm import raise_alarm
from engine.store import cards, deliveries, notices, timers
from engine.store import lines as line_rows
from engine.store import paces as pace_rows

log = structlog.get_logger(__name__)

CARD_FIRST: Final = timedelta(seconds=10)  # how long a page waits for the card of its channel
CARD_SOON: Final = timedelta(seconds=1)  # then it is looked whether it is there
KEPT: Final = timedelta(days=1)
NEEDED: Final = PAGES | {DeliveryKind.OPS}
PATIENCE: Final = timedelta(milliseconds=500)  # a line is kept for some milliseconds, if all is well
SPENT: Final = "so many were sent today that only pages go out by it still"
SOMEBODY_WAITS: Final = frozenset({DeliveryKind.VERIFICATION, DeliveryKind.OPS})


class Admission:
    def __init__(self, database: Database, paces: Paces) -> None:
        self._database = database
        self._paces = paces
        self._owed: set[int] = set()  # timers: their turn came, and their incident was somebody's

    def owe(self, skipped: Iterable[Timer]) -> None:
        """These were admitted and could not be begun: they need not come for a place again."""
        self._owed |= {timer.id for timer in skipped}

    async def admit(
        self, due: Sequence[Timer], now: datetime, *, at_once: bool = False
    ) -> tuple[list[Timer], int]:
        """The timers whose deliveries may start, and how many were moved. `at_once`: whoever was told a
        moment ago."""
        async with self._database.look() as tx:
            found = await deliveries.read(tx, [timer.subject_id for timer in due])
            placing = await _waiting_for_card(tx, list(found.values()), now)
            waiting = {} if at_once else await lines.waiting(tx, found.values(), now)
            high = await line_rows.high(tx, [*found])
        until = dict.fromkeys(placing, now + CARD_SOON)
        for one, at in waiting.items():
            until[one] = max(at, until.get(one, now))
        asking = [
            (timer, found[timer.subject_id])
            for timer in due
            if timer.subject_id in found
            and timer.id not in self._owed
            and until.get(timer.subject_id, now) <= now
        ]
        askers = {} if at_once else self._by_line(asking, high)

        async def unit(tx: Tx) -> tuple[dict[int, datetime], set[int]]:
            placed, spare, spent = await self._places(tx, askers, now)
            places = {**until, **placed}
            later = {timer: at for timer in due if (at := places.get(timer.subject_id, now)) > now}
            if later:
                await timers.move(tx, [*later.items()])
                await pull_next_rules(tx, _held_long(later, found, waiting, now), now)
            if spare:
                await _withhold(tx, [one for one in due if one.subject_id in spare], now)
            for line in sorted(spent):
                await _say_spent(tx, line, now)
            return places, spare

        places, spare = (
            await self._database.write(unit, rank=Writer.ADMIT) if askers or until else (until, set[int]())
        )
        admitted = [
            timer
            for timer in due
            if timer.subject_id not in spare and places.get(timer.subject_id, now) <= now
        ]
        self._owed -= {timer.id for timer in due}
        return admitted, len(due) - len(admitted)

    async def hold(self, delivery: Delivery, until: datetime) -> None:
        """The provider wants nothing there before `until`: what waits for it waits with it."""
        line = self._paces.line_of(delivery)
        if line is None:
            return

        async def unit(tx: Tx) -> None:
            kept = await pace_rows.keep(tx, ORG, [line])
            await pace_rows.store(tx, ORG, {line: held(kept[line], until)})

        try:
            await self._database.write(unit, rank=Writer.ADMIT)
        except Unavailable:
            log.warning("pace.not_held", method=delivery.method)  # the next one is throttled too, and says so

    async def forget(self, now: datetime) -> int:
        """Lines where nothing was sent for long."""
        return await self._database.write(lambda tx: pace_rows.forget(tx, ORG, now - KEPT))

    def _by_line(
        self, due: Iterable[tuple[Timer, Delivery]], high: Collection[int]
    ) -> dict[str, list[Asking]]:
        """What goes in one message asks once."""
        together: dict[Hashable, list[tuple[Timer, Delivery]]] = defaultdict(list)
        for timer, delivery in due:
            if self._paces.line_of(delivery) is not None:
                together[line_of(delivery) or ("alone", delivery.id)].append((timer, delivery))
        paced: dict[str, list[Asking]] = defaultdict(list)
        for load in together.values():
            asks = Asking(
                ids=tuple(one.id for _, one in load),
                high=any(one.id in high or one.kind in SOMEBODY_WAITS for _, one in load),
                waited=all(timer.due_at > one.due_at for timer, one in load),
                since=min(one.due_at for _, one in load),
                spare=not any(one.kind in NEEDED for _, one in load),
            )
            paced[self._paces.line_of(load[0][1]) or ""].append(asks)
        return paced

    async def _places(
        self, tx: Tx, paced: Mapping[str, Sequence[Asking]], now: datetime
    ) -> tuple[dict[int, datetime], set[int], set[str]]:
        """The place of each; those that are left out because the day's messages are spent; and the lines of
        which that is news."""
        standing: dict[str, pace_rows.Standing] = {}
        async with waiting_at_most(tx, PATIENCE):
            standing = await pace_rows.keep(tx, ORG, [*paced])
        if paced and not standing:
            log.warning("pace.not_kept", lines=len(paced))
        places: dict[int, datetime] = {}
        spare: set[int] = set()
        spent: set[str] = set()
        # Why only those that we have: a worker that stands still with one of them must not keep a page
        # waiting, which then goes unpaced.
        for line in standing:
            asking = paced[line]
            pace, before = self._paces.pace_of(line), standing[line]
            over = is_spent(before, now, pace)
            left_out = {one for each in asking if over and each.spare for one in each.ids}
            wanted = [one for one in asking if not (over and one.spare)]
            standing[line], found = admit(before, wanted, now, pace)
            places |= found
            spare |= left_out
            if left_out or is_spent(standing[line], now, pace) is not over:
                spent.add(line)
        await pace_rows.store(tx, ORG, standing)
        return places, spare, spent


async def _withhold(tx: Tx, spare: Sequence[Timer], now: datetime) -> None:
    ids = [timer.subject_id for timer in spare]
    await timers.disarm_unsent(tx, ORG, ids)  # what another worker has begun meanwhile is its own
    await notices.cancel(tx, ids, SPENT, now)


async def _say_spent(tx: Tx, line: str, now: datetime) -> None:
    text = (
        f"as many messages by {line} were sent today as MIDWATCH_PHONE_PER_DAY allows. Pages still go out; "
        "codes and news do not, until midnight UTC. Is somebody misusing this install, or is the limit low?"
    )
    await raise_alarm(tx, ORG, f"spent:{line}", text, now)


def _held_long(
    later: Mapping[Timer, datetime],
    found: Mapping[int, Delivery],
    waiting: Collection[int],
    now: datetime,
) -> list[Delivery]:
    """Pages that have to wait for long: they go by the person's next rule too. Not those that wait because
    their number was told a moment ago: nobody is called early because they were texted before."""
    held = [found.get(timer.subject_id) for timer, at in later.items() if at - now > LONG_WAIT]
    return [one for one in held if one is not None and one.kind in PAGES and one.id not in waiting]


async def _waiting_for_card(tx: Tx, found: Sequence[Delivery], now: datetime) -> set[int]:
    """Messages for a channel in which the incident's card is about to be posted: it goes first, and
    they go into its thread."""
    waiting = [
        one
        for one in found
        if one.method is Method.CHANNEL and one.incident_id and now - one.due_at < CARD_FIRST
    ]
    if not waiting:
        return set()
    shown = await cards.of_incidents(tx, ORG, [one.incident_id or 0 for one in waiting])
    unplaced = {(card.incident_id, card.channel) for card in shown if card.ts is None}
    return {
        one.id
        for one in waiting
        if (one.incident_id, one.address or _service_channel(one, shown)) in unplaced
    }


def _service_channel(delivery: Delivery, shown: Sequence[Card]) -> str | None:
    """A line without an address goes where the card of the incident's service stands."""
    own = [
        card.channel for card in shown if card.incident_id == delivery.incident_id and card.person_id is None
    ]
    return own[0] if own else None
