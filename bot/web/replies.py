"""What somebody meant by an SMS, a few words at most.

Never guesses: what is not understood is a request for help.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Verb(StrEnum):
    ACKNOWLEDGE = "acknowledge"
    RESOLVE = "resolve"
    LIST = "list"
    HELP = "help"
    CARRIER = "carrier"  # the carrier acts on these words and answers them itself


@dataclass(frozen=True, slots=True)
class Reply:
    verb: Verb
    number: int | None = None  # of the incident


WORDS: Final = {
    **dict.fromkeys(("4", "ack", "acknowledge"), Verb.ACKNOWLEDGE),
    **dict.fromkeys(("6", "resolve", "res"), Verb.RESOLVE),
    **dict.fromkeys(("list", "ls"), Verb.LIST),
    **dict.fromkeys(("stop", "stopall", "unsubscribe", "cancel", "end", "quit"), Verb.CARRIER),
    **dict.fromkeys(("start", "unstop", "yes"), Verb.CARRIER),
}
NUMBERED: Final = {Verb.ACKNOWLEDGE, Verb.RESOLVE}
AROUND: Final = " \t\r\n'\"`‘’“”„«».,!:;()[]"
REPLY: Final = re.compile(r"([a-z]+|\d+)(?:\s*#?\s*([0-9]{1,9}))?")


def parse_reply(text: str) -> Reply:
    found = REPLY.fullmatch(text.strip(AROUND).casefold())
    if found is None:
        return Reply(Verb.HELP)
    verb = WORDS.get(found[1], Verb.HELP)
    if found[2] is None:
        return Reply(verb)
    if verb not in NUMBERED:
        return Reply(Verb.HELP)
    return Reply(verb, int(found[2]))
