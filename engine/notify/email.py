"""Mail by SMTP.

Never retries by itself and never says an address. The message goes out at least once: when the
connection breaks after the text was sent, nobody knows whether the server took it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import aiosmtplib

from engine.clock import Clock
from engine.errors import BadConfig
from engine.models import DeliveryKind, Method, Outcome, Page, Rejected, Retry, Sent
from engine.notify import render
from engine.notify.render import LinkOf, no_link

TIMEOUT: Final = timedelta(seconds=9)
# What mail carries without extensions; the email package takes more, and fails in many ways on the rest.
ADDRESS: Final = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*", re.ASCII)
NEWS: Final = frozenset({DeliveryKind.STATUS, DeliveryKind.NOTICE})
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Server:
    """Where mail is handed over, and as whom."""

    host: str
    port: int
    tls: bool  # from the first byte; else STARTTLS where the server offers it
    sender: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def parse(smtp_url: str) -> Server:
    """`smtp://user:password@host:port?from=pager@example.com`; `smtps://` for TLS from the start."""
    try:
        url = urlsplit(smtp_url)
        host, port = url.hostname, url.port
    except ValueError:
        host, port = None, None
    if host is None or url.scheme not in ("smtp", "smtps"):
        raise BadConfig(["SMTP_URL: write smtp://user:password@host:port?from=pager@example.com"])
    user = unquote(url.username) if url.username else None
    usual = user if user and "@" in user else f"midwatch@{'localhost' if ':' in host else host}"
    sender = parse_qs(url.query).get("from", [usual])[0]
    if not ADDRESS.fullmatch(sender):
        raise BadConfig(["SMTP_URL: `from` is not a mail address"])
    tls = url.scheme == "smtps"
    password = unquote(url.password) if url.password else None
    return Server(host, port or (465 if tls else 587 if user else 25), tls, sender, user, password)


class EmailTransport:
    """One connection per mail: mails are few, and an idle connection would be dead when it is needed."""

    methods: Final = frozenset({Method.EMAIL})
    provider: Final = "smtp"

    def __init__(
        self, clock: Clock, smtp_url: str, *, link_of: LinkOf = no_link, timeout: timedelta = TIMEOUT
    ) -> None:
        self._clock = clock
        self._server = parse(smtp_url)
        self._link_of = link_of
        self._timeout = timeout.total_seconds()

    async def send(self, page: Page) -> Outcome:
        if not ADDRESS.fullmatch(page.address):
            return Rejected("not a mail address")
        message = self._compose(page)
        try:
            async with asyncio.timeout(self._timeout):
                await self._hand_over(message)
        except TimeoutError:
            return Retry("the mail server did not answer in time")
        except (aiosmtplib.SMTPException, OSError) as error:
            return _judge(error)
        return Sent(str(message["Message-ID"]), self.provider)

    async def close(self) -> None:
        """Nothing stays open between mails."""

    def _compose(self, page: Page) -> EmailMessage:
        many = render.is_bundle(page)
        mail = render.bundled_mail(page, self._link_of) if many else render.mail(page, self._link_of(page))
        domain = self._server.sender.rpartition("@")[2]
        message = EmailMessage()
        message["From"] = f"Midwatch <{self._server.sender}>"
        message["To"] = page.address
        message["Subject"] = mail.subject
        message["Date"] = format_datetime(self._clock.now())
        # The same for every attempt: a mail program shows a message that came twice once.
        message["Message-ID"] = f"<delivery.{page.id}@{domain}>"
        if page.incident is not None and not many:
            thread = f"<incident.{page.incident.id}@{domain}>"
            message["In-Reply-To"] = thread
            message["References"] = thread
        message["Auto-Submitted"] = "auto-generated"
        message["X-Auto-Response-Suppress"] = "All"
        self._name_list(message, page, domain)
        message.set_content(mail.text)
        message.add_alternative(mail.html, subtype="html")
        return message

    def _name_list(self, message: EmailMessage, page: Page, domain: str) -> None:
        """What can be sorted by, and left: news of an incident. A page is no list, and nobody leaves one
        by a button that a mail program shows; a code was asked for."""
        if page.kind not in NEWS:
            return
        message["List-Id"] = f"Midwatch <midwatch.{domain}>"
        message["List-Unsubscribe"] = f"<mailto:{self._server.sender}?subject=unsubscribe>"

    async def _hand_over(self, message: EmailMessage) -> None:
        server = self._server
        # A password is never sent in clear over a network: without STARTTLS the mail is not sent.
        required = bool(server.user) and server.host not in LOCAL
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.user,
            password=server.password,
            use_tls=server.tls,
            start_tls=False if server.tls else True if required else None,
            timeout=self._timeout,
        )
        try:
            await client.connect()
            await client.send_message(message)
            # The server has it: an error while saying goodbye must not send it again.
            with contextlib.suppress(aiosmtplib.SMTPException, OSError):
                await client.quit()
        finally:
            client.close()


def _judge(error: Exception) -> Outcome:
    """The outcome of an SMTP error. The server's words are left out: they repeat the address."""
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused) and error.recipients:
        error = error.recipients[0]
    if not isinstance(error, aiosmtplib.SMTPResponseException):
        return Retry(f"the mail server cannot be used ({type(error).__name__})")
    reason = f"the mail server answered {error.code}"
    if error.code < 500:
        return Retry(reason)
    if isinstance(error, aiosmtplib.SMTPRecipientRefused | aiosmtplib.SMTPDataError):
        return Rejected(reason)
    # Refused before a recipient was named: our name, our password or our sender.
    return Retry(f"provider down: {reason} ({type(error).__name__})", down=True)
