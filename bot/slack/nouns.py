"""Several readers behind one verb of /oncall: the first word says whose words these are.

Never reads more than that word.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from bot.slack.grammar.typed import folded, tidy
from bot.slack.identity import Asker
from bot.slack.message import Message

# What is behind a verb: the words as typed, and who asks. None: a form stands open now.
Noun = Callable[[str, Asker], Awaitable[Message | None]]


def by_word(readers: Mapping[str, Noun], other: Noun) -> Noun:
    """Hand the words to the reader of their first one, else to `other`."""

    async def read(typed: str, asker: Asker) -> Message | None:
        first = folded(tidy(typed).partition(" ")[0])
        return await readers.get(first, other)(typed, asker)

    return read
