"""SMS replies, keypresses and status callbacks: only when signed, only about what was sent there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
import sqlalchemy as sa
from multidict import MultiDict
from structlog.testing import capture_logs
from twilio.request_validator import RequestValidator

from engine.errors import Unavailable
from engine.models import ORG, DeliveryStatus, IncidentStatus, IncidentView, Method, Via
from engine.schema import deliveries, incidents, metadata
from engine.store import contacts, people
from tests.fakes import START
from tests.web.conftest import AUTH_TOKEN, PHONE, PUBLIC_URL, Answered, Client, World
from tests.web.fakes import ANA, BEN, SERVICE, incident, sms_to
from tests.web.test_ingest import is_a_problem

EMPTY = '<?xml version="1.0" encoding="UTF-8"?><Response />'


async def signed(
    client: Client,
    path: str,
    fields: Mapping[str, str],
    *,
    url: str = PUBLIC_URL,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
) -> Answered:
    """Send what Twilio would send."""
    if method == "GET":
        path += ("&" if "?" in path else "?") + urlencode(fields)
        fields = {}
    signature = RequestValidator(AUTH_TOKEN).compute_signature(url + path, MultiDict(fields))
    sent = {**(headers or {}), "X-Twilio-Signature": signature}
    return await client(method, path, data=dict(fields) or None, headers=sent)


async def text(client: Client, body: str, sender: str = PHONE) -> str | None:
    """Send an SMS from a phone; the text that comes back, if one does."""
    answer = await signed(client, "/webhooks/twilio/sms", {"From": sender, "Body": body, "MessageSid": "SM1"})
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/xml")
    return ElementTree.fromstring(answer.text).findtext("Message")  # noqa: S314  # our own document


def texted(world: World, *views: IncidentView) -> None:
    world.pager.add(*views)
    world.pager.sent += [sms_to(ANA, view, view.number) for view in views]


@pytest.mark.parametrize("word", ["4", "ack", " Ack. ", "ack 42", "4 42", "“ACK #42”"])
async def test_a_reply_acknowledges_the_incident_that_was_texted(
    client: Client, world: World, word: str
) -> None:
    """With one open incident a bare 4 is enough; the answer says what happened, as that person by SMS."""
    texted(world, incident(42))
    assert await text(client, word) == "#42 acknowledged: db-42 is down"
    ((verb, incident_id, actor),) = world.pager.acts
    assert (verb, incident_id) == ("acknowledge", 1042)
    assert (actor.name, actor.person_id, actor.via) == ("ana", ANA.id, Via.SMS)


@pytest.mark.parametrize("word", ["6", "resolve", "Resolve 42"])
async def test_a_reply_resolves_the_incident_that_was_texted(client: Client, world: World, word: str) -> None:
    """6 closes it."""
    texted(world, incident(42))
    assert await text(client, word) == "#42 resolved: db-42 is down"


async def test_a_bare_reply_with_several_open_lists_them(client: Client, world: World) -> None:
    """Nothing is guessed: the answer names each and how to choose."""
    texted(world, incident(42), incident(43, IncidentStatus.ACKNOWLEDGED))
    answer = await text(client, "4")
    assert answer == (
        "#42 triggered: db-42 is down\n#43 acknowledged: db-43 is down\n2 are open: reply ack all or ack 42"
    )
    assert world.pager.acts == []
    assert await text(client, "ack 43") == "#43 already acknowledged: db-43 is down"


async def test_a_long_list_is_cut(client: Client, world: World) -> None:
    """An SMS has room for five."""
    texted(world, *(incident(n) for n in range(1, 9)))
    answer = await text(client, "list")
    assert answer is not None
    assert answer.count("triggered") == 5
    assert answer.endswith("and 3 more")


async def test_a_bare_reply_with_nothing_open_says_so(client: Client) -> None:
    """The sender learns that there is nothing to do."""
    assert await text(client, "4") == "No open incident was texted to this number."


async def test_an_incident_that_was_not_texted_there_cannot_be_named(client: Client, world: World) -> None:
    """Neither an unknown number nor that of other people's incident is acted on."""
    theirs, queued = incident(43), incident(44)
    texted(world, incident(42))
    world.pager.add(theirs, queued)
    world.pager.sent.append(sms_to(BEN, theirs, 2))
    world.pager.sent.append(sms_to(ANA, theirs, 3, Method.VOICE))
    world.pager.sent.append(replace(sms_to(ANA, queued, 4), status=DeliveryStatus.QUEUED, sent_at=None))
    for number in (43, 44, 99, 10**9 - 1):
        answer = await text(client, f"ack {number}")
        assert answer == f"#{number} was not texted to this number. Send LIST to see what was."
    assert world.pager.acts == []


