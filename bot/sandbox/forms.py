"""What becomes of a modal once Midwatch has answered its submission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bot.sandbox import views
from bot.sandbox.call import SlackError
from bot.sandbox.state import Json, View
from bot.sandbox.wire import Reply

if TYPE_CHECKING:
    from bot.sandbox.world import World

TROUBLE = "We had some trouble connecting. Try again?"


def answered(world: World, view: View, reply: Reply) -> Json:
    """Close, keep, replace or cover the modal, as the app said."""
    if not reply.ok:
        return refused(world, view, {"": TROUBLE}, error=str(reply.error))
    action = reply.body.get("response_action")
    if action == "errors":
        return refused(world, view, reply.body.get("errors") or {})
    stack = world.space.modals.get(view.user, [])
    try:
        if action == "update":
            views.replace(world, view, views.checked(world, reply.body.get("view"), replaces=view))
        elif action == "push":
            _push(world, view, reply.body, stack)
        elif action == "clear":
            stack.clear()
        else:
            stack[:] = [v for v in stack if v is not view]
    except SlackError as bad:
        return refused(world, view, {"": TROUBLE}, error=bad.error)
    world.space.views_changed(view.user)
    return {"ok": True, "error": None, "errors": {}, "response_action": action, "ack_ms": reply.ms}


def _push(world: World, view: View, body: Json, stack: list[View]) -> None:
    if len(stack) >= views.DEEPEST_STACK:
        raise SlackError("push_limit_reached")
    shown = views.build(world, view.user, views.checked(world, body.get("view")), stack)
    views.show(world, shown, stack)


def refused(world: World, view: View, errors: Mapping[str, str], error: str = "errors") -> Json:
    view.errors = dict(errors)
    world.space.views_changed(view.user)
    return {"ok": False, "error": error, "errors": dict(errors), "response_action": None, "ack_ms": None}
