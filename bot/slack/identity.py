"""Who is asking: (team, user) of Slack to a person of the directory, or why not.

Keyed on ids only: names, e-mails and whatever else a payload says prove nothing. Strangers,
guests, bots and people who left may change nothing, and read nothing either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from bot.slack.client import SlackClient
from bot.slack.workspace import Workspace
from engine.clock import Clock
from engine.directory import Person
from engine.errors import Refused
from engine.models import Actor, Via
from engine.pager.setup import Setup
from engine.rota.roster import Roster

log = structlog.get_logger(__name__)

KEPT_FOR: Final = timedelta(minutes=10)
KEPT_MOST: Final = 5_000

OUTSIDE: Final = ("deleted", "is_bot", "is_stranger", "is_restricted", "is_ultra_restricted")
UNTOLD: Final = "Slack does not tell me who you are right now; try again in a minute."
ENROL: Final = "I don't know you yet, so nothing was changed. Run `/oncall me` once, then try again."


@dataclass(frozen=True, slots=True)
class Asker:
    """Who sent a command, click or message, and where."""

    team_id: str
    user_id: str
    channel_id: str = ""
    thread_ts: str | None = None
    via: Via = Via.SLACK_COMMAND
    trigger_id: str = ""  # opens one modal, within three seconds
    response_url: str = ""  # answers where it was asked, for half an hour


class Identity:
    def __init__(
        self, client: SlackClient, workspace: Workspace, roster: Roster, setup: Setup, clock: Clock
    ) -> None:
        self._client = client
        self._workspace = workspace
        self._roster = roster
        self._setup = setup
        self._clock = clock
        self._kept: dict[str, tuple[datetime, Mapping[str, Any]]] = {}

    def check_team(self, asker: Asker) -> None:
        """Refuse people of another workspace, as far as we know our own."""
        ours = self._workspace.team_id
        if ours is not None and asker.team_id != ours:
            raise Refused("Midwatch answers only people of its own workspace; nothing was changed.")

    async def reader(self, asker: Asker) -> Person | None:
        """The person asking, who may read; None for a member of the workspace who is none yet."""
        self.check_team(asker)
        person = await self._find(asker.user_id)
        if person is None:
            user = await self._user(asker.user_id)
            if not user:
                raise Refused(UNTOLD)
            refuse_outsiders(user)
        return person

    async def person(self, asker: Asker) -> Person:
        """The person asking, who may change things; whoever is paged may always answer."""
        self.check_team(asker)
        directory = await self._roster.directory()
        for person in directory.people.values():
            if person.slack_user_id == asker.user_id:
                if person.active:
                    return person
                raise Refused(
                    "You were deactivated in Midwatch; an admin can undo that. Nothing was changed."
                )
        refuse_outsiders(await self._user(asker.user_id))
        raise Refused(ENROL)

    async def mentioned(self, slack_user_id: str) -> Person:
        """Somebody named by @: a person already, or refused with what they must do."""
        person = await self._find(slack_user_id)
        if person is None:
            raise Refused("The person you mention is not in Midwatch yet: they run `/oncall me` once.")
        return person

    async def enlisted(self, slack_user_id: str) -> Person:
        """Somebody chosen from Slack's list of people; who is none of ours yet is made one."""
        person = await self._find(slack_user_id)
        if person is not None:
            return person
        user = await self._user(slack_user_id)
        if not user:
            raise Refused("Slack does not tell me who that is right now; try again in a minute.")
        if any(user.get(key) for key in OUTSIDE):
            raise Refused("Guests, bots, people who left and people of other workspaces cannot be on call.")
        return await self._enrol(slack_user_id, user)

    async def enrol(self, asker: Asker) -> Person:
        """Make the person asking one who can be paged; does nothing for one who is."""
        self.check_team(asker)
        user = await self._user(asker.user_id)
        if not user:
            raise Refused(UNTOLD)
        refuse_outsiders(user)
        return await self._enrol(asker.user_id, user)

    async def _enrol(self, user_id: str, user: Mapping[str, Any]) -> Person:
        profile = user.get("profile") or {}
        name = profile.get("display_name") or user.get("name") or user.get("real_name") or user_id
        return await self._setup.enrol(user_id, str(name), str(user.get("tz") or "UTC"))

    async def _find(self, slack_user_id: str) -> Person | None:
        directory = await self._roster.directory()
        people = (p for p in directory.people.values() if p.slack_user_id == slack_user_id and p.active)
        return next(people, None)

    async def _user(self, user_id: str) -> Mapping[str, Any]:
        """What Slack says of a user; nothing while Slack does not answer."""
        now = self._clock.now()
        kept = self._kept.get(user_id)
        if kept is not None and timedelta() <= now - kept[0] < KEPT_FOR:
            return kept[1]
        try:
            user = await self._client.user(user_id)
        except Exception as error:
            log.info("slack.user_unknown", error=type(error).__name__)
            return {}
        if len(self._kept) >= KEPT_MOST:
            self._kept.clear()
        self._kept[user_id] = (now, user)
        return user


def refuse_outsiders(user: Mapping[str, Any]) -> None:
    """Guests, strangers, bots and people who left; each with who can change that."""
    if user.get("deleted"):
        raise Refused("Your Slack account is deactivated; nothing was changed.")
    if user.get("is_bot"):
        raise Refused("Midwatch takes no commands from bots; nothing was changed.")
    if user.get("is_stranger"):
        raise Refused("Midwatch answers only people of its own workspace; nothing was changed.")
    if user.get("is_restricted") or user.get("is_ultra_restricted"):
        raise Refused(
            "Guests may not use Midwatch; a workspace admin can make you a full member. Nothing was changed."
        )


def actor_of(person: Person, asker: Asker) -> Actor:
    return Actor(person.name, asker.via, person.id, asker.user_id)