async def test_a_late_reply_is_told_that_it_is_over(client: Client, world: World) -> None:
    """An ack on a resolved incident changes nothing and says so."""
    texted(world, incident(42, IncidentStatus.RESOLVED))
    assert await text(client, "ack 42") == "#42 already resolved: db-42 is down"


async def test_a_shared_phone_answers_for_whoever_was_paged(client: Client, world: World) -> None:
    """Two people have one number: the reply counts as that of the one who was texted."""
    vault = world.parts.vault
    await world.database.write(
        lambda tx: contacts.save_method(
            tx, ORG, BEN.id, Method.SMS, PHONE, vault=vault, verified_by="test", now=START
        )
    )
    view = incident(42)
    world.pager.add(view)
    world.pager.sent.append(sms_to(BEN, view))
    await text(client, "4")
    assert world.pager.acts[0][2].name == "ben"


async def test_a_reply_escalates(client: Client, world: World) -> None:
    """8 goes on to the next level, like the key in a call."""
    texted(world, incident(42))
    assert await text(client, "8") == "#42 escalated: db-42 is down"
    assert [verb for verb, _, _ in world.pager.acts] == ["escalate"]


async def test_all_that_was_texted_is_acknowledged_at_once(client: Client, world: World) -> None:
    """`ack all` stops every page of that phone; what could not be stored is told."""
    texted(world, incident(42), incident(43), incident(44, IncidentStatus.ACKNOWLEDGED))
    world.pager.fails = Unavailable()
    assert await text(client, "ack all") == "NOT applied: #42, #43. Try again."
    world.pager.fails = None
    assert await text(client, "ack all") == "Acknowledged: #42, #43."
    assert [(verb, incident_id) for verb, incident_id, _ in world.pager.acts] == [
        ("acknowledge", 1042),
        ("acknowledge", 1043),
    ]


async def test_who_is_on_call_is_told(client: Client) -> None:
    """With the end on the clock of whoever asks, and who is next."""
    answer = await text(client, "who")
    assert answer is not None
    assert answer.startswith("primary: ana until ")
    assert answer.endswith(", then ben")
    assert await text(client, "who nothing") == "There is no such schedule. Send WHO to see them."


async def test_two_machines_that_answer_each_other_come_to_an_end(client: Client, world: World) -> None:
    """What is not understood is answered five times an hour; what is, always (S-17)."""
    words = ["I am driving and will answer later.", "Who is this?"] * 4
    said = [await text(client, word) for word in words]
    assert [answer is not None for answer in said] == [True] * 5 + [False] * 3
    texted(world, incident(42))
    assert await text(client, "4") == "#42 acknowledged: db-42 is down"


async def test_stop_turns_texts_off_and_start_on_again(client: Client, world: World) -> None:
    """Any of the carrier's words, in any case: the method is off, whoever runs Midwatch hears of it, and
    every other method stays (S-17)."""

    async def methods() -> dict[Method, bool]:
        async with world.database.snapshot() as tx:
            found = await people.read_people(tx, ORG, world.parts.vault)
        return {method.kind: method.usable for method in found[ANA.id].methods}

    before = await methods()
    assert before[Method.SMS]
    assert await text(client, " Stop ") is None
    assert await methods() == {**before, Method.SMS: False}
    async with world.database.snapshot() as tx:
        told = list(await tx.scalars(sa.select(deliveries.c.body).where(deliveries.c.kind == "ops")))
    assert told
    assert all("ana replied STOP" in body["text"] for body in told)
    texted(world, incident(42))
    assert await text(client, "ack 42") == "#42 acknowledged: db-42 is down"  # what was texted is answered
    assert await text(client, "start") is None
    assert await methods() == before


