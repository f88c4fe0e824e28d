"""What comes back from phones: replies by SMS, keys pressed in a call, and the fate of a message.

Never acts on an unsigned request, and never says anything to a number that nobody here has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
from engine.models import ORG, DeliveryStatus, IncidentView, Via
from engine.notify.speech import answer_twiml, call_twiml
from engine.notify.status import PRESSED
from engine.store import deliveries, lines

NO_CALL: Final = "This call is about nothing that is still known here."
# Of the call that carried it: it goes by another one, or by none.
OF_NO_CALL: Final = frozenset({DeliveryStatus.QUEUED, DeliveryStatus.CANCELLED, DeliveryStatus.DEAD})
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
        views, person = called
        digits, ref = fields.get("Digits", ""), fields.get("CallSid", "")
        verb = KEYS.get(digits)
        if verb is None:  # "*", no key or a wrong one: say it again
            said = call_twiml(views, self._url(request))
        else:
            said = answer_twiml(await self._inbox.act(verb, views, person, Via.VOICE))
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

    async def _called(self, delivery_id: int | None) -> tuple[Sequence[IncidentView], Person] | None:
        """What this call is about, the first first, and whom it called."""
        if delivery_id is None:
            return None
        async with self._parts.database.look() as tx:
            carried = await lines.carried_by(tx, ORG, [delivery_id])
            found = await deliveries.read(tx, [delivery_id, *carried.get(delivery_id, ())])
        call = found.pop(delivery_id, None)
        if call is None or call.incident_id is None or call.person_id is None:
            return None
        others = [one.incident_id for _, one in sorted(found.items()) if one.status not in OF_NO_CALL]
        ids = dict.fromkeys([call.incident_id, *(one for one in others if one is not None)])
        views = await self._parts.views.incidents([*ids])
        person = (await self._parts.roster.directory()).people.get(call.person_id)
        return None if not views or person is None else (views, person)


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
