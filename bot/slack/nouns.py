"""Several readers behind one verb of /oncall: the first word says whose words these are.

Never reads more than that word.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from bot.slack import escape
from bot.slack.grammar.typed import folded, plainly, tidy
from bot.slack.identity import Asker
from bot.slack.message import Message
from engine.errors import BadCommand

# What is behind a verb: the words as typed, and who asks. None: a form stands open now.
Noun = Callable[[str, Asker], Awaitable[Message | None]]


def by_word(readers: Mapping[str, Noun], other: Noun) -> Noun:
    """Hand the words to the reader of their first one, else to `other`."""

    async def read(typed: str, asker: Asker) -> Message | None:
        first = folded(tidy(typed).partition(" ")[0])
        return await readers.get(first, other)(typed, asker)

    return read


def nothing_else(form: str) -> Noun:
    """For a verb that knows no other words."""

    async def refuse(typed: str, _asker: Asker) -> Message | None:
        raise BadCommand(f"I don't understand {escape.code(plainly(tidy(typed)), 60)} here: {form}.")

    return refuse
