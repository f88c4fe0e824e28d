"""Twilio's REST API, as far as a pager needs it: Messages and Calls of one account.

Checks what Twilio checks and refuses with Twilio's codes; the phones do the rest.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aiohttp import web
from multidict import MultiDictProxy

from bot.sandbox.clock import monotonic
from bot.sandbox.ledger import ApiCall
from bot.sandbox.outage import cut, obstructed
from bot.sandbox.phones import Call, Mode, new_sid
from bot.sandbox.twilio_errors import TwilioError, by_code
from bot.sandbox.twilio_shapes import as_call, as_message, page
from bot.sandbox.world import world_of

if TYPE_CHECKING:
    from bot.sandbox.world import World

Form = MultiDictProxy[Any]
Json = dict[str, Any]

NUMBER = re.compile(r"\+[1-9]\d{6,14}")
ACCOUNT = re.compile(r"AC[0-9a-f]{32}")
LONGEST_BODY = 1600
LONGEST_TWIML = 4000
EVENTS = frozenset({"initiated", "ringing", "answered", "completed"})
# Twilio's own magic numbers: what sending to them is refused with.
MAGIC = {
    "+15005550001": 21211,
    "+15005550002": 21612,
    "+15005550003": 21408,
    "+15005550004": 21610,
    "+15005550009": 21614,
}


def _number(form: Form, key: str, missing: int, invalid: int) -> str:
    value = str(form.get(key, "")).strip()
    if not value:
        raise by_code(missing)
    if not NUMBER.fullmatch(value):
        raise by_code(invalid)
    return value


def _callback(form: Form) -> str | None:
    url = form.get("StatusCallback")
    if not url:
        return None
    parts = urlsplit(str(url))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise by_code(21609)
    return str(url)


async def create_message(world: World, request: web.Request, account: str) -> Json:
    form = await request.post()
    to = _number(form, "To", 21604, 21211)
    from_ = _number(form, "From", 21603, 21212)
    body = str(form.get("Body", ""))
    if not body.strip():
        raise by_code(21602)
    if len(body) > LONGEST_BODY:
        raise by_code(21617)
    if from_ != world.exchange.our_number:
        raise by_code(21606)
    if to == from_:
        raise by_code(21266)
    if to in MAGIC:
        raise by_code(MAGIC[to])
    if world.exchange.phone(to).opted_out:
        raise by_code(21610)
    if world.exchange.phone(to).mode is Mode.LANDLINE:
        raise by_code(21614)
    return as_message(world.texting.send(to, body, account=account, callback=_callback(form)))


async def list_messages(world: World, request: web.Request, account: str) -> Json:
    query = request.query
    found = [
        sms
        for sms in reversed(world.exchange.messages.values())
        if query.get("To", sms.to) == sms.to
        and query.get("From", sms.from_) == sms.from_
        and _sent_between(sms.at, request)
    ]
    return page(request, "messages", [as_message(sms) for sms in found])


def _sent_between(at: datetime, request: web.Request) -> bool:
    query = request.query
    day = query.get("DateSent")
    after, before = query.get("DateSent>"), query.get("DateSent<")
    return (
        (day is None or _instant(day).date() == at.date())
        and (after is None or at >= _instant(after))
        and (before is None or at <= _instant(before))
    )


def _instant(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise by_code(20001) from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


async def get_message(world: World, request: web.Request, account: str) -> Json:
    sms = world.exchange.messages.get(request.match_info["sid"])
    if sms is None:
        raise by_code(20404)
    return as_message(sms)


async def create_call(world: World, request: web.Request, account: str) -> Json:
    form = await request.post()
    to = _number(form, "To", 21201, 21211)
    from_ = _number(form, "From", 21213, 21212)
    twiml, url = form.get("Twiml"), form.get("Url")
    if not twiml and not url:
        raise by_code(21205)
    if twiml and len(str(twiml)) > LONGEST_TWIML:
        raise by_code(20422)
    if url and urlsplit(str(url)).scheme not in ("http", "https"):
        raise by_code(21205)
    if from_ != world.exchange.our_number:
        raise by_code(21210)
    if to in MAGIC:
        raise by_code(21216 if to == "+15005550004" else MAGIC[to])
    call = Call(
        new_sid("CA"),
        account,
        from_,
        to,
        world.clock.now(),
        str(twiml) if twiml else None,
        str(url) if url else None,
        _callback(form),
        _events(form),
        min(600.0, _seconds(form)),
        bool(form.get("MachineDetection")),
    )
    shown = as_call(call)
    world.calls.place(call)
    return shown


def _seconds(form: Form) -> float:
    try:
        return float(str(form.get("Timeout") or 60))
    except ValueError:
        raise by_code(20422) from None


def _events(form: Form) -> frozenset[str]:
    asked = {str(event) for event in form.getall("StatusCallbackEvent", [])}
    if not asked <= EVENTS:
        raise by_code(21626)
    return frozenset(asked or {"completed"})


async def list_calls(world: World, request: web.Request, account: str) -> Json:
    query = request.query
    found = [
        call
        for call in reversed(world.exchange.calls.values())
        if query.get("To", call.to) == call.to and query.get("Status", call.status) == call.status
    ]
    return page(request, "calls", [as_call(call) for call in found])


def _call(world: World, request: web.Request) -> Call:
    call = world.exchange.calls.get(request.match_info["sid"])
    if call is None:
        raise by_code(20404)
    return call


async def get_call(world: World, request: web.Request, account: str) -> Json:
    return as_call(_call(world, request))


async def update_call(world: World, request: web.Request, account: str) -> Json:
    call, form = _call(world, request), await request.post()
    status = form.get("Status")
    if not call.live:
        raise by_code(21220)
    if status in ("completed", "canceled"):
        world.calls.stop(call, str(status))
    elif call.status != "in-progress":
        raise by_code(21220)
    else:
        twiml, url = form.get("Twiml"), form.get("Url")
        world.calls.redirect(call, str(twiml) if twiml else None, str(url) if url else None)
    return as_call(call)


async def get_account(world: World, request: web.Request, account: str) -> Json:
    return {"sid": account, "status": "active", "type": "Full", "friendly_name": "Sandbox"}


def of_answer(kind: str) -> bool:
    """Whether a fault of this kind shows in the answer, not in what becomes of a message or call."""
    return kind in ("outage", "hang", "reset_after", "429", "429_empty") or kind.isdigit()


Method = Callable[["World", web.Request, str], Awaitable[Json]]


def _route(target: str, name: str, method: Method, success: int = 200) -> Any:
    """A handler with Twilio's authentication, faults and errors around the method."""

    async def handle(request: web.Request) -> web.StreamResponse:
        world, began = world_of(request), monotonic()
        args = {**request.query, **{k: str(v) for k, v in (await request.post()).items()}}
        fault = world.faults.strike(target, name, args, of_answer)
        error, status = None, success
        try:
            if fault is not None:
                if (broken := await obstructed(fault, by_code(20429).as_json())) is not None:
                    _record(world, target, name, args, broken.status, fault.kind, began)
                    return broken
                if fault.kind.isdigit():
                    raise by_code(int(fault.kind))
            body = await method(world, request, _account(world, request))
        except TwilioError as refused:
            error, status, body = str(refused.code), refused.status, refused.as_json()
        if fault is not None and fault.kind == "reset_after":
            _record(world, target, name, args, 0, error, began)
            return cut(request)
        _record(world, target, name, args, status, error, began)
        return web.json_response(
            body, status=status, headers={"Date": format_datetime(world.clock.now(), usegmt=True)}
        )

    return handle


