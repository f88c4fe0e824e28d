"""Calendars as people type them: a link to one's own shifts or a schedule's, and a calendar to follow.

Never acks and never sends. A link is shown once, to whoever made it, and never where others read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bot.slack import escape, names
from bot.slack.answers import paragraphs
from bot.slack.grammar.typed import folded, plainly, tidy
from bot.slack.identity import Asker, Identity
from bot.slack.message import Message, note
from engine.errors import BadCommand, Refused
from engine.models import Via
from engine.rota.calendars import Calendars, Subject
from engine.rota.imports import Imports
from engine.rota.roster import Roster
from engine.store.calendars import Import

LINK_FORM: Final = "`/oncall schedule calendar payments`, with `new` or `revoke` at its end"
OWN_FORM: Final = "`/oncall me calendar`, `/oncall me calendar new` or `/oncall me calendar revoke`"
FOLLOW_FORM: Final = (
    "`/oncall schedule import payments https://…/basic.ics`, or `off` in place of the address"
)
IN_PUBLIC: Final = (
    "The link is a secret, and others read here: type it as a command with `/`, or tell me by direct message."
)
REVOKE: Final = frozenset({"revoke", "off", "remove", "delete", "stop"})
NEW: Final = frozenset({"new", "again", "renew"})
_ANGLES: Final = "<>"


class Wish(StrEnum):
    GET = "get"
    NEW = "new"
    REVOKE = "revoke"


@dataclass(frozen=True, slots=True)
class Link:
    """`schedule` None: one's own shifts."""

    schedule: str | None
    wish: Wish


@dataclass(frozen=True, slots=True)
class Follow:
    """`url` None: which calendar it follows; empty: none any more."""

    schedule: str
    url: str | None


def parse_own(raw: str) -> Link:
    """What stands behind `me calendar`."""
    wish = _wish(folded(raw))
    if wish is None:
        raise BadCommand(f"I don't understand {escape.code(plainly(raw), 60)} here: {OWN_FORM}.")
    return Link(None, wish)


def parse(raw: str) -> Link | Follow:
    """What stands behind `schedule`: calendar or import, the schedule's name, and what about it."""
    noun, _, rest = tidy(raw).partition(" ")
    words = rest.split()
    if folded(noun) == "import":
        return _follow(words)
    wish = _wish(folded(words[-1])) if len(words) > 1 else Wish.GET
    name = _name(words if wish is None or len(words) < 2 else words[:-1])
    if not name:
        raise BadCommand(f"Name the schedule: {LINK_FORM}.")
    return Link(name, wish or Wish.GET)


def _follow(words: list[str]) -> Follow:
    last = words[-1] if len(words) > 1 else ""
    url = plainly(last).strip(_ANGLES)
    if folded(last) in REVOKE:
        found = Follow(_name(words[:-1]), "")
    elif "://" in url:
        found = Follow(_name(words[:-1]), url)
    else:
        found = Follow(_name(words), None)
    if not found.schedule or "://" in found.schedule:
        raise BadCommand(f"Name the schedule, then the address: {FOLLOW_FORM}.")
    return found


def _wish(word: str) -> Wish | None:
    if word in REVOKE:
        return Wish.REVOKE
    return Wish.NEW if word in NEW else Wish.GET if word in {"", "get", "show", "link"} else None


def _name(words: list[str]) -> str:
    return plainly(" ".join(words)).strip().strip("\"'“”`")


