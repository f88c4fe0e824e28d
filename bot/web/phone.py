"""What comes back from phones: replies by SMS, keys pressed in a call, and the fate of a message.

Never acts on an unsigned request, and never says anything to a number that nobody here has.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from aiohttp import web
from multidict import MultiDict, MultiMapping
from twilio.twiml.messaging_response import MessagingResponse

from bot.inbox import Inbox
from bot.web import bodies
from bot.web.parts import Phones, WebParts
from bot.web.problems import Problem
from bot.web.replies import Verb
from bot.web.signatures import fields_of, form_of, is_signed, text_of
from engine.directory import Person
from engine.errors import Unavailable
from engine.models import IncidentView, Via
from engine.notify.speech import answer_twiml, call_twiml
from engine.notify.status import PRESSED
from engine.store import deliveries

NO_CALL: Final = "This call is about nothing that is still known here."
DELIVERY_ID: Final = re.compile("[0-9]{1,18}")
KEYS: Final = {"4": Verb.ACKNOWLEDGE, "6": Verb.RESOLVE, "8": Verb.ESCALATE}


class Phone:
    def __init__(self, parts: WebParts, phones: Phones) -> None:
        self._parts = parts
        self._phones = phones
        store = (parts.database, parts.clock, parts.vault)
        self._inbox = Inbox(*store, parts.roster, parts.responder, parts.views)

    def mount(self, app: web.Application) -> None:
        app.router.add_post("/webhooks/twilio/sms", self.sms)
        app.router.add_post("/webhooks/twilio/voice", self.voice)
        app.router.add_get("/webhooks/twilio/voice", self.voice)
        app.router.add_post("/webhooks/twilio/status", self.status)

    async def sms(self, request: web.Request) -> web.Response:
        fields = await self._signed(request)
        return _message(await self._inbox.answer(fields.get("From", ""), fields.get("Body", "")))

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
            said = answer_twiml(await self._inbox.act(verb, view, person, Via.VOICE))
        if digits and ref:
            with suppress(Unavailable):  # the caller hears what became of the key either way
                await self._phones.provider_status(ref, PRESSED, None, _delivery_id(request))
        return _xml(said)

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
        is_json = request.content_type == "application/json"
        sent = text_of(raw) if is_json else form_of(raw)
        form = sent if request.method == "POST" and isinstance(sent, MultiDict) else None
        fields: MultiMapping[str] = request.query if form is None else form
        # Why by account: a sub-account signs with a token of its own. Whoever names another one must know
        # that one's token.
        tokens = self._phones.tokens_of(fields.get("AccountSid", ""))
        url = self._url(request)
        if sent is None or not any(is_signed(token, url, sent, request.headers) for token in tokens):
            raise Problem(403, "This is not signed by the phone company for this address.")
        return fields_of(sent) if isinstance(sent, str) else fields

    def _url(self, request: web.Request) -> str:
        """The address that was signed. Why not path_qs: it may write the same query otherwise."""
        return self._phones.public_url.rstrip("/") + request.raw_path

    async def _called(self, delivery_id: int | None) -> tuple[IncidentView, Person] | None:
        if delivery_id is None:
            return None
        async with self._parts.database.look() as tx:
            found = await deliveries.read(tx, [delivery_id])
        delivery = found.get(delivery_id)
        if delivery is None or delivery.incident_id is None or delivery.person_id is None:
            return None
        view = await self._parts.views.incident(delivery.incident_id)
        person = (await self._parts.roster.directory()).people.get(delivery.person_id)
        return None if view is None or person is None else (view, person)


def _delivery_id(request: web.Request) -> int | None:
    """Whatever we wrote into the address of the callback."""
    text = request.query.get("delivery", "")
    return int(text) if DELIVERY_ID.fullmatch(text) else None


def _message(text: str | None) -> web.Response:
    response = MessagingResponse()
    if text is not None:
        response.message(text)
    return _xml(str(response))


def _xml(document: str) -> web.Response:
    return web.Response(body=document.encode(), content_type="text/xml", charset="utf-8")
