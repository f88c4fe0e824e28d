"""A handoff: its sheet, who accepts it, and what is said when nobody does.

Never decides who is on call. A handoff is told once for each instant at which people change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory, NamedSchedule, Person, TargetKind
from engine.errors import NotFound, Refused
from engine.models import ORG, Actor, NewDelivery, Rank, Timer, TimerKind
from engine.rota import addressed, notice
from engine.rota.clockwords import between, wall
from engine.rota.roster import Roster
from engine.rota.shift_plan import LOOK_BACK, Handing
from engine.schedule import people_at, shifts
from engine.store import handoffs as store
from engine.store import timers
from engine.store.handoffs import Handoff, Noisy, OpenIncident
from engine.store.timers import Arming

log = structlog.get_logger(__name__)

ACCEPT: Final = "handoff_accept"
ACCEPT_WITHIN: Final = timedelta(minutes=15)
WE_WERE_AWAY: Final = timedelta(minutes=5)  # so late, nobody could press the button either
TITLE_MAX: Final = 80
_INSTANT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class HandoffAnswer:
    """What a click on Accept did."""

    changed: bool
    text: str


# --- told ------------------------------------------------------------------------------------------


async def hand_off(
    tx: Tx, directory: Directory, named: NamedSchedule, handing: Handing, now: datetime
) -> None:
    """Say who is on call now: in the schedule's channel, or without one to those who come on."""
    body = await _sheet(tx, directory, named, handing, now)
    number = await store.insert(tx, ORG, named.id, handing.at, handing.came, body)
    if number is None:
        return
    button = [{"do": ACCEPT, "label": "Accept", "value": str(number), "style": "primary"}]
    asking = {**body, "buttons": button} if handing.came else body
    await notice.tell(tx, ORG, _posts(directory, named, handing, number, asking, now), now)
    if handing.came:
        await timers.arm(tx, ORG, [Arming(TimerKind.HANDOFF, number, now + ACCEPT_WITHIN, rank=Rank.NOTICE)])


def _posts(
    directory: Directory,
    named: NamedSchedule,
    handing: Handing,
    number: int,
    body: addressed.Body,
    now: datetime,
) -> Sequence[NewDelivery | None]:
    if named.channel:
        return [addressed.to_channel(named.channel, f"handoff:{number}", body, now)]
    coming = _people(directory, handing.came)
    return [addressed.to_person(one, f"handoff:{number}:{one.id}", body, now) for one in coming]


async def _sheet(
    tx: Tx, directory: Directory, named: NamedSchedule, handing: Handing, now: datetime
) -> dict[str, Any]:
    """What its post says; kept, so that it can be shown again when it was accepted."""
    services = _services(directory, named.id)
    opened, count = await store.open_incidents(tx, ORG, services)
    snoozed = await store.snoozed(tx, ORG, services, handing.until)
    began = _last_shift_began(named, handing)
    noisy = await store.noisiest(tx, ORG, services, began, handing.at)
    lines = [
        *_who(directory, named, handing),
        *_incidents(opened, count),
        *_snoozes(snoozed, named.schedule.timezone),
        *_noise(noisy),
    ]
    coming = _people(directory, handing.came)
    mentions = [one.slack_user_id for one in coming if one.slack_user_id] if named.channel else []
    return {"text": "\n".join(lines), "mentions": mentions}


def _services(directory: Directory, schedule_id: int) -> list[int]:
    """Those whose policy pages this schedule at some level."""
    policies = {
        policy.id
        for policy in directory.policies.values()
        for level in policy.levels
        for target in level.targets
        if target.kind is TargetKind.SCHEDULE and target.ref == schedule_id
    }
    return sorted(one.id for one in directory.services.values() if one.policy_id in policies)


def _last_shift_began(named: NamedSchedule, handing: Handing) -> datetime:
    back = shifts(named.schedule, handing.at - LOOK_BACK, handing.at)
    return back[-1].start


def _people(directory: Directory, ids: frozenset[int]) -> list[Person]:
    return [directory.people[one] for one in sorted(ids) if one in directory.people]


