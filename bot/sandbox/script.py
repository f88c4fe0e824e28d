"""The /sandbox routes of Slack's side: what the page and scripts do as people, and what they see."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from bot.sandbox import names
from bot.sandbox.advance import ControlFailed
from bot.sandbox.clock import monotonic
from bot.sandbox.faults import KINDS, TARGETS, Fault
from bot.sandbox.fields import NoSuchChoice
from bot.sandbox.hands import Hands, NotThere
from bot.sandbox.names import BadRequest
from bot.sandbox.state import Json
from bot.sandbox.world import World, world_of

LONGEST_ADVANCE_S = 60 * 86_400
STREAM_PING_S = 15.0
STREAM_PAUSE_S = 0.02

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def plain_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A mistake of a script is JSON with one sentence, and only our own page may call at all."""
    if request.path.startswith("/sandbox/") and not _same_origin(request):
        return web.json_response({"ok": False, "error": "another site may not use the sandbox"}, status=403)
    try:
        return await handler(request)
    except BadRequest as wrong:
        body = {"ok": False, "error": str(wrong), **wrong.extra}
        return web.json_response(body, status=wrong.status)
    except NotThere as missing:
        return web.json_response({"ok": False, "error": str(missing)}, status=404)
    except NoSuchChoice as wrong_choice:
        return web.json_response({"ok": False, "error": str(wrong_choice)}, status=400)


def _same_origin(request: web.Request) -> bool:
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host


async def command(request: web.Request) -> web.Response:
    world, body = world_of(request), await names.body_of(request)
    user = names.user(world, body)
    channel = names.channel(world, names.text(body, "channel"), user)
    seen = await Hands(world).type_(user, channel, names.text(body, "text"), body.get("thread_ts"))
    return web.json_response(seen.as_json())


async def click(request: web.Request) -> web.Response:
    """A button or a choice, in a message ({channel, ts}) or in a view ({view_id, values})."""
    world, body = world_of(request), await names.body_of(request)
    user, action_id = names.user(world, body), names.text(body, "action_id")
    value = body.get("value", body.get("selected_option"))
    if body.get("view_id"):
        view = names.view(world, body, user)
        seen = await Hands(world).click_in_view(user, view, action_id, value, names.mapping(body, "values"))
    else:
        seen = await Hands(world).click(user, names.message(world, body, user), action_id, value)
    return web.json_response(seen.as_json())


async def submit(request: web.Request) -> web.Response:
    world, body = world_of(request), await names.body_of(request)
    user = names.user(world, body)
    view = names.view(world, body, user)
    return web.json_response(await Hands(world).submit(user, view, names.mapping(body, "values")))


async def close(request: web.Request) -> web.Response:
    world, body = world_of(request), await names.body_of(request)
    user = names.user(world, body)
    seen = await Hands(world).close(user, names.view(world, body, user))
    return web.json_response(seen.as_json())


async def home(request: web.Request) -> web.Response:
    world, body = world_of(request), await names.body_of(request)
    Hands(world).open_home(names.user(world, body))
    return web.json_response({"ok": True})


async def shortcut(request: web.Request) -> web.Response:
    """{user, callback_id}, with {channel, ts} for the shortcut of a message."""
    world, body = world_of(request), await names.body_of(request)
    user = names.user(world, body)
    message = names.message(world, body, user) if body.get("ts") else None
    seen = await Hands(world).shortcut(user, names.text(body, "callback_id"), message)
    return web.json_response(seen.as_json())


async def suggest(request: web.Request) -> web.Response:
    """{user, view_id, action_id, value}: what an external select offers."""
    world, body = world_of(request), await names.body_of(request)
    user = names.user(world, body)
    view = names.view(world, body, user)
    typed = str(body.get("value") or "")
    return web.json_response(await Hands(world).suggest(user, view, names.text(body, "action_id"), typed))


async def messages(request: web.Request) -> web.Response:
    world = world_of(request)
    viewer = names.user(world, dict(request.query)) if request.query.get("user") else None
    channel = names.channel(world, names.text(dict(request.query), "channel"), viewer)
    shown = channel.seen_by(viewer.id if viewer else None)
    return web.json_response({"messages": [m.as_json() for m in shown]})


async def delete_message(request: web.Request) -> web.Response:
    """Somebody with the right to do so deletes a message."""
    from_body = await names.body_of(request)
    world, body = world_of(request), {**request.query, **from_body}
    message = names.message(world, body)
    before = {"ts": message.ts, "user": message.user, "text": message.text}
    world.space.remove(message)
    world.events.message_deleted(message, before)
    return web.json_response({"ok": True})


async def views(request: web.Request) -> web.Response:
    world = world_of(request)
    user = names.user(world, dict(request.query))
    home_view = world.space.homes.get(user.id)
    modals = [v.as_json() for v in world.space.modals.get(user.id, [])]
    return web.json_response({"modals": modals, "home": home_view.as_json() if home_view else None})


async def state(request: web.Request) -> web.Response:
    return web.json_response(state_of(world_of(request)))


