"""Signatures of the phone company, by vectors that were measured with its own libraries."""

from __future__ import annotations

import pytest
from multidict import MultiDict

from bot.web.signatures import form_of, is_signed

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
