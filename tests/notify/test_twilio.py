"""SMS and calls through Twilio's real client, against a phone company on this machine."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from engine.models import DeliveryKind, Method, Outcome, Rejected, Retry, Sent, Throttled
from engine.notify import render, twilio_errors
from engine.notify.transport import Told
from engine.notify.twilio import InboundText, TwilioTransport
from tests.notify.phone_company import SID, TOKEN, Fault, PhoneCompany, serving
from tests.notify.values import NOW, NUMBER, page, told

FROM = "+12025550100"
PUBLIC = "https://pager.example.com"


class StillClock:
    def now(self) -> datetime:
        return NOW

    async def sleep_until(self, when: datetime) -> None:
        return None


@asynccontextmanager
async def phones(**options: Any) -> AsyncIterator[tuple[PhoneCompany, TwilioTransport]]:
    company = PhoneCompany()
    async with serving(company.app) as url:
        usual = {"account_sid": SID, "auth_token": TOKEN, "from_number": FROM, "api_url": url}
        transport = TwilioTransport(StillClock(), **{**usual, **options})
        try:
            yield company, transport
        finally:
            company.release.set()
            await transport.close()


async def outcome_of(fault: Fault, **options: Any) -> Outcome:
    async with phones(**options) as (company, transport):
        company.faults = [fault]
        outcome = await transport.send(page())
        assert company.messages == []
        return outcome


async def test_a_page_by_sms_arrives_with_its_callback() -> None:
    """To, from and text are what was asked for; the status comes back under the delivery's id."""
    async with phones(public_url=f"{PUBLIC}/") as (company, transport):
        assert await transport.send(page()) == Sent("SM1", "twilio", receipt=True)
    assert company.messages == [
        {
            "To": NUMBER,
            "From": FROM,
            "Body": "Midwatch #42 FIRING checkout: db-1 is down. Reply 4 to ack, 6 to resolve",
            "StatusCallback": f"{PUBLIC}/webhooks/twilio/status?delivery=901",
        }
    ]


async def test_without_a_public_url_nothing_is_asked_to_call_back() -> None:
    """Twilio refuses a callback it cannot reach, so none is named."""
    async with phones() as (company, transport):
        await transport.send(page())
        await transport.send(page(method=Method.VOICE))
    assert set(company.messages[0]) == {"To", "From", "Body"}
    assert set(company.calls[0]) == {"To", "From", "Twiml", "Timeout"}
    assert "Reply 4 by SMS" in company.calls[0]["Twiml"]


async def test_a_page_by_voice_rings_and_takes_a_key() -> None:
    """The call says the incident, sends the key to us by the delivery's id, and ends before voicemail."""
    async with phones(public_url=PUBLIC) as (company, transport):
        assert await transport.send(page(method=Method.VOICE)) == Sent("CA1", "twilio", receipt=True)
    call = company.calls[0]
    assert (call["To"], call["From"], call["Timeout"]) == (NUMBER, FROM, "25")
    assert call["StatusCallback"] == f"{PUBLIC}/webhooks/twilio/status?delivery=901"
    assert f'action="{PUBLIC}/webhooks/twilio/voice?delivery=901"' in call["Twiml"]
    assert "Incident 42" in call["Twiml"]


async def test_a_call_that_is_no_page_only_says_its_text() -> None:
    """A code by voice asks for no key."""
    async with phones(public_url=PUBLIC) as (company, transport):
        await transport.send(told("Your code is 1 2 3", method=Method.VOICE, kind=DeliveryKind.VERIFICATION))
    assert "<Say>Your code is 1 2 3</Say>" in company.calls[0]["Twiml"]
    assert "Gather" not in company.calls[0]["Twiml"]


@pytest.mark.parametrize("code", sorted(twilio_errors.PERMANENT))
async def test_a_number_that_will_never_work_is_rejected(code: int) -> None:
    """F-56: the next contact method is told now, and the reason says why."""
    outcome = twilio_errors.outcome(code, 400, NOW)
    assert isinstance(outcome, Rejected)
    assert outcome.reason.endswith(f"(Twilio {code})")