async def test_a_start_that_was_not_stored_is_told(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The carrier says that texts come again: they do not yet, and nobody else would say so."""

    async def away(*_: object, **__: object) -> None:
        raise Unavailable

    monkeypatch.setattr(world.database, "write", away)
    answer = await text(client, "start")
    assert answer is not None
    assert answer.startswith("NOT applied")
    assert await text(client, "stop") is None


async def test_a_shared_phone_whose_owner_is_gone_is_told_the_number(client: Client, world: World) -> None:
    """What was texted to somebody who left cannot be answered by whoever has the phone too."""
    view = incident(42)
    world.pager.add(view)
    world.pager.sent.append(sms_to(BEN, view))
    assert await text(client, "4") == "#42 was not texted to this number. Send LIST to see what was."
    assert await text(client, "ack all") == "No open incident was texted to this number."


async def test_a_storm_is_acknowledged_in_one_text(client: Client, world: World) -> None:
    """A text of 1,600 characters is refused by Twilio: of many numbers the first are named."""
    texted(world, *(incident(n) for n in range(1, 301)))
    answer = await text(client, "ack all")
    assert answer is not None
    assert answer.startswith("Acknowledged: #1, #2,")
    assert answer.endswith("and 280 more.")
    assert len(world.pager.acts) == 300


@pytest.mark.parametrize("word", ["help", "what?", "", "resolve all", "42"])
async def test_what_is_not_understood_is_answered_by_the_right_form(client: Client, word: str) -> None:
    """Help is one SMS."""
    answer = await text(client, word)
    assert answer is not None
    assert "4 or ACK 42" in answer
    assert len(answer) <= 160


@pytest.mark.parametrize(
    "word", ["STOP", " stop ", "Stopall", "UNSUBSCRIBE", "cancel", "End", "QUIT", "Start", "unstop"]
)
async def test_the_carriers_words_are_left_to_the_carrier(client: Client, word: str) -> None:
    """Their answer is the carrier's, not ours (S-17)."""
    assert await text(client, word) is None


@pytest.mark.parametrize(
    "word",
    [
        "override ben 2h",
        "/override @ben 2h",
        "/oncall me add sms +15005550007",
        "verify 123456",
        "cover primary",
        "snooze 42 4h",
        "reassign 42 ben",
        "maintenance checkout 2h",
        "retry 17",
        "unresolve 42",
    ],
)
async def test_a_text_can_respond_and_nothing_else(client: Client, world: World, word: str) -> None:
    """No schedule, contact method, window or message is within reach of who can forge a sender: such a text
    is answered by what can be said, and changes no row (S-18)."""

    async def rows() -> list[str]:
        async with world.database.snapshot() as tx:
            kept = [table for table in metadata.sorted_tables if table.name != "inbound"]  # counts the help
            return [repr(tuple(row)) for table in kept for row in await tx.execute(sa.select(table))]

    texted(world, incident(42))
    before = await rows()
    assert before
    answer = await text(client, word)
    assert answer is not None
    assert "4 or ACK 42" in answer
    assert world.pager.acts == []
    assert await rows() == before


async def test_an_unknown_number_is_told_nothing(client: Client, world: World) -> None:
    """The same empty answer for every word, and no number in the log."""
    texted(world, incident(42))
    with capture_logs() as logs:
        for word in ("4", "ack 42", "list", "help"):
            assert await text(client, word, sender="+15005550006") is None
    assert world.pager.acts == []
    assert "15005550006" not in str(logs)


async def test_a_reply_that_could_not_be_stored_is_told_so(client: Client, world: World) -> None:
    """Nobody reads a 503 on a phone: the answer itself says NOT applied."""
    texted(world, incident(42))
    world.pager.fails = Unavailable()
    answer = await text(client, "4")
    assert answer is not None
    assert answer.startswith("NOT applied")


async def test_foreign_text_in_an_answer_is_harmless(client: Client, world: World) -> None:
    """Markup is escaped, links are dead, and what XML cannot hold is gone."""
    title = "A & B <Dial>+1900</Dial>\x07 \ud800 https://evil.example/x " + "🔥" * 200
    texted(world, incident(42, title=title))
    answer = await text(client, "4")
    assert answer is not None
    assert answer.startswith("#42 acknowledged: A & B <Dial>+1900</Dial> hxxps://evil[.]example/x")
    assert len(answer) < 120


# --- signatures on the wire ------------------------------------------------------------------------

PATHS = ["/webhooks/twilio/sms", "/webhooks/twilio/voice?delivery=1", "/webhooks/twilio/status"]
FIELDS = {"From": PHONE, "Body": "4", "Digits": "4", "MessageSid": "SM1", "MessageStatus": "delivered"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Twilio-Signature": ""},
        {"X-Twilio-Signature": "ebTYPUvFTDW8ZsaqH5vKDRkes2I="},
        {"X-Twilio-Signature": "\udcff\udcfe"},
        {"X-Twilio-Signature": "ключ"},
    ],
)
async def test_what_is_not_signed_is_refused_without_a_trace(
    client: Client, world: World, path: str, headers: dict[str, str]
) -> None:
    """403 on every callback; nothing happens, and nothing is logged as a failure."""
    texted(world, incident(42))
    with capture_logs() as logs:
        answer = await client.post(path, data=FIELDS, headers=headers)
    assert is_a_problem(answer, 403)
    assert (world.pager.acts, world.statuses) == ([], [])
    assert [entry["event"] for entry in logs] == ["web.answered"]


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"%", b"a" * 1000, b"&".join([b"a=1"] * 500)])
async def test_odd_bytes_in_a_callback_are_refused(client: Client, raw: bytes) -> None:
    """A body that is no form has no signature."""
    headers = {"X-Twilio-Signature": "x", "Content-Type": "application/x-www-form-urlencoded"}
    assert is_a_problem(await client.post("/webhooks/twilio/sms", data=raw, headers=headers), 403)


