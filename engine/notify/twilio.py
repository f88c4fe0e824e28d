"""SMS and calls by Twilio's own client.

Never retries by itself and never judges an answer (twilio_errors does). Delivery is at least once:
after a timeout nobody knows whether the message went out, and it is sent again.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import structlog
import twilio.rest.api  # noqa: F401  # Twilio loads it on first use, which would hold the loop for a second
from twilio.http.async_http_client import AsyncTwilioHttpClient
from twilio.http.response import Response
from twilio.rest import Client

from engine.clock import Clock
from engine.models import Method, Outcome, Page, Rejected, Retry, Sent
from engine.notify import render, speech, twilio_errors
from engine.notify.transport import Told

log = structlog.get_logger(__name__)

TIMEOUT: Final = timedelta(seconds=9)
CONNECT: Final = timedelta(seconds=3)  # of those; what is left is another provider's
RING: Final = timedelta(seconds=25)  # shorter than most voicemails take to pick up
LOOK: Final = timedelta(seconds=3)  # for what was sent before: the rest of the time is for sending
LOOKED_AT: Final = 20  # messages to one number since a page began
SLACK: Final = timedelta(seconds=5)  # between Twilio's clock and ours
ON_ITS_WAY: Final = frozenset({"accepted", "queued", "sending", "sent", "delivered", "read"})
AT_ONCE: Final = 50  # inbound messages per request
AT_MOST: Final = 200  # inbound messages per look; more than anybody sends in five seconds
NUMBER: Final = re.compile(r"\+[1-9]\d{6,14}")


@dataclass(frozen=True, slots=True)
class InboundText:
    """An SMS that somebody sent to our number."""

    sid: str
    from_number: str
    body: str
    at: datetime


class TwilioRefused(Exception):
    """Twilio answered with something that is not a success."""

    def __init__(self, status: int, code: int | None, retry_after: str | None) -> None:
        super().__init__(f"HTTP {status}, code {code}")
        self.status = status
        self.code = code
        self.retry_after = retry_after


class Session:
    """An aiohttp session with timeouts of ours: the base class passes one number, or none at all, and
    aiohttp's five minutes apply."""

    def __init__(self, timeout: timedelta) -> None:
        self._session = aiohttp.ClientSession()
        connect = min(CONNECT, timeout).total_seconds()
        self._timeout = aiohttp.ClientTimeout(total=timeout.total_seconds(), sock_connect=connect)

    async def request(self, **options: Any) -> aiohttp.ClientResponse:
        return await self._session.request(**{**options, "timeout": self._timeout})

    async def close(self) -> None:
        await self._session.close()


class HttpClient(AsyncTwilioHttpClient):  # type: ignore[misc]  # twilio has no type information
    """Twilio's HTTP client with what it lacks: another base URL, timeouts, the Retry-After header."""

    def __init__(self, api_url: str | None, timeout: timedelta) -> None:
        super().__init__(pool_connections=False)
        self.session = Session(timeout)
        self._api_url = api_url.rstrip("/") if api_url else None

    async def request(
        self, method: str, url: str, *args: Any, auth: tuple[str, str] | None = None, **options: Any
    ) -> Response:
        if self._api_url:
            url = self._api_url + urlsplit(url)._replace(scheme="", netloc="").geturl()
        if auth is not None:  # the base class would use a form of it that aiohttp gives up
            options["headers"] = {
                **(options.get("headers") or {}),
                "Authorization": aiohttp.encode_basic_auth(*auth),
            }
        response = await super().request(method, url, *args, **options)
        if not 200 <= response.status_code < 300:
            raise TwilioRefused(
                response.status_code, _code(response.text), response.headers.get("Retry-After")
            )
        return response

    def log_request(self, kwargs: dict[str, Any]) -> None:
        """Says nothing: the URL holds the account, and the parameters hold numbers."""

    def log_response(self, status_code: int, response: Any) -> None:
        """Says nothing, for the same reason."""


