"""Bytes to JSON: whatever arrives is cleaned or refused with a reason, quickly."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import BadPayload
from engine.sources import decode
from engine.sources.decode import DEEPEST


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (
            b'{"a": NaN, "b": Infinity, "c": -Infinity, "d": 1e999, "e": 1.5}',
            dict.fromkeys("abcd") | {"e": 1.5},
        ),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (rb'{"a\u0000": "x\u0000y"}', {"a\ufffd": "x\ufffdy"}),
        (b'["a\x00b"]', ["a\ufffdb"]),
        (rb'["\ud800", "\udfff!", "\ud83d\ude00"]', ["\ufffd", "\ufffd!", "😀"]),
        (b'["a\nb\tc"]', ["a\nb\tc"]),
        (b'["caf\xe9"]', ["caf\ufffd"]),
        (b"{}\n", {}),
        (b"null", None),
    ],
)
def test_what_can_be_cleaned_is_accepted(raw: bytes, value: object) -> None:
    """A byte order mark, NaN, doubled keys, NUL, lone surrogates, raw newlines: an alert survives them."""
    assert decode(raw) == value


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        ("{}".encode("utf-16"), "UTF-16"),
        ("{}".encode("utf-16-le"), "UTF-16"),
        ("{}".encode("utf-16-be"), "UTF-16"),
        ("{}".encode("utf-32"), "UTF-16"),
        (b"{", "not JSON: Expecting property name"),
        (b'{"a": 1} x', "not JSON: Extra data at line 1, column 10"),
        (b"payload=%7B%7D", "not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "thousands of digits"),
        (b"\xff\xd8\xff\xe0 a picture", "not JSON"),
    ],
)
def test_what_is_no_json_is_refused_with_the_reason(raw: bytes, reason: str) -> None:
    """The reason says what is wrong, and where, without quoting the body."""
    with pytest.raises(BadPayload, match=reason):
        decode(raw)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("depth", [DEEPEST + 1, 400, 10_000, 1_000_000])
def test_deep_nesting_is_refused_at_once(opening: str, depth: int) -> None:
    """Any depth beyond the limit gives the same reason in a moment, closed or not."""
    closing = {"[": "]", '{"a":': "}", '[{"a":': "}]"}[opening]
    began = time.perf_counter()
    with pytest.raises(BadPayload, match="nested deeper"):
        decode((opening * depth + "1" + closing * depth).encode())
    assert time.perf_counter() - began < 0.5


def test_nesting_up_to_the_limit_is_accepted() -> None:
    """Thirty-two levels pass, however many values lie side by side; brackets in text do not count."""
    deepest = b"[" * DEEPEST + b"]" * DEEPEST
    assert json.dumps(decode(deepest)).encode() == deepest
    assert decode(b'["' + b"[" * 100 + b'"]') == ["[" * 100]
    assert decode(b"[" + b"{}," * 1000 + b"{}]") == [{}] * 1001


@given(st.binary(max_size=200))
def test_any_bytes_give_json_or_a_reason(raw: bytes) -> None:
    """No bytes raise anything but BadPayload with a reason; what is read can be kept as JSON."""
    value, reason = None, "read"
    try:
        value = decode(raw)
    except BadPayload as refused:
        reason = str(refused)
    assert reason
    kept = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    assert json.loads(kept) == value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_what_comes_out_can_be_stored(value: Any) -> None:
    """Decoded text is valid UTF-8 without NUL, and numbers are finite."""
    text = json.dumps(decode(json.dumps(value).encode()), ensure_ascii=False, allow_nan=False)
    assert "\\u0000" not in text
    assert text.encode().decode() == text