class CalendarCommand:
    """Does what was typed, and says what came of it."""

    def __init__(self, calendars: Calendars, imports: Imports, roster: Roster, identity: Identity) -> None:
        self._calendars = calendars
        self._imports = imports
        self._roster = roster
        self._identity = identity

    async def me(self, typed: str, asker: Asker) -> Message:
        """What stands behind `me`: calendar, and what about it."""
        return await self.do(parse_own(tidy(typed).partition(" ")[2]), asker)

    async def schedule(self, typed: str, asker: Asker) -> Message:
        """What stands behind `schedule`: calendar or import."""
        return await self.do(parse(typed), asker)

    async def do(self, command: Link | Follow, asker: Asker) -> Message:
        if isinstance(command, Follow):
            return await self._follow(command, asker)
        person = await self._identity.person(asker)
        subject, whose = Subject(person_id=person.id), "your shifts"
        if command.schedule is not None:
            named = names.schedule(command.schedule, await self._roster.directory())
            subject, whose = Subject(schedule_id=named.id), f"*{escape.line(named.name, 80)}*"
        if command.wish is Wish.REVOKE:
            revoked = await self._calendars.revoke(subject, person.id)
            return note(_revoked(whose) if revoked else f"You have no link to the calendar of {whose}.")
        _refuse_in_public(asker)
        old = await self._calendars.existing(subject, person.id)
        if old is not None and command.wish is Wish.GET:
            again = "me calendar" if command.schedule is None else f"schedule calendar {command.schedule}"
            return _there_already(whose, escape.date(old.created_at), escape.line(again, 100))
        return _made(whose, await self._calendars.make(subject, person.id), renewed=old is not None)

    async def _follow(self, command: Follow, asker: Asker) -> Message:
        person = await self._identity.person(asker)
        named = names.schedule(command.schedule, await self._roster.directory())
        name = f"*{escape.line(named.name, 80)}*"
        if command.url is None:
            return _state(name, (await self._imports.followed()).get(named.id))
        if not person.admin:
            raise Refused(
                "Only an admin of Midwatch lets a schedule follow a calendar: whoever writes it puts people "
                "on call. Nothing was changed."
            )
        if not command.url:
            ended = await self._imports.unfollow(named.id)
            return note(_unfollowed(name) if ended else f"{name} follows no calendar.")
        _refuse_in_public(asker)
        return _followed(name, await self._imports.follow(named.id, command.url))


def _refuse_in_public(asker: Asker) -> None:
    if asker.via is Via.SLACK_MENTION and not asker.channel_id.startswith("D"):
        raise Refused(IN_PUBLIC)


# --- words -------------------------------------------------------------------------------------------


def _made(whose: str, url: str, *, renewed: bool) -> Message:
    lines = [
        f"🗓️ The calendar of {whose}, a month back and a year ahead, for any program that subscribes:",
        f"`{url}`",
        "Whoever has the link sees who is on call; it is shown this once. Revoke it with `revoke` at the end "
        "of the same command.",
    ]
    if renewed:
        lines.append("Your old link opens nothing any more.")
    return paragraphs(lines)


def _there_already(whose: str, since: str, again: str) -> Message:
    return paragraphs(
        [
            f"🗓️ You have a link to the calendar of {whose} since {since}. It was shown once and cannot be "
            "shown again.",
            f"`/oncall {again} new` makes another one, and the old one opens nothing any more; "
            f"`/oncall {again} revoke` ends it.",
        ]
    )


def _revoked(whose: str) -> str:
    return f"✅ Your link to the calendar of {whose} opens nothing any more."


def _followed(name: str, now_is: Import) -> Message:
    lines = [
        f"🗓️ {name} follows that calendar from now on: {len(now_is.shifts)} shifts of it were read, and it is "
        "read again every 15 minutes. Whoever an event names is on call instead of the layers; overrides "
        "still come first."
    ]
    return paragraphs([*lines, *_nobody(now_is)])


def _state(name: str, now_is: Import | None) -> Message:
    if now_is is None:
        return note(f"{name} follows no calendar. Let it: {FOLLOW_FORM}.")
    read = f", last read {escape.date(now_is.fetched_at)}" if now_is.fetched_at else ""
    lines = [f"🗓️ {name} follows a calendar{read}: {len(now_is.shifts)} shifts."]
    if now_is.error:
        lines.append(f"⚠️ It cannot be read: {escape.line(now_is.error, 300)}. What it said last goes on.")
    return paragraphs([*lines, *_nobody(now_is)])


def _nobody(now_is: Import) -> list[str]:
    return [
        f"⚠️ {escape.line(title, 120)} names nobody here and puts nobody on call."
        for title in now_is.unmatched
    ]


def _unfollowed(name: str) -> str:
    return f"✅ {name} follows no calendar any more: from now on its layers alone say who is on call."
