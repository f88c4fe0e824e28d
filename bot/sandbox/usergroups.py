"""The usergroups.* methods: groups of people that can be mentioned, in a workspace whose plan has them.

An update replaces the whole list, and Slack takes only full members into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.sandbox.call import Call, SlackError
from bot.sandbox.state import Json

if TYPE_CHECKING:
    from bot.sandbox.world import World


def list_(world: World, call: Call) -> Json:
    _check_plan(world)
    groups = [g for g in world.space.groups.values() if call.flag("include_disabled") or not _disabled(g)]
    return {"usergroups": [_as_group(world, g, users=call.flag("include_users")) for g in groups]}


def list_users(world: World, call: Call) -> Json:
    _check_plan(world)
    return {"users": list(_group(world, call)["users"])}


def update_users(world: World, call: Call) -> Json:
    _check_may_edit(world)
    group = _group(world, call)
    if _disabled(group):
        raise SlackError("no_such_subteam")
    users = [u for u in call.text("users").split(",") if u]
    if not users:
        raise SlackError("no_users_provided")
    for user_id in users:
        user = world.space.users.get(user_id)
        if user is None or user.kind != "member" or user.deleted:
            raise SlackError("invalid_users")
    group["users"] = users
    return _changed(world, group)


def disable(world: World, call: Call) -> Json:
    return _switch(world, call, int(world.clock.now().timestamp()))


def enable(world: World, call: Call) -> Json:
    return _switch(world, call, 0)


def _switch(world: World, call: Call, deleted: int) -> Json:
    _check_may_edit(world)
    group = _group(world, call)
    group["date_delete"] = deleted
    return _changed(world, group)


def _changed(world: World, group: Json) -> Json:
    world.space.state_changed()
    shown = _as_group(world, group, users=True)
    world.events.emit({"type": "subteam_updated", "subteam": shown})
    return {"usergroup": shown}


def _check_plan(world: World) -> None:
    if not world.space.paid:
        raise SlackError("paid_teams_only")


def _check_may_edit(world: World) -> None:
    _check_plan(world)
    if world.space.only_admins_edit_groups:
        raise SlackError("permission_denied")


def _group(world: World, call: Call) -> Json:
    group = world.space.groups.get(call.text("usergroup"))
    if group is None:
        raise SlackError("no_such_subteam")
    return group


def _disabled(group: Json) -> bool:
    return bool(group.get("date_delete"))


def _as_group(world: World, group: Json, *, users: bool) -> Json:
    shown = {
        "id": group["id"],
        "team_id": world.space.team.id,
        "is_usergroup": True,
        "name": group["handle"],
        "handle": group["handle"],
        "date_delete": group.get("date_delete", 0),
        "user_count": len(group["users"]),
    }
    return shown | ({"users": list(group["users"])} if users else {})