def _account(world: World, request: web.Request) -> str:
    account = request.match_info["account"]
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    try:
        given = base64.b64decode(encoded, validate=True).decode("latin1")
    except ValueError:
        raise by_code(20003) from None
    if scheme.lower() != "basic" or not ACCOUNT.fullmatch(account):
        raise by_code(20003)
    if given != f"{account}:{world.options.auth_token}":
        raise by_code(20003)
    return account


def _record(
    world: World, target: str, name: str, args: Json, status: int, error: str | None, began: float
) -> None:
    ms = round((monotonic() - began) * 1000, 1)
    world.ledger.add(ApiCall(target, name, args, status, error, world.clock.now(), ms))


def routes() -> list[web.RouteDef]:
    base = "/2010-04-01/Accounts/{account}"
    return [
        web.get(base + ".json", _route("sms", "account.get", get_account)),
        web.post(base + "/Messages.json", _route("sms", "messages.create", create_message, 201)),
        web.get(base + "/Messages.json", _route("sms", "messages.list", list_messages)),
        web.get(base + "/Messages/{sid}.json", _route("sms", "messages.get", get_message)),
        web.post(base + "/Calls.json", _route("voice", "calls.create", create_call, 201)),
        web.get(base + "/Calls.json", _route("voice", "calls.list", list_calls)),
        web.get(base + "/Calls/{sid}.json", _route("voice", "calls.get", get_call)),
        web.post(base + "/Calls/{sid}.json", _route("voice", "calls.update", update_call)),
    ]