@pytest.mark.parametrize("code", [21211, 21610, 21614, 21612, 21408, 60410])
async def test_twilio_says_so_by_its_code(code: int) -> None:
    """The code is read from the real answer, and the number in its message is not repeated."""
    outcome = await outcome_of(Fault(400, code))
    reason = f"{twilio_errors.PERMANENT[code]} (Twilio {code})"
    assert outcome == Rejected(reason, stopped=code == twilio_errors.STOPPED)


@pytest.mark.parametrize(
    "fault", [Fault(401, 20003), Fault(403, 20008), Fault(400, 21606), Fault(403), Fault(404, body="gone")]
)
async def test_a_provider_that_refuses_us_is_down(fault: Fault) -> None:
    """F-57: the breaker opens at once and the next provider is used."""
    outcome = await outcome_of(fault)
    assert isinstance(outcome, Retry)
    assert outcome.down
    assert outcome.reason.startswith("provider down: ")


async def test_wrong_credentials_are_a_provider_that_is_down() -> None:
    """A mistyped token is not the number's fault, and is not shown."""
    outcome = await outcome_of(Fault(), auth_token="wrong-token")
    assert outcome == Retry("provider down: the credentials are refused (Twilio 20003)", down=True)


@pytest.mark.parametrize(
    ("fault", "wait"),
    [
        (Fault(429, 20429), 10),
        (Fault(429, body=""), 10),
        (Fault(400, 14107), 10),
        (Fault(429, 20429, retry_after="7"), 7),
        (Fault(429, 20429, retry_after="Thu, 05 Nov 2026 14:00:20 GMT"), 20),
        (Fault(429, 20429, retry_after="soon"), 10),
        (Fault(429, 20429, retry_after="999999"), 300),
    ],
)
async def test_a_throttle_is_no_failure_and_says_until_when(fault: Fault, wait: int) -> None:
    """F-58: as long as Twilio asks for, never longer than five minutes."""
    outcome = await outcome_of(fault)
    assert isinstance(outcome, Throttled)
    assert outcome.until == NOW + timedelta(seconds=wait)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault(500, body="<html>oops"), Retry("Twilio answered 500")),
        (Fault(503, retry_after="3"), Retry("Twilio answered 503", after=timedelta(seconds=3))),
        (Fault(400, 99999), Retry("Twilio answered 400, error 99999")),
        (Fault(400, body='{"code": "x"}'), Retry("Twilio answered 400")),
        (Fault(400, body="[]"), Retry("Twilio answered 400")),
        (Fault(301, body="moved"), Retry("Twilio answered 301")),
        (Fault(201, body="not json"), Retry("Twilio's answer cannot be read")),
        (Fault(201, body="[1]"), Retry("Twilio's answer cannot be read")),
        (Fault(201, body="{}"), Retry("Twilio's answer has no reference")),
    ],
)
async def test_what_we_do_not_know_is_tried_again(fault: Fault, outcome: Outcome) -> None:
    """Outages, redirects and garbage of any kind are Retry, never an exception."""
    assert await outcome_of(fault) == outcome


async def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    """twilio-python#925: the client's own timeout is ignored, ours is not."""
    outcome = await outcome_of(Fault(hang=True), timeout=timedelta(milliseconds=50))
    assert outcome == Retry("Twilio did not answer in time")


async def test_a_phone_company_that_is_not_there_is_tried_again() -> None:
    """A refused connection is Retry, and surely nothing was sent: another provider may send it at once."""
    async with serving(PhoneCompany().app) as url:
        gone = url
    async with phones(api_url=gone) as (_, transport):
        outcome = await transport.send(page())
    assert outcome == Retry("Twilio cannot be reached (ClientConnectorError)", unsent=True)


