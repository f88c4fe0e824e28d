"""A Slack user group holds whoever is on call: what it is compared with, and the one call that changes it.

Never empties a group, and never calls Slack to change what is right already. Who is on call is decided
elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from aiohttp import ClientError
from slack_sdk.errors import SlackApiError

from bot.slack.client import SlackClient
from bot.slack.errors import Kind, trouble_of
from engine.directory import Directory, NamedSchedule
from engine.schedule import people_at

KEPT_FOR: Final = timedelta(
    seconds=20
)  # one list serves the schedules of one moment: 20 a minute are allowed
UNFIT: Final = frozenset(
    {"invalid_users", "invalid_user", "user_is_bot", "user_is_restricted", "user_is_ultra_restricted"}
)
ADVICE: Final[Mapping[str, str]] = {
    "missing_scope": "the app lacks a permission for user groups: reinstall it from manifest.yaml",
    "permission_denied": "Slack lets only admins edit user groups: a workspace owner allows it to everyone "
    "under Settings, Permissions, User Groups",
    "paid_teams_only": "user groups need a paid plan of Slack; `@Midwatch page SERVICE` works without",
    "plan_upgrade_required": "user groups need a paid plan of Slack; `@Midwatch page SERVICE` works without",
    "no_such_subteam": "there is no such user group in Slack: make it, or name another one",
    "subteam_max_users_exceeded": "more people are on call than a user group of Slack may hold",
}


class GroupTrouble(Exception):
    """A sentence for whoever can change it."""


@dataclass(frozen=True, slots=True)
class Members:
    """Who should be in a group by their Slack ids, and the names of those who cannot be."""

    users: tuple[str, ...]
    unlinked: tuple[str, ...]


def same_group(directory: Directory, names: Collection[str]) -> list[NamedSchedule]:
    """The schedules that own one group together, by its handle or its id; the first works for all."""
    shared = [one for one in directory.schedules.values() if one.user_group and bare(one.user_group) in names]
    return sorted(shared, key=lambda one: one.id)


def bare(group: str) -> str:
    return group.strip().removeprefix("@").casefold()


def members(directory: Directory, shared: Sequence[NamedSchedule], now: datetime) -> Members:
    """Everybody on call on any of the schedules."""
    ids = {int(user) for named in shared for user in people_at(named.schedule, now)}
    people = [directory.people[one] for one in sorted(ids) if one in directory.people]
    linked = [person for person in people if person.active and person.slack_user_id]
    return Members(
        tuple(sorted({person.slack_user_id or "" for person in linked})),
        tuple(person.name for person in people if person not in linked),
    )


class Groups:
    """The user groups of the workspace, as Slack last said they are."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._kept: tuple[datetime, Sequence[Mapping[str, Any]]] | None = None

    async def names(self, group: str, now: datetime) -> Collection[str]:
        """What a group may be called by: its id too when its handle is given, and the other way round."""
        try:
            found = await self._find(group, now)
        except (GroupTrouble, SlackApiError, ClientError, TimeoutError):  # shown, it is met again and said
            return {bare(group)}
        return {bare(str(found["id"])), bare(str(found.get("handle") or found["id"]))}

    async def show(self, group: str, wanted: Members, now: datetime) -> tuple[str, ...]:
        """Let the group hold these people, if it does not; who could not be taken in, by name.

        GroupTrouble where a person must change something; every other error as Slack gave it.
        """
        try:
            found = await self._find(group, now)
            if found.get("date_delete"):
                raise GroupTrouble(f"the user group @{found['handle']} is disabled in Slack: enable it there")
            return await self._set(found, wanted)
        except SlackApiError as error:
            trouble = trouble_of(error)
            if trouble.code in ADVICE:
                raise GroupTrouble(ADVICE[trouble.code]) from error
            raise

    async def _set(self, found: Mapping[str, Any], wanted: Members) -> tuple[str, ...]:
        users = wanted.users
        unfit: tuple[str, ...] = ()
        if {*users} == {*found.get("users", ())}:
            return wanted.unlinked
        try:
            await self._update(found, users)
        except SlackApiError as error:
            if trouble_of(error).code not in UNFIT:
                raise
            # Slack refuses all for one whom it does not take, and does not say which.
            left_out = await self._unfit(users)
            users = tuple(user for user in users if user not in left_out)
            unfit = tuple(left_out.values())
            if not users or not unfit:
                who = ", ".join(unfit) or "somebody"
                raise GroupTrouble(f"Slack does not take {who} into a user group") from error
            if {*users} != {*found.get("users", ())}:
                await self._update(found, users)
        return (*wanted.unlinked, *unfit)

    async def _update(self, found: Mapping[str, Any], users: Collection[str]) -> None:
        self._kept = None
        web = self._client.web
        await self._client.call(web.usergroups_users_update(usergroup=str(found["id"]), users=list(users)))

    async def _find(self, group: str, now: datetime) -> Mapping[str, Any]:
        """By its id or its handle."""
        wanted = bare(group)
        for found in await self._all(now):
            if wanted in {str(found["id"]).casefold(), str(found.get("handle", "")).casefold()}:
                return found
        raise GroupTrouble(f"there is no user group @{wanted} in Slack: make it, or name another one")

    async def _all(self, now: datetime) -> Sequence[Mapping[str, Any]]:
        if self._kept is None or not timedelta() <= now - self._kept[0] < KEPT_FOR:
            answer = await self._client.call(
                self._client.web.usergroups_list(include_users=True, include_disabled=True)
            )
            self._kept = (now, list(answer["usergroups"]))
        return self._kept[1]

    async def _unfit(self, users: Sequence[str]) -> Mapping[str, str]:
        """By id: the names of guests, bots, and those who left."""
        found: dict[str, str] = {}
        for user_id in users:
            try:
                user = await self._client.user(user_id)
            except SlackApiError as error:
                if trouble_of(error).kind is not Kind.DEAD:
                    raise
                found[user_id] = user_id
                continue
            odd = ("deleted", "is_bot", "is_restricted", "is_ultra_restricted", "is_stranger")
            if any(user.get(flag) for flag in odd):
                found[user_id] = str(user.get("name") or user_id)
        return found
