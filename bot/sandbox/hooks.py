"""Response URLs: five posts within thirty minutes, wherever the interaction came from.

Needs no token, as in Slack: whoever has the URL may answer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from bot.sandbox.call import TRUE, SlackError
from bot.sandbox.chat import change, write
from bot.sandbox.clock import monotonic
from bot.sandbox.content import content_of
from bot.sandbox.ledger import ApiCall
from bot.sandbox.outage import cut, obstructed
from bot.sandbox.state import Json, Message
from bot.sandbox.vouchers import ResponseUrl
from bot.sandbox.world import world_of

if TYPE_CHECKING:
    from bot.sandbox.world import World

STATUS_OF = {"used_url": 404, "expired_url": 404, "no_such_url": 404}


async def handle(request: web.Request) -> web.StreamResponse:
    """POST /response/{token}."""
    world, began = world_of(request), monotonic()
    body = _body(await request.text())
    fault = world.faults.strike("slack", "response_url", body)
    if fault is not None and (refused := await obstructed(fault)) is not None:
        return refused
    error = None
    try:
        answer(world, world.vouchers.redeem_response(request.match_info["token"]), body)
    except SlackError as refused_content:
        error = refused_content.error
    except ValueError as refused_url:
        error = str(refused_url)
    status = 200 if error is None else STATUS_OF.get(error, 400)
    ms = round((monotonic() - began) * 1000, 1)
    world.ledger.add(ApiCall("response_url", "response_url", body, status, error, world.clock.now(), ms))
    if fault is not None and fault.kind == "reset_after":
        return cut(request)
    if error is not None:
        return web.json_response({"ok": False, "error": error}, status=status)
    return web.Response(text="ok")


def _body(raw: str) -> Json:
    try:
        body = json.loads(raw)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def answer(world: World, response: ResponseUrl, body: Json) -> Message | None:
    """Show the app's answer: a message of its own, or in place of the one it answers."""
    origin = response.origin
    if body.get("delete_original") in TRUE:
        if origin is not None:
            world.space.remove(origin)
        return None
    content = content_of(body)
    if body.get("replace_original") in TRUE and origin is not None and not origin.deleted:
        before = {"ts": origin.ts, "text": origin.text}
        change(world, origin, content, keep_attachments="attachments" not in body)
        if origin.ephemeral_to is None:
            world.events.message_changed(origin, before)
        response.answers.append(origin)
        return origin
    message = write(
        world,
        world.space.channels[response.channel],
        content,
        thread_ts=_thread(response, body),
        ephemeral_to=None if body.get("response_type") == "in_channel" else response.user,
    )
    if message.ephemeral_to is None:
        world.events.message(message)
    response.answers.append(message)
    response.origin = response.origin or message
    return message


def _thread(response: ResponseUrl, body: dict[str, Any]) -> str | None:
    return body.get("thread_ts") or response.thread_ts
