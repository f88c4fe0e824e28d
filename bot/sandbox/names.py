"""What a script names: a user, a channel, a message, a view, a phone; unknown is a 404 with the names.

Reads the body of a request as JSON; every mistake is one sentence.
"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from bot.sandbox.state import Channel, Json, Message, User, View
from bot.sandbox.world import World


class BadRequest(Exception):
    """What the script asked for cannot be done; `status` and `extra` go into the answer."""

    def __init__(self, message: str, status: int = 400, **extra: Any) -> None:
        super().__init__(message)
        self.status = status
        self.extra = extra


async def body_of(request: web.Request) -> Json:
    raw = await request.text()
    try:
        body = json.loads(raw) if raw.strip() else {}
    except ValueError:
        raise BadRequest("the body is not JSON") from None
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object")
    return body


def text(body: Json, key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise BadRequest(f"`{key}` is missing")
    return value


def mapping(body: Json, key: str) -> Json:
    """An object, empty when it is not given."""
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"`{key}` must be an object")
    return value


def number(body: Json, key: str, least: float, most: float) -> float:
    value = body.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise BadRequest(f"`{key}` must be a number from {least:g} to {most:g}")
    return float(value)


def user(world: World, body: Json) -> User:
    name = text(body, "user")
    found = world.space.find_user(name)
    if found is None:
        known = [u.name for u in world.space.users.values()]
        raise BadRequest(f"there is no user {name!r}", 404, known=known)
    return found


def channel(world: World, name: str, viewer: User | None = None) -> Channel:
    """By id or name; "dm" is the direct messages of whoever acts."""
    if name.removeprefix("@") in ("dm", "midwatch") and viewer is not None:
        return world.space.direct(viewer.id)
    found = world.space.find_channel(name)
    if found is None:
        known = [c.id if c.is_im else f"#{c.name}" for c in world.space.channels.values()]
        raise BadRequest(f"there is no channel {name!r}", 404, known=known)
    return found


def message(world: World, body: Json, viewer: User | None = None) -> Message:
    place = channel(world, text(body, "channel"), viewer)
    found = place.messages.get(text(body, "ts"))
    if found is None or found.deleted:
        known = [m.ts for m in place.seen_by(viewer.id if viewer else None)][-20:]
        raise BadRequest(f"there is no message {body['ts']!r} in {place.name}", 404, known=known)
    return found


def view(world: World, body: Json, viewer: User) -> View:
    found = world.space.find_view(text(body, "view_id"))
    if found is None or found.user != viewer.id:
        open_views = [v.id for v in world.space.all_views() if v.user == viewer.id]
        raise BadRequest(f"{viewer.name} has no view {body['view_id']!r} open", 404, known=open_views)
    return found
