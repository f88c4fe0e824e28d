"""What people type, made plain: one line, without what keyboards and Slack add to it.

Never reads a meaning into it; `grammar` does.
"""

from __future__ import annotations

import re
from typing import Final

from bot.slack.escape import clean

_QUOTES: Final = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'"})
_DASHES: Final = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-"))
_LINK: Final = re.compile(r"<([a-z]+:[^>|]+)(?:\|[^>]*)?>")


def tidy(text: str) -> str:
    """One line, without what mobile keyboards add that nobody sees."""
    return " ".join(clean(text).replace("\u00a0", " ").replace("\u202f", " ").split())


def folded(raw: str) -> str:
    """As the grammar reads it: lower case, plain quotes and dashes, no full stop at the end."""
    lowered = raw.translate(_QUOTES).translate(_DASHES).casefold()
    return lowered.rstrip(".!").strip() if len(lowered) > 1 else lowered


def plainly(raw: str) -> str:
    """Words for a title or a note as they were typed: without Slack's own escapes and link marks."""
    unlinked = _LINK.sub(lambda match: match[1].removeprefix("mailto:"), raw)
    return unlinked.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
