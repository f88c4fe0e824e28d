"""A real mail server (aiosmtpd) on this machine: keeps the mails it took, and answers one command as told."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

logging.getLogger("mail.log").setLevel(logging.CRITICAL)  # what the server logs is not what Midwatch does


@dataclass
class MailServer:
    """`answers` are by command, and "BODY" for the text: "550 no such user"; "" hangs up."""

    mails: list[EmailMessage] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)  # who logged in
    encrypted: list[bool] = field(default_factory=list)  # was each mail?
    answers: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    port: int = 0
    connections: set[Listening] = field(default_factory=set)

    async def _told(self, server: SMTP, command: str, usual: str = "250 OK") -> str:
        answer = self.answers.get(command, usual)
        if not answer:
            await hang_up(server)
        return answer

    async def handle_EHLO(  # noqa: N802  # aiosmtpd looks for these names
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        return [await self._told(server, "EHLO")] if "EHLO" in self.answers else responses

    async def handle_HELO(  # noqa: N802  # likewise
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str
    ) -> str:
        session.host_name = hostname
        return await self._told(server, "HELO", "250 mail.test")

    async def handle_MAIL(  # noqa: N802  # likewise
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        return await self._told(server, "MAIL")

    async def handle_RCPT(  # noqa: N802  # likewise
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.rcpt_tos.append(address)
        return await self._told(server, "RCPT")

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802  # likewise
        answer = await self._told(server, "BODY", "250 taken")
        if answer.startswith("250"):
            content = envelope.content or b""
            assert isinstance(content, bytes)
            mail = message_from_bytes(content, policy=policy.default)
            assert isinstance(mail, EmailMessage)
            self.mails.append(mail)
            self.raw.append(content)
            self.recipients += envelope.rcpt_tos
            self.encrypted.append(session.ssl is not None)
        return answer

    async def handle_QUIT(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802  # likewise
        return await self._told(server, "QUIT", "221 bye")

    def authenticate(self, _server: Any, _session: Any, _envelope: Any, _how: str, login: Any) -> AuthResult:
        welcome = "AUTH" not in self.answers
        if welcome:
            self.users.append(login.login.decode())
        return AuthResult(success=welcome, handled=False)


class Listening(SMTP):
    """aiosmtpd, which also can say nothing at all."""

    def __init__(self, mails: MailServer, tls: ssl.SSLContext | None, *, require_tls: bool) -> None:
        super().__init__(
            mails,
            hostname="mail.test",
            tls_context=tls,
            require_starttls=require_tls,
            auth_require_tls=False,
            authenticator=mails.authenticate,
            loop=asyncio.get_running_loop(),
        )
        self._mails = mails
        mails.connections.add(self)

    async def _handle_client(self) -> None:
        if self._mails.silent:
            await asyncio.Event().wait()  # until the connection ends
        await super()._handle_client()

    async def end(self) -> None:
        """Also one whose TLS never came about, of which nobody tells us that it is lost."""
        for transport in (self._original_transport, self.transport):
            if isinstance(transport, asyncio.Transport):
                transport.abort()
        if self._handler_coroutine is not None:
            self._handler_coroutine.cancel()
            await asyncio.wait([self._handler_coroutine])

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._mails.connections.discard(self)


async def hang_up(server: SMTP) -> None:
    """The end of the connection cancels what answers on it."""
    assert isinstance(server.transport, asyncio.Transport)
    server.transport.abort()
    await asyncio.Event().wait()


@asynccontextmanager
async def mail_server(
    *, tls: ssl.SSLContext | None = None, require_tls: bool = False, from_the_start: bool = False
) -> AsyncIterator[MailServer]:
    mails = MailServer()
    starttls = None if from_the_start else tls
    server = await asyncio.get_running_loop().create_server(
        lambda: Listening(mails, starttls, require_tls=require_tls),
        "127.0.0.1",
        0,
        ssl=tls if from_the_start else None,
    )
    mails.port = server.sockets[0].getsockname()[1]
    try:
        yield mails
    finally:
        server.close()
        for connection in tuple(mails.connections):
            await connection.end()
        await server.wait_closed()
