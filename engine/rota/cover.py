"""Cover: somebody seeks a stand-in for their shift, and the first who accepts has it.

Never puts anybody on call by itself: a part that is accepted becomes an override of kind `cover`. Whoever
comes late changes nothing, and is told who has it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

import structlog

from engine import covering
from engine.clock import Clock
from engine.covering import Request
from engine.db import Database, Tx, Writer
from engine.directory import Directory, Person
from engine.errors import BadInput, NotFound, Refused
from engine.models import ORG, Actor, Rank, Timer, TimerKind
from engine.parts import Part
from engine.rota import addressed, notice, override_rules
from engine.rota import cover_rules as rules
from engine.rota import cover_words as words
from engine.rota.cover_rules import Wish
from engine.rota.cover_words import Story
from engine.rota.load import LOOK, least_loaded_first, load
from engine.rota.roster import Roster
from engine.schedule import OverrideKind
from engine.store import covers, notices, timers
from engine.store.timers import Arming

log = structlog.get_logger(__name__)
T = TypeVar("T")

NOBODY_IN_TIME: Final = "Nobody accepted in time."
ALL_DECLINED: Final = "Everybody who was asked declined."


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was made: whom it asks, in their order, and until when."""

    request: Request
    schedule: str
    people: tuple[Person, ...]
    until: datetime
    gap: timedelta  # between one person and the next


@dataclass(frozen=True, slots=True)
class CoverAnswer:
    """What an answer to a request did; `text` is for whoever gave it."""

    changed: bool
    text: str


