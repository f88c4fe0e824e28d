"""What people type, as commands: verbs, incident numbers, people, times.

Never looks anything up: names are kept as typed, and `commands` finds what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import Final
from zoneinfo import ZoneInfo

from bot.slack.grammar import maintenance_text, override_text
from bot.slack.grammar.times import FORMS, Span, read_span
from bot.slack.grammar.tokens import MENTION, NUMBER, numbers
from bot.slack.grammar.typed import folded, plainly, tidy
from bot.slack.grammar.who_text import Shifts, Who, parse_shifts, parse_who
from engine.errors import BadCommand

VERBS: Final = (
    "who", "why", "page", "ack", "resolve", "snooze", "escalate", "note", "list", "show", "unack", "reopen",
    "merge", "unmerge", "override", "shifts", "maintenance", "cover", "schedule", "me", "verify", "status",
    "dead", "retry", "test", "help",
)  # fmt: skip
HANDED_ON: Final = frozenset(  # read by whoever does them
    {"cover", "schedule", "dead", "retry", "test", "me", "verify"}
)
DEEDS: Final = frozenset({"ack", "resolve", "unack", "reopen", "escalate", "unmerge"})
SYNONYMS: Final[Mapping[str, str]] = {
    "acknowledge": "ack", "acked": "ack", "close": "resolve", "resolved": "resolve", "fix": "resolve",
    "unacknowledge": "unack", "whoisoncall": "who", "oncall": "who", "incidents": "list", "ls": "list",
    "open": "page", "new": "page", "create": "page", "comment": "note", "health": "status", "?": "help",
    "escalate-now": "escalate", "join": "me", "overrides": "override", "mute": "maintenance",
    "split": "unmerge", "who's": "who", "whos": "who", "shift": "shifts", "schedules": "schedule",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Handed:
    """What somebody else reads: the words behind the verb, as they were typed."""

    verb: str
    words: str


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
class Why:
    """The whole story of one incident; no number: that of the thread."""

    numbers: tuple[int, ...]


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
class Status:
    pass


@dataclass(frozen=True, slots=True)
class Help:
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A first word that is no verb; it may be the name of a schedule, and `who` what is asked of it."""

    words: str
    suggestion: str | None
    who: Who | None = field(default=None, compare=False)


Command = (
    Who | Shifts | Deed | Snooze | Merge | Note | Show | Why | ListIncidents | Open | override_text.Command
    | maintenance_text.Command | Handed | Status | Help | Unknown
)  # fmt: skip


def parse(text: str, now: datetime, zone: ZoneInfo) -> Command:
    """A command of /oncall or of a mention: the first word is the verb."""
    raw = tidy(text)
    words = folded(raw)
    first, _, rest = words.partition(" ")
    verb = verb_of(first)
    raw_rest = raw.partition(" ")[2].strip()
    if verb is None:
        return _no_verb(words, raw, now, zone)
    if verb in HANDED_ON:
        return Handed(verb, raw_rest)
    if verb in _TIMED:
        return _TIMED[verb](raw_rest, now, zone)
    return _timeless(verb, rest, raw_rest)


def _timeless(verb: str, rest: str, raw_rest: str) -> Command:
    """The verbs that name no time."""
    if verb in DEEDS:
        return _deed(verb, rest)
    match verb:
        case "page":
            return parse_page(raw_rest)
        case "merge":
            return _merge(rest)
        case "note":
            return _note(raw_rest)
        case "show":
            return Show(numbers(rest, "`/oncall show 42`"))
        case "why":
            return Why(numbers(rest, "`/oncall why 42`"))
    plain: Mapping[str, Command] = {"list": ListIncidents(), "status": Status()}
    return plain.get(verb) or Help(rest or None)


def parse_incident(text: str, now: datetime, zone: ZoneInfo) -> Command:
    """/incident: the same verbs, and bare it lists."""
    return parse(text, now, zone) if tidy(text) else ListIncidents()


def parse_override(text: str, now: datetime, zone: ZoneInfo) -> Command:
    return Help("override") if folded(text).strip() == "help" else override_text.parse(text, now, zone)


def parse_page(text: str) -> Command:
    raw = plainly(tidy(text))
    if not raw:
        raise BadCommand("Name the service and what is wrong: `/page payments Disk full on db1`.")
    return Open(raw)


def _deed(verb: str, rest: str) -> Deed:
    return Deed(verb, numbers(rest, f"`/oncall {verb} 42`"))


def _snooze(raw: str, now: datetime, zone: ZoneInfo) -> Snooze:
    """As many leading numbers as leave a time: in "42 30 min" the 30 belongs to the time."""
    words = folded(raw).split()
    leading = 0
    while leading < len(words) and NUMBER.fullmatch(words[leading]):
        leading += 1
    for count in range(leading, -1, -1):
        span = read_span(" ".join(words[count:]), now, zone)
        if span is not None:
            return Snooze(numbers(" ".join(words[:count]), "`/oncall snooze 42 30m`"), span)
    raise BadCommand(
        f"Say for how long: `/oncall snooze 42 30m` or `/oncall snooze 42 until 09:00`. {FORMS}."
    )


def _merge(rest: str) -> Merge:
    """Which, and into which; of bare numbers the last one goes on."""
    form = "`/oncall merge 42 into 41`"
    goes, into, stays = rest.rpartition("into")
    going = numbers(goes, form) if into else numbers(rest, form)
    others = numbers(stays, form) if into else going[-1:]
    going = going if into else going[:-1]
    if len(others) != 1 or not (going or into):
        raise BadCommand(f"Say which incident goes on: {form}.")
    return Merge(going, others[0])


def _note(raw: str) -> Note:
    first, _, rest = raw.partition(" ")
    number = NUMBER.fullmatch(first)
    about, words = ((int(number[1]),), rest) if number else ((), raw)
    if not words.strip():
        raise BadCommand("Say what to note: `/oncall note 42 rebooted db-1`.")
    return Note(about, plainly(words.strip()))


def _no_verb(words: str, raw: str, now: datetime, zone: ZoneInfo) -> Command:
    if not words:
        return Who()
    if MENTION.match(raw):
        return parse_who(raw, now, zone)
    suggestion = next(iter(get_close_matches(words.split()[0], VERBS, n=1, cutoff=0.6)), None)
    return Unknown(words, suggestion, _perhaps_who(raw, now, zone))


def _perhaps_who(raw: str, now: datetime, zone: ZoneInfo) -> Who | None:
    try:
        return parse_who(raw, now, zone)
    except BadCommand:
        return None


def verb_of(word: str) -> str | None:
    word = word.strip("!/:.") or word
    word = SYNONYMS.get(word, word)
    return word if word in VERBS else None


_TIMED: Final[Mapping[str, Callable[[str, datetime, ZoneInfo], Command]]] = {
    "who": parse_who,
    "shifts": parse_shifts,
    "snooze": _snooze,
    "override": parse_override,
    "maintenance": maintenance_text.parse,
}
