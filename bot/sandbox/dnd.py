"""dnd.info: when Slack is silent for somebody. Whoever has set nothing is never disturbed by silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.sandbox.call import Call, SlackError
from bot.sandbox.state import Json

if TYPE_CHECKING:
    from bot.sandbox.world import World


def info(world: World, call: Call) -> Json:
    user = call.text("user")
    if user not in world.space.users:
        raise SlackError("user_not_found")
    quiet = world.space.quiet.get(user)
    if quiet is None:
        # Slack has no null here: one second of the year 1970 stands for never.
        return {"dnd_enabled": False, "next_dnd_start_ts": 1, "next_dnd_end_ts": 1}
    start, end = (int(at.timestamp()) for at in quiet)
    return {"dnd_enabled": True, "next_dnd_start_ts": start, "next_dnd_end_ts": end}
