"""The small pieces of commands: people mentioned, incident numbers, names of schedules.

Never looks anything up.
"""

from __future__ import annotations

import re
from typing import Final

from bot.slack.escape import code
from bot.slack.grammar.typed import plainly
from engine.errors import BadCommand

MAX_NUMBERS: Final = 20
MENTION: Final = re.compile(r"<@([UW][A-Z0-9]{1,30})(?:\|[^>]*)?>", re.IGNORECASE)
UNKNOWN: Final = re.compile(r"(?<!\S)@(\S+)")  # Slack makes a mention of whom it knows
QUOTED: Final = re.compile(r'"([^"]*)"')
NUMBER: Final = re.compile(r"#?(\d{1,12})[,;.]?")
_SMALL_WORDS: Final = re.compile(r"^(?:(?:on|for|in|of|the)\s+)+|\s+(?:on|for|in)$")


def mentioned(words: str) -> str | None:
    """The id of the first person mentioned."""
    found = MENTION.search(words)
    return found[1].upper() if found else None


def name_in(words: str) -> str | None:
    """A name in lower-case words: what is quoted, else all without the small words around it."""
    quoted = QUOTED.search(words)
    if quoted:
        return quoted[1].strip() or None
    return _SMALL_WORDS.sub("", words.strip()).strip(" ?.!\"'") or None


def numbers(rest: str, form: str, what: str = "incident number") -> tuple[int, ...]:
    words = [word for word in rest.replace(",", " ").split() if word != "and"]
    found = [NUMBER.fullmatch(word) for word in words]
    if not all(found):
        strange = next(word for word, match in zip(words, found, strict=True) if match is None)
        raise BadCommand(f"{code(plainly(strange), 40)} is no {what}: {form}.")
    if len(found) > MAX_NUMBERS:
        raise BadCommand(f"At most {MAX_NUMBERS} at once.")
    return tuple(dict.fromkeys(int(match[1]) for match in found if match))
