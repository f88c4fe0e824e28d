"""The rules of cover: for what one may ask, whom, how long, in which order, and what is left to take.

Pure: values in, values out. Refuses with the sentence that the person reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from engine import covering
from engine.covering import Request, Taken
from engine.directory import Directory, NamedSchedule, Person
from engine.errors import BadInput, Refused
from engine.models import Actor
from engine.parts import Part, rest
from engine.rota.addressed import has_slack
from engine.rota.cover_words import Story, spans, who_has_it
from engine.rota.meant import by_name, listed, numbered
from engine.schedule import shifts

BEFORE: Final = timedelta(hours=1)  # the shift: by then the asker must know
NEAR: Final = timedelta(hours=2)  # then everybody is asked at once
HEAD_START: Final = timedelta(minutes=10)  # of each person before the next
SOON: Final = timedelta(minutes=15)  # how long one waits for cover of what is on already
LONGEST: Final = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asks for: on which schedule, for which time of theirs, and who could take over."""

    named: NamedSchedule
    asker: Person
    whole: Part
    people: tuple[Person, ...]


def wish(directory: Directory, schedule_id: int | None, asker: Person, part: Part, now: datetime) -> Wish:
    part = _to_come(part, now)
    named = _meant(directory, schedule_id, asker, part)
    stretches = _on_call(named, asker, part)
    if not stretches:
        raise BadInput(f"You are not on call on {named.name} in that time: there is nothing to cover.")
    whole = Part(stretches[0].start, stretches[-1].end)
    people = tuple(one for one in _others(directory, named, asker) if not _busy(named, one, stretches))
    if not people:
        raise BadInput(f"There is nobody else on {named.name} who could be asked in Slack.")
    return Wish(named, asker, whole, people)


def _to_come(part: Part, now: datetime) -> Part:
    """In whole seconds: that is what buttons carry."""
    part = Part(max(part.start, now).replace(microsecond=0), part.end.replace(microsecond=0))
    if part.end <= now or part.end <= part.start:
        raise BadInput("That time is over already.")
    if part.length > LONGEST:
        raise BadInput("Ask for two months at most; for longer, change the schedule.")
    return part


def _meant(directory: Directory, schedule_id: int | None, asker: Person, part: Part) -> NamedSchedule:
    """The schedule that was named, or the only one on which the asker is on call then."""
    if schedule_id is not None:
        return numbered(schedule_id, directory)
    own = [one for one in by_name(directory) if _on_call(one, asker, part)]
    if len(own) == 1:
        return own[0]
    if not own:
        raise BadInput("You are on call on no schedule in that time: there is nothing to cover.")
    raise BadInput(f"Say which schedule: {listed(own)}.")


def _on_call(named: NamedSchedule, person: Person, part: Part) -> list[Part]:
    found = shifts(named.schedule, part.start, part.end)
    return [Part(one.start, one.end) for one in found if str(person.id) in one.people]


def _others(directory: Directory, named: NamedSchedule, asker: Person) -> list[Person]:
    """Those of the schedule who can press a button."""
    ids = dict.fromkeys([*named.people, *([named.fallback] if named.fallback else [])])
    people = [directory.people[one] for one in ids if one in directory.people]
    return [one for one in people if one.id != asker.id and has_slack(one)]


def _busy(named: NamedSchedule, person: Person, stretches: Sequence[Part]) -> bool:
    """On call there all the time themselves: they would stand in for nobody."""
    return all(rest(one, _on_call(named, person, one)) == () for one in stretches)


def ends_at(now: datetime, whole: Part) -> datetime:
    """When a request that nobody accepted is over, and the asker is warned."""
    ahead = whole.start - now
    if ahead > 2 * BEFORE:
        return whole.start - BEFORE
    if ahead > timedelta():
        return whole.start - ahead / 2
    return now + min(SOON, (whole.end - now) / 2)


def head_start(now: datetime, whole: Part, people: int) -> timedelta:
    """By how much each person is asked before the next. All are asked in the first half of the time."""
    if whole.start - now < NEAR:
        return timedelta()
    return min(HEAD_START, (ends_at(now, whole) - now) / (2 * people))


# --- answers -----------------------------------------------------------------------------------------


def story_of(directory: Directory, request: Request, taken: Sequence[Taken]) -> Story | None:
    """None when the schedule or the asker is gone."""
    named = directory.schedules.get(request.schedule_id)
    asker = directory.people.get(request.asker_id)
    if named is None or asker is None:
        return None
    own = [one for one in taken if one.request_id == request.id]
    people = directory.people
    said = tuple(
        (people[one.person_id].name if one.person_id in people else "somebody", one.person_id, one.part)
        for one in own
    )
    return Story(request, named, asker, rest(request.whole, [one.part for one in own]), said)


def with_parts(story: Story, person: Person, new: Sequence[Part]) -> Story:
    taken = (*story.taken, *((person.name, person.id, part) for part in new))
    return replace(story, taken=taken, left=rest(story.request.whole, [part for _, _, part in taken]))


def with_status(story: Story, status: str) -> Story:
    return replace(story, request=replace(story.request, status=status))


def takeable(left: Sequence[Part], part: Part | None, now: datetime) -> tuple[Part, ...]:
    """What of `left` is taken by whoever takes `part` (None: all of it); nothing if it is not free."""
    if part is None:
        ahead = [one.within(Part(now.replace(microsecond=0), max(one.end, now))) for one in left]
        return tuple(one for one in ahead if one is not None)
    inside = any(part.within(one) == part for one in left)
    return (Part(max(part.start, now.replace(microsecond=0)), part.end),) if inside and part.end > now else ()


def check_may_answer(story: Story, answers: Mapping[int, str], person: Person) -> None:
    if person.id == story.asker.id:
        raise Refused("That is your own request: somebody else has to accept it.")
    if person.id not in answers:
        raise Refused("Only those who were asked can answer this. `/override` puts you on call without it.")


def too_late(story: Story, person: Person) -> str:
    """Why an answer changed nothing."""
    zone, has = person.timezone, who_has_it(story, person.timezone)
    if story.request.status == covering.WITHDRAWN:
        return f"{story.asker.name} does not need cover any more."
    if story.request.status == covering.EXPIRED:
        return f"The request of {story.whose} is over; {story.asker.name} was told that nobody took it."
    if has and story.left and story.request.open:
        return f"That is not free: {has}. Still open: {spans(story.left, zone)}."
    if story.left and story.request.open:
        return f"That is not what is asked for. Open: {spans(story.left, zone)}."
    return f"It is taken already: {has}." if has else "That time is over."


def person_of(directory: Directory, actor: Actor) -> Person:
    person = directory.people.get(actor.person_id or 0)
    if person is None or not person.active:
        raise Refused("Only people of Midwatch can do this.")
    return person
