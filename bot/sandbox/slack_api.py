"""Slack's Web API: POST or GET /api/{method}, its tokens, scopes, limits and faults.

What a method does is in the module of its family; nothing here knows Midwatch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

from aiohttp import web

from bot.sandbox import chat, conversations, dnd, files, people, usergroups, views
from bot.sandbox.call import Call, SlackError
from bot.sandbox.clock import monotonic
from bot.sandbox.ledger import ApiCall
from bot.sandbox.outage import cut, obstructed
from bot.sandbox.state import Json
from bot.sandbox.world import world_of

if TYPE_CHECKING:
    from bot.sandbox.world import World

METHODS: dict[str, Callable[[World, Call], Json]] = {
    "apps.connections.open": people.connections_open,
    "auth.test": people.auth_test,
    "chat.delete": chat.delete,
    "chat.getPermalink": chat.get_permalink,
    "chat.postEphemeral": chat.post_ephemeral,
    "chat.postMessage": chat.post_message,
    "chat.update": chat.update,
    "conversations.history": conversations.history,
    "conversations.info": conversations.info,
    "conversations.join": conversations.join,
    "conversations.list": conversations.list_,
    "conversations.members": conversations.members,
    "conversations.open": conversations.open_,
    "conversations.replies": conversations.replies,
    "conversations.setTopic": conversations.set_topic,
    "dnd.info": dnd.info,
    "files.completeUploadExternal": files.complete_upload,
    "files.getUploadURLExternal": files.get_upload_url,
    "reactions.add": conversations.add_reaction,
    "reactions.get": conversations.get_reactions,
    "reactions.remove": conversations.remove_reaction,
    "team.info": people.team_info,
    "usergroups.disable": usergroups.disable,
    "usergroups.enable": usergroups.enable,
    "usergroups.list": usergroups.list_,
    "usergroups.users.list": usergroups.list_users,
    "usergroups.users.update": usergroups.update_users,
    "users.info": people.info,
    "users.list": people.list_,
    "users.lookupByEmail": people.lookup_by_email,
    "views.open": views.open_,
    "views.publish": views.publish,
    "views.push": views.push,
    "views.update": views.update,
}

SCOPE_OF = {
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "conversations.history": "channels:history",
    "conversations.info": "channels:read",
    "conversations.join": "channels:join",
    "conversations.list": "channels:read",
    "conversations.members": "channels:read",
    "conversations.open": "im:write",
    "conversations.replies": "channels:history",
    "conversations.setTopic": "channels:manage",
    "dnd.info": "dnd:read",
    "files.completeUploadExternal": "files:write",
    "files.getUploadURLExternal": "files:write",
    "reactions.add": "reactions:write",
    "reactions.get": "reactions:read",
    "reactions.remove": "reactions:write",
    "team.info": "team:read",
    "usergroups.disable": "usergroups:write",
    "usergroups.enable": "usergroups:write",
    "usergroups.list": "usergroups:read",
    "usergroups.users.list": "usergroups:read",
    "usergroups.users.update": "usergroups:write",
    "users.info": "users:read",
    "users.list": "users:read",
    "users.lookupByEmail": "users:read.email",
}

# Slack reads a JSON body only where something is written; elsewhere the arguments must be a form.
TAKES_JSON = frozenset(
    m for m in METHODS if m.split(".")[0] in ("chat", "views", "apps", "reactions", "usergroups")
) | {
    "auth.test",
    "files.completeUploadExternal",
    "conversations.join",
    "conversations.open",
    "conversations.setTopic",
}


async def handle(request: web.Request) -> web.StreamResponse:
    world, method, began = world_of(request), request.match_info["method"], monotonic()
    token, args = "", dict[str, Any]()
    try:
        token, args = await _read(request, method)
        fault = world.faults.strike("slack", method, args)
        if fault is not None and (refused := await obstructed(fault)) is not None:
            _record(world, method, args, refused.status, fault.kind, began)
            return refused
        if fault is not None and not fault.kind.startswith("reset"):
            raise SlackError(fault.kind, **_about_scopes(world, method, fault.kind))
        answer = _answer(world, method, token, args)
    except SlackError as error:
        return _refuse(world, method, args, error, began)
    _record(world, method, args, 200 if fault is None else 0, None, began)
    if fault is not None:
        return cut(request)
    return _respond(world, {"ok": True, **answer})


def _answer(world: World, method: str, token: str, args: Json) -> Json:
    if method not in METHODS:
        raise SlackError("unknown_method", req_method=method)
    _check_token(world, method, token)
    scope = SCOPE_OF.get(method)
    if scope is not None and scope not in world.options.scopes:
        raise SlackError("missing_scope", **_about_scopes(world, method, "missing_scope"))
    if (wait := world.limits.retry_after(method, str(args.get("channel", "")))) is not None:
        raise SlackError("ratelimited", retry_after=wait)
    return METHODS[method](world, Call(method, args))


async def _read(request: web.Request, method: str) -> tuple[str, Json]:
    """The token and the arguments, from query, form or JSON body."""
    args: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        if method in TAKES_JSON:
            args |= _json_body(await request.read())
    elif request.method == "POST":
        args |= {key: value for key, value in (await request.post()).items() if isinstance(value, str)}
    in_args = str(args.pop("token", ""))
    header = request.headers.get("Authorization", "")
    return header.removeprefix("Bearer ").strip() or in_args, args


def _json_body(raw: bytes) -> Json:
    if not raw.strip():
        return {}
    try:
        body = json.loads(raw)
    except ValueError:
        raise SlackError("invalid_json") from None
    if not isinstance(body, dict):
        raise SlackError("json_not_object")
    return body


def _check_token(world: World, method: str, token: str) -> None:
    wanted, other = world.options.bot_token, world.options.app_token
    if method == "apps.connections.open":
        wanted, other = other, wanted
    if not token:
        raise SlackError("not_authed")
    if token == other:
        raise SlackError("not_allowed_token_type")
    if token != wanted:
        raise SlackError("invalid_auth")


def _about_scopes(world: World, method: str, error: str) -> dict[str, str]:
    if error != "missing_scope":
        return {}
    return {"needed": SCOPE_OF.get(method, ""), "provided": ",".join(sorted(world.options.scopes))}


def _refuse(
    world: World, method: str, args: Mapping[str, Any], error: SlackError, began: float
) -> web.StreamResponse:
    body = {"ok": False, "error": error.error, **error.extra}
    wait = body.pop("retry_after", None)
    status = 200 if wait is None else 429
    _record(world, method, args, status, error.error, began)
    return _respond(world, body, status, {} if wait is None else {"Retry-After": str(wait)})


def _respond(
    world: World, body: Json, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    all_headers = {
        "Date": format_datetime(world.clock.now(), usegmt=True),
        "x-oauth-scopes": ",".join(sorted(world.options.scopes)),
        "x-accepted-oauth-scopes": "",
        **(headers or {}),
    }
    return web.json_response(body, status=status, headers=all_headers)


def _record(
    world: World, method: str, args: Mapping[str, Any], status: int, error: str | None, began: float
) -> None:
    ms = round((monotonic() - began) * 1000, 1)
    world.ledger.add(ApiCall("slack", method, args, status, error, world.clock.now(), ms))
