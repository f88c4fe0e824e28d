"""The views.* methods: modals and home tabs, with their stacks, hashes and triggers."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from bot.sandbox.blocklint import lint_view, view_too_large
from bot.sandbox.call import Call, SlackError, invalid
from bot.sandbox.content import named
from bot.sandbox.state import Json, View

if TYPE_CHECKING:
    from bot.sandbox.world import World

DEEPEST_STACK = 3


def checked(world: World, view: Any, *, replaces: View | None = None) -> Json:
    """The view as it may be shown, or SlackError."""
    if errors := lint_view(view):
        raise invalid("invalid_arguments", errors)
    if view_too_large(view):
        raise SlackError("view_too_large")
    external_id = view.get("external_id")
    if external_id:
        other = world.space.find_view(None, external_id)
        if other is not None and other is not replaces:
            raise SlackError("duplicate_external_id")
    return {**view, "blocks": named(view["blocks"])}


def build(world: World, user: str, body: Json, stack: list[View]) -> View:
    view_id = world.space.new_id("V")
    team = world.space.team
    shown = _defaults() | body
    shown |= {
        "id": view_id,
        "team_id": team.id,
        "app_id": team.app_id,
        "bot_id": team.bot_id,
        "app_installed_team_id": team.id,
        "state": {"values": {}},
        "hash": _new_hash(world),
        "root_view_id": stack[0].id if stack else view_id,
        "previous_view_id": stack[-1].id if stack else None,
    }
    return View(view_id, user, shown)


def _defaults() -> Json:
    empty: Json = dict.fromkeys(("title", "submit", "close"))
    texts: Json = dict.fromkeys(("private_metadata", "callback_id", "external_id"), "")
    return empty | texts | {"clear_on_close": False, "notify_on_close": False, "submit_disabled": False}


def _new_hash(world: World) -> str:
    return f"{world.space.new_ts()}.{secrets.token_hex(4)}"


def replace(world: World, view: View, body: Json) -> None:
    """Show something else under the same id; what people typed in stays where its ids do."""
    kept = {k: view.body[k] for k in ("id", "team_id", "app_id", "bot_id", "app_installed_team_id")}
    kept |= {k: view.body[k] for k in ("root_view_id", "previous_view_id", "state")}
    view.body = _defaults() | body | kept | {"hash": _new_hash(world)}
    view.errors = {}
    world.space.views_changed(view.user)


def show(world: World, view: View, stack: list[View]) -> None:
    stack.append(view)
    world.space.views_changed(view.user)


def _triggered(world: World, call: Call) -> str:
    try:
        return world.vouchers.redeem_trigger(call.text("trigger_id"))
    except ValueError as refused:
        raise SlackError(str(refused)) from None


def _modal(world: World, call: Call) -> Json:
    body = checked(world, call.json("view", "invalid_arguments"))
    if body["type"] != "modal":
        raise invalid("invalid_arguments", ["view type must be modal [json-pointer:/view/type]"])
    return body


def open_(world: World, call: Call) -> Json:
    body = _modal(world, call)
    user = _triggered(world, call)
    stack = world.space.modals[user] = []
    view = build(world, user, body, stack)
    show(world, view, stack)
    return {"view": view.body}


def push(world: World, call: Call) -> Json:
    body = _modal(world, call)
    user = _triggered(world, call)
    stack = world.space.modals.setdefault(user, [])
    if len(stack) >= DEEPEST_STACK:
        raise SlackError("push_limit_reached")
    view = build(world, user, body, stack)
    show(world, view, stack)
    return {"view": view.body}


def update(world: World, call: Call) -> Json:
    view = world.space.find_view(call.text("view_id") or None, call.text("external_id") or None)
    if view is None:
        raise SlackError("not_found")
    if call.text("hash") and call.text("hash") != view.body["hash"]:
        raise SlackError("hash_conflict")
    body = checked(world, call.json("view", "invalid_arguments"), replaces=view)
    replace(world, view, body)
    return {"view": view.body}


def publish(world: World, call: Call) -> Json:
    user = call.text("user_id")
    if user not in world.space.users:
        raise SlackError("user_not_found")
    old = world.space.homes.get(user)
    body = checked(world, call.json("view", "invalid_arguments"), replaces=old)
    if body["type"] != "home":
        raise invalid("invalid_arguments", ["view type must be home [json-pointer:/view/type]"])
    if old is not None and call.text("hash") and call.text("hash") != old.body["hash"]:
        raise SlackError("hash_conflict")
    if old is None:
        old = world.space.homes[user] = build(world, user, body, [])
        world.space.views_changed(user)
    else:
        replace(world, old, body)
    return {"view": old.body}
