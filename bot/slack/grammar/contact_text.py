"""What stands behind `/oncall me` about how somebody is reached: methods, codes, rules, a test.

Never looks anything up: which method is meant, `bot.contact_words` says of whoever asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from bot.contact_words import LIKE, kind_of
from bot.slack import escape
from bot.slack.grammar.typed import folded, plainly, tidy
from engine.errors import BadCommand
from engine.models import Method, Urgency

ADD_FORM: Final = (
    "`/oncall me add sms +12025550143`, or `voice`, `email`, `push` and its address; `by call` at the end "
    "says the code in a call"
)
VERIFY_FORM: Final = "`/oncall me verify 123456`"
RULES_FORM: Final = f"`/oncall me rules high: {LIKE}`, `low: slack`, or `/oncall me rules reset`"
ASK_FORM: Final = "`/oncall me ask-everybody`"
FORMS: Final = (
    "`/oncall me` shows how you are reached; behind it stands nothing, or `add`, `code`, `verify`, `change`, "
    "`remove`, `rules`, `test`, `numbers`, `calendar` or `reminders`"
)

_BY_CALL: Final = re.compile(r"\s*\b(?:by|via) (?:call|phone|voice)\s*$", re.IGNORECASE)
_URGENCY: Final = re.compile(r"\b(high|low)\b(?: urgency)? ?[:=]?", re.IGNORECASE)
_AROUND: Final = "`\"'“”„‘’«» "


@dataclass(frozen=True, slots=True)
class ShowMe:
    pass


@dataclass(frozen=True, slots=True)
class ShowMethods:
    """`add`: the part of the form in which one is added."""

    add: bool = False


@dataclass(frozen=True, slots=True)
class Add:
    kind: Method
    address: str
    by_call: bool = False


@dataclass(frozen=True, slots=True)
class SendCode:
    """`which`: the kind or the number of a method."""

    which: str
    by_call: bool = False


@dataclass(frozen=True, slots=True)
class Verify:
    code: str


@dataclass(frozen=True, slots=True)
class Change:
    which: str
    address: str


@dataclass(frozen=True, slots=True)
class Remove:
    which: str


@dataclass(frozen=True, slots=True)
class ShowRules:
    pass


@dataclass(frozen=True, slots=True)
class SetRules:
    """The steps of each urgency that is named, as they were typed."""

    steps: Mapping[Urgency, str]


@dataclass(frozen=True, slots=True)
class ResetRules:
    pass


@dataclass(frozen=True, slots=True)
class RunTest:
    pass


@dataclass(frozen=True, slots=True)
class ShowNumbers:
    pass


@dataclass(frozen=True, slots=True)
class AskEverybody:
    pass


Command = (
    ShowMe | ShowMethods | Add | SendCode | Verify | Change | Remove | ShowRules | SetRules | ResetRules
    | RunTest | ShowNumbers | AskEverybody
)  # fmt: skip


def parse(typed: str) -> Command:
    """What stands behind `me`."""
    raw = plainly(tidy(typed))
    first, _, rest = raw.partition(" ")
    read = _READERS.get(folded(first))
    if read is None:
        raise BadCommand(f"I don't understand {escape.code(raw, 60)} here. {FORMS}.")
    return read(rest.strip())


def verify(typed: str) -> Command:
    """Without a code: the form, which asks for it."""
    return Verify(typed.strip(_AROUND)) if typed.strip() else ShowMethods()


def _add(rest: str) -> Command:
    if not rest:
        return ShowMethods(add=True)
    words = _BY_CALL.sub("", rest)
    first, _, address = words.partition(" ")
    kind, address = kind_of(first), address.strip(_AROUND)
    if kind is None or kind is Method.SLACK or not address:
        raise BadCommand(f"Say what to add: {ADD_FORM}.")
    return Add(kind, address, by_call=words != rest)


def _code(rest: str) -> Command:
    which = _BY_CALL.sub("", rest)
    return SendCode(which, by_call=which != rest) if which else ShowMethods()


def _change(rest: str) -> Command:
    which, _, address = rest.partition(" ")
    address = re.sub(r"^to ", "", address.strip(), flags=re.IGNORECASE).strip(_AROUND)
    if not address:
        raise BadCommand("Say which, and its new address: `/oncall me change sms +12025550143`.")
    return Change(which, address)


def _remove(rest: str) -> Command:
    return Remove(rest) if rest else ShowMethods()


def _rules(rest: str) -> Command:
    words = folded(rest)
    if not words:
        return ShowRules()
    if words in {"reset", "default", "usual", "off"}:
        return ResetRules()
    before, *named = _URGENCY.split(words)
    found = dict(zip(map(Urgency, named[::2]), map(str.strip, named[1::2]), strict=True))
    if before.strip(" ;,"):
        found = {Urgency.HIGH: before} | found  # what names no urgency is about the one that wakes
    if not any(found.values()) or len(named) > 2 * len(set(named[::2])):
        raise BadCommand(f"Say the steps: {RULES_FORM}.")
    return SetRules(found)


def _ask(rest: str) -> Command:
    if folded(rest) not in {"everybody", "everyone", "all"}:
        raise BadCommand(f"{ASK_FORM} asks everybody to verify what they have not.")
    return AskEverybody()


def _alone(command: Command) -> Callable[[str], Command]:
    def read(rest: str) -> Command:
        if rest:
            raise BadCommand(f"I don't understand {escape.code(rest, 60)} here. {FORMS}.")
        return command

    return read


_READERS: Final[Mapping[str, Callable[[str], Command]]] = {
    "": _alone(ShowMe()), "show": _alone(ShowMe()),
    "methods": _alone(ShowMethods()), "contacts": _alone(ShowMethods()), "contact": _alone(ShowMethods()),
    "add": _add,
    "code": _code, "resend": _code,
    "verify": verify, "confirm": verify,
    "change": _change,
    "remove": _remove, "delete": _remove, "forget": _remove,
    "rules": _rules, "rule": _rules,
    "test": _alone(RunTest()),
    "numbers": _alone(ShowNumbers()), "vcard": _alone(ShowNumbers()), "card": _alone(ShowNumbers()),
    "ask": _ask, "ask-everybody": _alone(AskEverybody()), "ask-everyone": _alone(AskEverybody()),
}  # fmt: skip
