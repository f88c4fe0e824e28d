"""Addresses as people type them, and as others see them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.contacts.address import ADDED_BY_PEOPLE, PHONE, cleaned
from engine.contacts.masking import masked_address
from engine.errors import BadInput
from engine.models import Method

SMS, VOICE, EMAIL, PUSH = ADDED_BY_PEOPLE


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("+12025550143", "+12025550143"),
        (" +1 (202) 555-0143 ", "+12025550143"),
        ("+1.202.555.0143", "+12025550143"),
        ("001 202 555 0143", "+12025550143"),
        ("tel:+12025550143", "+12025550143"),
        ("+44 (0)20 7946 0958", "+442079460958"),
        ("+49 30/23125 001", "+493023125001"),
        ("+33\u00a01\u00a099\u00a000\u00a012\u00a034", "+33199001234"),
        ("+1\u2011202\u2011555\u20110143", "+12025550143"),
        ("\u202a+1 202 555 0143\u202c", "+12025550143"),
    ],
)
def test_a_number_has_one_spelling(typed: str, number: str) -> None:
    """However it was copied: from a card, a mail or a telephone book."""
    assert cleaned(SMS, typed) == cleaned(VOICE, typed) == number


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "0151 23456789",
        "202-555-0143",
        "+0123456789",
        "+12",
        "+" + "1" * 16,
        "+1202555o143",
        "+٤٤٢٠٧٩٤٦٠٩٥٨",
    ],
)
def test_what_is_no_number_is_refused_with_an_example(typed: str) -> None:
    """Without its country nobody knows whose it is; what was typed is not repeated."""
    with pytest.raises(BadInput, match=r"\+ and its country code, like \+12025550143") as caught:
        cleaned(SMS, typed)
    assert len(typed) < 5 or typed not in str(caught.value)


@pytest.mark.parametrize(
    "number",
    [
        *("+882 13 123 456", "+881 6 12345678", "+870 773 111 111", "+979 123 456 789", "+808 1234 5678"),
        *("+1 900 555 0123", "+44 909 879 0123", "+44 70 1234 5678", "+49 900 1 234567", "+49 137 123456"),
        *("+33 899 12 34 56", "+31 906 1234", "+41 900 123 456", "+61 1900 123 456"),
    ],
)
def test_numbers_that_cost_their_callers_money_are_refused(number: str) -> None:
    """Satellites, premium rates and personal numbers, for texts and calls (S-16)."""
    for kind in (SMS, VOICE):
        with pytest.raises(BadInput, match="Satellite and premium-rate numbers cannot be added"):
            cleaned(kind, number)


@pytest.mark.parametrize(
    "number", ["+447911123456", "+33912345678", "+919012345678", "+4915112345678", "+18765550123"]
)
def test_usual_numbers_that_look_a_little_like_them_are_not(number: str) -> None:
    """British and Indian mobiles, French numbers of the internet, the Caribbean."""
    assert cleaned(SMS, number) == number


def test_only_countries_that_are_allowed() -> None:
    """MIDWATCH_SMS_COUNTRIES, for texts and calls alike; the sentence names the setting (S-16)."""
    assert cleaned(SMS, "+49 151 12345678", ("+49", "+1")) == "+4915112345678"
    for kind in (SMS, VOICE):
        with pytest.raises(BadInput, match=r"begin with \+49 or \+1.*MIDWATCH_SMS_COUNTRIES"):
            cleaned(kind, "+44 20 7946 0958", ("+49", "+1"))
    assert cleaned(EMAIL, "ana@example.com", ("+49",)) == "ana@example.com"


@pytest.mark.parametrize("typed", ["ana@example.com", " mailto:ana@example.com ", "a.b+c@mail.example.co.uk"])
def test_a_mail_address_is_taken(typed: str) -> None:
    """Also as a link that was copied."""
    assert cleaned(EMAIL, typed) == typed.strip().removeprefix("mailto:")


@pytest.mark.parametrize(
    "typed",
    [
        *(
            "ana",
            "ana@",
            "@example.com",
            "ana@localhost",
            "a@b@example.com",
            "ana@example.com, b@example.com",
        ),
        *("Ana <ana@example.com>", "-oops@example.com", "ana@exämple.com", "ana@example.com\nBcc: all"),
        *('"ana"@example.com', "ana@[127.0.0.1]", "ana example@example.com"),
    ],
)
def test_what_is_no_mail_address_is_refused(typed: str) -> None:
    """One alone, and nothing that could become a header or an option of a mail program."""
    with pytest.raises(BadInput):
        cleaned(EMAIL, typed)


@pytest.mark.parametrize("typed", ["ntfy://topic", "pover://user@token", "gotify://host/token?priority=high"])
def test_a_push_url_is_taken_as_it_is(typed: str) -> None:
    """Apprise knows what it means."""
    assert cleaned(PUSH, f" {typed} ") == typed


@pytest.mark.parametrize(
    "typed",
    [
        *("topic", "ntfy:topic", "https://example.com/hook", "json://10.0.0.1/x", "mailto://a:b@example.com"),
        *(
            "syslog://",
            "dbus://",
            "exec://rm",
            "file:///etc/passwd",
            "apprise://host/key",
            "ntfy://a b",
            "://x",
        ),
        *("ntfy://topic?attach=/etc/passwd", "fcm://p/k?keyfile=/etc/passwd", "ntfy://topic?template=/etc/x"),
        "http://[::1",
    ],
)
def test_a_push_url_reaches_a_telephone_and_nothing_else(typed: str) -> None:
    """Not this machine, its files, or any address at all that takes a request."""
    with pytest.raises(BadInput):
        cleaned(PUSH, typed)


def test_what_people_do_not_add_is_refused() -> None:
    """Slack is known by whoever speaks there; channels and URLs are of policies and settings."""
    for kind in (Method.SLACK, Method.CHANNEL, Method.URL):
        with pytest.raises(BadInput, match="Slack is by `/oncall me`"):
            cleaned(kind, "U012AB3CD")


@given(kind=st.sampled_from(ADDED_BY_PEOPLE), typed=st.text(max_size=600))
def test_anything_typed_is_an_address_or_a_sentence(kind: Method, typed: str) -> None:
    """Never another error; and what was cleaned is cleaned already."""
    try:
        address = cleaned(kind, typed)
    except BadInput:
        return
    assert cleaned(kind, address) == address


@given(st.from_regex(PHONE, fullmatch=True))
def test_a_masked_number_hides_at_least_four_digits_of_its_own(number: str) -> None:
    """What is left is the country and three digits, of short ones nothing (S-14)."""
    shown = masked_address(SMS, number)
    assert number not in shown
    assert len(number) - len(shown.replace("•", "")) >= 4
    assert masked_address(VOICE, number) == shown


@pytest.mark.parametrize(
    ("kind", "address", "shown"),
    [
        (Method.SMS, "+447911123123", "+44•••••123"),
        (Method.SMS, "+1234567", "•••••"),
        (Method.EMAIL, "ana@example.com", "a…@example.com"),
        (Method.EMAIL, "", "…"),
        (Method.PUSH, "pover://user@token", "pover://…"),
        (Method.URL, "not a url", "…"),
        (Method.SLACK, "U012AB3CD", "U012AB3CD"),
    ],
)
def test_each_kind_is_masked_in_its_own_way(kind: Method, address: str, shown: str) -> None:
    """Enough to recognise one's own."""
    assert masked_address(kind, address) == shown
