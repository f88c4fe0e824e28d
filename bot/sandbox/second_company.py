"""A second phone company: what an apprise json:// URL posts to it is a text, or is spoken in a call.

It gives no receipts and takes no replies, like most companies that apprise speaks to; so the first one's API
knows nothing of what it carried.
"""

from __future__ import annotations

import json

from aiohttp import web

from bot.sandbox.outage import cut, obstructed
from bot.sandbox.phones import Call, Sms, new_sid
from bot.sandbox.world import world_of

NAME = "second company"


async def take(request: web.Request) -> web.Response:
    world, method = world_of(request), request.match_info["method"]
    fault = world.faults.strike("second", f"{method}.create", {})
    if fault is not None and (broken := await obstructed(fault)) is not None:
        return broken
    try:
        body = json.loads(await request.text())
        words = str(body["message"])
    except (ValueError, TypeError, KeyError):
        return web.json_response({"error": "there is no message in it"}, status=400)
    phone, now = world.exchange.phone(f"+{request.match_info['number']}"), world.clock.now()
    if method == "sms":
        phone.sms.append(Sms(new_sid("SM"), "", "second", NAME, phone.number, words, now, "delivered"))
    else:
        call = Call(
            new_sid("CA"), "", NAME, phone.number, now, None, None, None, frozenset(), 0.0, False, "completed"
        )
        call.said.append(words)
        phone.calls.append(call)
    world.exchange.changed()
    if fault is not None and fault.kind == "reset_after":
        return cut(request)
    return web.json_response({"ok": True})


def routes() -> list[web.RouteDef]:
    return [web.post(r"/second/{method:sms|voice}/{number:[1-9]\d{6,14}}", take)]
