"""The users.*, team.* and auth.* methods: who is in the workspace."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bot.sandbox.call import Call, SlackError
from bot.sandbox.conversations import page
from bot.sandbox.state import Json, User

if TYPE_CHECKING:
    from bot.sandbox.world import World


def as_user(world: World, user: User) -> Json:
    offset = world.clock.now().astimezone(ZoneInfo(user.tz)).utcoffset() or timedelta()
    profile = {
        "real_name": user.real_name,
        "real_name_normalized": user.real_name,
        "display_name": user.name,
        "display_name_normalized": user.name,
        "team": user.team_id,
    }
    if user.email:
        profile["email"] = user.email
    shown: Json = {
        "id": user.id,
        "team_id": user.team_id,
        "name": user.name,
        "deleted": user.deleted,
        "real_name": user.real_name,
        "tz": user.tz,
        "tz_label": user.tz,
        "tz_offset": int(offset.total_seconds()),
        "profile": profile,
        "is_admin": user.admin,
        "is_owner": False,
        "is_primary_owner": False,
        "is_restricted": user.kind == "guest",
        "is_ultra_restricted": user.kind == "guest",
        "is_bot": user.kind == "bot",
        "is_app_user": False,
        "updated": 0,
    }
    return shown | ({"is_stranger": True} if user.kind == "stranger" else {})


def auth_test(world: World, call: Call) -> Json:
    team = world.space.team
    return {
        "url": f"{world.base_url}/",
        "team": team.name,
        "user": world.space.users[team.bot_user].name,
        "team_id": team.id,
        "user_id": team.bot_user,
        "bot_id": team.bot_id,
        "is_enterprise_install": False,
    }


def connections_open(world: World, call: Call) -> Json:
    host = world.base_url.replace("http", "ws", 1)
    return {"url": f"{host}/socket?ticket={world.vouchers.new_ticket()}&app_id={world.space.team.app_id}"}


def info(world: World, call: Call) -> Json:
    user = world.space.users.get(call.text("user"))
    if user is None:
        raise SlackError("user_not_found")
    return {"user": as_user(world, user)}


def list_(world: World, call: Call) -> Json:
    users = [u for u in world.space.users.values() if u.kind != "stranger"]
    shown, metadata = page(call, users, 200)
    return {"members": [as_user(world, u) for u in shown], "cache_ts": 0, **metadata}


def lookup_by_email(world: World, call: Call) -> Json:
    email = call.text("email").casefold()
    for user in world.space.users.values():
        if email and user.email.casefold() == email and not user.deleted:
            return {"user": as_user(world, user)}
    raise SlackError("users_not_found")


def team_info(world: World, call: Call) -> Json:
    team = world.space.team
    return {"team": {"id": team.id, "name": team.name, "domain": team.domain, "email_domain": "", "icon": {}}}
