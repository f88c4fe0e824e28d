"""Takes single values out of a decoded body: text, keys, labels, links, instants, details.

Never refuses what can be shown: too much is cut with a mark, what is no link or no instant is
left out. Expects JSON as `decode` returns it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from engine.errors import BadPayload
from engine.models import Link
from engine.sources.decode import DEEPEST

MARK = "…"
NO_SUMMARY = "No summary provided"

LONGEST_SUMMARY = 16 * 1024  # bytes, as the rest
LONGEST_LABEL_NAME = 256
LONGEST_LABEL = 4 * 1024
LONGEST_SEVERITY = 64
LONGEST_DETAILS = 64 * 1024  # all together
LONGEST_DETAIL = 16 * 1024  # so that one does not push out the others
LONGEST_URL = 3000  # of a Slack button
MOST_LABELS = 64
_SHORT_NAME, _SHORT = 48, 192  # characters; 64 of each stay below every limit, whatever they are
_LONGEST_INSTANT = 64
MOST_LINKS = 20

# Why: a sender's clock may be hours wrong, but year 1 means "not set" (Go's zero time) and year
# 9999 "never"; neither is a time at which something happened.
FIRST_YEAR, LAST_YEAR = 1970, 2199
_MILLISECONDS_FROM = 10**11  # an epoch number this large counts milliseconds

_URL = re.compile(r"https?://[^\s/?#]\S*", re.IGNORECASE)
_UNSAFE_IN_URL = str.maketrans({"<": "%3C", ">": "%3E", "|": "%7C", '"': "%22"})


def cut(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8, whole code points, with a mark where something is missing."""
    if len(text) * 4 <= limit:
        return text
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return text
    return encoded[: limit - len(MARK.encode())].decode("utf-8", "ignore") + MARK


def text_of(value: object) -> str:
    """Any JSON value as text; nothing is empty text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def first_text(*values: object) -> str:
    """The first that says anything."""
    for value in values:
        if text := text_of(value).strip():
            return text
    return ""


def summary(*values: object) -> str:
    return cut(first_text(*values) or NO_SUMMARY, LONGEST_SUMMARY)


def optional_mapping(value: object, name: str) -> Mapping[str, Any]:
    """An object, or nothing; anything else is refused by its name."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadPayload(f"{name} must be an object")
    return value


def key_text(value: object, name: str) -> str:
    """A key that names something: text, or a number some sender did not quote."""
    if isinstance(value, dict | list):
        raise BadPayload(f"{name} must be text")
    return text_of(value)


def labels(raw: Mapping[str, Any]) -> dict[str, str]:
    """At most MOST_LABELS; if there are more, the last says how many are missing."""
    if len(raw) <= MOST_LABELS and _is_small(raw):
        return dict(raw)
    kept = {cut(name, LONGEST_LABEL_NAME): cut(text_of(value), LONGEST_LABEL) for name, value in raw.items()}
    if len(kept) > MOST_LABELS:
        names = list(kept)[: MOST_LABELS - 1]
        return {**{name: kept[name] for name in names}, MARK: f"{len(kept) - len(names)} more labels"}
    return kept


def link(url: object, text: object) -> Link | None:
    """Only http and https, and nothing that could break out of a link's markup."""
    if not isinstance(url, str) or len(url := url.strip()) > LONGEST_URL:
        return None
    return _link(url, cut(first_text(text), LONGEST_LABEL_NAME))


@lru_cache(maxsize=1024)  # the alerts of one rule share its runbook, dashboard and source
def _link(url: str, text: str) -> Link | None:
    url = url.translate(_UNSAFE_IN_URL)
    if len(url) > LONGEST_URL or not _URL.fullmatch(url):
        return None
    return Link(url, text or cut(url, LONGEST_LABEL_NAME))


def links(*found: Link | None) -> tuple[Link, ...]:
    return tuple(link for link in found if link)[:MOST_LINKS]


def link_list(raw: object, url_keys: Iterable[str], text_keys: Iterable[str]) -> list[Link | None]:
    """Links of a list of URLs, or of objects with a URL and a text."""
    items = raw if isinstance(raw, list) else []
    found = []
    for item in items[: 10 * MOST_LINKS]:
        entry = item if isinstance(item, dict) else {"": item}
        url = first_text(entry.get(""), *(entry.get(key) for key in url_keys))
        found.append(link(url, first_text(*(entry.get(key) for key in text_keys))))
    return found


def instant(raw: object) -> datetime | None:
    """RFC 3339 with any offset (none means UTC), or seconds or milliseconds since 1970."""
    if isinstance(raw, str):
        return _instant_of_text(raw) if len(raw) <= _LONGEST_INSTANT else None
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    try:
        return _possible(datetime.fromtimestamp(raw / 1000 if raw >= _MILLISECONDS_FROM else raw, UTC))
    except (ValueError, OverflowError, OSError):
        return None


@lru_cache(maxsize=1024)  # the alerts of a group, and their repeats, began at the same few instants
def _instant_of_text(text: str) -> datetime | None:
    try:
        value = datetime.fromisoformat(text.strip().upper())
        return _possible(value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def _possible(value: datetime) -> datetime | None:
    return value if FIRST_YEAR <= value.year <= LAST_YEAR else None


def details(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Any JSON, cut to a bounded size."""
    if _is_small(raw):
        return dict(raw)
    fitted = _Budget(LONGEST_DETAILS).fit(raw, DEEPEST)
    return fitted if isinstance(fitted, dict) else {}


def _is_small(raw: Mapping[str, Any]) -> bool:
    """Whether all of it is short text: the usual case, which needs no closer look and no cutting."""
    if len(raw) > MOST_LABELS:
        return False
    return all(
        type(value) is str and len(value) <= _SHORT and len(name) <= _SHORT_NAME
        for name, value in raw.items()
    )


class _Budget:
    """Copies JSON as long as there is room; what no longer fits is a mark."""

    def __init__(self, left: int) -> None:
        self.left = left

    def fit(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            kept = cut(value, min(LONGEST_DETAIL, max(self.left, len(MARK.encode()))))
            self.left -= len(kept.encode("utf-8", "replace"))
            return kept
        self.left -= 8
        if isinstance(value, dict):
            return self._mapping(value, depth - 1)
        if isinstance(value, list):
            return self._list(value, depth - 1)
        return value

    def _mapping(self, value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for name, item in value.items():
            if self.left <= 0 or depth <= 0:
                kept[MARK] = f"{len(value) - len(kept)} more"
                break
            shown = cut(name, LONGEST_LABEL_NAME)
            self.left -= len(shown)
            kept[shown] = self.fit(item, depth)
        return kept

    def _list(self, value: list[Any], depth: int) -> list[Any]:
        kept: list[Any] = []
        for item in value:
            if self.left <= 0 or depth <= 0:
                kept.append(f"{MARK} {len(value) - len(kept)} more")
                break
            kept.append(self.fit(item, depth))
        return kept
