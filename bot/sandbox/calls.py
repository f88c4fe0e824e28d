"""Calls: ringing, answering, speaking, keys and the end, with Twilio's callbacks for each.

Plays TwiML as lines of text and waits for keys in sandbox time. Never records sound, of course.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from email.utils import format_datetime
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from bot.sandbox.phones import Call, Listening, Mode
from bot.sandbox.twiml import BadTwiml, Gather, Hangup, Redirect, Say, Verb, parse

if TYPE_CHECKING:
    from bot.sandbox.world import World

# Twilio's events and the states that belong to them; every end is "completed".
EVENT_OF = {"queued": "initiated", "ringing": "ringing", "in-progress": "answered"}
# A voice needs its time, and a Gather's timeout begins when it has spoken.
CHARACTERS_PER_S = 14
APPLICATION_ERROR = "An application error has occurred. Goodbye."
OUTCOMES = ("busy", "no-answer", "failed")
UNREACHED = {Mode.BUSY: "busy", Mode.OFF: "no-answer"}
MACHINE_AFTER = timedelta(seconds=10)


class Calls:
    def __init__(self, world: World) -> None:
        self._world = world

    def place(self, call: Call) -> None:
        """Accept a call, and let it ring."""
        self._world.exchange.add_call(call)
        self._tell(call)
        fault = self._world.faults.strike("voice", "calls.progress", {}, OUTCOMES.__contains__)
        if fault is not None:
            self._end(call, fault.kind)
            return
        mode = self._world.exchange.phone(call.to).mode
        if mode in UNREACHED:
            self._end(call, UNREACHED[mode])
            return
        self._becomes(call, "ringing")
        now, rings = self._world.clock.now(), timedelta(seconds=call.timeout_s)
        if mode is Mode.VOICEMAIL and rings > MACHINE_AFTER:
            take = partial(self.answer, call, by="machine_start")
            call.timer = self._world.agenda.at(now + MACHINE_AFTER, take)
            return
        call.timer = self._world.agenda.at(now + rings, lambda: self._end(call, "no-answer"))

    def answer(self, call: Call, *, by: str = "human") -> None:
        self._stop_timer(call)
        call.answered_at = self._world.clock.now()
        call.answered_by = by
        self._becomes(call, "in-progress")
        if call.twiml is not None:
            self._play(call, call.twiml, "")
        elif call.url is not None:
            self._world.errands.run(self._fetch(call, call.url))

    def hang_up(self, call: Call) -> None:
        """The person puts the phone down; while it rings that declines the call."""
        self._end(call, "completed" if call.status == "in-progress" else "busy")

    def decline(self, call: Call) -> None:
        self._end(call, "busy")

    def stop(self, call: Call, status: str) -> None:
        """Midwatch ends the call: `canceled` only before it is answered, `completed` at any time."""
        answered = call.status == "in-progress"
        if status == "canceled" and answered:
            return
        self._end(call, "completed" if answered else "canceled")

    async def press(self, call: Call, digits: str) -> None:
        """Keys, one after the other; the last one may complete what the call waits for."""
        for digit in digits:
            call.digits.append(digit)
            listening = call.listening
            if listening is None:
                continue
            if digit == listening.gather.finish_on_key:
                await self._submit(call, listening)
                continue
            listening = replace(listening, typed=listening.typed + digit)
            call.listening = listening
            if len(listening.typed) == listening.gather.num_digits:
                await self._submit(call, listening)
            else:
                self._listen(call, listening, after_s=0.0)
        self._world.exchange.changed()

    def redirect(self, call: Call, twiml: str | None, url: str | None) -> None:
        """Midwatch gives a call that is going on other words."""
        self._stop_timer(call)
        if twiml is not None:
            self._play(call, twiml, "")
        elif url is not None:
            self._world.errands.run(self._fetch(call, url))

    def _play(self, call: Call, document: str, base: str) -> None:
        try:
            self._run(call, parse(document), base)
        except BadTwiml:
            self._fail(call)

    def _run(self, call: Call, verbs: Sequence[Verb], base: str) -> None:
        spoken = 0
        for number, verb in enumerate(verbs):
            if isinstance(verb, Say):
                call.said.append(verb.text)
                spoken += len(verb.text)
            elif isinstance(verb, Gather):
                call.said += [prompt.text for prompt in verb.prompts]
                spoken += sum(len(prompt.text) for prompt in verb.prompts)
                listening = Listening(verb, tuple(verbs[number + 1 :]), base)
                self._listen(call, listening, after_s=spoken / CHARACTERS_PER_S)
                return
            elif isinstance(verb, Redirect):
                self._world.errands.run(self._fetch(call, urljoin(base, verb.url)))
                return
            elif isinstance(verb, Hangup):
                break
        self._end(call, "completed")

    def _listen(self, call: Call, listening: Listening, after_s: float) -> None:
        self._stop_timer(call)
        call.listening = listening
        due_at = self._world.clock.now() + timedelta(seconds=after_s + listening.gather.timeout_s)
        call.timer = self._world.agenda.at(due_at, lambda: self._nothing_more(call))
        self._world.exchange.changed()

    def _nothing_more(self, call: Call) -> None:
        """The time for keys is over: hand in what there is, or go on in the document."""
        listening = call.listening
        if listening is None:
            return
        if listening.typed or listening.gather.action_on_empty:
            self._world.errands.run(self._submit(call, listening))
            return
        call.listening = None
        self._run(call, listening.rest, listening.base)

    async def _submit(self, call: Call, listening: Listening) -> None:
        self._stop_timer(call)
        call.listening = None
        url = urljoin(listening.base, listening.gather.action)
        await self._fetch(call, url, {"Digits": listening.typed, "msg": "Gather End"}, kind="gather")

    async def _fetch(
        self, call: Call, url: str, extra: dict[str, str] | None = None, kind: str = "voice"
    ) -> None:
        self._world.exchange.changed()
        if urlsplit(url).scheme not in ("http", "https"):
            self._fail(call)
            return
        answer = await self._world.callbacks.post(kind, url, self._params(call) | (extra or {}))
        if not call.live:
            return
        if answer is None:
            self._fail(call)
        else:
            self._play(call, answer, url)

    def _fail(self, call: Call) -> None:
        call.said.append(APPLICATION_ERROR)
        self._end(call, "completed")

    def _end(self, call: Call, status: str) -> None:
        if not call.live:
            return
        self._stop_timer(call)
        call.listening = None
        call.ended_at = self._world.clock.now()
        self._becomes(call, status)

    def _becomes(self, call: Call, status: str) -> None:
        call.status = status
        self._world.exchange.changed()
        self._tell(call)

    def _tell(self, call: Call) -> None:
        """Post the state that the call is in now, after those it was in before."""
        event = EVENT_OF.get(call.status, "completed")
        if call.callback is None or event not in call.callback_events:
            return
        params = self._params(call) | {
            "CallbackSource": "call-progress-events",
            "SequenceNumber": str(call.posted),
            "Timestamp": format_datetime(self._world.clock.now()),
        }
        if event == "initiated":
            params["CallStatus"] = "initiated"
        if event == "completed":
            params["CallDuration"] = str(duration_s(call) or 0)
        call.posted += 1
        self._world.errands.run(self._post(call, call.callback, params))

    async def _post(self, call: Call, url: str, params: dict[str, str]) -> None:
        async with call.posting:
            await self._world.callbacks.tell("call_status", url, params)

    @staticmethod
    def _params(call: Call) -> dict[str, str]:
        params = {
            "CallSid": call.sid,
            "AccountSid": call.account,
            "From": call.from_,
            "To": call.to,
            "Caller": call.from_,
            "Called": call.to,
            "CallStatus": call.status,
            "Direction": "outbound-api",
            "ApiVersion": "2010-04-01",
        }
        if call.machine_detection and call.answered_by is not None:
            params["AnsweredBy"] = call.answered_by
        return params

    @staticmethod
    def _stop_timer(call: Call) -> None:
        if call.timer is not None:
            call.timer.cancel()
            call.timer = None


def duration_s(call: Call) -> int | None:
    """Whole seconds from the answer to the end, as Twilio bills them."""
    if call.ended_at is None:
        return None
    began: datetime = call.answered_at or call.ended_at
    return int((call.ended_at - began).total_seconds())
