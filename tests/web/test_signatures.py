"""Signatures of the phone company, by vectors that were measured with its own libraries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from multidict import MultiDict
from twilio.request_validator import RequestValidator

from bot.web.parts import Phones
from bot.web.signatures import fields_of, form_of, is_signed
from tests.web.conftest import AUTH_TOKEN, PHONE, PUBLIC_URL, Answered, Client, World

TOKEN = "12345"
URL = "https://pager.example.com/twilio/sms"
FORM = MultiDict({"Body": "1a", "From": "+15005550006", "MessageSid": "SM" + "0" * 32})
PLAIN = "ebTYPUvFTDW8ZsaqH5vKDRkes2I="
WITH_PORT = "i+2KHddd5kddE9TlcC5tsraw+s0="
BEHIND_PROXY = "TN2jSE/KtIeAh4NZeZdEmQ/A3/g="


def signed(signature: str, url: str = URL, form: MultiDict[str] = FORM) -> bool:
    return is_signed(TOKEN, url, form, {"X-Twilio-Signature": signature})


@pytest.mark.parametrize("signature", [PLAIN, WITH_PORT])
@pytest.mark.parametrize("url", [URL, "https://pager.example.com:443/twilio/sms"])
def test_the_public_address_counts_with_and_without_its_port(url: str, signature: str) -> None:
    """Twilio signs the address with the port or without it; both are the same place."""
    assert signed(signature, url)


def test_a_signature_for_the_inner_address_is_refused() -> None:
    """What was signed for another address (that of a host behind a proxy) is not for us."""
    assert not signed(BEHIND_PROXY)


@pytest.mark.parametrize("signature", ["", "x", PLAIN[:-1], "é" * 28, "\udcff", "=" * 28, PLAIN + PLAIN])
def test_odd_signatures_are_refused_without_an_error(signature: str) -> None:
    """Missing, cut and hostile signatures are all simply not signed."""
    assert not signed(signature)


@pytest.mark.parametrize("url", ["https://pager.example.com:port/", "https://[::1/twilio/sms", ""])
def test_an_address_that_cannot_be_parsed_signs_nothing(url: str) -> None:
    """A broken public address refuses every request rather than raising."""
    assert not signed(PLAIN, url)


def test_one_changed_field_breaks_the_signature() -> None:
    """The signature covers the fields."""
    assert not signed(PLAIN, form=MultiDict({**FORM, "Body": "4"}))


def test_an_unknown_algorithm_is_refused() -> None:
    """The sender does not choose how it is checked."""
    headers = {"X-Twilio-Signature": PLAIN, "X-Twilio-Webhooks-Signature-Settings": "key=k,algorithm=NONE"}
    assert not is_signed(TOKEN, URL, FORM, headers)


def test_bytes_that_are_no_text_are_no_form() -> None:
    """A body of odd bytes has no fields."""
    assert form_of(b"\xff\xfe\x00") is None
    assert form_of(b"&".join(b"a=%d" % n for n in range(1000))) is None


def test_a_form_keeps_empty_and_repeated_fields() -> None:
    """The signature is over every field, so none may be lost."""
    form = form_of(b"a=&b=1&b=2&c=%F0%9F%94%A5")
    assert form is not None
    assert list(form.items()) == [("a", ""), ("b", "1"), ("b", "2"), ("c", "🔥")]


# --- which token counts, on the wire ---------------------------------------------------------------------

OWN, SUB, STRANGER = "AC" + "0" * 32, "AC" + "1" * 32, "AC" + "2" * 32
OLD_TOKEN, SUB_TOKEN = "the-old-secret", "the-secret-of-the-sub-account"
STATUS = "/webhooks/twilio/status"


@pytest.fixture
async def callee(world: World, serve: Callable[..., Any]) -> Client:
    """A server with an old token and a sub-account."""
    assert world.parts.phones is not None
    changed = replace(world.parts.phones, account_sid=OWN, old_token=OLD_TOKEN, subaccounts={SUB: SUB_TOKEN})
    made: Client = await serve(world.parts, phones=changed)
    return made


async def call(client: Client, token: str, account: str | None, sid: str = "SM1") -> Answered:
    """A status of a message, of this account, signed with this token."""
    fields = {"MessageSid": sid, "MessageStatus": "delivered", **({"AccountSid": account} if account else {})}
    signature = RequestValidator(token).compute_signature(PUBLIC_URL + STATUS, MultiDict(fields))
    return await client.post(STATUS, data=fields, headers={"X-Twilio-Signature": signature})


@pytest.mark.parametrize(
    ("token", "account"),
    [(AUTH_TOKEN, OWN), (AUTH_TOKEN, None), (OLD_TOKEN, OWN), (OLD_TOKEN, None), (SUB_TOKEN, SUB)],
)
async def test_a_token_of_the_account_is_believed(
    callee: Client, world: World, token: str, account: str | None
) -> None:
    """The new and the old one while they are changed, and a sub-account's own (F-66)."""
    assert (await call(callee, token, account)).status == 204
    assert len(world.statuses) == 1


