"""The mail server of the sandbox: real SMTP in, and each mail on the phone of whoever it is for.

Keeps what it took in memory; sends nothing on.
"""

from __future__ import annotations

import asyncio
import logging
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import TYPE_CHECKING

from aiosmtpd.smtp import SMTP, Envelope, Session

from bot.sandbox.outage import hanging
from bot.sandbox.phones import Mail, new_sid

if TYPE_CHECKING:
    from bot.sandbox.world import World

LARGEST = 1024 * 1024
DOWN = "421 4.3.2 the mail server is switched off"
LATER = "451 4.3.0 try again later"
NOBODY = "550 5.1.1 there is no such mailbox"
ANSWERS = {"outage": DOWN, "hang": DOWN, "later": LATER, "refuse": NOBODY}

logging.getLogger("mail.log").setLevel(logging.ERROR)


class Post:
    """What aiosmtpd asks; it looks for these names."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def handle_RCPT(  # noqa: N802  # its name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        fault = self._world.faults.strike("mail", "rcpt", {}, ANSWERS.__contains__)
        if fault is not None:
            if fault.kind == "hang":
                await hanging(fault)
            return ANSWERS[fault.kind]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        raw = envelope.original_content or b""
        message = message_from_bytes(raw, EmailMessage, policy=policy.default)
        body = message.get_body(("plain",))
        text = body.get_content() if body is not None else ""
        for address in envelope.rcpt_tos:
            mail = Mail(
                new_sid("EM"), address, str(message["Subject"] or ""), text.strip(), self._world.clock.now()
            )
            self._world.exchange.add_mail(mail)
        return "250 OK"


async def listen(world: World, host: str, port: int) -> asyncio.Server | None:
    """None: the port is taken, and the sandbox goes on without mail."""

    def connection() -> SMTP:
        return SMTP(Post(world), hostname="sandbox", data_size_limit=LARGEST, enable_SMTPUTF8=True)

    try:
        return await asyncio.get_running_loop().create_server(connection, host, port)
    except OSError:
        return None
