"""Cover as people type and click it: ask for it, take it or a part of it, say no, list, take back.

Never acks and never sends; the engine asks people, and decides who has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from bot.slack import escape, names, words
from bot.slack.answers import paragraphs
from bot.slack.grammar.times import Span, read_interval
from bot.slack.grammar.typed import folded
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message, note
from engine import covering
from engine.clock import Clock
from engine.errors import BadCommand, Refused
from engine.parts import Part
from engine.rota.cover import Asked, Cover, CoverAnswer
from engine.rota.cover_words import ALL, DECLINE, Story
from engine.rota.roster import Roster

FORM: Final = "`/oncall cover me fri 18:00-22:00 [schedule]`"
FORMS: Final = f"{FORM} · `/oncall cover list` · `take 3 [18:00-20:00]` · `decline 3` · `cancel 3`"
NOUN: Final = "cover"  # the first word of the action ids of its buttons
STALE: Final = "I cannot tell which request this button belongs to. `/oncall cover list` shows what is open."

_CLOCK: Final = re.compile(r"\d{1,2}(?:[:.]\d\d)?(?:am|pm)?")
_NAME_MAX: Final = 4  # words of a schedule's name
_MENTION: Final = re.compile(r"<@[uw]")
_VALUE: Final = re.compile(rf"(\d{{1,15}}):(?:{ALL}|(\d{{1,12}}):(\d{{1,12}}))", re.ASCII)


@dataclass(frozen=True, slots=True)
class AskCover:
    span: Span
    schedule: str | None


@dataclass(frozen=True, slots=True)
class AnswerCover:
    """take, decline or cancel; `span` is the part that is taken."""

    verb: str
    number: int
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class ListCovers:
    pass


Command = AskCover | AnswerCover | ListCovers
VERBS: Final[Mapping[str, str]] = {
    "take": "take", "accept": "take", "decline": "decline", "no": "decline",
    "cancel": "cancel", "withdraw": "cancel", "stop": "cancel", "end": "cancel",
}  # fmt: skip


def parse(raw: str, now: datetime, zone: ZoneInfo) -> Command:
    """The time, and before or after it the schedule; or a verb and the number of a request."""
    typed = folded(raw).split()
    if not typed or typed[0] in {"list", "ls"}:
        return ListCovers()
    verb = VERBS.get(typed[0])
    if verb is not None:
        return _answer(verb, typed[1:], now, zone)
    if any(_MENTION.match(word) for word in typed):
        raise BadCommand(f"Cover is asked for oneself: {FORM}. `/override @user 2h` puts somebody on call.")
    for lead in (["for", "me"], ["me"], ["my", "shift"]):
        if typed[: len(lead)] == lead:
            typed = typed[len(lead) :]
    if not typed:
        raise BadCommand(f"Say for when: {FORM}.")
    return _ask(typed, now, zone)


def _answer(verb: str, typed: Sequence[str], now: datetime, zone: ZoneInfo) -> AnswerCover:
    number = typed[0].lstrip("#") if typed else ""
    if not number.isascii() or not number.isdigit() or len(number) > 15:
        raise BadCommand(f"Name the request by its number: `/oncall cover {verb} 3`; {FORMS}.")
    part = " ".join(typed[1:]) if verb == "take" else ""
    return AnswerCover(verb, int(number), read_interval(part, now, zone) if part else None)


def _ask(typed: list[str], now: datetime, zone: ZoneInfo) -> AskCover:
    """As much as can be is the time; what is left at one end of it is the schedule."""
    said: BadCommand | None = None
    for left in range(min(_NAME_MAX + 1, len(typed))):
        for time, name in ((typed[left:], typed[:left]), (typed[: len(typed) - left], typed[-left:])):
            if left and any(_CLOCK.fullmatch(word) for word in name):
                continue
            try:
                span = read_interval(" ".join(time), now, zone)
            except BadCommand as wrong:
                said = said or wrong
            else:
                return AskCover(span, _name(name) if left else None)
    raise BadCommand(f"{said} The form is {FORM}.")


def _name(typed: Sequence[str]) -> str | None:
    return " ".join(word for word in typed if word not in {"on", "for"}).strip("\"'") or None


# --- done --------------------------------------------------------------------------------------------


class CoverCommand:
    """Does what was typed or clicked, and says what came of it."""

    def __init__(self, cover: Cover, roster: Roster, identity: Identity, clock: Clock) -> None:
        self._cover = cover
        self._roster = roster
        self._identity = identity
        self._clock = clock

    async def run(self, typed: str, asker: Asker) -> Message:
        """What follows `cover`, read on the asker's own clock."""
        reader = await self._identity.reader(asker)
        zone = words.zone_of(reader.timezone if reader else "UTC")
        return await self.do(parse(typed, self._clock.now(), zone), asker)

    async def do(self, command: Command, asker: Asker) -> Message:
        if isinstance(command, ListCovers):
            return listed(await self._cover.list())
        person = await self._identity.person(asker)
        actor = actor_of(person, asker)
        if isinstance(command, AskCover):
            span = command.span
            schedule_id = await self._schedule_id(command.schedule)
            done = await self._cover.ask(schedule_id, span.start, span.end, actor)
            return asked(done, span.guessed)
        if command.verb == "cancel":
            return _said(await self._cover.withdraw(command.number, actor))
        if command.verb == "decline":
            return _said(await self._cover.decline(command.number, actor))
        part = None if command.span is None else Part(command.span.start, command.span.end)
        return _said(await self._cover.accept(command.number, part, actor))

    async def _schedule_id(self, name: str | None) -> int | None:
        return None if name is None else names.schedule(name, await self._roster.directory()).id

    async def click(self, body: Mapping[str, Any], asker: Asker) -> Message:
        """A button under a question. What it did takes the question's place."""
        action = body["actions"][0]
        value = _VALUE.fullmatch(str(action.get("value") or ""))
        if value is None:
            raise BadCommand(STALE)
        actor = actor_of(await self._identity.person(asker), asker)
        number = int(value[1])
        if action["action_id"] == DECLINE:
            answer = await self._cover.decline(number, actor)
        else:
            part = Part(_instant(value[2]), _instant(value[3])) if value[2] else None
            answer = await self._cover.accept(number, part, actor)
        if not answer.changed:
            raise Refused(answer.text)
        return _said(answer)