class Cover:
    def __init__(self, database: Database, clock: Clock, roster: Roster, nudge: Callable[[], None]) -> None:
        self._database = database
        self._clock = clock
        self._roster = roster
        self._nudge = nudge

    # --- asked

    async def ask(self, schedule_id: int | None, start_at: datetime, end_at: datetime, actor: Actor) -> Asked:
        """Ask everybody who could take over from the actor, the least loaded first."""
        now = self._clock.now()
        directory = await self._roster.directory()
        asker = rules.person_of(directory, actor)
        wish = rules.wish(directory, schedule_id, asker, Part(start_at, end_at), now)
        around = await self._roster.shifts(now - LOOK, now + LOOK)
        people = least_loaded_first(wish.people, load(around))
        until, gap = rules.ends_at(now, wish.whole), rules.head_start(now, wish.whole, len(people))

        async def unit(tx: Tx) -> Request:
            request = await _insert(tx, wish, now)
            await timers.arm(tx, ORG, [Arming(TimerKind.COVER, request.id, until, rank=Rank.NOTICE)])
            story = Story(request, wish.named, asker, (wish.whole,))
            questions = [
                addressed.to_person(
                    one,
                    _key(request.id, one.id),
                    words.question(story, one, covering.ASKED),
                    now + place * gap,
                )
                for place, one in enumerate(people)
            ]
            await notice.tell(tx, ORG, questions, now)
            return request

        request = await self._write(unit)
        log.info("cover.asked", request=request.id, schedule=wish.named.name, people=len(people))
        return Asked(request, wish.named.name, tuple(people), until, gap)

    # --- answered

    async def accept(self, request_id: int, part: Part | None, actor: Actor) -> CoverAnswer:
        """Take a part, or all that is left. Of two in the same moment the first has it."""
        now = self._clock.now()
        directory = await self._roster.directory()
        person = rules.person_of(directory, actor)

        async def unit(tx: Tx) -> CoverAnswer:
            story, answers = await _changing(tx, directory, request_id)
            rules.check_may_answer(story, answers, person)
            new = rules.takeable(story.left, part, now) if story.request.open else ()
            if not new:
                return CoverAnswer(False, rules.too_late(story, person))
            await covers.answer(tx, ORG, request_id, person.id, covering.ACCEPTED, now)
            story = rules.with_parts(story, person, new)
            if not story.left:
                await covers.end(tx, ORG, request_id, covering.FILLED, now)
                story = rules.with_status(story, covering.FILLED)
            waiting = sum(said == covering.ASKED for who, said in answers.items() if who != person.id)
            await self._tell_accepted(tx, story, person, new, waiting, now)
            await _show(tx, directory, story, {**answers, person.id: covering.ACCEPTED}, now)
            for one in new:
                await self._place(tx, story, person, one, actor, now)
            own = words.spans(new, person.timezone)
            return CoverAnswer(True, f"✅ You cover {story.whose}: {own}.")

        answer = await self._write(unit)
        log.info("cover.accepted", request=request_id, changed=answer.changed, via=actor.via)
        return answer

    async def _place(
        self, tx: Tx, story: Story, person: Person, part: Part, actor: Actor, now: datetime
    ) -> None:
        cover = override_rules.Asked(
            story.named.id, person.id, part.start, part.end, actor, OverrideKind.COVER.value, story.asker.id
        )
        placed = await self._roster.overrides.place(tx, cover, now)
        await covers.insert_part(tx, ORG, story.request.id, placed.override.id)

    async def _tell_accepted(
        self, tx: Tx, story: Story, person: Person, new: Sequence[Part], waiting: int, now: datetime
    ) -> None:
        key = f"cover:{story.request.id}:accepted:{story.request.rev}"
        text = words.accepted_for_asker(story, person, new, waiting)
        told = [addressed.to_person(story.asker, key, {"text": text}, now)]
        if story.named.channel:
            line = {"text": words.accepted_for_channel(story, person, new)}
            told.append(addressed.to_channel(story.named.channel, f"{key}:channel", line, now))
        await notice.tell(tx, ORG, told, now)

    async def decline(self, request_id: int, actor: Actor) -> CoverAnswer:
        """Say no; the next in the line is asked now, and after the last no the asker is told."""
        now = self._clock.now()
        directory = await self._roster.directory()
        person = rules.person_of(directory, actor)

        async def unit(tx: Tx) -> CoverAnswer:
            story, answers = await _changing(tx, directory, request_id)
            rules.check_may_answer(story, answers, person)
            if not story.request.open or answers[person.id] != covering.ASKED:
                return CoverAnswer(False, rules.too_late(story, person))
            await covers.answer(tx, ORG, request_id, person.id, covering.DECLINED, now)
            answers = {**answers, person.id: covering.DECLINED}
            waiting = [who for who, said in answers.items() if said == covering.ASKED]
            if waiting:
                await _ask_next(tx, request_id, waiting, now)
            else:
                story = await _expire(tx, story, ALL_DECLINED, now)
            await _show(tx, directory, story, answers, now)
            return CoverAnswer(True, f"You said no to covering {story.whose}.")

        answer = await self._write(unit)
        log.info("cover.declined", request=request_id, changed=answer.changed, via=actor.via)
        return answer

    async def withdraw(self, request_id: int, actor: Actor) -> CoverAnswer:
        """Ask nobody any more. What was accepted stays."""
        now = self._clock.now()
        directory = await self._roster.directory()
        person = rules.person_of(directory, actor)

        async def unit(tx: Tx) -> CoverAnswer:
            story, answers = await _changing(tx, directory, request_id)
            if person.id != story.asker.id and not person.admin:
                raise Refused(f"Only {story.asker.name} or an admin can take that back.")
            if not story.request.open:
                return CoverAnswer(False, f"Number {request_id} is over: it is {story.request.status}.")
            await covers.end(tx, ORG, request_id, covering.WITHDRAWN, now)
            story = rules.with_status(story, covering.WITHDRAWN)
            await _show(tx, directory, story, answers, now)
            kept = words.who_has_it(story, person.timezone)
            stays = f" It stays that {kept}; `/override cancel` ends that." if kept else ""
            return CoverAnswer(True, f"✅ Nobody is asked any more (number {request_id}).{stays}")

        answer = await self._write(unit)
        log.info("cover.withdrawn", request=request_id, changed=answer.changed, via=actor.via)
        return answer

    async def list(self) -> Sequence[tuple[Story, Mapping[int, str]]]:
        """What is open, with what each person who was asked has said."""
        directory = await self._roster.directory()
        async with self._database.snapshot() as tx:
            found = await covers.open_requests(tx, ORG)
            ids = [one.id for one in found]
            said, parts = await covers.answers(tx, ORG, ids), await covers.taken(tx, ORG, ids)
        stories = [rules.story_of(directory, one, parts) for one in found]
        return [(story, said[story.request.id]) for story in stories if story is not None]

    # --- not answered

    async def expire(self, tx: Tx, timer: Timer, now: datetime) -> None:
        """The work of a `cover` timer: nobody accepted in time, and those who must know are told."""
        directory = await self._roster.directory()
        request = await covers.change(tx, ORG, timer.subject_id)
        if request is None:
            return
        parts = await covers.taken(tx, ORG, [request.id])
        story = rules.story_of(directory, request, parts)
        if story is None or not story.left:
            await covers.end(tx, ORG, request.id, covering.EXPIRED, now)
            return
        said = await covers.answers(tx, ORG, [request.id])
        story = await _expire(tx, story, NOBODY_IN_TIME, now)
        await _show(tx, directory, story, said[request.id], now)
        log.info("cover.expired", request=request.id)

    async def _write(self, unit: Callable[[Tx], Awaitable[T]]) -> T:
        done = await self._database.write(unit, rank=Writer.RESPOND)
        self._nudge()
        return done


