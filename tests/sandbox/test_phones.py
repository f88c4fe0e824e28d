"""SMS and calls through the real twilio client, with a stand-in for Midwatch's callbacks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from twilio.base.exceptions import TwilioRestException
from twilio.http.async_http_client import AsyncTwilioHttpClient
from twilio.rest import Client

from bot.sandbox.server import SandboxServer
from bot.sandbox.world import Options
from tests.sandbox.conftest import Script
from tests.sandbox.midwatch import Midwatch, running

ANA = "+12025550143"
OURS = "+12025550100"
ACCOUNT = "AC" + "0" * 32
TWIML = (
    '<Response><Say>Checkout is down.</Say><Gather numDigits="1" timeout="10" action="{action}">'
    "<Say>Press 4 to acknowledge.</Say></Gather><Say>Goodbye.</Say></Response>"
)


class LocalHttp(AsyncTwilioHttpClient):
    """The twilio client's own transport, sent to the sandbox instead."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base

    async def request(self, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        parts = urlsplit(url)
        query = f"?{parts.query}" if parts.query else ""
        login = aiohttp.encode_basic_auth(*kwargs.pop("auth"))
        kwargs["headers"] = {**(kwargs.get("headers") or {}), "Authorization": login}
        return await super().request(method, f"{self._base}{parts.path}{query}", *args, **kwargs)


@pytest.fixture
async def midwatch() -> AsyncIterator[Midwatch]:
    async with running() as server:
        yield server


@pytest.fixture
async def sandbox(midwatch: Midwatch) -> AsyncIterator[SandboxServer]:
    async with SandboxServer(options=Options(sms_url=f"{midwatch.url}/phone/sms")) as server:
        yield server


@pytest.fixture
async def twilio(sandbox: SandboxServer) -> AsyncIterator[Client]:
    transport = LocalHttp(sandbox.url)
    yield Client(ACCOUNT, "demo", http_client=transport)
    await transport.close()


@pytest.fixture
def script(sandbox: SandboxServer, http: aiohttp.ClientSession) -> Script:
    return Script(http, sandbox.url)


async def code_of(call: Any) -> int:
    with pytest.raises(TwilioRestException) as caught:
        await call
    return int(caught.value.code)


async def phone(script: Script, name: str = "ana") -> dict[str, Any]:
    phones = (await script.get("phones"))["phones"]
    return next(p for p in phones if p["name"] == name)


async def ringing(script: Script, twilio: Client, twiml: str, **extra: Any) -> str:
    call = await twilio.calls.create_async(to=ANA, from_=OURS, twiml=twiml, timeout=25, **extra)
    assert call.status == "queued"
    assert (await phone(script))["calls"][-1]["status"] == "ringing"
    return str(call.sid)


async def test_an_sms_is_delivered_and_answered(
    twilio: Client, midwatch: Midwatch, script: Script, sandbox: SandboxServer
) -> None:
    """The callbacks say sent, then delivered; the reply reaches Midwatch, whose TwiML is an SMS again."""
    midwatch.answers["/phone/sms"] = "<Response><Message>#42 acknowledged &amp; quiet</Message></Response>"
    sent = await twilio.messages.create_async(
        to=ANA, from_=OURS, body="#42 checkout is down", status_callback=f"{midwatch.url}/phone/status?d=7"
    )
    assert (sent.status, sent.direction) == ("queued", "outbound-api")
    await sandbox.until(lambda: len(sandbox.ledger.callbacks("message_status")) == 2)
    assert midwatch.statuses("/phone/status", "MessageStatus") == ["sent", "delivered"]
    await script.post("phones/%2B12025550143/reply", text="ack 42")
    assert midwatch.statuses("/phone/sms", "Body") == ["ack 42"]
    shown = (await phone(script))["sms"]
    assert [(s["direction"], s["body"]) for s in shown] == [
        ("in", "#42 checkout is down"),
        ("out", "ack 42"),
        ("in", "#42 acknowledged & quiet"),
    ]
    assert (await twilio.messages(sent.sid).fetch_async()).status == "delivered"


async def test_messages_are_found_by_number_and_time(twilio: Client) -> None:
    """After an ambiguous failure the message is found by To and a time window."""
    sent = await twilio.messages.create_async(to=ANA, from_=OURS, body="page")
    since = datetime.now(UTC) - timedelta(minutes=1)
    assert [m.sid for m in await twilio.messages.list_async(to=ANA, date_sent_after=since)] == [sent.sid]
    assert await twilio.messages.list_async(to=ANA, date_sent_before=since) == []
    assert await twilio.messages.list_async(to="+12025550144") == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"to": "12025550143", "body": "x"}, 21211),
        ({"to": "+0123456789", "body": "x"}, 21211),
        ({"to": ANA, "body": "x" * 1601}, 21617),
        ({"to": ANA, "body": " "}, 21602),
        ({"to": ANA, "body": "x", "from_": "+12025550199"}, 21606),
        ({"to": "+15005550009", "body": "x"}, 21614),
        ({"to": ANA, "body": "x", "status_callback": "nowhere"}, 21609),
    ],
)
async def test_a_bad_sms_is_refused_with_twilios_code(
    twilio: Client, script: Script, arguments: dict[str, str], code: int
) -> None:
    """Each mistake has Twilio's own code, and no phone gets anything."""
    assert await code_of(twilio.messages.create_async(**{"from_": OURS, **arguments})) == code
    assert (await phone(script))["sms"] == []


