"""SMS both ways: Midwatch's to a phone with its status callbacks, a person's reply to Midwatch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bot.sandbox.phones import Mode, Phone, Sms, new_sid
from bot.sandbox.twiml import BadTwiml, Text, parse

if TYPE_CHECKING:
    from bot.sandbox.world import World

STOP = frozenset({"stop", "stopall", "unsubscribe", "cancel", "end", "quit"})
START = frozenset({"start", "yes", "unstop"})
ACCOUNT = "AC" + "0" * 32
REPLY_WAIT_S = 5.0
# What a fault may make of an accepted message, and the code that its callback carries.
OUTCOMES: Mapping[str, int] = {"undelivered": 30003, "failed": 30008}


def _of_outcome(kind: str) -> bool:
    return kind == "silent" or kind in OUTCOMES


class Texting:
    def __init__(self, world: World) -> None:
        self._world = world

    def send(
        self, to: str, body: str, *, account: str, callback: str | None, direction: str = "outbound-api"
    ) -> Sms:
        """Accept a message; what becomes of it follows in the background."""
        ours = self._world.exchange.our_number
        now = self._world.clock.now()
        sms = Sms(new_sid("SM"), account, direction, ours, to, body, now, "queued", callback)
        self._world.exchange.add_sms(sms)
        self._world.errands.run(self._progress(sms))
        return sms

    async def _progress(self, sms: Sms) -> None:
        fault = self._world.faults.strike("sms", "messages.progress", {}, _of_outcome)
        if fault is not None and fault.kind == "silent":
            sms.status = "sent"
            self._world.exchange.changed()
            return
        await self._becomes(sms, "sent")
        off = self._world.exchange.phone(sms.to).mode is Mode.OFF
        if fault is not None or off:
            end = fault.kind if fault is not None else "undelivered"
            sms.error_code = OUTCOMES[end]
            await self._becomes(sms, end)
        else:
            await self._becomes(sms, "delivered")

    async def _becomes(self, sms: Sms, status: str) -> None:
        sms.status = status
        self._world.exchange.changed()
        if sms.callback is None:
            return
        params = {
            "AccountSid": sms.account,
            "ApiVersion": "2010-04-01",
            "From": sms.from_,
            "To": sms.to,
            "MessageSid": sms.sid,
            "MessageStatus": status,
            "SmsSid": sms.sid,
            "SmsStatus": status,
        }
        if sms.error_code is not None:
            params["ErrorCode"] = str(sms.error_code)
        async with sms.posting:
            await self._world.callbacks.tell("message_status", sms.callback, params)

    async def reply(self, phone: Phone, body: str) -> Sms:
        """A person answers our number. Waits a little for Midwatch to take it."""
        now, ours = self._world.clock.now(), self._world.exchange.our_number
        sms = Sms(new_sid("SM"), ACCOUNT, "inbound", phone.number, ours, body, now, "received")
        word = body.strip().lower()
        phone.opted_out = word in STOP or (phone.opted_out and word not in START)
        self._world.exchange.add_sms(sms)
        if self._world.options.sms_url is not None:
            task = self._world.errands.run(self._hand_over(sms, self._world.options.sms_url))
            await asyncio.wait({task}, timeout=REPLY_WAIT_S)
        return sms

    async def _hand_over(self, sms: Sms, url: str) -> None:
        params = {
            "ToCountry": "US",
            "SmsMessageSid": sms.sid,
            "NumMedia": "0",
            "SmsSid": sms.sid,
            "SmsStatus": "received",
            "Body": sms.body,
            "FromCountry": "US",
            "To": sms.to,
            "NumSegments": "1",
            "MessageSid": sms.sid,
            "AccountSid": sms.account,
            "From": sms.from_,
            "ApiVersion": "2010-04-01",
        }
        answer = await self._world.callbacks.post("sms", url, params)
        if not answer or not answer.strip():
            return
        try:
            verbs = parse(answer)
        except BadTwiml:
            return
        for verb in verbs:
            if isinstance(verb, Text) and verb.body:
                to = verb.to or sms.from_
                self.send(to, verb.body, account=sms.account, callback=None, direction="outbound-reply")
