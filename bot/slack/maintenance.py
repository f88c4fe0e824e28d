"""Maintenance from Slack: holds back the pages of a service for a while, lists, ends early.

Never acks and never sends; the engine decides what a window holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.slack import escape, names, words
from bot.slack.answers import paragraphs
from bot.slack.grammar.maintenance_text import Command, EndMaintenance, ListMaintenance
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message, note
from engine.directory import Service
from engine.pager.maintenance import Maintenance
from engine.rota.roster import Roster
from engine.store.maintenance import Window


class MaintenanceCommand:
    """Does what was typed, and says what came of it."""

    def __init__(self, windows: Maintenance, roster: Roster, identity: Identity) -> None:
        self._windows = windows
        self._roster = roster
        self._identity = identity

    async def do(self, command: Command, asker: Asker) -> Message:
        directory = await self._roster.directory()
        if isinstance(command, ListMaintenance):
            return listed(await self._windows.list(), directory.services)
        person = await self._identity.person(asker)
        service = None if command.service is None else names.service(command.service, directory)
        service_id = None if service is None else service.id
        actor = actor_of(person, asker)
        if isinstance(command, EndMaintenance):
            return ended(await self._windows.end(service_id, actor), service)
        span = command.span
        window = await self._windows.start(service_id, span.start, span.end, command.reason, actor)
        return started(window, directory.services)


def started(window: Window, services: Mapping[int, Service]) -> Message:
    length = words.duration(window.end_at - window.start_at)
    name = _name(window, services)
    lines = [
        f"🔧 Nobody is paged for {name} from {escape.date(window.start_at)} "
        f"until {escape.date(window.end_at)} ({length}).",
        "What fires meanwhile is kept, and paged when it is over. What was being sent goes out.",
        f"End it early with `/oncall maintenance end {_plain(window, services)}`.",
    ]
    return paragraphs(lines)


def ended(windows: Sequence[Window], service: Service | None) -> Message:
    name = f"*{escape.line(service.name, 80)}*" if service is not None else "*all services*"
    if not windows:
        return note(f"No maintenance of {name} is on or planned; `/oncall maintenance` shows what is.")
    return note(f"✅ The maintenance of {name} is over. What it held is paged within 5 minutes.")


def listed(windows: Sequence[Window], services: Mapping[int, Service]) -> Message:
    if not windows:
        return note(
            "No maintenance is on or planned. Start one with `/oncall maintenance checkout 2h [reason]`."
        )
    lines = (
        f"🔧 {_name(one, services)} {escape.date(one.start_at)} to {escape.date(one.end_at)}"
        + (f" · by {escape.line(one.created_by, 60)}" if one.created_by else "")
        + (f" · {escape.line(one.reason, 200)}" if one.reason else "")
        for one in windows
    )
    return paragraphs(lines, footer="`/oncall maintenance end checkout` ends one early")


def _name(window: Window, services: Mapping[int, Service]) -> str:
    return f"*{_plain(window, services, 'all services')}*"


def _plain(window: Window, services: Mapping[int, Service], every: str = "all") -> str:
    if window.service_id is None:
        return every
    service = services.get(window.service_id)
    return escape.line(service.name, 80) if service is not None else "a service that was deleted"