async def test_a_wrong_token_is_refused(sandbox: SandboxServer) -> None:
    """Authentication fails with 401 and 20003."""
    transport = LocalHttp(sandbox.url)
    client = Client(ACCOUNT, "wrong", http_client=transport)
    with pytest.raises(TwilioRestException) as caught:
        await client.messages.create_async(to=ANA, from_=OURS, body="x")
    await transport.close()
    assert (caught.value.status, caught.value.code) == (401, 20003)


async def test_stop_blocks_the_number_until_start(twilio: Client, script: Script) -> None:
    """STOP opts the number out: 21610 until START."""
    await script.post("phones/ana/reply", text="Stop")
    assert await code_of(twilio.messages.create_async(to=ANA, from_=OURS, body="x")) == 21610
    await script.post("phones/ana/reply", text="START")
    await twilio.messages.create_async(to=ANA, from_=OURS, body="x")


async def test_a_key_in_a_call_reaches_midwatch_and_its_words_follow(
    twilio: Client, midwatch: Midwatch, script: Script, sandbox: SandboxServer
) -> None:
    """Answer, hear, press 4: the digit is posted, the answer is spoken, and every state is told in order."""
    midwatch.answers["/phone/keys"] = "<Response><Say>Acknowledged.</Say><Hangup/></Response>"
    await ringing(
        script,
        twilio,
        TWIML.format(action=f"{midwatch.url}/phone/keys?d=7&amp;x=1"),
        status_callback=f"{midwatch.url}/phone/status",
        status_callback_event=["initiated", "ringing", "answered", "completed"],
        machine_detection="Enable",
    )
    answered = await script.post("phones/ana/answer")
    assert answered["gathering"]
    pressed = await script.post("phones/ana/press", digits="4")
    assert pressed["status"] == "completed"
    assert pressed["said"] == ["Checkout is down.", "Press 4 to acknowledge.", "Acknowledged."]
    assert midwatch.statuses("/phone/keys", "Digits") == ["4"]
    await sandbox.until(lambda: len(sandbox.ledger.callbacks("call_status")) == 4)
    told = midwatch.statuses("/phone/status", "CallStatus")
    assert told == ["initiated", "ringing", "in-progress", "completed"]
    assert midwatch.posts[-1][1]["AnsweredBy"] == "human"


async def test_a_gather_without_keys_goes_on(twilio: Client, script: Script) -> None:
    """After the words and the timeout the document goes on, in sandbox time."""
    await ringing(script, twilio, TWIML.format(action="http://127.0.0.1:9/keys"))
    await script.post("phones/ana/answer")
    await script.post("advance", seconds=8)
    assert (await phone(script))["calls"][0]["gathering"]
    await script.post("advance", seconds=10)
    (call,) = (await phone(script))["calls"]
    assert (call["status"], call["said"][-1]) == ("completed", "Goodbye.")


