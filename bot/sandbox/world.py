"""The sandbox as one value: its clock, its workspace, its phones and everything between them.

Wires the parts by hand; holds no behaviour of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

from bot.sandbox import seed
from bot.sandbox.advance import Advance
from bot.sandbox.agenda import Agenda
from bot.sandbox.callbacks import Callbacks
from bot.sandbox.calls import Calls
from bot.sandbox.changes import Changes
from bot.sandbox.clock import SandboxClock, system_now
from bot.sandbox.errands import Errands
from bot.sandbox.events import EventFeed
from bot.sandbox.faults import Faults
from bot.sandbox.http_mode import HttpMode
from bot.sandbox.ledger import Ledger
from bot.sandbox.limits import RateLimits
from bot.sandbox.shelf import Shelf
from bot.sandbox.socket_mode import SocketMode
from bot.sandbox.texting import Texting
from bot.sandbox.vouchers import Vouchers


@dataclass(frozen=True, slots=True)
class Options:
    signing_secret: str = seed.SIGNING_SECRET
    auth_token: str = seed.AUTH_TOKEN
    bot_token: str = seed.BOT_TOKEN
    app_token: str = seed.APP_TOKEN
    our_number: str = seed.OUR_NUMBER
    events_url: str | None = None  # HTTP mode: where Slack's payloads are posted
    sms_url: str | None = None  # where inbound SMS are posted
    control_url: str | None = None  # Midwatch's demo control, which follows the clock
    midwatch_url: str | None = None  # where the page's alert button posts
    smtp_port: int | None = None  # where mail is taken; None: nowhere
    integration_key: str = "demo"
    commands: tuple[str, ...] = seed.COMMANDS
    events: frozenset[str] = seed.EVENTS
    scopes: frozenset[str] = seed.SCOPES
    ack_timeout_s: float = 3.0
    now: Callable[[], datetime] = field(default=system_now)


class World:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.clock = SandboxClock(options.now)
        self.changes = Changes()
        self.agenda = Agenda(self.clock)
        self.errands = Errands()
        self.ledger = Ledger(self.changes)
        self.faults = Faults(self.clock, self.changes)
        self.limits = RateLimits(self.clock)
        self.vouchers = Vouchers(self.clock)
        self.shelf = Shelf()
        self.space = seed.workspace(self.clock, self.changes)
        self.http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15))
        self.socket = SocketMode(self)
        self.wire = HttpMode(self, options.events_url) if options.events_url else self.socket
        self.events = EventFeed(self)
        self.exchange = seed.exchange(options.our_number, self.changes)
        self.callbacks = Callbacks(self)
        self.texting = Texting(self)
        self.calls = Calls(self)
        self.advance = Advance(self)
        self.closing = asyncio.Event()
        self.base_url = ""  # known once the port is

    @property
    def midwatch_url(self) -> str | None:
        """Midwatch's own address, as far as it can be known."""
        options = self.options
        known = options.midwatch_url or options.control_url or options.events_url or options.sms_url
        if known is None:
            return None
        parts = urlsplit(known)
        return f"{parts.scheme}://{parts.netloc}"

    async def close(self) -> None:
        self.closing.set()
        self.changes.mark("state")
        self.faults.clear()
        await self.socket.close()
        await self.errands.close()
        await self.http.close()


WORLD: web.AppKey[World] = web.AppKey("world", World)


def world_of(request: web.Request) -> World:
    return request.app[WORLD]