def _instant(seconds: str) -> datetime:
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        raise BadCommand(STALE) from None


def _said(answer: CoverAnswer) -> Message:
    return note(escape.text(answer.text if answer.changed else f"ℹ️ {answer.text}"))


def asked(done: Asked, guessed: Sequence[str] = ()) -> Message:
    whole, schedule = done.request.whole, escape.line(done.schedule, 80)
    people = [f"*{escape.line(one.name, 60)}*" for one in done.people]
    in_turn = done.gap and len(people) > 1
    order = ", then ".join(people[:10]) if in_turn else ", ".join(people[:10])
    more = f" and {len(people) - 10} more" if len(people) > 10 else ""
    pause = f", {words.duration(done.gap)} apart, the least loaded first" if in_turn else ""
    lines = [
        f"🙏 Asking for cover on *{schedule}* {escape.date(whole.start)} to {escape.date(whole.end)} "
        f"(number {done.request.id}): {order}{more}{pause}.",
        f"The first who accepts has it. If nobody has by {escape.date(done.until)}, you are told, "
        "and stay on call.",
        *(f"I took it that {escape.line(one, 200)}." for one in guessed),
        f"Take it back with `/oncall cover cancel {done.request.id}`.",
    ]
    return paragraphs(lines)


def listed(found: Sequence[tuple[Story, Mapping[int, str]]]) -> Message:
    if not found:
        return note(f"Nobody seeks cover. Ask for it with {FORM}.")
    first = found[0][0].request.id
    footer = f"`/oncall cover take {first}` · `/oncall cover cancel {first}`"
    return paragraphs((_row(*one) for one in found), footer=footer)


def _row(story: Story, answers: Mapping[int, str]) -> str:
    left = ", ".join(f"{escape.date(one.start)} to {escape.date(one.end)}" for one in story.left)
    waiting = sum(said == covering.ASKED for said in answers.values())
    declined = sum(said == covering.DECLINED for said in answers.values())
    taken = f" · {len(story.taken)} part(s) taken" if story.taken else ""
    return (
        f"`{story.request.id}` *{escape.line(story.asker.name, 60)}* on "
        f"*{escape.line(story.named.name, 80)}*: {left}{taken} · {waiting} asked, {declined} declined"
    )