@pytest.mark.parametrize(
    ("verb", "status", "shown"),
    [("decline", "busy", "busy"), ("hangup", "busy", "busy"), ("voicemail", "in-progress", "in-progress")],
)
async def test_what_a_person_does_with_a_ringing_call(
    twilio: Client, script: Script, verb: str, status: str, shown: str
) -> None:
    """Declining is busy; a voicemail box takes the call, and presses nothing."""
    sid = await ringing(script, twilio, TWIML.format(action="http://127.0.0.1:9/keys"))
    await script.post(f"phones/ana/{verb}")
    assert (await twilio.calls(sid).fetch_async()).status == status
    assert (await phone(script))["calls"][0]["status"] == shown
    await script.post("phones/ana/press", status=409, digits="4")


async def test_nobody_answers(
    twilio: Client, midwatch: Midwatch, script: Script, sandbox: SandboxServer
) -> None:
    """A call rings for its Timeout of sandbox time, then Midwatch is told no-answer."""
    sid = await ringing(
        script, twilio, TWIML.format(action=""), status_callback=f"{midwatch.url}/phone/status"
    )
    await script.post("advance", seconds=24)
    assert (await twilio.calls(sid).fetch_async()).status == "ringing"
    await script.post("advance", seconds=2)
    assert (await twilio.calls(sid).fetch_async()).status == "no-answer"
    assert midwatch.statuses("/phone/status", "CallStatus") == ["no-answer"]


async def test_midwatch_stops_a_ringing_call(twilio: Client, script: Script) -> None:
    """An acknowledged incident's call is cancelled; ending it twice is refused as Twilio does."""
    sid = await ringing(script, twilio, TWIML.format(action=""))
    assert (await twilio.calls(sid).update_async(status="canceled")).status == "canceled"
    assert await code_of(twilio.calls(sid).update_async(status="completed")) == 21220
    await script.post("phones/ana/answer", status=409)


async def test_an_action_that_does_not_answer_is_an_application_error(twilio: Client, script: Script) -> None:
    """The caller hears Twilio's apology and the call ends."""
    await ringing(script, twilio, TWIML.format(action="http://127.0.0.1:9/keys"))
    await script.post("phones/ana/answer")
    pressed = await script.post("phones/ana/press", digits="4")
    assert (pressed["status"], pressed["said"][-1]) == (
        "completed",
        "An application error has occurred. Goodbye.",
    )


async def test_the_phone_company_breaks_in_every_way(
    twilio: Client, midwatch: Midwatch, script: Script, sandbox: SandboxServer
) -> None:
    """Outage, throttle, codes and lost messages, each on its own service."""
    send = {"to": ANA, "from_": OURS, "body": "page", "status_callback": f"{midwatch.url}/phone/status"}
    await script.post("fault", target="sms", kind="429")
    with pytest.raises(TwilioRestException) as caught:
        await twilio.messages.create_async(**send)
    assert (caught.value.status, caught.value.code) == (429, 20429)
    await script.post("fault", target="sms", kind="21408")
    assert await code_of(twilio.messages.create_async(**send)) == 21408
    await script.post("fault", target="sms", kind="undelivered", times=1)
    await twilio.messages.create_async(**send)
    await sandbox.until(lambda: len(sandbox.ledger.callbacks("message_status")) == 2)
    assert midwatch.posts[-1][1]["ErrorCode"] == "30003"
    await script.post("fault", target="sms", kind="reset_after", times=1)
    with pytest.raises(aiohttp.ClientError):
        await twilio.messages.create_async(**send)
    await sandbox.until(lambda: len((sandbox.world.exchange.phone(ANA)).sms) == 2)
    await script.post("fault", target="voice", kind="busy")
    call = await twilio.calls.create_async(to=ANA, from_=OURS, twiml=TWIML.format(action=""))
    assert (await twilio.calls(call.sid).fetch_async()).status == "busy"
    await script.post("fault", target="twilio", kind="outage")
    with pytest.raises(TwilioRestException):
        await twilio.calls.create_async(to=ANA, from_=OURS, twiml=TWIML.format(action=""))
    await script.post("phones/ana/reply", status=503, text="ack")


