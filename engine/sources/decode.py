"""From the bytes of a request to clean JSON: what SQL, JSON columns and Slack can hold.

Never lets the shape of a body crash or slow its reader: nesting is bounded, and text comes out
without NUL and lone surrogates. A reason never quotes the body.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import Any

from engine.errors import BadPayload

DEEPEST = 32  # levels of nesting that any real sender stays below
_TOO_DEEP = f"the body is nested deeper than {DEEPEST} levels"

_CONTAINERS = (dict, list)
_UTF16_OR_32 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
# What may decode to NUL or to half of a pair. A whole pair is found too, and cleaning keeps it.
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])|\x00")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _none(_: str) -> None:
    """NaN and the infinities: no JSON, and no JSON column takes them."""


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


# Why one for all: json.loads with options builds a decoder for each call.
_DECODER = json.JSONDecoder(strict=False, parse_constant=_none, parse_float=_finite)


def decode(raw: bytes) -> object:
    """The JSON value of a body, or BadPayload with the reason."""
    if raw.startswith(_UTF16_OR_32) or b"\x00" in raw[:2]:
        raise BadPayload("the body is UTF-16 or UTF-32; send UTF-8")
    raw = raw.removeprefix(codecs.BOM_UTF8)
    if not raw.strip():
        raise BadPayload("the body is empty")
    value = _loads(raw)
    # Why: no body can be nested deeper than it has brackets, and most have few.
    if raw.count(b"{") + raw.count(b"[") > DEEPEST:
        _refuse_deep(value)
    return _clean(value) if _SUSPECT.search(raw) else value


def _loads(raw: bytes) -> object:
    # Why errors="replace" and strict=False: one broken byte, or a newline that a template left in
    # a string, must not cost an alert.
    text = raw.decode("utf-8", errors="replace")
    try:
        value: object = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        reason = f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise BadPayload(reason) from None
    except RecursionError:
        raise BadPayload(_TOO_DEEP) from None
    except ValueError:
        raise BadPayload("the body has a number with thousands of digits") from None
    return value


def _refuse_deep(value: object) -> None:
    """Go down level by level, never by recursion."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(DEEPEST):
        children = (parent.values() if isinstance(parent, dict) else parent for parent in level)
        level = [child for group in children for child in group if isinstance(child, _CONTAINERS)]
        if not level:
            return
    raise BadPayload(_TOO_DEEP)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value