async def test_a_signature_for_another_address_is_refused(client: Client, world: World) -> None:
    """Only the configured public address counts, whatever Host or a proxy's headers say."""
    fields = {"From": PHONE, "Body": "4"}
    for url in (client.url, "https://evil.example", PUBLIC_URL.replace("https", "http")):
        answer = await signed(client, "/webhooks/twilio/sms", fields, url=url)
        assert is_a_problem(answer, 403)
        scheme, _, host = url.partition("://")
        believed = {"Host": host, "X-Forwarded-Host": host, "X-Forwarded-Proto": scheme}
        answer = await signed(client, "/webhooks/twilio/sms", fields, url=url, headers=believed)
        assert is_a_problem(answer, 403)
    for url in (PUBLIC_URL, f"{PUBLIC_URL}:443"):
        assert (await signed(client, "/webhooks/twilio/sms", fields, url=url)).status == 200


async def test_a_signature_covers_the_query(client: Client) -> None:
    """A call's delivery cannot be exchanged."""
    signature = RequestValidator(AUTH_TOKEN).compute_signature(
        f"{PUBLIC_URL}/webhooks/twilio/voice?delivery=1", MultiDict({"Digits": "4"})
    )
    answer = await client.post(
        "/webhooks/twilio/voice?delivery=2", data={"Digits": "4"}, headers={"X-Twilio-Signature": signature}
    )
    assert is_a_problem(answer, 403)


# --- voice -----------------------------------------------------------------------------------------


async def called(world: World) -> str:
    """Ana is called about #42; the path of the call's callback."""
    view = incident(42)
    world.pager.add(view)
    call = sms_to(ANA, view, 7, Method.VOICE)
    row: dict[str, Any] = {
        "id": call.id,
        "org_id": ORG,
        "incident_id": view.id,
        "kind": call.kind.value,
        "method": call.method.value,
        "person_id": ANA.id,
        "round": 1,
        "pass": 0,
        "level": 0,
        "step": 0,
        "idem_key": call.idem_key,
        "status": call.status.value,
        "attempts": 1,
        "body": {},
        "due_at": START,
        "created_at": START,
    }
    opened: dict[str, Any] = {
        "id": view.id,
        "org_id": ORG,
        "number": 42,
        "service_id": SERVICE.id,
        "group_key": "g",
        "status": "triggered",
        "urgency": "high",
        "title": view.title,
        "opened_at": START,
        "last_joined_at": START,
    }

    async def unit(tx: Any) -> None:
        await tx.execute(sa.insert(incidents).values(opened))
        await tx.execute(sa.insert(deliveries).values(row))

    await world.database.write(unit)
    return f"/webhooks/twilio/voice?delivery={call.id}"


