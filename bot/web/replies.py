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
    ACKNOWLEDGE_ALL = "acknowledge all"
    RESOLVE = "resolve"
    ESCALATE = "escalate"
    WHO = "who"
    LIST = "list"
    STATUS = "status"
    HELP = "help"
    STOP = "stop"  # the carrier acts on these two and answers them itself
    START = "start"


@dataclass(frozen=True, slots=True)
class Reply:
    verb: Verb
    number: int | None = None  # of the incident
    name: str | None = None  # of a schedule


WORDS: Final = {
    **dict.fromkeys(("4", "ack", "acknowledge"), Verb.ACKNOWLEDGE),
    **dict.fromkeys(("6", "resolve", "res"), Verb.RESOLVE),
    **dict.fromkeys(("8", "escalate", "esc"), Verb.ESCALATE),
    **dict.fromkeys(("list", "ls"), Verb.LIST),
    "status": Verb.STATUS,
    **dict.fromkeys(("who", "oncall"), Verb.WHO),
}
# The carrier's own words, and as it reads them: alone, in any case.
CARRIERS: Final = {
    **dict.fromkeys(("stop", "stopall", "unsubscribe", "cancel", "end", "quit"), Verb.STOP),
    **dict.fromkeys(("start", "unstop", "yes"), Verb.START),
}
NUMBERED: Final = {Verb.ACKNOWLEDGE, Verb.RESOLVE, Verb.ESCALATE}
AROUND: Final = " \t\r\n'\"`‘’“”„«».,!?:;()[]"
REPLY: Final = re.compile(r"([a-z]+|\d+)(?:\s*#?\s*([0-9]{1,9}))?")
ALL: Final = re.compile(r"(?:4|ack|acknowledge)\s+all")
WHO: Final = re.compile(r"(?:who|oncall)\s+(?:is\s+)?(?:on\s?-?call\s*)?(?:for\s+|on\s+)?(\S.{0,79})?")


def parse_reply(text: str) -> Reply:
    if carriers := CARRIERS.get(text.strip().casefold()):
        return Reply(carriers)
    words = text.strip(AROUND).casefold()
    if ALL.fullmatch(words):
        return Reply(Verb.ACKNOWLEDGE_ALL)
    if asked := WHO.fullmatch(words):
        return Reply(Verb.WHO, name=asked[1])
    found = REPLY.fullmatch(words)
    if found is None:
        return Reply(Verb.HELP)
    verb = WORDS.get(found[1], Verb.HELP)
    if found[2] is None:
        return Reply(verb)
    if verb not in NUMBERED:
        return Reply(Verb.HELP)
    return Reply(verb, int(found[2]))
