"""Text of others made harmless for Slack: escaped, free of hidden controls, cut without harm.

Never decides what is shown; a mention is only ever written by Midwatch itself.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

ELLIPSIS: Final = "…"
LONGEST: Final = 10_000  # nothing that is shown is longer; a megabyte is not looked through

# Why: these reorder or hide what stands beside them, so a name could read as another.
_HIDDEN: Final = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_ENTITY_TAIL: Final = re.compile(r"&[a-z]{0,3}$")


def clean(text: str) -> str:
    """Without control characters, bidi overrides, zero-width characters and lone surrogates."""
    return _HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def escape(text: str) -> str:
    """The three characters that mean something to Slack, and no others."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def cut(escaped: str, limit: int) -> str:
    """At most `limit` characters of escaped text; an entity is kept whole or left out."""
    if len(escaped) <= limit:
        return escaped
    if limit < 1:
        return ""
    return _ENTITY_TAIL.sub("", escaped[: limit - 1]) + ELLIPSIS


def text(value: str, limit: int = 2800) -> str:
    """Any text for mrkdwn, with its line breaks."""
    return cut(escape(clean(value[:LONGEST])).strip(), limit)


def line(value: str, limit: int = 250) -> str:
    """Any text on one line."""
    return cut(escape(" ".join(clean(value[:LONGEST]).split())), limit)


def code(value: str, limit: int = 120) -> str:
    """A code span: in it Slack reads no formatting, so only the backtick must go."""
    inside = line(value.replace("`", "'"), limit)
    return f"`{inside}`" if inside else ""


def link(url: str, label: str) -> str:
    """A link for http and https; the bare label for everything else."""
    shown = line(label, 75)
    if not is_web(url):
        return shown
    safe = escape(url.replace("<", "%3C").replace(">", "%3E").replace("|", "%7C"))
    return f"<{safe}|{shown.replace('|', '¦') or 'link'}>"


def is_web(url: str) -> bool:
    """May this URL stand behind a link?"""
    if len(url) > 1500 or url != "".join(clean(url).split()):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)


def date(at: datetime, form: str = "{date_short_pretty} at {time}") -> str:
    """An instant in the reader's own zone; the fallback says UTC."""
    return f"<!date^{int(at.timestamp())}^{form}|{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC>"


def day(at: datetime) -> str:
    """As `date`, with the weekday: what people plan by."""
    shown = "{date_long_pretty} at {time}"
    return f"<!date^{int(at.timestamp())}^{shown}|{at.astimezone(UTC):%a %Y-%m-%d %H:%M} UTC>"


def time_of_day(at: datetime) -> str:
    return f"<!date^{int(at.timestamp())}^{{time_secs}}|{at.astimezone(UTC):%H:%M:%S} UTC>"


def mention(slack_user_id: str) -> str:
    """A mention of one person; the id comes from our directory, never from an alert."""
    return f"<@{slack_user_id}>" if re.fullmatch(r"[UW][A-Z0-9]{1,30}", slack_user_id) else ""
