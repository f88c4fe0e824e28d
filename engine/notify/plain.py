"""Foreign text made harmless for media that cannot escape: one line, no control characters, no live links.

Pure; never knows of incidents or transports. What can escape (XML, HTML, Slack) also escapes.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import urlsplit

LONGEST: Final = 4_000  # nothing that is shown in one line is longer; a megabyte is not looked through

# Control, format (bidirectional overrides, zero width), surrogate, private and unassigned characters:
# XML and SMTP cannot hold some of them, and the others only help to disguise something.
_DROPPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_SCHEME: Final = re.compile(r"\bhttp(s?)://", re.IGNORECASE)
_DOT_OF_A_NAME: Final = re.compile(r"(?<=\w)\.(?=[^\W\d_]{2})")
_URL: Final = re.compile(r"\b(?:[a-z][a-z0-9+.-]*://|www\.)\S+", re.IGNORECASE)


def one_line(text: str) -> str:
    """The text on one line, without what cannot be seen."""
    kept = (" " if char.isspace() else char for char in text[:LONGEST])
    shown = "".join(char for char in kept if unicodedata.category(char) not in _DROPPED)
    return " ".join(shown.split())


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters; what was cut is shown by an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def defang(text: str) -> str:
    """No telephone makes a link of it: `https://evil.example` becomes `hxxps://evil[.]example`.

    Bare names too, since telephones link those; a name stays readable with its dots in brackets.
    """
    return _DOT_OF_A_NAME.sub("[.]", _SCHEME.sub(r"hxxp\1://", text))


def without_urls(text: str) -> str:
    """For the ear: a URL is spoken as "a link"."""
    return _URL.sub("a link", text)


def web_address(url: str) -> str | None:
    """The host of a URL that may become a link; None for `javascript:` and its like."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.hostname if parts.scheme.lower() in ("http", "https") else None
