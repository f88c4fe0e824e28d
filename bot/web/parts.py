"""What the web is made of: everything its handlers need, handed in by the wiring.

Never builds anything itself, and knows Slack only as a handler that somebody gave it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aiohttp import web

from engine.clock import Clock
from engine.contacts.contacts import Contacts
from engine.db import Database
from engine.intake.receive import Receiver
from engine.pager.respond import Responder
from engine.pager.views import Views
from engine.rota.calendars import Calendars
from engine.rota.roster import Roster
from engine.vault import Vault


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo's clock can do, and its page; None in WebParts outside of the demo."""

    next_due: Callable[[], Awaitable[datetime | None]]  # of the earliest timer
    advance: Callable[[datetime], Awaitable[int]]  # move the clock, work what is due, say how much
    page: str  # where the local Slack is, for people who come to this port instead


@dataclass(frozen=True, slots=True)
class Phones:
    """What the callbacks of the phone company need; None in WebParts without Twilio."""

    auth_token: str = field(repr=False)
    public_url: str
    # of a message: reference, status, error code, delivery id
    provider_status: Callable[[str, str, str | None, int | None], Awaitable[object]]
    account_sid: str = ""
    old_token: str | None = field(default=None, repr=False)  # still good while the tokens are changed
    subaccounts: Mapping[str, str] = field(default_factory=dict, repr=False)  # account -> its token

    def tokens_of(self, account: str) -> tuple[str, ...]:
        """What a request of this account may be signed with; nothing for an account that is not ours."""
        if account in {"", self.account_sid}:
            return (self.auth_token, self.old_token) if self.old_token else (self.auth_token,)
        return (self.subaccounts[account],) if account in self.subaccounts else ()


@dataclass(frozen=True, slots=True)
class WebParts:
    clock: Clock
    database: Database
    vault: Vault
    roster: Roster
    receiver: Receiver
    responder: Responder
    views: Views
    contacts: Contacts
    health: Callable[[], Awaitable[Mapping[str, Any]]]  # details for people; no secrets in it
    version: str
    unready: Callable[[], str | None] = lambda: None  # why no alert should be sent here, if so
    public_url: str | None = None
    phones: Phones | None = None
    slack_http: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None
    demo: Demo | None = None
    calendars: Calendars | None = None