async def test_a_phone_company_that_takes_no_connection_leaves_time_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Packets that are dropped are no answer that is late: surely nothing was sent."""
    monkeypatch.setattr("engine.notify.twilio.CONNECT", timedelta(milliseconds=100))
    with contextlib.ExitStack() as stack:
        deaf = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):  # who comes now waits in a queue that is full
            caller = stack.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(deaf.getsockname())
        async with phones(api_url=f"http://127.0.0.1:{deaf.getsockname()[1]}") as (_, transport):
            outcome = await transport.send(page())
    assert outcome == Retry("Twilio cannot be reached (ConnectionTimeoutError)", unsent=True)


@pytest.mark.parametrize("method", [Method.SMS, Method.VOICE])
async def test_a_callback_that_twilio_refuses_does_not_stop_the_page(method: Method) -> None:
    """F-64: it is sent without a callback, and the log says what to repair."""
    async with phones(public_url="http://[::]:8081") as (company, transport):
        company.faults = [Fault(400, 21609)]
        with capture_logs() as logs:
            outcome = await transport.send(page(method=method))
    assert isinstance(outcome, Sent)
    sent = (company.messages + company.calls)[0]
    assert "StatusCallback" not in sent
    assert [entry["event"] for entry in logs] == ["twilio.callback_refused"]


async def test_a_page_without_callback_may_fail_too() -> None:
    """The second request is judged like the first."""
    async with phones(public_url=PUBLIC) as (company, transport):
        company.faults = [Fault(400, 21205), Fault(400, 21614)]
        assert await transport.send(page()) == Rejected("not a mobile number (Twilio 21614)")


@pytest.mark.parametrize("address", ["", "12025550143", "+1 202 555", "tel:+12025550143", "+0123456789"])
async def test_what_is_no_number_is_not_sent(address: str) -> None:
    """A broken address is rejected before it costs a request."""
    async with phones() as (company, transport):
        assert await transport.send(page(address=address)) == Rejected("not a telephone number")
    assert company.messages == []


async def test_a_ringing_call_is_ended() -> None:
    """After an ack the phone stops ringing."""
    async with phones() as (company, transport):
        await transport.hang_up("CA1")
    assert company.ended == ["CA1"]


@pytest.mark.parametrize("fault", [Fault(404, 20404), Fault(500), Fault(hang=True)])
async def test_a_call_that_cannot_be_ended_harms_nobody(fault: Fault) -> None:
    """Over already, or Twilio away: it is logged and the ack stands."""
    async with phones(timeout=timedelta(milliseconds=200)) as (company, transport):
        company.faults = [fault]
        with capture_logs() as logs:
            await transport.hang_up("CA1")
    assert [entry["event"] for entry in logs] == ["twilio.hang_up_failed"]
    assert company.ended == []


async def test_no_number_and_no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Neither our log nor a library's holds the number, the text or the token, in success or failure."""
    caplog.set_level(logging.DEBUG)
    with capture_logs() as logs:
        async with phones(public_url=PUBLIC) as (company, transport):
            company.faults = [Fault(400, 21609), Fault(500)]
            for _ in range(3):
                await transport.send(page())
            await transport.hang_up("CA1")
    said = f"{logs} {caplog.text}"
    for secret in (NUMBER, NUMBER[1:], TOKEN, "db-1 is down"):
        assert secret not in said


async def test_it_can_be_closed_twice_and_used_again() -> None:
    """Closing before the first send, or twice, is fine; a later send opens a new connection."""
    async with phones() as (company, transport):
        await transport.close()
        await transport.send(page())
        await transport.close()
        await transport.close()
        await transport.send(page())
    assert len(company.messages) == 2


def text(sid: str, at: datetime = NOW, direction: str = "inbound", body: str = "4") -> dict[str, str]:
    """A message as Twilio lists it."""
    sent = format_datetime(at)
    return {
        "sid": sid,
        "from": NUMBER,
        "to": FROM,
        "body": body,
        "direction": direction,
        "date_sent": sent,
        "date_created": sent,
    }


async def test_inbound_messages_are_listed_oldest_first() -> None:
    """Only what was sent to our number since then, whatever else the list holds."""
    since = NOW - timedelta(minutes=10)
    async with phones() as (company, transport):
        company.inbox = [
            text("SM4", NOW, body="6"),
            text("SM3", NOW),
            text("SM2", direction="outbound-api"),
            {**text("SM1"), "date_sent": "yesterday", "date_created": "yesterday"},
            text("SM0", since - timedelta(hours=3)),
        ]
        found = await transport.inbound(since)
    assert found == [InboundText("SM3", NUMBER, "4", NOW), InboundText("SM4", NUMBER, "6", NOW)]
    (query,) = company.asked
    assert (query["To"], query["PageSize"]) == (FROM, "50")
    assert query["DateSent>"].startswith(since.strftime("%Y-%m-%dT%H:%M:%S"))