@pytest.mark.parametrize(
    ("digit", "verb", "said"), [("4", "acknowledge", "acknowledged"), ("6", "resolve", "resolved")]
)
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_key_in_the_call_acts_for_who_was_called(
    client: Client, world: World, method: str, digit: str, verb: str, said: str
) -> None:
    """4 acknowledges, 6 resolves, and the call says so."""
    path = await called(world)
    answer = await signed(client, path, {"Digits": digit, "CallSid": "CA1"}, method=method)
    assert answer.status == 200
    assert f"#42 {said}" in answer.text
    ((done, incident_id, actor),) = world.pager.acts
    assert (done, incident_id) == (verb, 1042)
    assert (actor.name, actor.via) == ("ana", Via.VOICE)
    assert world.statuses == [("CA1", "pressed", None, 7)]


@pytest.mark.parametrize("fields", [{"Digits": "*"}, {"Digits": "9"}, {}])
async def test_any_other_key_says_it_again(client: Client, world: World, fields: dict[str, str]) -> None:
    """The star repeats, and a wrong key does nothing else."""
    path = await called(world)
    answer = await signed(client, path, {"CallSid": "CA1", **fields})
    document = ElementTree.fromstring(answer.text)  # noqa: S314  # our own document
    gather = document.find("Gather")
    assert gather is not None
    assert gather.get("action") == PUBLIC_URL + path
    assert "db-42 is down" in (gather.findtext("Say") or "")
    assert world.pager.acts == []
    assert len(world.statuses) == len(fields)  # a key is pressed by a person, silence by nobody


@pytest.mark.parametrize("delivery", ["", "x", "99", "-7", "9" * 40, "٧"])
async def test_a_call_about_nothing_known_changes_nothing(
    client: Client, world: World, delivery: str
) -> None:
    """It is said, and the call ends."""
    await called(world)
    path = f"/webhooks/twilio/voice?{urlencode({'delivery': delivery})}"
    answer = await signed(client, path, {"Digits": "4"})
    assert answer.status == 200
    assert "nothing that is still known" in answer.text
    assert world.pager.acts == []


async def test_a_key_that_could_not_be_stored_is_told_so(client: Client, world: World) -> None:
    """The voice says that it was NOT applied."""
    path = await called(world)
    world.pager.fails = Unavailable()
    assert "NOT applied" in (await signed(client, path, {"Digits": "4"})).text


# --- what became of a message ----------------------------------------------------------------------


async def test_statuses_are_handed_to_the_pipeline(client: Client, world: World) -> None:
    """Of messages and of calls, with the error code and the delivery if there is one."""
    path = "/webhooks/twilio/status?delivery=7"
    await signed(client, path, {"MessageSid": "SM1", "MessageStatus": "delivered", "ErrorCode": ""})
    await signed(client, path, {"MessageSid": "SM2", "MessageStatus": "undelivered", "ErrorCode": "30003"})
    answer = await signed(
        client, "/webhooks/twilio/status?delivery=x", {"CallSid": "CA1", "CallStatus": "busy"}
    )
    assert answer.status == 204
    assert world.statuses == [
        ("SM1", "delivered", None, 7),
        ("SM2", "undelivered", "30003", 7),
        ("CA1", "busy", None, None),
    ]


async def test_a_status_without_a_reference_is_nothing(client: Client, world: World) -> None:
    """It is signed, so it is no attack; it says nothing, so nothing happens."""
    assert (await signed(client, "/webhooks/twilio/status", {})).status == 204
    assert world.statuses == []


async def test_a_status_that_cannot_be_stored_is_a_503(client: Client, world: World) -> None:
    """Twilio may try again."""
    world.pager.fails = Unavailable()
    fields = {"MessageSid": "SM1", "MessageStatus": "delivered"}
    assert is_a_problem(await signed(client, "/webhooks/twilio/status", fields), 503)
