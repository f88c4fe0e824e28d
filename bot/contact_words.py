"""Contact methods and contact rules as people type them, in Slack and in a terminal: "sms after 1m".

Pure: says which of a person's methods are meant, and after which delays; whether such rules may stand,
`engine.contacts.rules` says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from engine.config.durations import parse_duration
from engine.contacts.masking import masked
from engine.directory import ContactMethod, Person
from engine.errors import BadInput
from engine.models import Method

LIKE: Final = "slack, sms after 1m, voice after 3m"
KINDS: Final = {
    "slack": Method.SLACK, "dm": Method.SLACK,
    "sms": Method.SMS, "text": Method.SMS, "mobile": Method.SMS,
    "voice": Method.VOICE, "call": Method.VOICE, "landline": Method.VOICE,
    "email": Method.EMAIL, "mail": Method.EMAIL, "e-mail": Method.EMAIL,
    "push": Method.PUSH, "app": Method.PUSH,
}  # fmt: skip

_BETWEEN: Final = re.compile(r"[,;]|\b(?:and|then)\b", re.IGNORECASE)
_AT_ONCE: Final = frozenset({"", "now", "at once", "immediately", "first"})
_COUNT: Final = re.compile(r"(\d{1,6}) ?(s|m|h)[a-z]*", re.ASCII)  # 90s, 1 min, 2 minutes, 1h


def kind_of(word: str) -> Method | None:
    return KINDS.get(word.strip("#`\"':.").casefold())


def method_named(person: Person, typed: str) -> ContactMethod:
    """By its number, or its kind; of several none is picked."""
    word, kind = typed.strip().lstrip("#"), kind_of(typed)
    found = [one for one in person.methods if word == str(one.id) or one.kind is kind]
    if len(found) == 1:
        return found[0]
    there = ", ".join(f"{one.id} ({one.kind} {masked(one)})" for one in person.methods)
    shown = typed.strip()[:40]
    what = f"{shown!r} can be several: say which number" if found else "There is no such contact method"
    raise BadInput(f"{what}. {person.name} has: {there or 'none yet'}.")


def steps_typed(person: Person, typed: str) -> Sequence[tuple[int, timedelta]]:
    """ "slack now, sms after 1 min, then voice after 3m"; empty for nothing."""
    parts = (" ".join(part.casefold().split()) for part in _BETWEEN.split(typed))
    return [_step(person, part) for part in parts if part]


def _step(person: Person, typed: str) -> tuple[int, timedelta]:
    which, _, when = typed.partition(" ")
    delay = timedelta() if when in _AT_ONCE else _delay(re.sub(r"^(?:after|in) ", "", when))
    if delay is None:
        raise BadInput(f'"{typed[:60]}" is no step. Write them like "{LIKE}".')
    return method_named(person, which).id, delay


def _delay(typed: str) -> timedelta | None:
    return parse_duration(_COUNT.sub(r"\1\2", typed).replace(" ", ""))