async def test_a_flood_of_messages_hides_no_reply() -> None:
    """Further pages are read, up to a limit."""
    async with phones() as (company, transport):
        company.inbox = [text(f"SM{n}") for n in range(500)]
        found = await transport.inbound(NOW - timedelta(minutes=10))
    assert [each.sid for each in found] == [f"SM{n}" for n in reversed(range(200))]
    assert len(company.asked) == 4


@pytest.mark.parametrize(
    "fault",
    [Fault(401, 20003), Fault(500), Fault(200, body="<html>"), Fault(200, body="[]"), Fault(hang=True)],
)
async def test_what_twilio_cannot_say_is_nothing(fault: Fault) -> None:
    """An outage is an empty list and one line in the log, however often one looks; then it works again."""
    async with phones(timeout=timedelta(milliseconds=200)) as (company, transport):
        company.inbox, company.faults = [text("SM1")], [fault, fault]
        with capture_logs() as logs:
            assert [await transport.inbound(NOW) for _ in range(2)] == [[], []]
        assert len(await transport.inbound(NOW)) == 1
    assert [entry["event"] for entry in logs] == ["twilio.inbound_failed"]
    assert NUMBER not in str(logs)


async def test_an_answer_is_sent_once() -> None:
    """No callback and no second try; a failure is a line in the log."""
    async with phones(public_url=PUBLIC) as (company, transport):
        assert await transport.reply(NUMBER, "#42 acknowledged")
        company.faults = [Fault(500)]
        with capture_logs() as logs:
            assert not await transport.reply(NUMBER, "#42 acknowledged")
    assert company.messages == [{"To": NUMBER, "From": FROM, "Body": "#42 acknowledged"}]
    assert [entry["event"] for entry in logs] == ["twilio.reply_failed"]


def outbound(sid: str, body: str, at: datetime = NOW, status: str = "sent") -> dict[str, object]:
    """A message to NUMBER as Twilio lists it."""
    return {
        **{"sid": sid, "from": FROM, "to": NUMBER, "body": body, "direction": "outbound-api"},
        **{"status": status, "date_created": format_datetime(at), "date_sent": None},
    }


WORDS = render.sms(page())


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ([outbound("SM7", WORDS)], "SM7"),
        ([outbound("SM8", "Midwatch #43 FIRING: another one"), outbound("SM7", WORDS)], "SM7"),
        ([outbound("SM7", WORDS, status="queued")], "SM7"),
        ([outbound("SM7", WORDS, status="failed")], None),
        ([outbound("SM7", WORDS, NOW - timedelta(minutes=5))], None),
        ([], None),
    ],
    ids=["there", "among others", "on its way", "failed", "of an earlier round", "nothing"],
)
async def test_a_message_that_may_have_been_sent_is_looked_for(listed: list[Any], found: str | None) -> None:
    """By number, words and time: what was sent for an earlier page is not taken for this one (F-59)."""
    async with phones() as (company, transport):
        company.inbox = listed
        before = await transport.sent_before(page(attempt=2, since=NOW))
        assert (before and before.ref) == found
        assert {"To": NUMBER, "From": FROM}.items() <= company.asked[0].items()


async def test_a_call_is_never_taken_for_another() -> None:
    """Twilio does not list what was said in a call, so it is made again."""
    async with phones() as (company, transport):
        assert await transport.sent_before(page(method=Method.VOICE, attempt=2, since=NOW)) is None
        assert company.asked == []


async def test_a_list_that_fails_stops_no_page() -> None:
    """Who cannot be asked is sent to."""
    async with phones() as (company, transport):
        company.faults = [Fault(503)]
        assert await transport.sent_before(page(attempt=2, since=NOW)) is None


async def test_what_became_of_it_can_be_asked() -> None:
    """Of a message and of a call; of what Twilio does not know nothing is said (F-61)."""
    async with phones() as (company, transport):
        company.became = {
            "SM1": {"status": "undelivered", "error_code": 30008},
            "CA1": {"status": "completed"},
        }
        assert await transport.told(Method.SMS, "SM1") == Told("undelivered", "30008")
        assert await transport.told(Method.VOICE, "CA1") == Told("completed")
        assert await transport.told(Method.SMS, "SM2") is None