@pytest.mark.parametrize(
    ("token", "account"),
    [
        (SUB_TOKEN, OWN),
        (SUB_TOKEN, None),
        (AUTH_TOKEN, SUB),
        (OLD_TOKEN, SUB),
        (AUTH_TOKEN, STRANGER),
        (SUB_TOKEN, STRANGER),
        ("", STRANGER),
        (AUTH_TOKEN, "😀"),
        (AUTH_TOKEN, OWN.lower()),
    ],
)
async def test_a_token_of_another_account_is_refused(
    callee: Client, world: World, token: str, account: str | None
) -> None:
    """403 and never a 500, and nothing happens (F-66, B110)."""
    assert (await call(callee, token, account)).status == 403
    assert world.statuses == []


async def test_a_forged_text_or_status_changes_nothing(callee: Client, world: World) -> None:
    """Every callback, each with the fields of a real one (F-65)."""
    fields = {"From": PHONE, "Body": "ack 42", "MessageSid": "SM1", "MessageStatus": "failed", "Digits": "4"}
    for path in ("/webhooks/twilio/sms", "/webhooks/twilio/voice?delivery=1", STATUS):
        for account in (OWN, SUB, STRANGER):
            answer = await callee.post(path, data={**fields, "AccountSid": account})
            assert answer.status == 403
    assert (world.pager.acts, world.statuses) == ([], [])


async def signed_json(client: Client, body: str, token: str, hashed: str | None = None) -> Answered:
    digest = hashlib.sha256((body if hashed is None else hashed).encode()).hexdigest()
    path = f"{STATUS}?{urlencode({'bodySHA256': digest})}"
    signature = RequestValidator(token).compute_signature(PUBLIC_URL + path, {})
    headers = {"X-Twilio-Signature": signature, "Content-Type": "application/json"}
    return await client.post(path, data=body.encode(), headers=headers)


async def test_a_json_body_is_signed_by_its_hash(callee: Client, world: World) -> None:
    """Its fields count once the hash in the signed address is that of the body (S-04)."""
    body = json.dumps({"MessageSid": "SM1", "MessageStatus": "sent", "nested": {"x": 1}})
    assert (await signed_json(callee, body, AUTH_TOKEN)).status == 204
    assert world.statuses == [("SM1", "sent", None, None)]
    assert (await signed_json(callee, body, AUTH_TOKEN, hashed="{}")).status == 403
    assert (await signed_json(callee, body, "another")).status == 403
    headers: Mapping[str, str] = {"X-Twilio-Signature": "x", "Content-Type": "application/json"}
    for odd in (b"\xff", b"{" * 5000, b""):
        assert (await callee.post(STATUS, data=odd, headers=headers)).status == 403
    assert len(world.statuses) == 1


@pytest.mark.parametrize("text", ["", "[1]", "7", "{", "[" * 5000, '{"a": 1}'])
def test_json_that_is_no_object_of_texts_has_no_fields(text: str) -> None:
    """And reading it never fails."""
    assert list(fields_of(text).items()) == []


def test_no_token_is_shown() -> None:
    """Not where the parts of the web are printed."""

    async def nothing(*_: object) -> None: ...

    phones = Phones("token-a", PUBLIC_URL, nothing, OWN, "token-b", {SUB: "token-c"})
    assert "token-" not in repr(phones).replace("old_token", "")
