"""JSON in any state becomes a value that SQL can hold, or one reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.web.bodies import CUT, decode
from bot.web.problems import Problem
from engine.clock import monotonic


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ('{"a": 1}'.encode("utf-16"), {"a": 1}),
        (b'{"a": "x\x00y"}', {"a": "x\x00y"}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        (b'{"a": NaN, "b": -Infinity, "c": 1e999}', {"a": "NaN", "b": "-Infinity", "c": "1e999"}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b"[" + b"1" * 5000 + b"]", ["1" * 5000]),
        (b"null", None),
    ],
)
def test_what_can_be_used_is_used(raw: bytes, value: Any) -> None:
    """Byte order marks, odd bytes, control characters and impossible numbers lose no alert."""
    assert decode(raw) == value
    json.dumps(decode(raw), allow_nan=False)


@pytest.mark.parametrize("raw", [b"", b"{", b"{'a': 1}", b"hello secret", b'{"a": 1} trailing', b"\x00"])
def test_what_is_not_json_is_refused_with_the_place(raw: bytes) -> None:
    """The reason says where, and repeats nothing of the body."""
    with pytest.raises(Problem, match=r"not JSON: .* at line \d+, column \d+") as caught:
        decode(raw)
    assert caught.value.status == 400
    assert "secret" not in caught.value.detail


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize("depth", [501, 10_000, 1_000_000])
def test_a_body_of_brackets_is_refused_quickly(opening: bytes, closing: bytes, depth: int) -> None:
    """Ten thousand levels are refused in less than 50 ms, and nothing overflows."""
    raw = opening * depth + b"1" + closing * depth
    begun = monotonic()
    with pytest.raises(Problem, match="nested more than"):
        decode(raw)
    assert depth > 10_000 or monotonic() - begun < 0.05


def test_deep_details_are_cut_and_the_alert_is_kept() -> None:
    """What lies below the 32nd level becomes a mark; the rest is untouched."""
    raw = b'{"summary": "db down", "details": ' + b'{"a":' * 100 + b"1" + b"}" * 100 + b"}"
    value = decode(raw)
    assert value["summary"] == "db down"
    text = json.dumps(value, ensure_ascii=False)
    assert text.count("{") == 32
    assert CUT in text


def test_the_deepest_kept_level_is_not_touched() -> None:
    """Thirty-two levels are what a sender may use."""
    raw = b"[" * 32 + b"1" + b"]" * 32
    assert json.dumps(decode(raw)).encode() == raw
