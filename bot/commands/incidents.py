"""incidents, ack, resolve, merge, unmerge: seeing problems and answering them from a terminal.

Never pages: the running Midwatch does, and sees what is done here within a second.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any, Final

from cyclopts import Parameter

from bot.commands.opened import Opened, me, opened
from bot.commands.say import ago, say, say_json, say_table
from engine.errors import BadCommand, NotFound
from engine.models import Actor, IncidentStatus, IncidentView
from engine.pager.respond import Answer
from engine.pager.story import story

Json = Annotated[bool, Parameter("--json", negative=())]

OPEN: Final = tuple(status for status in IncidentStatus if status is not IncidentStatus.RESOLVED)
LISTED: Final = 50


async def incidents(*, status: str | None = None, limit: int = LISTED, as_json: Json = False) -> None:
    """The incidents, newest first.

    Parameters
    ----------
    status
        triggered, acknowledged, unanswered, resolved, several with commas, or all; else what is open.
    limit
        How many at most.
    """
    wanted = _statuses(status)
    async with opened() as engine:
        found = await engine.views.list(wanted, max(1, limit), None)
        if as_json:
            return say_json([_plain(view) for view in found])
        now = engine.clock.now()
        say_table([_row(view, now) for view in found], "No incidents." if status else "No open incidents.")


async def ack(number: int, *more: int, as_json: Json = False) -> None:
    """Acknowledge incidents by their numbers: nobody is paged for them any more."""
    await _respond((number, *more), lambda engine: engine.responder.acknowledge, as_json)


async def resolve(number: int, *more: int, as_json: Json = False) -> None:
    """Resolve incidents by their numbers."""
    await _respond((number, *more), lambda engine: engine.responder.resolve, as_json)


async def why(number: int, *, as_json: Json = False) -> None:
    """The whole story of an incident: who was tried how and when, with every reason, and what comes next."""
    async with opened() as engine:
        tale = await engine.views.tale(number)
        if tale is None:
            raise NotFound(f"There is no incident #{number}.")
        people = (await engine.roster.directory()).people
        lines = story(tale, {one.id: one.name for one in people.values()})
        if as_json:
            return say_json(lines)
        say(f"#{tale.view.number} {tale.view.status}: {tale.view.title}")
        say(*(f"{'next ' if one.ahead else ''}{_to_the_second(one.at)}  {one.text}" for one in lines))


def _to_the_second(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


async def merge(number: int, into: int, /, *, as_json: Json = False) -> None:
    """Merge an incident into another: it is over, and its alerts go on there.

    Parameters
    ----------
    number
        Of the incident that is over.
    into
        The number of the one that goes on.
    """

    def deed(engine: Opened) -> Respond:
        async def respond(incident_id: int, actor: Actor) -> Answer:
            other = await engine.responder.find(into)
            if other is None:
                raise NotFound(f"There is no incident #{into}.")
            return await engine.responder.merge(incident_id, actor, other)

        return respond

    await _respond((number,), deed, as_json)


async def unmerge(number: int, *more: int, as_json: Json = False) -> None:
    """Take merged incidents out again: they are open, and people are paged for them anew."""
    await _respond((number, *more), lambda engine: engine.responder.unmerge, as_json)


Respond = Callable[[int, Actor], Awaitable[Answer]]


async def _respond(numbers: tuple[int, ...], deed: Callable[[Opened], Respond], as_json: bool) -> None:
    async with opened() as engine:
        missing = [number for number in numbers if await engine.responder.find(number) is None]
        if missing:
            raise NotFound(f"There is no incident {', '.join(f'#{number}' for number in missing)}.")
        answers = [await _one(engine, deed(engine), number) for number in numbers]
    if as_json:
        return say_json([{**_plain(a.incident), "changed": a.changed, "reason": a.reason} for a in answers])
    return say(*(f"#{a.incident.number} {a.incident.title}: {a.reason}" for a in answers))


async def _one(engine: Opened, respond: Respond, number: int) -> Answer:
    incident_id = await engine.responder.find(number)
    if incident_id is None:
        raise NotFound(f"There is no incident #{number}.")
    return await respond(incident_id, me())


def _statuses(typed: str | None) -> tuple[IncidentStatus, ...] | None:
    if typed is None:
        return OPEN
    if typed == "all":
        return None
    try:
        return tuple(IncidentStatus(word.strip()) for word in typed.split(","))
    except ValueError:
        raise BadCommand(f"A status is one of {', '.join(IncidentStatus)}, or all.") from None


def _row(view: IncidentView, now: datetime) -> tuple[str, ...]:
    count = f" ({view.event_count}×)" if view.event_count > 1 else ""
    return (
        f"#{view.number}",
        view.status.value,
        view.urgency.value,
        view.service,
        view.title + count,
        f"opened {ago(view.opened_at, now)}",
        f"by {view.acknowledged_by}" if view.status is IncidentStatus.ACKNOWLEDGED else "",
    )


def _plain(view: IncidentView) -> dict[str, Any]:
    return {
        "number": view.number,
        "status": view.status,
        "urgency": view.urgency,
        "title": view.title,
        "service": view.service,
        "alerts": view.alert_count,
        "events": view.event_count,
        "opened_at": view.opened_at,
        "acknowledged_at": view.acknowledged_at,
        "acknowledged_by": view.acknowledged_by,
        "resolved_at": view.resolved_at,
        "resolved_by": view.resolved_by,
        "merged_into": view.merged_into,
    }
