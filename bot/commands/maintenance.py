"""maintenance: holding back the pages of a service for a while, from a terminal.

Never pages: the running Midwatch does, and sees what is done here within a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import App, Parameter

from bot.commands import names
from bot.commands.opened import Opened, me, opened
from bot.commands.say import local, say, say_json, say_table
from engine.config.durations import show_duration
from engine.directory import Service
from engine.pager.maintenance import Maintenance
from engine.store.maintenance import Window

Json = Annotated[bool, Parameter("--json", negative=())]

maintenance = App(name="maintenance", help="Hold back the pages of a service for a while, a day at most.")


@maintenance.command(name="start")
async def start(service: str, duration: str, /, *, reason: str = "", as_json: Json = False) -> None:
    """Page nobody for a service from now on; what fires is paged when it is over.

    Parameters
    ----------
    service
        By name, or all.
    duration
        How long, like 2h or 90m.
    reason
        Why, for whoever wonders.
    """
    async with opened() as engine:
        services = (await engine.roster.directory()).services
        now, length = engine.clock.now(), names.duration(duration)
        window = await _windows(engine).start(_id(service, services), now, now + length, reason, me())
        if as_json:
            return say_json(_plain(window, services))
        say(
            f"Nobody is paged for {_name(window, services)} for {show_duration(length)}, "
            f"until {local(window.end_at)}."
        )


@maintenance.command(name="list")
async def list_windows(*, as_json: Json = False) -> None:
    """The windows that are on or planned."""
    async with opened() as engine:
        services = (await engine.roster.directory()).services
        found = await _windows(engine).list()
        if as_json:
            return say_json([_plain(each, services) for each in found])
        say_table(
            [_row(each, services) for each in found],
            "No maintenance is on or planned. Start one: midwatch maintenance start SERVICE 2h",
        )


@maintenance.command(name="end")
async def end(service: str, /, *, as_json: Json = False) -> None:
    """End it early: what it held is paged within five minutes.

    Parameters
    ----------
    service
        By name, or all for a window of all services.
    """
    async with opened() as engine:
        services = (await engine.roster.directory()).services
        ended = await _windows(engine).end(_id(service, services), me())
        if as_json:
            return say_json([_plain(each, services) for each in ended])
        if not ended:
            return say(f"No maintenance of {service} is on or planned.")
        say(f"The maintenance of {service} is over. What it held is paged within 5 minutes.")


def _windows(engine: Opened) -> Maintenance:
    return Maintenance(engine.database, engine.clock)


def _id(typed: str, services: Mapping[int, Service]) -> int | None:
    return None if typed == "all" else names.service(services.values(), typed).id


def _name(window: Window, services: Mapping[int, Service]) -> str:
    service = services.get(window.service_id or 0)
    return service.name if service is not None else "all services"


def _row(window: Window, services: Mapping[int, Service]) -> tuple[str, ...]:
    return (
        _name(window, services),
        f"from {local(window.start_at)}",
        f"until {local(window.end_at)}",
        f"by {window.created_by}",
        window.reason,
    )


def _plain(window: Window, services: Mapping[int, Service]) -> dict[str, Any]:
    return {
        "id": window.id,
        "service": None if window.service_id is None else _name(window, services),
        "start_at": window.start_at,
        "end_at": window.end_at,
        "reason": window.reason,
        "created_by": window.created_by,
    }
