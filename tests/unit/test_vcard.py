"""The contact card: what telephones read, and nothing that they would misread."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from bot.settings import Settings
from bot.vcard import escaped, folded, numbers, vcard

TWO = ("+12025550100", "+442071838750")


def unfolded(card: bytes) -> list[str]:
    """The lines of a card as RFC 2426 says to read them."""
    return card.decode().replace("\r\n ", "").split("\r\n")[:-1]


def test_a_card_names_each_number_and_has_what_a_card_must_have() -> None:
    """BEGIN, VERSION, N and FN; the first number is the preferred one."""
    lines = unfolded(vcard(TWO))
    assert lines[:4] == ["BEGIN:VCARD", "VERSION:3.0", "N:Midwatch;;;;", "FN:Midwatch"]
    assert "TEL;TYPE=CELL,VOICE,MSG,PREF:+12025550100" in lines
    assert "TEL;TYPE=CELL,VOICE,MSG:+442071838750" in lines
    assert lines[-1] == "END:VCARD"


def test_no_line_is_longer_than_75_octets_and_no_character_is_cut() -> None:
    """Folded by octets, since a telephone counts those; unfolded it is what it was."""
    long = "NOTE:" + "é🔔 " * 60
    parts = list(folded(long))
    assert max(len(part.encode()) for part in parts) <= 75
    assert parts[0] + "".join(part[1:] for part in parts[1:]) == long
    assert all(len(line) <= 75 for line in vcard(TWO).split(b"\r\n"))


def test_what_means_something_in_a_card_is_escaped() -> None:
    """Backslash, comma, semicolon and line breaks; a colon stays."""
    assert escaped("a;b,c\\d\r\ne: f\ng") == "a\\;b\\,c\\\\d\\ne: f\\ng"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("vonage://key:secret@442071838750/{to}", ("+12025550100", "+442071838750")),
        ("twilio://ACsid:token@%2B442071838750/{to}", ("+12025550100", "+442071838750")),
        ("vonage://key:secret@12025550100/{to}", ("+12025550100",)),
        ("clicksend://user:key@{to}", ("+12025550100",)),
        ("bulksms://user:key@Midwatch/{to}", ("+12025550100",)),
        ("json://[bad/{to}", ("+12025550100",)),
    ],
)
def test_the_second_companys_number_is_in_it_where_its_url_says_it(
    url: str, expected: tuple[str, ...]
) -> None:
    """A sender that is a word, or that is not said, is no number to let through."""
    settings = Settings.model_construct(twilio_from="+12025550100", sms_fallback_url=SecretStr(url))
    assert numbers(settings) == expected