@pytest.mark.parametrize(("mode", "status"), [("busy", "busy"), ("off", "no-answer")])
async def test_a_phone_that_cannot_be_reached(twilio: Client, script: Script, mode: str, status: str) -> None:
    """Whoever calls hears so at once, and the page shows what the phone does."""
    await script.post("phones/ana/mode", mode=mode)
    call = await twilio.calls.create_async(to=ANA, from_=OURS, twiml=TWIML.format(action=""))
    assert (await twilio.calls(str(call.sid)).fetch_async()).status == status
    assert (await phone(script))["mode"] == mode
    await script.post("phones/ana/mode", mode="normal")
    await ringing(script, twilio, TWIML.format(action=""))


async def test_a_machine_takes_the_call_by_itself(twilio: Client, script: Script) -> None:
    """After ten seconds of ringing; it presses nothing, and the call ends when all is said."""
    await script.post("phones/ana/mode", mode="voicemail")
    sid = await ringing(script, twilio, TWIML.format(action="http://127.0.0.1:9/keys"))
    await script.post("advance", seconds=11)
    assert (await twilio.calls(sid).fetch_async()).status == "in-progress"
    await script.post("phones/ana/press", status=409, digits="4")
    await script.post("advance", seconds=60)
    assert (await phone(script))["calls"][0]["status"] == "voicemail"


async def test_texts_to_phones_that_take_none(
    twilio: Client, midwatch: Midwatch, script: Script, sandbox: SandboxServer
) -> None:
    """One that is off is told of by the carrier afterwards, a landline is refused at once."""
    await script.post("phones/ana/mode", mode="off")
    url = f"{midwatch.url}/phone/status"
    await twilio.messages.create_async(to=ANA, from_=OURS, body="Checkout is down", status_callback=url)
    await sandbox.until(lambda: len(sandbox.ledger.callbacks("message_status")) == 2)
    assert midwatch.statuses("/phone/status", "MessageStatus") == ["sent", "undelivered"]
    await script.post("phones/ana/mode", mode="landline")
    again = twilio.messages.create_async(to=ANA, from_=OURS, body="Checkout is down")
    assert await code_of(again) == 21614
    await script.post("phones/ana/mode", status=400, mode="melted")


@pytest.mark.parametrize(
    ("kind", "at_once", "later"),
    [
        ("outage", [], []),
        ("late", [], ["sent", "delivered"]),
        ("duplicate", ["sent", "sent", "delivered", "delivered"], []),
        ("disorder", ["delivered"], ["sent"]),
    ],
)
async def test_what_became_of_a_text_is_told_badly(
    twilio: Client, midwatch: Midwatch, script: Script, kind: str, at_once: list[str], later: list[str]
) -> None:
    """Never, late, twice or in the wrong order; whoever asks is told the truth all the while."""
    await script.post("fault", target="callbacks", kind=kind)
    url = f"{midwatch.url}/phone/status"
    sent = await twilio.messages.create_async(to=ANA, from_=OURS, body="page", status_callback=url)
    await script.post("advance", seconds=0)
    assert midwatch.statuses("/phone/status", "MessageStatus") == at_once
    assert (await twilio.messages(sent.sid).fetch_async()).status == "delivered"
    await script.post("advance", seconds=91)
    assert midwatch.statuses("/phone/status", "MessageStatus") == at_once + later


async def test_a_call_speaks_while_nothing_is_told_of_it(
    twilio: Client, midwatch: Midwatch, script: Script
) -> None:
    """Its callbacks are lost, but keys still reach Midwatch: another part of the company carries those."""
    await script.post("fault", target="callbacks", kind="outage")
    midwatch.answers["/phone/keys"] = "<Response><Say>Acknowledged.</Say></Response>"
    told = {"status_callback": f"{midwatch.url}/phone/status", "status_callback_event": ["completed"]}
    await ringing(script, twilio, TWIML.format(action=f"{midwatch.url}/phone/keys"), **told)
    await script.post("phones/ana/answer")
    pressed = await script.post("phones/ana/press", digits="4")
    assert pressed["said"][-1] == "Acknowledged."
    await script.post("advance", seconds=60)
    assert midwatch.statuses("/phone/status", "CallStatus") == []


@pytest.mark.parametrize("mode", ["dnd", "dnd_contact"])
async def test_do_not_disturb_is_unknown_to_the_caller(twilio: Client, script: Script, mode: str) -> None:
    """The phone rings whether anybody hears it or not."""
    await script.post("phones/ana/mode", mode=mode)
    await ringing(script, twilio, TWIML.format(action=""))
    assert (await phone(script))["mode"] == mode
