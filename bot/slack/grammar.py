"""What people type, as commands: verbs, incident numbers, people, times.

Never looks anything up: names are kept as typed, and `commands` finds what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Final
from zoneinfo import ZoneInfo

from bot.slack import maintenance
from bot.slack.escape import code
from bot.slack.times import FORMS, Span, read_span
from bot.slack.typed import folded, plainly, tidy
from engine.errors import BadCommand

MAX_NUMBERS: Final = 20
OVERRIDE_FORM: Final = (
    "`/override @user 2h [schedule]`, for example `/override @ana 2h` "
    "or `/override payments @ana until 18:00`"
)

VERBS: Final = (
    "who", "page", "ack", "resolve", "snooze", "escalate", "note", "list", "show", "unack", "reopen",
    "merge", "unmerge", "override", "maintenance", "me", "status", "help",
)  # fmt: skip
DEEDS: Final = frozenset({"ack", "resolve", "unack", "reopen", "escalate", "unmerge"})
SYNONYMS: Final[Mapping[str, str]] = {
    "acknowledge": "ack", "acked": "ack", "close": "resolve", "resolved": "resolve", "fix": "resolve",
    "unacknowledge": "unack", "whoisoncall": "who", "oncall": "who", "incidents": "list", "ls": "list",
    "open": "page", "new": "page", "create": "page", "comment": "note", "health": "status", "?": "help",
    "escalate-now": "escalate", "join": "me", "overrides": "override", "mute": "maintenance",
    "split": "unmerge",
}  # fmt: skip

_UNKNOWN: Final = re.compile(r"(?<!\S)@(\S+)")
_MENTION: Final = re.compile(r"<@([UW][A-Z0-9]{1,30})(?:\|[^>]*)?>", re.IGNORECASE)
_NUMBER: Final = re.compile(r"#?(\d{1,12})[,;.]?")


@dataclass(frozen=True, slots=True)
class Who:
    name: str | None = None
    slack_user_id: str | None = None


@dataclass(frozen=True, slots=True)
class Deed:
    """ack, resolve, unack, reopen, escalate or unmerge; no numbers: the incident of the thread."""

    verb: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Snooze:
    numbers: tuple[int, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Merge:
    numbers: tuple[int, ...]
    into: int


@dataclass(frozen=True, slots=True)
class Note:
    numbers: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Show:
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListIncidents:
    pass


@dataclass(frozen=True, slots=True)
class Open:
    """`words` begin with the service's name, as far as one matches."""

    words: str


@dataclass(frozen=True, slots=True)
class SetOverride:
    slack_user_id: str | None  # None: the person asking
    span: Span
    schedule: str | None


@dataclass(frozen=True, slots=True)
class Stranger:
    """@name as plain text: Slack makes a mention of whom it knows, so it knows nobody of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOverrides:
    schedule: str | None = None


@dataclass(frozen=True, slots=True)
class CancelOverride:
    override_id: int


@dataclass(frozen=True, slots=True)
class Me:
    pass


@dataclass(frozen=True, slots=True)
class Status:
    pass


@dataclass(frozen=True, slots=True)
class Help:
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A first word that is no verb; it may be the name of a schedule."""

    words: str
    suggestion: str | None


Command = (
    Who | Deed | Snooze | Merge | Note | Show | ListIncidents | Open | SetOverride | Stranger | ListOverrides
    | CancelOverride | maintenance.Command | Me | Status | Help | Unknown
)  # fmt: skip


def parse(text: str, now: datetime, zone: ZoneInfo) -> Command:
    """A command of /oncall or of a mention: the first word is the verb."""
    raw = tidy(text)
    words = folded(raw)
    first, _, rest = words.partition(" ")
    verb = verb_of(first)
    raw_rest = raw.partition(" ")[2].strip()
    if verb is None:
        return _no_verb(words, raw)
    if verb in DEEDS:
        return _deed(verb, rest)
    match verb:
        case "who":
            return _who(rest)
        case "page":
            return parse_page(raw_rest)
        case "snooze":
            return _snooze(rest, now, zone)
        case "merge":
            return _merge(rest)
        case "note":
            return _note(raw_rest)
        case "show":
            return Show(_numbers(rest, "`/oncall show 42`"))
        case "override":
            return parse_override(raw_rest, now, zone)
        case "maintenance":
            return maintenance.parse(raw_rest, now, zone)
    plain: Mapping[str, Command] = {"list": ListIncidents(), "me": Me(), "status": Status()}
    return plain.get(verb) or Help(rest or None)


def parse_incident(text: str, now: datetime, zone: ZoneInfo) -> Command:
    """/incident: the same verbs, and bare it lists."""
    return parse(text, now, zone) if tidy(text) else ListIncidents()


def parse_page(text: str) -> Command:
    raw = plainly(tidy(text))
    if not raw:
        raise BadCommand("Name the service and what is wrong: `/page payments Disk full on db1`.")
    return Open(raw)