def _key(request_id: int, person_id: int) -> str:
    return f"cover:{request_id}:{person_id}"


async def _insert(tx: Tx, wish: Wish, now: datetime) -> Request:
    for other in await covers.open_requests(tx, ORG):
        same = (other.schedule_id, other.asker_id) == (wish.named.id, wish.asker.id)
        if same and other.whole.within(wish.whole):
            raise BadInput(f"You ask for that already, as number {other.id}: `/oncall cover list`.")
    asked = [one.id for one in wish.people]
    number = await covers.insert(tx, ORG, wish.named.id, wish.asker.id, wish.whole, asked, now)
    return Request(number, wish.named.id, wish.asker.id, wish.whole, covering.OPEN, 0)


async def _changing(tx: Tx, directory: Directory, request_id: int) -> tuple[Story, Mapping[int, str]]:
    """The request as it is now, locked if it is open, and what those who were asked have said."""
    request = await covers.change(tx, ORG, request_id) or await covers.read(tx, ORG, request_id)
    if request is None:
        raise NotFound(f"There is no cover request {request_id}.")
    story = rules.story_of(directory, request, await covers.taken(tx, ORG, [request_id]))
    if story is None:
        raise NotFound("The schedule or the person that this was about is not here any more.")
    answers = await covers.answers(tx, ORG, [request_id])
    return story, answers[request_id]


async def _show(
    tx: Tx, directory: Directory, story: Story, answers: Mapping[int, str], now: datetime
) -> None:
    """Let everybody's question say how things stand; whoever was not asked yet never is, once it is over."""
    request = story.request
    people = [directory.people[one] for one in answers if one in directory.people]
    bodies = {_key(request.id, one.id): words.question(story, one, answers[one.id]) for one in people}
    await notice.show_anew(tx, ORG, bodies, request.rev, now, unsent=request.open)


async def _ask_next(tx: Tx, request_id: int, waiting: Sequence[int], now: datetime) -> None:
    """Somebody said no: the head start of the next person begins now."""
    found = await notices.by_keys(tx, ORG, sorted(_key(request_id, one) for one in waiting))
    unsent = sorted((one for one in found if one.due_at > now), key=lambda one: one.due_at)
    await timers.pull(tx, ORG, TimerKind.DELIVER, [one.id for one in unsent[:1]], now)


async def _expire(tx: Tx, story: Story, why: str, now: datetime) -> Story:
    await covers.end(tx, ORG, story.request.id, covering.EXPIRED, now)
    key = f"cover:{story.request.id}:expired"
    text = words.expired_for_asker(story, why)
    told = [addressed.to_person(story.asker, key, {"text": text}, now)]
    if story.named.channel:
        line = {"text": words.expired_for_channel(story, why)}
        told.append(addressed.to_channel(story.named.channel, f"{key}:channel", line, now))
    await notice.tell(tx, ORG, told, now)
    return rules.with_status(story, covering.EXPIRED)
