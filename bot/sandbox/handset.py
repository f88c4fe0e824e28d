"""The /sandbox/phones routes: what a person does with their phone."""

from __future__ import annotations

from aiohttp import web

from bot.sandbox import names
from bot.sandbox.names import BadRequest
from bot.sandbox.phones import Call, Mode, Phone
from bot.sandbox.world import World, world_of

KEYS = frozenset("0123456789*#")


def _phone(world: World, request: web.Request) -> Phone:
    name = request.match_info["number"]
    found = world.exchange.find(name)
    if found is None:
        known = [f"{p.number} ({p.name})" for p in world.exchange.phones.values()]
        raise BadRequest(f"there is no phone {name!r}", 404, known=known)
    return found


def _call(phone: Phone, *statuses: str) -> Call:
    call = phone.call(*statuses)
    if call is None:
        raise BadRequest(f"no call is {' or '.join(statuses)} on {phone.number}", 409)
    return call


async def phones(request: web.Request) -> web.Response:
    shown = [phone.as_json() for phone in world_of(request).exchange.phones.values()]
    return web.json_response({"phones": shown})


async def reply(request: web.Request) -> web.Response:
    world, body = world_of(request), await names.body_of(request)
    phone, text = _phone(world, request), names.text(body, "text")
    fault = world.faults.find("sms", "messages.inbound", {})
    if fault is not None and fault.kind in ("outage", "hang"):
        raise BadRequest("the phone company is down: the SMS did not leave the phone", 503)
    sms = await world.texting.reply(phone, text)
    return web.json_response({"ok": True, "sid": sms.sid})


async def press(request: web.Request) -> web.Response:
    world, body = world_of(request), await names.body_of(request)
    phone = _phone(world, request)
    digits = str(body.get("digits") or "")
    if not digits or not set(digits) <= KEYS:
        raise BadRequest("`digits` must be keys of a phone")
    call = _call(phone, "in-progress")
    if call.answered_by != "human":
        raise BadRequest("a voicemail box presses no keys", 409)
    await world.calls.press(call, digits)
    return _shown(call)


async def answer(request: web.Request) -> web.Response:
    world = world_of(request)
    call = _call(_phone(world, request), "ringing")
    world.calls.answer(call)
    return _shown(call)


async def voicemail(request: web.Request) -> web.Response:
    """Nobody picks up, the machine does: it hears everything and presses nothing."""
    world = world_of(request)
    call = _call(_phone(world, request), "ringing")
    world.calls.answer(call, by="machine_start")
    return _shown(call)


async def mode(request: web.Request) -> web.Response:
    """What the phone does by itself from now on."""
    world, body = world_of(request), await names.body_of(request)
    phone, wanted = _phone(world, request), names.text(body, "mode")
    if wanted not in set(Mode):
        raise BadRequest(f"`mode` must be one of {', '.join(Mode)}")
    phone.mode = Mode(wanted)
    world.exchange.changed()
    return web.json_response({"ok": True, "number": phone.number, "mode": wanted})


async def hangup(request: web.Request) -> web.Response:
    world = world_of(request)
    call = _call(_phone(world, request), "in-progress", "ringing")
    world.calls.hang_up(call)
    return _shown(call)


async def decline(request: web.Request) -> web.Response:
    world = world_of(request)
    call = _call(_phone(world, request), "ringing")
    world.calls.decline(call)
    return _shown(call)


def _shown(call: Call) -> web.Response:
    said = {"status": call.shown_status, "said": call.said, "gathering": call.listening is not None}
    return web.json_response({"ok": True, "sid": call.sid, **said})


def routes() -> list[web.RouteDef]:
    one = "/sandbox/phones/{number}"
    return [
        web.get("/sandbox/phones", phones),
        web.post(one + "/reply", reply),
        web.post(one + "/press", press),
        web.post(one + "/answer", answer),
        web.post(one + "/voicemail", voicemail),
        web.post(one + "/mode", mode),
        web.post(one + "/hangup", hangup),
        web.post(one + "/decline", decline),
    ]
