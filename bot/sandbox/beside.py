"""The /sandbox routes that ask the Midwatch beside it: post an alert, say who is on call.

Never needed: without Midwatch's address, or without an answer, the rest of the page works.
"""

from __future__ import annotations

import aiohttp
from aiohttp import web

from bot.sandbox import names
from bot.sandbox.names import BadRequest
from bot.sandbox.state import Json
from bot.sandbox.world import World, world_of

ASK_TIMEOUT = aiohttp.ClientTimeout(total=2)  # the page waits for it before it shows anybody


async def alert(request: web.Request) -> web.Response:
    """{summary, severity, dedup_key?, action?}: post an alert to Midwatch, as a monitor would."""
    world, body = world_of(request), await names.body_of(request)
    if world.midwatch_url is None:
        raise BadRequest("this sandbox was started without Midwatch's address", 404)
    summary = names.text(body, "summary")
    event = {"action": "trigger", "dedup_key": f"sandbox: {summary}", "severity": "critical", **body}
    try:
        url = f"{world.midwatch_url}/v1/events"
        async with world.http.post(url, json=event, headers=_key(world)) as answer:
            said = (await answer.text())[:500]
    except (aiohttp.ClientError, TimeoutError):
        raise BadRequest("Midwatch does not answer", 502) from None
    if answer.status >= 300:
        raise BadRequest(f"Midwatch answered {answer.status}: {said}", 502)
    return web.json_response({"ok": True, "status": answer.status})


async def on_call(request: web.Request) -> web.Response:
    """Who is on call on the first schedule and who is next, by name; nobody if Midwatch does not say."""
    found = await _first_schedule(world_of(request))
    shown = {key: [each["name"] for each in found.get(key) or []] for key in ("people", "next_people")}
    return web.json_response({"ok": True, "people": shown["people"], "next": shown["next_people"]})


async def _first_schedule(world: World) -> Json:
    if world.midwatch_url is None:
        return {}
    url = f"{world.midwatch_url}/v1/schedules/oncall"
    try:
        async with world.http.get(url, headers=_key(world), timeout=ASK_TIMEOUT) as answer:
            answer.raise_for_status()
            items = (await answer.json())["items"]
    except (aiohttp.ClientError, TimeoutError, ValueError, KeyError):
        return {}
    first: Json = items[0] if items else {}
    return first


def _key(world: World) -> dict[str, str]:
    """In the demo one word is the integration key and the API token."""
    return {"Authorization": f"Bearer {world.options.integration_key}"}


def routes() -> list[web.RouteDef]:
    return [web.post("/sandbox/alert", alert), web.get("/sandbox/oncall", on_call)]
