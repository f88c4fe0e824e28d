"""Things that Slack gives out once: trigger ids, response URLs, socket tickets.

Says whether one is still good; what it is good for is elsewhere.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count

from bot.sandbox.clock import SandboxClock
from bot.sandbox.state import Message

TRIGGER_LIFE = timedelta(seconds=3)
RESPONSE_LIFE = timedelta(minutes=30)
RESPONSE_USES = 5
TICKET_LIFE = timedelta(seconds=30)


@dataclass(slots=True)
class Trigger:
    user: str
    made_at: datetime
    used: bool = False


@dataclass(slots=True)
class ResponseUrl:
    """Where an app may answer an interaction. `answers` is what came of it, newest last."""

    channel: str
    user: str
    made_at: datetime
    origin: Message | None = None
    thread_ts: str | None = None
    uses: int = 0
    answers: list[Message] = field(default_factory=list)


class Vouchers:
    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock
        self._numbers = count(1)
        self.triggers: dict[str, Trigger] = {}
        self.responses: dict[str, ResponseUrl] = {}
        self._tickets: dict[str, datetime] = {}

    def new_trigger(self, user: str) -> str:
        trigger_id = f"{next(self._numbers)}.{secrets.randbelow(10**9)}.{secrets.token_hex(8)}"
        self.triggers[trigger_id] = Trigger(user, self._clock.now())
        return trigger_id

    def redeem_trigger(self, trigger_id: str) -> str:
        """The user it was given for; raises ValueError with Slack's word for what is wrong."""
        trigger = self.triggers.get(trigger_id)
        if trigger is None:
            raise ValueError("invalid_trigger_id")
        if trigger.used:
            raise ValueError("exchanged_trigger_id")
        if self._clock.now() - trigger.made_at > TRIGGER_LIFE:
            raise ValueError("expired_trigger_id")
        trigger.used = True
        return trigger.user

    def new_response(self, response: ResponseUrl) -> str:
        self._forget()
        token = secrets.token_urlsafe(18)
        self.responses[token] = response
        return token

    def redeem_response(self, token: str) -> ResponseUrl:
        response = self.responses.get(token)
        if response is None:
            raise ValueError("no_such_url")
        if self._clock.now() - response.made_at > RESPONSE_LIFE:
            raise ValueError("expired_url")
        if response.uses >= RESPONSE_USES:
            raise ValueError("used_url")
        response.uses += 1
        return response

    def new_ticket(self) -> str:
        ticket = secrets.token_urlsafe(18)
        self._tickets[ticket] = self._clock.now()
        return ticket

    def redeem_ticket(self, ticket: str) -> bool:
        made_at = self._tickets.pop(ticket, None)
        return made_at is not None and self._clock.now() - made_at <= TICKET_LIFE

    def _forget(self) -> None:
        """Drop what has been dead for long, so that a sandbox can run for weeks."""
        old = self._clock.now() - 2 * RESPONSE_LIFE
        self.responses = {k: r for k, r in self.responses.items() if r.made_at > old}
        self.triggers = {k: t for k, t in self.triggers.items() if t.made_at > old}
