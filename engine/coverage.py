"""What is wrong with the coming two weeks of a schedule: gaps, and people who cannot be paged.

Pure. Never asks whether a gap is meant: it says what it found, and each finding has a key by which it is
known again the next morning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from typing import Final

from engine.clockwords import span, wall
from engine.directory import Directory, NamedSchedule, Person, Policy, Target, TargetKind
from engine.schedule import Schedule, Shift, on_call, shifts
from engine.schedule.skipped import skipped_windows
from engine.schedule.walltime import to_wall

AHEAD: Final = timedelta(days=14)
SHOWN: Final = 3  # of the times of one finding


@dataclass(frozen=True, slots=True)
class Finding:
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Calendar:
    """How the calendar fares that a schedule follows."""

    failures: int = 0
    error: str | None = None
    fetched_at: datetime | None = None
    unmatched: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Membership:
    """What Slack says of people: who was deactivated there, and of whom it said nothing."""

    left: Collection[int] = ()
    unknown: Collection[int] = ()


NOTHING: Final = Membership()


def look_ahead(
    directory: Directory,
    named: NamedSchedule,
    now: datetime,
    *,
    membership: Membership = NOTHING,
    calendar: Calendar | None = None,
) -> list[Finding]:
    """Everything found from now on for two weeks, each key once."""
    coming = shifts(named.schedule, now, now + AHEAD)
    found = [
        *_gaps(named.schedule, coming, now),
        *_empty_windows(named.schedule, now),
        *_people(directory, named, coming, membership),
        *_twice(directory, named, now),
        *(_calendar(calendar, named) if calendar is not None else ()),
    ]
    return list({finding.key: finding for finding in found}.values())


def may_be_gone(key: str, unknown: Collection[int]) -> bool:
    """False for what is not found only because Slack did not say."""
    kind, _, person = key.partition(":")
    return not (kind == "left" and person.isdecimal() and int(person) in unknown)


def coming_people(named: NamedSchedule, now: datetime) -> list[int]:
    """Everybody on call within the two weeks."""
    people = {int(one) for shift in shifts(named.schedule, now, now + AHEAD) for one in shift.people}
    return sorted(people)


# --- nobody


def _gaps(schedule: Schedule, coming: Sequence[Shift], now: datetime) -> Iterator[Finding]:
    """Gaps that begin and end at the same local times are one finding: told each morning anew, the nights
    of a schedule for office hours would teach everybody to overlook them all."""
    alike: dict[str, list[Shift]] = defaultdict(list)
    for gap in (shift for shift in coming if not shift.people):
        start = gap.start
        if start == now:
            since = on_call(schedule, now).since
            if since is None:
                yield Finding("gap:always", f"Nobody is on call {_until(gap, coming, schedule)}.")
                continue
            start = since
        begins, ends = to_wall(start, schedule.zone), to_wall(gap.end, schedule.zone)
        open_end = gap is coming[-1]
        key = f"{begins:%H:%M}-" if open_end else f"{begins:%H:%M}-{ends:%H:%M}"
        alike[key].append(Shift(start, gap.end, ()))
    for key, gaps in _joined(alike).items():
        one = f"gap:{gaps[0].start.isoformat()}"
        times = [_between(gap, coming, schedule) for gap in gaps]
        yield Finding(f"gap:{key}" if len(gaps) > 1 else one, f"Nobody is on call {_some(times)}.")


def _joined(alike: Mapping[str, Sequence[Shift]]) -> Mapping[str, Sequence[Shift]]:
    """A gap whose end lies beyond the two weeks is one with those that begin at its time of day."""
    joined = {key: [*gaps] for key, gaps in alike.items() if not key.endswith("-")}
    for key, gaps in alike.items():
        if key.endswith("-"):
            same = next((other for other in joined if other.startswith(key)), key)
            joined.setdefault(same, []).extend(gaps)
    return joined


def _empty_windows(schedule: Schedule, now: datetime) -> Iterator[Finding]:
    """The hours of a layer that a clock change leaves out: nobody is on call in what does not exist, and
    whoever planned them should hear of it before that night."""
    for one in skipped_windows(schedule, now, now + AHEAD):
        said = f"{one.opens:%a %d %b} {one.opens:%H:%M}–{one.closes:%H:%M}"
        yield Finding(
            f"window:{one.layer}:{one.opens.isoformat()}",
            f"The hours {said} of layer {one.layer} fall into the change of the clocks: "
            "nobody is on call by them.",
        )


# --- people who cannot be paged


def _people(
    directory: Directory, named: NamedSchedule, coming: Sequence[Shift], membership: Membership
) -> Iterator[Finding]:
    first: dict[int, Shift] = {}
    for shift in coming:
        for one in shift.people:
            first.setdefault(int(one), shift)
    for person_id, shift in sorted(first.items()):
        person = directory.people.get(person_id)
        when = "now" if shift is coming[0] else f"first {_between(shift, coming, named.schedule)}"
        yield from _person(person_id, person, when, left=person_id in membership.left)


def _person(person_id: int, person: Person | None, when: str, *, left: bool) -> Iterator[Finding]:
    if person is None or not person.active:
        name = person.name if person else "Somebody who is gone"
        yield Finding(f"deactivated:{person_id}", f"{name} was deactivated and is on call, {when}.")
        return
    if left:
        text = f"{person.name} was deactivated in Slack and is on call, {when}."
        yield Finding(f"left:{person_id}", text)
    if not any(method.usable for method in person.methods):
        text = f"{person.name} has no verified contact method and is on call, {when}."
        yield Finding(f"unreachable:{person_id}", text)


def _twice(directory: Directory, named: NamedSchedule, now: datetime) -> Iterator[Finding]:
    """Whoever slept through one level will sleep through the next one too."""
    for policy in sorted(directory.policies.values(), key=lambda policy: policy.name):
        schedule_on = [level.pages(named.id) for level in policy.levels]
        if not any(schedule_on):
            continue
        times = [_times(directory, level.targets, now) for level in policy.levels]
        for low, high in combinations(range(len(times)), 2):
            if schedule_on[low] or schedule_on[high]:
                yield from _both(directory, named, policy, (low, high), times, now)


Times = Mapping[int, Sequence[tuple[datetime, datetime]]]  # by person: when a level pages them


def _times(directory: Directory, targets: Sequence[Target], now: datetime) -> Times:
    found: dict[int, list[tuple[datetime, datetime]]] = defaultdict(list)
    for target in targets:
        if target.kind is TargetKind.PERSON:
            found[int(target.ref)].append((now, now + AHEAD))
        elif target.kind is TargetKind.SCHEDULE and int(target.ref) in directory.schedules:
            for shift in shifts(directory.schedules[int(target.ref)].schedule, now, now + AHEAD):
                for one in shift.people:
                    found[int(one)].append((shift.start, shift.end))
    return found


def _both(
    directory: Directory,
    named: NamedSchedule,
    policy: Policy,
    levels: tuple[int, int],
    times: Sequence[Times],
    now: datetime,
) -> Iterator[Finding]:
    low, high = levels
    for person_id in sorted(times[low].keys() & times[high].keys()):
        first = _first_common(times[low][person_id], times[high][person_id])
        if first is None:
            continue
        person = directory.people.get(person_id)
        name = person.name if person else "Somebody who is gone"
        yield Finding(
            f"twice:{policy.id}:{low + 1}:{high + 1}:{person_id}",
            f"{name} is on levels {low + 1} and {high + 1} of policy {policy.name} at once, "
            f"{'now' if first <= now else f'first on {wall(first, named.schedule.timezone)}'}.",
        )


def _first_common(
    some: Sequence[tuple[datetime, datetime]], others: Sequence[tuple[datetime, datetime]]
) -> datetime | None:
    common = (max(a, c) for a, b in some for c, d in others if max(a, c) < min(b, d))
    return min(common, default=None)


# --- the calendar


def _calendar(calendar: Calendar, named: NamedSchedule) -> Iterator[Finding]:
    """Why not at its first failure: a server that is restarted is back a minute later."""
    if calendar.failures > 1:
        since = calendar.fetched_at
        kept = f" What it said on {wall(since, named.schedule.timezone)} goes on." if since else ""
        yield Finding("calendar:failed", f"Its calendar cannot be read: {calendar.error}.{kept}")
    for title in calendar.unmatched:
        yield Finding(
            f"calendar:nobody:{title}",
            f"An event of its calendar names nobody here and puts nobody on call: {title!r}. Invite them "
            "by the e-mail they have in Midwatch, or title it with their name.",
        )


# --- words


def _between(shift: Shift, coming: Sequence[Shift], schedule: Schedule) -> str:
    if shift.end == coming[-1].end:
        return f"from {wall(shift.start, schedule.timezone)} on"
    return span(shift.start, shift.end, schedule.timezone)


def _until(shift: Shift, coming: Sequence[Shift], schedule: Schedule) -> str:
    if shift.end == coming[-1].end:
        return "at all"
    return f"until {wall(shift.end, schedule.timezone)}"


def _some(times: Sequence[str]) -> str:
    shown = ", ".join(times[:SHOWN])
    return f"{shown} and {len(times) - SHOWN} times more" if len(times) > SHOWN else shown
