"""The alphabet of SMS: what maps to what, how long it is, where it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.notify import gsm7


@pytest.mark.parametrize(
    ("text", "mapped"),
    [
        ("Übergröße in Køln: ä ö ü à €", "Übergröße in Køln: ä ö ü à €"),
        ("„smart“ ‘quotes’ – and—dashes…", "\"smart\" 'quotes' - and-dashes..."),  # iris#249
        ("disk 🔥🔥 full", "disk  full"),
        ("Łódź çok naïve", "Lodz cok naive"),
        ("a\u0308 b", "ä b"),
        ("½ m² 10 °C × 3", "1/2 m2 10  deg C x 3"),
        ("сервер упал", "? ?"),
        ("what??", "what??"),
        ("tab\tnbsp\u00a0end`", "tab nbsp end'"),
    ],
)
def test_a_text_is_mapped_into_the_alphabet(text: str, mapped: str) -> None:
    """German and French stay, typography becomes ASCII, emoji go, a foreign word is one `?`."""
    assert gsm7.to_gsm(text) == mapped


@given(st.text())
def test_whatever_comes_in_the_result_is_in_the_alphabet(text: str) -> None:
    """No text makes a message leave the alphabet."""
    assert set(gsm7.to_gsm(text)) <= gsm7.ALPHABET


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", 1),
        ("a" * 160, 1),
        ("a" * 161, 2),
        ("€" * 80, 1),
        ("€" * 81, 2),
        ("a" * 306, 2),
        ("a" * 307, 3),
        ("a" * 152 + "€" + "a" * 152, 3),  # the pair does not fit into part one
        ("a" * 152 + "€" + "a" * 151, 2),
    ],
)
def test_parts_are_counted_as_the_network_counts_them(text: str, parts: int) -> None:
    """One part holds 160 septets, each of several 153, and an escape pair is not split."""
    assert gsm7.parts(text) == parts


@given(st.text(alphabet=sorted(gsm7.ALPHABET), max_size=400), st.integers(3, 310))
def test_a_cut_text_fits(text: str, limit: int) -> None:
    """Never longer than asked; untouched when it fits; else it ends in three dots."""
    cut = gsm7.cut(text, limit)
    assert gsm7.septets(cut) <= limit
    assert cut == text if gsm7.septets(text) <= limit else cut.endswith("...")


@given(st.text(alphabet=sorted(gsm7.ALPHABET), max_size=400))
def test_what_fits_two_parts_is_sent_in_two(text: str) -> None:
    """The budget of two parts holds wherever the escape pairs fall."""
    assert gsm7.parts(gsm7.cut(text, gsm7.TWO_PARTS)) <= 2


def test_no_room_leaves_nothing() -> None:
    """A limit below the three dots gives an empty text, not a longer one."""
    assert gsm7.cut("abcdef", 2) == ""
