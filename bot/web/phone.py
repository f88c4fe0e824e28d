"""What comes back from phones: replies by SMS, keys pressed in a call, and the fate of a message.

Never acts on an unsigned request, and never says anything to a number that nobody here has.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import structlog
from aiohttp import web
from multidict import MultiDict, MultiMapping
from twilio.twiml.messaging_response import MessagingResponse

from bot.web import bodies
from bot.web.parts import Phones, WebParts
from bot.web.problems import Problem
from bot.web.replies import Reply, Verb, parse_reply
from bot.web.signatures import form_of, is_signed
from engine.directory import Person
from engine.errors import MidwatchError, Unavailable
from engine.models import ORG, Actor, Delivery, DeliveryStatus, IncidentView, Method, Via
from engine.notify.plain import defang, one_line, shorten
from engine.notify.speech import answer_twiml, call_twiml
from engine.notify.status import PRESSED
from engine.pager.respond import Answer
from engine.store import deliveries, directory

log = structlog.get_logger(__name__)
Respond = Callable[[int, Actor], Awaitable[Answer]]

LISTED: Final = 5
LONGEST_TITLE: Final = 70
HELP: Final = (
    "Midwatch: reply 4 or ACK 42 to acknowledge, 6 or RESOLVE 42 to resolve, LIST to see what is open."
)
NOT_APPLIED: Final = "NOT applied: Midwatch cannot store this right now. Try again in a minute."
NONE_OPEN: Final = "No open incident was texted to this number."
NO_CALL: Final = "This call is about nothing that is still known here."
DELIVERY_ID: Final = re.compile("[0-9]{1,18}")
KEYS: Final = {"4": Verb.ACKNOWLEDGE, "6": Verb.RESOLVE}


class Phone:
    def __init__(self, parts: WebParts, phones: Phones) -> None:
        self._parts = parts
        self._phones = phones

    def mount(self, app: web.Application) -> None:
        app.router.add_post("/webhooks/twilio/sms", self.sms)
        app.router.add_post("/webhooks/twilio/voice", self.voice)
        app.router.add_get("/webhooks/twilio/voice", self.voice)
        app.router.add_post("/webhooks/twilio/status", self.status)

    async def sms(self, request: web.Request) -> web.Response:
        fields = await self._signed(request)
        reply = parse_reply(fields.get("Body", ""))
        if reply.verb is Verb.CARRIER:
            return _message(None)
        address_hash = self._parts.vault.fingerprint(fields.get("From", ""))
        people = await self._people(address_hash)
        if not people:
            log.info("sms.from_nobody")
            return _message(None)
        try:
            return _message(await self._answered(reply, address_hash, people))
        except Unavailable:
            return _message(NOT_APPLIED)  # as an answer, since nobody would see a 503
        except MidwatchError as error:
            return _message(str(error))

    async def voice(self, request: web.Request) -> web.Response:
        fields = await self._signed(request)
        called = await self._called(_delivery_id(request))
        if called is None:
            return _xml(answer_twiml(NO_CALL))
        view, person = called
        digits, ref = fields.get("Digits", ""), fields.get("CallSid", "")
        verb = KEYS.get(digits)
        if verb is None:  # "*", no key or a wrong one: say it again
            said = call_twiml(view, self._url(request))
        else:
            said = answer_twiml(await self._acted(verb, view, person))
        if digits and ref:
            with suppress(Unavailable):  # the caller hears what became of the key either way
                await self._phones.provider_status(ref, PRESSED, None, _delivery_id(request))
        return _xml(said)

    async def _acted(self, verb: Verb, view: IncidentView, person: Person) -> str:
        try:
            return _outcome(await self._respond(verb)(view.id, _actor(person, Via.VOICE)))
        except Unavailable:
            return NOT_APPLIED
        except MidwatchError as error:
            return str(error)

    async def status(self, request: web.Request) -> web.Response:
        """Handed on as it is: the pipeline knows which words may follow which."""
        fields = await self._signed(request)
        ref = fields.get("MessageSid") or fields.get("CallSid")
        status = fields.get("MessageStatus") or fields.get("CallStatus")
        if ref and status:
            error_code = fields.get("ErrorCode") or None
            await self._phones.provider_status(ref, status, error_code, _delivery_id(request))
        return web.Response(status=204)

    async def _signed(self, request: web.Request) -> MultiMapping[str]:
        """The fields of a request that the phone company signed, or Problem 403."""
        raw = await bodies.read(request, bodies.LIMIT)
        form = form_of(raw)
        token = self._phones.auth_token
        if form is None or not is_signed(token, self._url(request), form, request.headers):
            raise Problem(403, "This is not signed by the phone company for this address.")
        return form if request.method == "POST" else MultiDict(request.query)

    def _url(self, request: web.Request) -> str:
        """The address that was signed. Why not path_qs: it may write the same query otherwise."""
        return self._phones.public_url.rstrip("/") + request.raw_path

    def _respond(self, verb: Verb) -> Respond:
        responder = self._parts.responder
        return responder.acknowledge if verb is Verb.ACKNOWLEDGE else responder.resolve

    async def _people(self, address_hash: str) -> list[Person]:
        async with self._parts.database.snapshot() as tx:
            ids = await directory.persons_by_address(tx, ORG, address_hash)
        known = (await self._parts.roster.directory()).people if ids else {}
        return [known[person_id] for person_id in ids if person_id in known]

    async def _called(self, delivery_id: int | None) -> tuple[IncidentView, Person] | None:
        if delivery_id is None:
            return None
        async with self._parts.database.snapshot() as tx:
            found = await deliveries.read(tx, [delivery_id])
        delivery = found.get(delivery_id)
        if delivery is None or delivery.incident_id is None or delivery.person_id is None:
            return None
        view = await self._parts.views.incident(delivery.incident_id)
        person = (await self._parts.roster.directory()).people.get(delivery.person_id)
        return None if view is None or person is None else (view, person)

    async def _answered(self, reply: Reply, address_hash: str, people: list[Person]) -> str:
        match reply.verb:
            case Verb.ACKNOWLEDGE | Verb.RESOLVE:
                return await self._applied(reply, address_hash, people)
            case Verb.LIST:
                return _listed(await self._parts.views.open_texted_to(address_hash), "")
            case _:
                return HELP

    async def _applied(self, reply: Reply, address_hash: str, people: list[Person]) -> str:
        if reply.number is None:
            texted = await self._parts.views.open_texted_to(address_hash)
            if len(texted) != 1:
                word = "ack" if reply.verb is Verb.ACKNOWLEDGE else "resolve"
                return _listed(texted, f"\nReply {word} and the number.")
            view: IncidentView | None = texted[0]
        else:
            view = await self._parts.views.by_number(reply.number)
        person = None if view is None else await self._texted(view, people)
        if view is None or person is None:
            return f"#{reply.number} was not texted to this number. Send LIST to see what was."
        return _outcome(await self._respond(reply.verb)(view.id, _actor(person, Via.SMS)))

    async def _texted(self, view: IncidentView, people: list[Person]) -> Person | None:
        """Who of those who share the phone was sent this incident by SMS."""
        sent = await self._parts.views.deliveries(view.id)
        texted = {each.person_id for each in sent if each.method is Method.SMS and _left(each)}
        return next((person for person in people if person.id in texted), None)


def _delivery_id(request: web.Request) -> int | None:
    """Whatever we wrote into the address of the callback."""
    text = request.query.get("delivery", "")
    return int(text) if DELIVERY_ID.fullmatch(text) else None


def _left(delivery: Delivery) -> bool:
    """Has it been sent, as far as we know? The answer may come before the record of the sending."""
    return delivery.sent_at is not None or delivery.status is DeliveryStatus.SENDING


def _actor(person: Person, via: Via) -> Actor:
    return Actor(person.name, via, person.id, person.slack_user_id)


def _outcome(answer: Answer) -> str:
    return f"#{answer.incident.number} {answer.reason.rstrip('.')}: {_short(answer.incident.title)}"


def _listed(views: Sequence[IncidentView], hint: str) -> str:
    if not views:
        return NONE_OPEN
    lines = [f"#{view.number} {view.status}: {_short(view.title)}" for view in views[:LISTED]]
    if len(views) > LISTED:
        lines.append(f"and {len(views) - LISTED} more")
    return "\n".join(lines) + hint


def _short(title: str) -> str:
    return shorten(defang(one_line(title)), LONGEST_TITLE)


def _message(text: str | None) -> web.Response:
    response = MessagingResponse()
    if text is not None:
        response.message("\n".join(one_line(line) for line in text.splitlines()))
    return _xml(str(response))


def _xml(document: str) -> web.Response:
    return web.Response(body=document.encode(), content_type="text/xml", charset="utf-8")