def state_of(world: World) -> Json:
    numbers = {phone.owner: phone.number for phone in world.exchange.phones.values()}
    team = world.space.team
    users = [
        {
            "id": u.id,
            "name": u.name,
            "real_name": u.real_name,
            "tz": u.tz,
            "kind": u.kind,
            "deleted": u.deleted,
            "phone": numbers.get(u.id),
        }
        for u in world.space.users.values()
    ]
    channels = [
        {
            "id": c.id,
            "name": c.name,
            "is_im": c.is_im,
            "user": c.im_user,
            "members": sorted(c.members),
            "topic": c.topic,
            "archived": c.archived,
        }
        for c in world.space.channels.values()
    ]
    return {
        "now": world.clock.now().isoformat(),
        "team": {"id": team.id, "name": team.name, "domain": team.domain},
        "bot_user": team.bot_user,
        "users": users,
        "channels": channels,
        "faults": world.faults.as_json(),
        "clock_offset_s": world.clock.offset.total_seconds(),
        "midwatch": {"url": world.midwatch_url, "connected": world.wire.connected},
    }


async def fault(request: web.Request) -> web.Response:
    """{target, kind, for_s}: break something; kind "none" mends it."""
    world, body = world_of(request), await names.body_of(request)
    target, kind = names.text(body, "target"), names.text(body, "kind")
    if target not in TARGETS:
        raise BadRequest(f"there is no target {target!r}", 404, known=list(TARGETS))
    if kind == "none":
        world.faults.clear(target)
        return web.json_response({"ok": True, "faults": world.faults.as_json()})
    if kind not in KINDS.get(target, {kind}):
        raise BadRequest(f"{target} cannot fail like {kind!r}", known=sorted(KINDS[target]))
    world.faults.begin(_fault(target, kind, body))
    if world.faults.find("slack_socket", "socket") is not None and kind in ("outage", "reset_after"):
        await world.socket.drop()
    return web.json_response({"ok": True, "faults": world.faults.as_json()})


def _fault(target: str, kind: str, body: Json) -> Fault:
    def optional(key: str, least: float, most: float) -> float | None:
        return None if body.get(key) is None else names.number(body, key, least, most)

    length, times = optional("for_s", 0, 86_400), optional("times", 1, 1_000_000)
    return Fault(
        target,
        kind,
        None if length is None else monotonic() + length,
        int(optional("retry_after", 0, 86_400) or 30),
        body.get("method"),
        body.get("channel"),
        None if times is None else int(times),
    )


async def advance(request: web.Request) -> web.Response:
    """{seconds}: let time pass."""
    world, body = world_of(request), await names.body_of(request)
    seconds = names.number(body, "seconds", 0, LONGEST_ADVANCE_S)
    try:
        now = await world.advance.by(seconds)
    except ControlFailed as failed:
        here = world.clock.now().isoformat()
        raise BadRequest(str(failed), 502, now=here) from None
    return web.json_response({"ok": True, "now": now.isoformat()})


async def disconnect(request: web.Request) -> web.Response:
    """{reason}: Slack asks every socket to connect anew."""
    world, body = world_of(request), await names.body_of(request)
    return web.json_response(
        {"ok": True, "sockets": await world.socket.disconnect(names.text(body, "reason"))}
    )


async def event(request: web.Request) -> web.Response:
    """{event}: tell Midwatch that something happened which nobody can do here (tokens_revoked …)."""
    world, body = world_of(request), await names.body_of(request)
    happened = names.mapping(body, "event")
    names.text(happened, "type")
    world.events.emit(happened)
    return web.json_response({"ok": True})


async def ledger(request: web.Request) -> web.Response:
    return web.json_response(world_of(request).ledger.as_json(), dumps=_dumps)


def _dumps(value: Any) -> str:
    return json.dumps(value, default=str)


async def stream(request: web.Request) -> web.StreamResponse:
    """Server-sent events: the names of what changed, gathered over a moment."""
    world = world_of(request)
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)
    with world.changes.subscribe() as subscription, suppress(ConnectionResetError):
        await response.write(b": open\n\n")
        while not world.closing.is_set():
            topics: list[str] = []
            with suppress(TimeoutError):
                async with asyncio.timeout(STREAM_PING_S):
                    topics = await subscription.next()
            shown = [topic for topic in topics if topic != "ledger"]
            if shown:
                await response.write(f"data: {json.dumps({'changed': shown})}\n\n".encode())
                await asyncio.sleep(STREAM_PAUSE_S)
            elif not topics:
                await response.write(b": still here\n\n")
    return response


def routes() -> list[web.RouteDef]:
    return [
        web.post("/sandbox/command", command),
        web.post("/sandbox/click", click),
        web.post("/sandbox/submit", submit),
        web.post("/sandbox/close", close),
        web.post("/sandbox/home", home),
        web.post("/sandbox/shortcut", shortcut),
        web.post("/sandbox/suggest", suggest),
        web.get("/sandbox/messages", messages),
        web.delete("/sandbox/messages", delete_message),
        web.get("/sandbox/views", views),
        web.get("/sandbox/state", state),
        web.post("/sandbox/fault", fault),
        web.post("/sandbox/advance", advance),
        web.post("/sandbox/disconnect", disconnect),
        web.post("/sandbox/event", event),
        web.get("/sandbox/ledger", ledger),
        web.get("/sandbox/stream", stream),
    ]
