"""A handoff that was told: who accepts it, and what is said when nobody does.

Never decides who is on call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.clock import Clock
from engine.clockwords import wall
from engine.db import Database, Tx, Writer
from engine.directory import Directory, NamedSchedule
from engine.errors import NotFound, Refused
from engine.models import ORG, Actor, NewDelivery, Rank, Timer, TimerKind
from engine.rota import addressed, notice
from engine.rota.handing import ACCEPT_WITHIN, CHANNEL, key_of
from engine.rota.roster import Roster
from engine.rota.sheet import names_in, people_in
from engine.schedule import people_at
from engine.store import handoffs as store
from engine.store import timers
from engine.store.handoffs import Handoff
from engine.store.timers import Arming

log = structlog.get_logger(__name__)

WE_WERE_AWAY: Final = timedelta(minutes=5)  # so late, nobody could press the button either


@dataclass(frozen=True, slots=True)
class HandoffAnswer:
    """What a click on Accept did."""

    changed: bool
    text: str


# --- accepted, or not ------------------------------------------------------------------------------


class Handoffs:
    def __init__(self, database: Database, clock: Clock, roster: Roster, nudge: Callable[[], None]) -> None:
        self._database = database
        self._clock = clock
        self._roster = roster
        self._nudge = nudge

    async def accept(self, handoff_id: int, actor: Actor) -> HandoffAnswer:
        """Of those who are on call now, the first; whoever comes late is told who was."""
        now = self._clock.now()
        directory = await self._roster.directory()

        async def unit(tx: Tx) -> HandoffAnswer:
            found = await _found(tx, directory, handoff_id)
            named, handoff = found
            present = frozenset(map(int, people_at(named.schedule, now)))
            if handoff.accepted_by is not None:
                return HandoffAnswer(False, _accepted(directory, handoff, actor))
            if await store.newest(tx, ORG, named.id) != handoff_id or not present & handoff.people:
                return HandoffAnswer(False, f"That handoff is over: {_now_on_call(directory, present)}.")
            if actor.person_id not in present:
                raise Refused(f"Only who is on call can accept this: {names_in(directory, present)}.")
            if not await store.accept(tx, ORG, handoff_id, actor.person_id, now):
                again = await store.read(tx, ORG, handoff_id)
                return HandoffAnswer(False, _accepted(directory, again or handoff, actor))
            await _show_accepted(tx, directory, named, handoff, actor.name, now)
            return HandoffAnswer(True, f"✅ You have {named.name}.")

        answer = await self._database.write(unit, rank=Writer.RESPOND)
        self._nudge()
        log.info("handoff.accepted", handoff=handoff_id, changed=answer.changed, via=actor.via)
        return answer

    async def unaccepted(self, tx: Tx, timer: Timer, now: datetime) -> None:
        """The work of a `handoff` timer: a quarter of an hour is over, did anybody accept?"""
        directory = await self._roster.directory()
        handoff = await store.read(tx, ORG, timer.subject_id)
        named = None if handoff is None else directory.schedules.get(handoff.schedule_id)
        if handoff is None or named is None or handoff.accepted_by is not None:
            return
        present = frozenset(map(int, people_at(named.schedule, now)))
        over = await store.newest(tx, ORG, named.id) != handoff.id or not present & handoff.people
        if over:
            return
        again = Arming(TimerKind.HANDOFF, handoff.id, now + ACCEPT_WITHIN, rank=Rank.NOTICE)
        if now - timer.due_at > WE_WERE_AWAY:
            await timers.arm(tx, ORG, [again])
            return
        if await notice.try_again(tx, ORG, _keys(handoff), now):  # Slack was away: nobody has read it
            await timers.arm(tx, ORG, [again])
            return
        await notice.tell(tx, ORG, _unaccepted(directory, named, handoff, present, now), now)
        log.info("handoff.unaccepted", handoff=handoff.id, schedule=named.name)


async def _found(tx: Tx, directory: Directory, handoff_id: int) -> tuple[NamedSchedule, Handoff]:
    handoff = await store.read(tx, ORG, handoff_id)
    named = None if handoff is None else directory.schedules.get(handoff.schedule_id)
    if handoff is None or named is None:
        raise NotFound("That schedule is not here any more.")
    return named, handoff


def _keys(handoff: Handoff) -> Sequence[str]:
    return [key_of(handoff.id, to) for to in handoff.texts]


async def _show_accepted(
    tx: Tx, directory: Directory, named: NamedSchedule, handoff: Handoff, by: str, now: datetime
) -> None:
    """On each post, at the time on its reader's clock."""
    bodies = {}
    for to, text in handoff.texts.items():
        reader = None if to == CHANNEL else directory.people.get(int(to))
        zone = named.schedule.timezone if reader is None else reader.timezone
        said = f"✅ Accepted by {by} {wall(now, zone)}."
        bodies[key_of(handoff.id, to)] = {
            "text": f"{text}\n{said}",
            "mentions": handoff.body.get("mentions", []),
        }
    await notice.show_anew(tx, ORG, bodies, 1, now)


def _accepted(directory: Directory, handoff: Handoff, actor: Actor) -> str:
    person = directory.people.get(handoff.accepted_by or 0)
    name = "you" if person and person.id == actor.person_id else person.name if person else "somebody"
    return f"It was accepted by {name} already."


def _now_on_call(directory: Directory, present: frozenset[int]) -> str:
    return f"{names_in(directory, present)} {'are' if len(present) > 1 else 'is'} on call now"


def _unaccepted(
    directory: Directory, named: NamedSchedule, handoff: Handoff, present: frozenset[int], now: datetime
) -> Sequence[NewDelivery | None]:
    """In the channel; without one once more to those who should."""
    waiting = people_in(directory, present & handoff.people)
    names = " and ".join(one.name for one in waiting)
    key = f"handoff:{handoff.id}:unaccepted"
    text = f"⏰ {names} did not accept the handoff of {named.name} in 15 minutes. Pages still go there."
    if named.channel:
        mentions = [one.slack_user_id for one in waiting if one.slack_user_id]
        return [addressed.to_channel(named.channel, key, {"text": text, "mentions": mentions}, now)]
    own = f"⏰ You did not accept the handoff of {named.name} in 15 minutes. Pages come to you all the same."
    return [addressed.to_person(one, f"{key}:{one.id}", {"text": own}, now) for one in waiting]