class TwilioTransport:
    """Pages by SMS and by voice. `public_url` is where Twilio reaches us; without it nothing calls back."""

    methods: Final = frozenset({Method.SMS, Method.VOICE})
    provider: Final = "twilio"

    def __init__(
        self,
        clock: Clock,
        *,
        account_sid: str,
        auth_token: str,
        from_number: str,
        api_url: str | None = None,
        public_url: str | None = None,
        timeout: timedelta = TIMEOUT,
    ) -> None:
        self._clock = clock
        self._credentials = (account_sid, auth_token)
        self._from = from_number
        self._api_url = api_url
        self._public_url = public_url.rstrip("/") if public_url else None
        self._timeout = timeout
        self._client: Client | None = None
        self._deaf = False  # the last look for inbound messages failed

    async def send(self, page: Page) -> Outcome:
        if not NUMBER.fullmatch(page.address):
            return Rejected("not a telephone number")
        try:
            return await self._attempt(page, self._public_url)
        except TwilioRefused as refused:
            if self._public_url is None or refused.code not in twilio_errors.CALLBACK_REFUSED:
                return self._judge(refused)
        # A page that cannot call back is worth more than none: it is answered by other ways.
        log.error("twilio.callback_refused", hint="MIDWATCH_PUBLIC_URL is not reachable from outside")
        try:
            return await self._attempt(page, None)
        except TwilioRefused as refused:
            return self._judge(refused)

    async def sent_before(self, page: Page) -> Sent | None:
        """An SMS with these words to this number since the page began.

        Never a call: Twilio does not say which words were spoken, and to take the call about another
        incident for this one would lose a page.
        """
        if page.method is not Method.SMS or page.since is None or not NUMBER.fullmatch(page.address):
            return None
        try:
            async with asyncio.timeout(min(LOOK, self._timeout).total_seconds()):
                # Why no filter by date: what is still queued there has no date of sending yet.
                found = await self._connected().messages.list_async(
                    to=page.address, from_=self._from, limit=LOOKED_AT, page_size=LOOKED_AT
                )
        except Exception as error:
            log.info("twilio.not_looked", delivery=page.id, error=type(error).__name__)
            return None
        words = render.sms(page)
        since = page.since - SLACK
        sent = (one for one in found if one.body == words and str(one.status) in ON_ITS_WAY)
        ref = next((one.sid for one in sent if one.date_created and one.date_created >= since), None)
        return None if ref is None else Sent(ref, self.provider, receipt=True)

    async def told(self, method: Method, ref: str) -> Told | None:
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                client = self._connected()
                of = client.calls(ref) if method is Method.VOICE else client.messages(ref)
                found = await of.fetch_async()
        except Exception as error:
            log.warning("twilio.not_told", error=type(error).__name__)
            return None
        code = getattr(found, "error_code", None)
        return Told(str(found.status), None if code is None else str(code))

    async def hang_up(self, ref: str) -> None:
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                await self._connected().calls(ref).update_async(status="completed")
        except Exception as error:
            # The call may be over, or Twilio away; it ends by itself after it has rung.
            log.warning("twilio.hang_up_failed", error=type(error).__name__)

    async def inbound(self, since: datetime) -> list[InboundText]:
        """What was texted to our number, oldest first; nothing, and one line logged, while Twilio fails."""
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                found = await self._connected().messages.list_async(
                    to=self._from, date_sent_after=since, limit=AT_MOST, page_size=AT_ONCE
                )
            # Why again by time: Twilio's filter is documented for days only.
            texts = [text for text in _inbound(found) if text.at >= since.replace(microsecond=0)]
        except Exception as error:
            if not self._deaf:
                status = error.status if isinstance(error, TwilioRefused) else None
                log.warning("twilio.inbound_failed", error=type(error).__name__, status=status)
            self._deaf = True
            return []
        self._deaf = False
        return sorted(texts, key=lambda text: text.at)

    async def reply(self, to: str, body: str) -> bool:
        """Answer an SMS, once: an answer that is lost is asked for again by its reader."""
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                await self._connected().messages.create_async(to=to, from_=self._from, body=body)
        except Exception as error:
            log.warning("twilio.reply_failed", error=type(error).__name__)
            return False
        return True

    async def close(self) -> None:
        if self._client is not None:
            await self._client.http_client.close()
            self._client = None

    async def _attempt(self, page: Page, public_url: str | None) -> Outcome:
        """One request. A refusal is raised, for the caller to judge."""
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                ref = await self._create(page, public_url)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return Retry(f"Twilio cannot be reached ({type(error).__name__})", unsent=True)
        except TimeoutError:
            return Retry("Twilio did not answer in time")
        except (aiohttp.ClientError, OSError) as error:
            return Retry(f"Twilio cannot be reached ({type(error).__name__})")
        except (ValueError, TypeError, AttributeError):
            return Retry("Twilio's answer cannot be read")
        return Sent(ref, self.provider, receipt=True) if ref else Retry("Twilio's answer has no reference")

    async def _create(self, page: Page, public_url: str | None) -> str | None:
        client = self._connected()
        callback = f"{public_url}/webhooks/twilio/status?delivery={page.id}" if public_url else None
        options: dict[str, Any] = {"to": page.address, "from_": self._from}
        if callback:
            options["status_callback"] = callback
        if page.method is Method.VOICE:
            action = f"{public_url}/webhooks/twilio/voice?delivery={page.id}" if public_url else None
            if callback:
                options["status_callback_event"] = ["answered", "completed"]
            twiml = speech.page_twiml(page, action)
            made = await client.calls.create_async(twiml=twiml, timeout=int(RING.total_seconds()), **options)
        else:
            made = await client.messages.create_async(body=render.sms(page), **options)
        return made.sid if isinstance(made.sid, str) else None

    def _judge(self, refused: TwilioRefused) -> Outcome:
        now = self._clock.now()
        wait = _wait(refused.retry_after, now)
        return twilio_errors.outcome(refused.code, refused.status, now, wait)

    def _connected(self) -> Client:
        # Why not in __init__: the client opens an aiohttp session, which belongs to the running loop.
        if self._client is None:
            http_client = HttpClient(self._api_url, self._timeout)
            self._client = Client(*self._credentials, http_client=http_client)
        return self._client


def _inbound(found: list[Any]) -> Iterator[InboundText]:
    """Newest first, as Twilio lists them. Of one second the later one comes first: turned round here."""
    for each in reversed(found):
        at = each.date_sent or each.date_created
        known = isinstance(each.sid, str) and isinstance(each.from_, str) and isinstance(at, datetime)
        if known and each.direction == "inbound":
            yield InboundText(each.sid, each.from_, each.body or "", at)


def _code(text: str) -> int | None:
    try:
        code = json.loads(text).get("code")
    except (ValueError, AttributeError, RecursionError):
        return None
    return code if isinstance(code, int) else None


def _wait(retry_after: str | None, now: datetime) -> timedelta | None:
    """What a Retry-After header says: seconds, or a date."""
    if not retry_after:
        return None
    if retry_after.strip().isdecimal():
        return timedelta(seconds=min(int(retry_after), 86_400))
    try:
        when = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(when.replace(tzinfo=when.tzinfo or UTC) - now, timedelta())
