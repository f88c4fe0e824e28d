"""Foreign text reaches Slack only as text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack import escape
from tests.slack.views import HOSTILE, NOW

ENTITIES = re.compile(r"&(?:amp|lt|gt);")


@pytest.mark.parametrize("limit", range(1, 60))
def test_a_cut_never_falls_inside_an_entity(limit: int) -> None:
    """Cut at every length, a storm of ampersands is whole entities and one ellipsis."""
    shown = escape.line("&" * 50, limit)
    assert len(shown) <= limit
    assert ENTITIES.sub("", shown) in {"…", ""}


@given(st.text(), st.integers(1, 80))
def test_no_text_brings_markup_of_its_own(text: str, limit: int) -> None:
    """Whatever the text, no angle bracket and no bare ampersand is left."""
    for shown in (escape.text(text, limit), escape.line(text, limit)):
        assert len(shown) <= limit
        assert not set("<>") & set(shown)
        assert "&" not in ENTITIES.sub("", shown)


@pytest.mark.parametrize("name", HOSTILE)
def test_hidden_characters_are_gone(name: str) -> None:
    """No control, override, zero-width character or lone surrogate survives."""
    shown = escape.line(HOSTILE[name])
    assert not re.search("[\u0000-\u001f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ud800-\udfff]", shown)
    shown.encode()


def test_a_code_span_cannot_be_left() -> None:
    """A backtick in a label value does not end the code span."""
    assert escape.code("a`b") == "`a'b`"
    assert escape.code(" ") == ""


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://x.example/a|b<c>", "<https://x.example/a%7Cb%3Cc%3E|Graph>"),
        ("https://x.example/?a=1&b=2", "<https://x.example/?a=1&amp;b=2|Graph>"),
        ("javascript:alert(1)", "Graph"),
        ("http://", "Graph"),
        ("https://x.example/ y", "Graph"),
        ("https://[", "Graph"),
        ("https://x.example/" + "y" * 3000, "Graph"),
    ],
)
def test_only_web_addresses_become_links(url: str, expected: str) -> None:
    """Everything that is not http or https is shown without its URL."""
    assert escape.link(url, "Graph") == expected


def test_a_label_cannot_end_its_link() -> None:
    """A label with brackets and pipes stays inside its link."""
    assert escape.link("https://x.example", "a|b>") == "<https://x.example|a¦b&gt;>"


def test_a_date_shows_utc_where_slack_shows_no_date() -> None:
    """An instant is in the reader's zone, and its fallback names UTC."""
    assert (
        escape.date(NOW)
        == f"<!date^{int(NOW.timestamp())}^{{date_short_pretty}} at {{time}}|2026-03-02 02:14 UTC>"
    )


@pytest.mark.parametrize("user", ["", "<!channel>", "U1> <!here", "u1", "B1"])
def test_only_a_user_id_becomes_a_mention(user: str) -> None:
    """What does not look like a user's id mentions nobody."""
    assert escape.mention(user) == ""
