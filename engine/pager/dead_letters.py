"""Dead letters: what could not be delivered is listed, sent again while it is still wanted, or put aside.

Sends nothing itself: what is retried is queued again, with all of its tries. Who did it is kept in the row,
in the log and, of what was about an incident, in its timeline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, Protocol

import structlog

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory
from engine.errors import NotFound, Refused
from engine.escalation import still_wanted
from engine.models import ORG, Actor, Delivery, DeliveryKind, DeliveryStatus, Rank, Via
from engine.notify.begin import NOT_AFTER
from engine.pager.apply import card_armings, deliver_armings
from engine.store import dead_letters as store
from engine.store import incidents, journal, timers
from engine.store.dead_letters import Cause, DeadLetter
from engine.store.incidents import Incident
from engine.store.journal import TimelineRow

log = structlog.get_logger(__name__)

AT_ONCE: Final = 200  # in one transaction: their incidents wait meanwhile
AT_MOST: Final = 5_000  # of one command
PAGES: Final = frozenset({DeliveryKind.PAGE, DeliveryKind.RESPONDER})


@dataclass(frozen=True, slots=True)
class Overview:
    """How many there are, and what they died of."""

    count: int
    causes: Sequence[Cause]


@dataclass(frozen=True, slots=True)
class Dealt:
    """What became of dead letters: those that were done, and why the others were not, with how many."""

    done: int
    left: Mapping[str, int]


class DeadLetters:
    """Anybody may look. Admins, the command line and a token of nobody retry and put aside."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        directory_now: Callable[[], Awaitable[Directory]],
        nudge: Callable[[], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._directory_now = directory_now
        self._nudge = nudge

    async def count(self) -> int:
        async with self._database.snapshot() as tx:
            return await store.count(tx, ORG)

    async def overview(self, limit: int = 20) -> Overview:
        async with self._database.snapshot() as tx:
            return Overview(await store.count(tx, ORG), await store.causes(tx, ORG, limit))

    async def list(self, limit: int = 50, before_id: int | None = None) -> Sequence[DeadLetter]:
        """Newest first; `before_id` goes on where a page ended."""
        async with self._database.snapshot() as tx:
            return await store.newest(tx, ORG, limit, before_id=before_id)

    async def retry(self, actor: Actor, letter: int | None = None, *, alike: bool = False) -> Dealt:
        """Queue one again, with `alike` all that died of the same, without a number all of them."""
        return await self._deal(actor, letter, _queue_again, alike=alike)

    async def put_aside(self, actor: Actor, letter: int | None = None, *, alike: bool = False) -> Dealt:
        """Take them from the list without sending them; `why` shows them still."""
        return await self._deal(actor, letter, _put_aside, alike=alike)

    async def _deal(self, actor: Actor, letter: int | None, deed: Deed, *, alike: bool) -> Dealt:
        await self._allow(actor)
        ids = await self._meant(letter, alike=alike)
        done, left = 0, Counter[str]()
        for start in range(0, len(ids), AT_ONCE):
            some, now = ids[start : start + AT_ONCE], self._clock.now()
            unit = partial(deed, ids=some, actor=actor, now=now)
            dealt = await self._database.write(unit, rank=Writer.RESPOND)
            done += dealt.done
            left.update(dealt.left)
        if done:
            self._nudge()
        log.info(
            "dead_letters.dealt", deed=deed.__name__.strip("_"), by=actor.name, via=actor.via.value, done=done
        )
        return Dealt(done, left)

    async def _allow(self, actor: Actor) -> None:
        directory = await self._directory_now()
        if actor.via in {Via.CLI, Via.API} and actor.person_id is None:
            return
        if actor.person_id not in directory.admins:
            raise Refused("Only an admin may do that; nothing was changed. `/oncall dead` shows the list.")

    async def _meant(self, letter: int | None, *, alike: bool) -> Sequence[int]:
        async with self._database.snapshot() as tx:
            if letter is None:
                return [one.delivery.id for one in await store.newest(tx, ORG, AT_MOST)]
            found = await store.read(tx, ORG, [letter])
            if not found:
                raise NotFound(f"There is no dead letter {letter}.")
            if found[0].delivery.status is not DeliveryStatus.DEAD:
                raise NotFound(f"{letter} is no dead letter: it is {found[0].delivery.status}.")
            if not alike:
                return [letter]
            return [one.delivery.id for one in await store.newest(tx, ORG, AT_MOST, like=found[0])]


class Deed(Protocol):
    __name__: str

    async def __call__(self, tx: Tx, ids: Sequence[int], actor: Actor, now: datetime) -> Dealt: ...


async def _queue_again(tx: Tx, ids: Sequence[int], actor: Actor, now: datetime) -> Dealt:
    letters, held = await _locked(tx, ids)
    reasons = {one.delivery.id: _unwanted(one.delivery, held, now) for one in letters}
    wanted = [one for one in letters if reasons[one.delivery.id] is None]
    # Why first: where no incident is locked, timers come before deliveries.
    for rank, some in _by_rank(wanted):
        await timers.arm(tx, ORG, deliver_armings([(one.delivery.id, now) for one in some], rank))
    done = await store.queue_again(tx, ORG, [one.delivery.id for one in wanted], _said(actor), now)
    await _tell(tx, [one for one in wanted if one.delivery.id in done], held, actor, "retried", now)
    left = Counter(why for why in reasons.values() if why is not None)
    left.update({"somebody else was faster": len(wanted) - len(done)})
    return Dealt(len(done), +left)


async def _put_aside(tx: Tx, ids: Sequence[int], actor: Actor, now: datetime) -> Dealt:
    letters, held = await _locked(tx, ids)
    done = await store.put_aside(tx, ORG, sorted(one.delivery.id for one in letters), _said(actor), now)
    dealt = [one for one in letters if one.delivery.id in done]
    await _tell(tx, dealt, held, actor, "put_aside", now)
    left = Counter({"put aside already": len(letters) - len(done)})
    return Dealt(len(done), +left)


async def _locked(tx: Tx, ids: Sequence[int]) -> tuple[list[DeadLetter], Mapping[int, Incident]]:
    """Those that are dead still, in order of id, and their incidents under our locks."""
    about = {one.delivery.incident_id for one in await store.read(tx, ORG, ids)}
    held = await incidents.lock(tx, sorted(one for one in about if one is not None))
    found = [one for one in await store.read(tx, ORG, ids) if one.delivery.status is DeliveryStatus.DEAD]
    return sorted(found, key=lambda one: one.delivery.id), {one.id: one for one in held}


def _unwanted(delivery: Delivery, held: Mapping[int, Incident], now: datetime) -> str | None:
    until = delivery.body.get(NOT_AFTER)
    if until is not None and now >= datetime.fromisoformat(until):
        return "it is past its sense"
    if delivery.kind is DeliveryKind.VERIFICATION:
        return "its code is too old: ask for a new one"
    incident = held.get(delivery.incident_id or 0)
    return None if incident is None else still_wanted(delivery.kind, delivery.round, incident.fate)


def _by_rank(letters: Iterable[DeadLetter]) -> list[tuple[Rank, list[DeadLetter]]]:
    pages = [one for one in letters if one.delivery.kind in PAGES]
    return [(Rank.PAGE, pages), (Rank.NOTICE, [one for one in letters if one.delivery.kind not in PAGES])]


def _said(actor: Actor) -> str:
    return f"{actor.name} ({actor.via.value})"


async def _tell(
    tx: Tx,
    letters: Sequence[DeadLetter],
    held: Mapping[int, Incident],
    actor: Actor,
    kind: str,
    now: datetime,
) -> None:
    """The timeline and the cards of their incidents."""
    found = ((one, held.get(one.delivery.incident_id or 0)) for one in letters)
    about = [(one, incident) for one, incident in found if incident is not None]
    rows = [TimelineRow(incident.id, kind, actor, _what(one), incident.fate.epoch) for one, incident in about]
    await journal.append_timeline(tx, ORG, rows, now)
    await timers.arm(tx, ORG, await card_armings(tx, ORG, sorted({one.id for _, one in about}), now))


def _what(letter: DeadLetter) -> str:
    one = letter.delivery
    return f"{one.kind} by {one.method} to {letter.whom}, given up: {one.reason}"