def _names(directory: Directory, ids: frozenset[int]) -> str:
    return " and ".join(one.name for one in _people(directory, ids)) or "nobody"


def _who(directory: Directory, named: NamedSchedule, handing: Handing) -> Iterator[str]:
    zone = named.schedule.timezone
    span = between(handing.at, handing.until, zone)
    if not handing.present:
        yield f"⚠️ Nobody is on call on {named.name}: {span}."
    else:
        yield f"🔁 {named.name}: {_names(directory, handing.present)} on call, {span}."
    if handing.left:
        yield f"Off call: {_names(directory, handing.left)}."
    if handing.until is not None:
        following = frozenset(map(int, people_at(named.schedule, handing.until)))
        yield f"Next: {_names(directory, following)}."


def _incidents(opened: Sequence[OpenIncident], count: int) -> Iterator[str]:
    if not opened:
        yield "Open incidents: none."
        return
    yield f"Open incidents: {count}"
    for one in opened:
        yield f"• #{one.number} {_short(one.title)} ({_state(one)})"
    if count > len(opened):
        yield f"• and {count - len(opened)} more: `/oncall list`"


def _state(one: OpenIncident) -> str:
    if one.snoozed_until is not None:
        return "snoozed"
    return f"acknowledged by {one.acknowledged_by}" if one.acknowledged_by else one.status


def _snoozes(snoozed: Sequence[OpenIncident], timezone: str) -> Iterator[str]:
    """Those that come back in this shift."""
    for one in snoozed:
        if one.snoozed_until is not None:
            yield f"💤 #{one.number} wakes up {wall(one.snoozed_until, timezone)} {timezone}"


def _noise(noisy: Sequence[Noisy]) -> Iterator[str]:
    if noisy:
        yield "Noisiest in the last shift:"
    for one in noisy:
        yield f"• {one.events} × {_short(one.summary)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_MAX else f"{line[: TITLE_MAX - 1]}…"


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
                raise Refused(f"Only who is on call can accept this: {_names(directory, present)}.")
            if not await store.accept(tx, ORG, handoff_id, actor.person_id, now):
                again = await store.read(tx, ORG, handoff_id)
                return HandoffAnswer(False, _accepted(directory, again or handoff, actor))
            said = f"✅ Accepted by {actor.name} {wall(now, named.schedule.timezone)}."
            text = f"{handoff.body['text']}\n{said}"
            await _show(tx, handoff, {**handoff.body, "text": text}, now)
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
    """Of its posts: one in the channel, or one for each who came."""
    return [f"handoff:{handoff.id}", *(f"handoff:{handoff.id}:{one}" for one in sorted(handoff.people))]


async def _show(tx: Tx, handoff: Handoff, body: Mapping[str, Any], now: datetime) -> None:
    await notice.show_anew(tx, ORG, dict.fromkeys(_keys(handoff), body), 1, now)


def _accepted(directory: Directory, handoff: Handoff, actor: Actor) -> str:
    person = directory.people.get(handoff.accepted_by or 0)
    name = "you" if person and person.id == actor.person_id else person.name if person else "somebody"
    return f"It was accepted by {name} already."


def _now_on_call(directory: Directory, present: frozenset[int]) -> str:
    return f"{_names(directory, present)} {'are' if len(present) > 1 else 'is'} on call now"


def _unaccepted(
    directory: Directory, named: NamedSchedule, handoff: Handoff, present: frozenset[int], now: datetime
) -> Sequence[NewDelivery | None]:
    """In the channel; without one once more to those who should."""
    waiting = _people(directory, present & handoff.people)
    names = " and ".join(one.name for one in waiting)
    key = f"handoff:{handoff.id}:unaccepted"
    text = f"⏰ {names} did not accept the handoff of {named.name} in 15 minutes. Pages still go there."
    if named.channel:
        mentions = [one.slack_user_id for one in waiting if one.slack_user_id]
        return [addressed.to_channel(named.channel, key, {"text": text, "mentions": mentions}, now)]
    own = f"⏰ You did not accept the handoff of {named.name} in 15 minutes. Pages come to you all the same."
    return [addressed.to_person(one, f"{key}:{one.id}", {"text": own}, now) for one in waiting]
