"""The part of a channel's topic that says who is on call, between two markers; the rest is people's.

Never changes what stands outside of the markers, and never sets a topic that is right already: each change
posts a line into the channel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from slack_sdk.errors import SlackApiError

from bot.slack.client import SlackClient, UnknownChannel
from bot.slack.errors import trouble_of
from engine.directory import Directory, NamedSchedule
from engine.schedule import people_at

BEGIN: Final = "📟"
END: Final = "|"
LONGEST: Final = 250  # Slack's
_SAFE: Final = str.maketrans(f"{END}<>&", "/‹›+")
_PAGER: Final = ":pager:"  # as Slack may hand the sign back
ADVICE: Final[Mapping[str, str]] = {
    "missing_scope": "the app may not set topics: reinstall it from manifest.yaml",
    "restricted_action": "Slack lets only some people set topics here: a workspace owner can change that",
    "user_is_restricted": "Slack lets only full members set topics",
    "no_permission": "the app may not set topics here",
    "is_archived": "the channel is archived",
    "channel_not_found": "there is no such channel, or Midwatch is not in it: invite @Midwatch",
    "not_in_channel": "Midwatch is not in the channel: invite @Midwatch",
    "method_not_supported_for_channel_type": "this kind of channel has no topic",
    "too_long": "there is no room for it in the topic: shorten the rest",
}


class TopicTrouble(Exception):
    """A sentence for whoever can change it."""


def same_topic(directory: Directory, named: NamedSchedule) -> list[NamedSchedule]:
    """The schedules that stand in the topic of this one's channel; the first one does the work for all."""
    shared = [one for one in directory.schedules.values() if one.topic and one.channel == named.channel]
    return sorted(shared, key=lambda one: one.id)


def parts(directory: Directory, shared: Iterable[NamedSchedule], now: datetime) -> dict[str, Sequence[str]]:
    """By schedule: the names of those on call."""
    found: dict[str, Sequence[str]] = {}
    for named in shared:
        ids = (int(user) for user in people_at(named.schedule, now))
        found[named.name] = [directory.people[one].name for one in ids if one in directory.people]
    return found


def rewritten(topic: str, wanted: Mapping[str, Sequence[str]], over: Iterable[str] = ()) -> str:
    """The topic with our parts as they should be; those of schedules in `over` are taken out.

    TopicTrouble when there is no room, however short our parts are made.
    """
    rest = topic
    for name in over:
        rest = " ".join(_ours(name).sub(" ", rest).split())
    for shorten in (False, True):
        made = rest
        for name, people in reversed([*wanted.items()]):
            made = _with(made, name, people, shorten=shorten)
        if len(made) <= LONGEST:
            return made
    raise TopicTrouble(ADVICE["too_long"])


def same(topic: str, other: str) -> bool:
    return topic.replace(_PAGER, BEGIN) == other.replace(_PAGER, BEGIN)


def _with(topic: str, name: str, people: Sequence[str], *, shorten: bool) -> str:
    part = f"{BEGIN} {_word(name)}: {_who(people, shorten=shorten)} {END}"
    replaced, count = _ours(name).subn(lambda _: part, topic, count=1)
    return replaced if count else f"{part} {topic}".strip()


def _ours(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{BEGIN}|{_PAGER}) {re.escape(_word(name))}: [^{re.escape(END)}]*{re.escape(END)}")


def _who(people: Sequence[str], *, shorten: bool) -> str:
    if not people:
        return "nobody"
    if shorten and len(people) > 1:
        return f"{_word(people[0])[:40]} +{len(people) - 1}"
    return ", ".join(_word(name) for name in people)


def _word(name: str) -> str:
    """A name cannot end our part, nor make a mention of it. Why no entities: what is escaped on its way in
    would have to be unescaped to be found again."""
    return " ".join(name.translate(_SAFE).split())


class Topics:
    def __init__(self, client: SlackClient) -> None:
        self._client = client

    async def show(self, channel: str, wanted: Mapping[str, Sequence[str]], over: Iterable[str] = ()) -> bool:
        """Let the channel's topic say who is on call; False if it did already.

        TopicTrouble where a person must change something; every other error as Slack gave it.
        """
        try:
            channel_id = await self._client.channel_id(channel)
            answer = await self._client.call(self._client.web.conversations_info(channel=channel_id))
            now_is = str(((answer.get("channel") or {}).get("topic") or {}).get("value") or "")
            topic = rewritten(now_is, wanted, over)
            if same(topic, now_is):
                return False
            await self._set(channel_id, topic)
        except UnknownChannel:
            raise TopicTrouble(ADVICE["channel_not_found"]) from None
        except SlackApiError as error:
            trouble = trouble_of(error)
            if trouble.code in ADVICE:
                raise TopicTrouble(ADVICE[trouble.code]) from error
            raise
        return True

    async def _set(self, channel_id: str, topic: str) -> None:
        # Why as it came: what people wrote is escaped already, with links and mentions in it.
        set_topic = self._client.web.conversations_setTopic
        try:
            await self._client.call(set_topic(channel=channel_id, topic=topic))
        except SlackApiError as error:
            if trouble_of(error).code != "not_in_channel":
                raise
            await self._client.join(channel_id)
            await self._client.call(set_topic(channel=channel_id, topic=topic))