def parse_override(text: str, now: datetime, zone: ZoneInfo) -> Command:
    """Who takes over, for how long and on which schedule, in any order."""
    raw = tidy(text)
    words = folded(raw)
    first, _, rest = words.partition(" ")
    if first in {"list", "ls", ""}:
        return ListOverrides(rest or None)
    if first in {"cancel", "remove", "delete", "end"}:
        numbers = _numbers(rest, "`/override cancel 7`")
        if len(numbers) != 1:
            raise BadCommand(
                "Name one override by its number: `/override cancel 7`; `/override list` shows them."
            )
        return CancelOverride(numbers[0])
    unknown = _UNKNOWN.search(words)
    if unknown and not _MENTION.search(raw):
        return Stranger(unknown[1])
    user, others = _person(raw)
    return _override(user, others, now, zone)


def _person(raw: str) -> tuple[str | None, list[str]]:
    """The one person mentioned (None for "me"), and the words that are left."""
    users = {match.upper() for match in _MENTION.findall(raw)}
    words = folded(_MENTION.sub(" ", raw)).split()
    if len(users) > 1:
        raise BadCommand(f"Mention one person only: {OVERRIDE_FORM}.")
    if users:
        return users.pop(), words
    if "me" in words:
        words.remove("me")
        return None, words
    raise BadCommand(f"Mention with @ who takes over: {OVERRIDE_FORM}.")


def _override(user: str | None, words: list[str], now: datetime, zone: ZoneInfo) -> SetOverride:
    if len(words) > 24:
        raise BadCommand(f"That is more than I can read: {OVERRIDE_FORM}.")
    windows = [(a, b) for a in range(len(words)) for b in range(a + 1, len(words) + 1)]
    for a, b in sorted(windows, key=lambda window: window[0] - window[1]):
        span = read_span(" ".join(words[a:b]), now, zone)
        if span is not None:
            named = " ".join(word for word in words[:a] + words[b:] if word not in {"on", "for"})
            return SetOverride(user, span, named.strip("\"'") or None)
    said = code(plainly(" ".join(words)))
    lead = f"I don't understand {said} as a time" if said else "Say for how long"
    raise BadCommand(f"{lead}. The form is {OVERRIDE_FORM}. Times: {FORMS}.")


def _who(rest: str) -> Who:
    mentioned = _MENTION.search(rest)
    if mentioned:
        return Who(slack_user_id=mentioned[1].upper())
    return Who(rest.removeprefix("is on call").strip(" ?\"'") or None)


def _deed(verb: str, rest: str) -> Deed:
    return Deed(verb, _numbers(rest, f"`/oncall {verb} 42`"))


def _snooze(rest: str, now: datetime, zone: ZoneInfo) -> Snooze:
    """As many leading numbers as leave a time: in "42 30 min" the 30 belongs to the time."""
    words = rest.split()
    leading = 0
    while leading < len(words) and _NUMBER.fullmatch(words[leading]):
        leading += 1
    for count in range(leading, -1, -1):
        span = read_span(" ".join(words[count:]), now, zone)
        if span is not None:
            return Snooze(_numbers(" ".join(words[:count]), "`/oncall snooze 42 30m`"), span)
    raise BadCommand(
        f"Say for how long: `/oncall snooze 42 30m` or `/oncall snooze 42 until 09:00`. {FORMS}."
    )


def _merge(rest: str) -> Merge:
    """Which, and into which; of bare numbers the last one goes on."""
    form = "`/oncall merge 42 into 41`"
    goes, into, stays = rest.rpartition("into")
    numbers = _numbers(goes, form) if into else _numbers(rest, form)
    others = _numbers(stays, form) if into else numbers[-1:]
    numbers = numbers if into else numbers[:-1]
    if len(others) != 1 or not (numbers or into):
        raise BadCommand(f"Say which incident goes on: {form}.")
    return Merge(numbers, others[0])


def _note(raw: str) -> Note:
    first, _, rest = raw.partition(" ")
    number = _NUMBER.fullmatch(first)
    numbers, words = ((int(number[1]),), rest) if number else ((), raw)
    if not words.strip():
        raise BadCommand("Say what to note: `/oncall note 42 rebooted db-1`.")
    return Note(numbers, plainly(words.strip()))


def _numbers(rest: str, form: str) -> tuple[int, ...]:
    words = [word for word in rest.replace(",", " ").split() if word != "and"]
    found = [_NUMBER.fullmatch(word) for word in words]
    if not all(found):
        strange = next(word for word, match in zip(words, found, strict=True) if match is None)
        raise BadCommand(f"{code(plainly(strange), 40)} is no incident number: {form}.")
    if len(found) > MAX_NUMBERS:
        raise BadCommand(f"At most {MAX_NUMBERS} at once.")
    return tuple(dict.fromkeys(int(match[1]) for match in found if match))


def _no_verb(words: str, raw: str) -> Command:
    if not words:
        return Who()
    mentioned = _MENTION.fullmatch(raw)
    if mentioned:
        return Who(slack_user_id=mentioned[1].upper())
    return Unknown(words, next(iter(get_close_matches(words.split()[0], VERBS, n=1, cutoff=0.6)), None))


def verb_of(word: str) -> str | None:
    word = word.strip("!/:.") or word
    word = SYNONYMS.get(word, word)
    return word if word in VERBS else None
