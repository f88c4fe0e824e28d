"""The forms of schedules as a person fills them in, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.sandbox.hands import Hands
from bot.sandbox.state import View as Shown
from engine.models import Actor, Via
from engine.schedule import Schedule, parse_schedule
from tests.slack.conftest import Desk, until


@dataclass
class Forms:
    """Fills in modals as somebody would: reads, presses, types, submits."""

    desk: Desk
    user: str = "ana"

    @property
    def person(self) -> Any:
        found = self.desk.sandbox.state.find_user(f"@{self.user}")
        assert found is not None
        return found

    @property
    def stack(self) -> list[Shown]:
        return self.desk.sandbox.state.modals.get(self.person.id) or []

    @property
    def view(self) -> Shown:
        (view,) = self.stack
        return view

    @property
    def title(self) -> str:
        return str(self.view.body["title"]["text"])

    @property
    def said(self) -> str:
        return str(self.view.body["blocks"])

    @property
    def actions(self) -> list[str]:
        found = []
        for block in self.view.body["blocks"]:
            elements = [*block.get("elements", []), block.get("accessory")]
            found += [one["action_id"] for one in elements if isinstance(one, dict) and "action_id" in one]
        return found

    async def opened(self, command: str) -> Forms:
        assert await self.desk.types(self.user, command) == ""
        await until(lambda: bool(self.stack))
        return self

    async def press(self, action_id: str, value: str | None = None, **values: Any) -> None:
        """Press, and wait until the form shows what came of it."""
        before = self.view.body["hash"]
        seen = await Hands(self.desk.sandbox.world).click_in_view(
            self.person, self.view, action_id, value, self._typed(values)
        )
        assert seen.error is None, seen.error
        await until(lambda: self.view.body["hash"] != before)

    async def submit(self, **values: Any) -> dict[str, Any]:
        hands = Hands(self.desk.sandbox.world)
        answer: dict[str, Any] = await hands.submit(self.person, self.view, self._typed(values))
        return answer

    def _typed(self, values: dict[str, Any]) -> dict[str, Any]:
        """By the beginning of the block id: "name" is "name:l0" on the screen of that layer."""
        typed = {}
        for block in self.view.body["blocks"]:
            name = str(block.get("block_id", "")).partition(":")[0]
            if block["type"] == "input" and name in values:
                typed[block["block_id"]] = {block["element"]["action_id"]: values[name]}
        assert len(typed) == len(values), f"{sorted(values)} are not all on this screen"
        return typed


def whispered(desk: Desk, user: str = "ana", channel: str = "#general") -> str:
    return "".join(desk.whispers(user, channel)[-1:])


async def schedule_of(desk: Desk, name: str) -> Schedule:
    named = (await desk.roster.directory()).schedules.values()
    return next(one.schedule for one in named if one.name == name)


async def calls(desk: Desk, schedule: Schedule) -> list[list[tuple[str, ...]]]:
    people = (await desk.roster.directory()).people
    return [
        [tuple(people[int(user)].name for user in entry) for entry in layer.users]
        for layer in schedule.layers
    ]


async def actor(desk: Desk, name: str) -> Actor:
    people = (await desk.roster.directory()).people.values()
    return Actor(name, Via.SLACK_COMMAND, next(one.id for one in people if one.name == name))


async def weekly(desk: Desk, *names: str) -> Schedule:
    users = [str((await actor(desk, name)).person_id) for name in names]
    layer = {"users": users, "start": "2026-01-05T09:00", "rotation": {"every": 1, "unit": "week"}}
    return parse_schedule({"timezone": "Europe/Berlin", "layers": [layer]})
