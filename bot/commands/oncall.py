"""who and override: who is on call, and changing it.

Never works out who is on call by itself; the roster does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from bot.commands import names
from bot.commands.opened import Opened, me, opened
from bot.commands.say import local, say, say_json
from engine.config.durations import show_duration
from engine.directory import Person
from engine.errors import BadCommand
from engine.rota.on_call import OnCallNow

Json = Annotated[bool, Parameter("--json", negative=())]


async def who(
    schedule: str | None = None,
    /,
    *,
    at: str | None = None,
    picture: Path | None = None,
    as_json: Json = False,
) -> None:
    """Who is on call, since when, until when, and who is next.

    Parameters
    ----------
    schedule
        Only this one, or those whose names begin so.
    at
        Another time than now, like 2026-11-30T18:00.
    picture
        Write the coming weeks of the schedule into this file, as PNG.
    """
    async with opened() as engine:
        if picture is not None:
            return await _picture(engine, schedule, at, picture)
        moment = None if at is None else names.instant(at)
        rows = await engine.roster.who(moment)
        if schedule is not None:
            chosen = {one.id for one in names.schedules(await engine.roster.directory(), schedule)}
            rows = [row for row in rows if row.schedule_id in chosen]
        if as_json:
            return say_json([_plain(row) for row in rows])
        if not rows:
            return say("There is no schedule yet. Write one into midwatch.yaml and run: midwatch apply")
        for row in rows:
            say(row.schedule, *_lines(row))


async def override(
    person: str, duration: str, /, *, schedule: str | None = None, as_json: Json = False
) -> None:
    """Put a person on call from now on.

    Parameters
    ----------
    person
        By name, with or without @.
    duration
        How long, like 2h or 90m.
    schedule
        On which schedule; not needed where there is only one. The start of its name will do.
    """
    async with opened() as engine:
        directory = await engine.roster.directory()
        now = engine.clock.now()
        done = await engine.roster.overrides.set(
            schedule_id=None if schedule is None else names.schedule(directory, schedule).id,
            person_id=names.person(directory, person).id,
            start_at=now,
            end_at=now + names.duration(duration),
            actor=me(),
        )
        if as_json:
            return say_json({"override": done.override, "replaced": [each.name for each in done.replaced]})
        name = directory.people[done.override.person_id].name
        length = show_duration(done.override.end_at - done.override.start_at)
        instead = f" instead of {_names(done.replaced)}" if done.replaced else ""
        until = local(done.override.end_at)
        say(f"{name} is on call on {done.schedule}{instead} for {length}, until {until}.")


async def _picture(engine: Opened, schedule: str | None, at: str | None, file: Path) -> None:
    # Why here: whoever only asks who is on call need not wait for what draws.
    from bot.picture.draw import draw
    from bot.picture.png import rendered

    if at is not None:
        raise BadCommand("A picture shows the weeks from now on: leave out --at.")
    directory = await engine.roster.directory()
    known = list(directory.schedules.values())
    if schedule is None and len(known) != 1:
        names_of = ", ".join(sorted(each.name for each in known)) or "none yet"
        raise BadCommand(
            f"Say of which schedule: midwatch who SCHEDULE --picture FILE. There are: {names_of}."
        )
    chosen = known[0] if schedule is None else names.schedule(directory, schedule)
    called = {str(person.id): person.name for person in directory.people.values()}
    picture = rendered(draw(chosen.name, chosen.schedule, called, engine.clock.now()))
    await asyncio.to_thread(file.write_bytes, picture)
    say(f"The coming weeks of {chosen.name} are in {file}.")


def _lines(row: OnCallNow) -> list[str]:
    since = f"since {local(row.since)}" if row.since else "for more than a year"
    until = (
        f"until {local(row.until)}, then {_names(row.next_people)}" if row.until else "with no end in sight"
    )
    return [f"  {_names(row.people)}, {since}, {until}", f"  {row.reason}"]


def _names(people: Sequence[Person]) -> str:
    return " and ".join(person.name for person in people) or "nobody"


def _plain(row: OnCallNow) -> dict[str, Any]:
    return {
        "schedule": row.schedule,
        "people": [person.name for person in row.people],
        "since": row.since,
        "until": row.until,
        "next_people": [person.name for person in row.next_people],
        "reason": row.reason,
    }
