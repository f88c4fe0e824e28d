"""The question before a schedule is deleted.

Never deletes one that a policy pages; that is said before the question is asked, and again at its answer.
"""

from __future__ import annotations

from bot.slack import escape
from bot.slack.answers import names
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import section
from bot.slack.modals.opening import About, Done, Json, View, Wrong
from bot.slack.modals.values import Values
from bot.slack.rota import schedule_text
from engine.rota.roster import Roster
from engine.rota.schedules import Schedules, check_unused


class ScheduleDeleteForm:
    """`about` is the schedule's id."""

    name = "schedule_delete"

    def __init__(self, identity: Identity, roster: Roster, schedules: Schedules) -> None:
        self._identity = identity
        self._roster = roster
        self._schedules = schedules

    async def view(self, asker: Asker, about: About) -> View:
        person = await self._identity.person(asker)
        current = await self._schedules.open(int(about["id"]), actor_of(person, asker))
        directory = await self._roster.directory()
        check_unused(directory, current.named)
        row = next(row for row in await self._roster.who() if row.schedule_id == current.named.id)
        said = [
            f"Delete the schedule *{escape.line(row.schedule, 80)}*?",
            f"On call on it now: {names(row.people)}. No policy pages it.",
            "Its overrides end with it. Who was on call in the past is still known.",
        ]
        return View("Delete schedule", [section("\n".join(said))], about, submit="Delete")

    async def press(self, action: Json, values: Values, asker: Asker, about: About) -> View | None:
        return None

    async def submit(self, values: Values, asker: Asker, about: About) -> View | Wrong | Done:
        person = await self._identity.person(asker)
        name = await self._schedules.delete(int(about["id"]), actor_of(person, asker))
        return Done(schedule_text.deleted(name))
