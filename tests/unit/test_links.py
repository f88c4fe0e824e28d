"""Links that answer a page: nobody else can make one; each opens one incident for one person for a day."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.links import FORM, LIFE, PATH, Links, read
from engine.vault import Vault

NOW = datetime(2026, 11, 5, 14, 0, tzinfo=UTC)
LINKS = Links(Vault("a secret of the tests").link_key, "https://pager.example.com/")
DELIVERY, INCIDENT, PERSON = 901, 7, 3


def token(links: Links = LINKS) -> str:
    return links.url(DELIVERY, INCIDENT, PERSON, NOW).rpartition("/")[2]


def test_a_link_is_short_safe_in_an_address_and_says_nothing() -> None:
    """36 characters after the public address, none of which has to be escaped."""
    url = LINKS.url(DELIVERY, INCIDENT, PERSON, NOW)
    assert url.startswith(f"https://pager.example.com{PATH}")
    assert FORM.fullmatch(url.rpartition("/")[2])


def test_a_link_holds_for_its_incident_and_person_for_a_day() -> None:
    """Until the last second of it, and not in the next."""
    claim = read(token())
    assert claim is not None
    assert claim.delivery_id == DELIVERY
    assert LINKS.holds(claim, INCIDENT, PERSON, NOW + LIFE - timedelta(seconds=1))
    assert not LINKS.holds(claim, INCIDENT, PERSON, NOW + LIFE)


def test_a_link_holds_for_nobody_else_and_nothing_else() -> None:
    """Another incident, another person, a later end, another delivery or another key: none holds."""
    claim = read(token())
    assert claim is not None
    assert not LINKS.holds(claim, INCIDENT + 1, PERSON, NOW)
    assert not LINKS.holds(claim, INCIDENT, PERSON + 1, NOW)
    assert not LINKS.holds(replace(claim, until=claim.until + timedelta(hours=1)), INCIDENT, PERSON, NOW)
    assert not LINKS.holds(replace(claim, delivery_id=DELIVERY + 1), INCIDENT, PERSON, NOW)
    assert not replace(LINKS, key=Vault("another").link_key).holds(claim, INCIDENT, PERSON, NOW)


@given(st.integers(0, 35), st.sampled_from("ABCXYZabcxyz0189-_"))
def test_one_changed_character_breaks_a_link(place: int, char: str) -> None:
    """Every bit of a token counts."""
    made = token()
    changed = made[:place] + char + made[place + 1 :]
    claim = read(changed)
    assert changed == made or claim is None or not LINKS.holds(claim, INCIDENT, PERSON, NOW)


@pytest.mark.parametrize(
    "text", ["", "x", "A" * 35, "A" * 37, "é" * 36, "=" * 36, "A" * 35 + "\n", "../" * 12]
)
def test_what_cannot_be_a_token_claims_nothing(text: str) -> None:
    """Wrong lengths and letters are not even looked at."""
    assert read(text) is None


@given(st.text(max_size=60))
def test_reading_never_fails(text: str) -> None:
    """Whatever stands in an address."""
    claim = read(text)
    assert claim is None or not LINKS.holds(claim, INCIDENT, PERSON, NOW)


def test_a_link_key_is_no_other_key_and_is_not_shown() -> None:
    """What signs links decrypts nothing, and stands in no error."""
    vault = Vault("one")
    assert vault.link_key not in {Vault("two").link_key, b""}
    assert repr(vault.link_key) not in repr(Links(vault.link_key, "https://pager.example.com"))
