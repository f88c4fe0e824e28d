"""What a click on a card does: read which incident, call the engine, say what is not on the card.

Never trusts a button: its value names an incident, and everything else is read anew. A click that
changed nothing is answered, and the card it was made on is shown anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from bot.slack import answers, blocks
from bot.slack.cards import Cards
from bot.slack.commands import Engine
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message
from engine.errors import BadCommand
from engine.models import ORG, Actor
from engine.pager.respond import Answer
from engine.store import cards as store

_VALUE: Final = re.compile(
    r"(?:(?P<choice>[a-z]+)(?P<minutes>\d{1,5})?:)?(?P<id>\d{1,18})\.\d{1,18}", re.ASCII
)
_BLOCK: Final = re.compile(rf"{blocks.BLOCK_PREFIX}(\d{{1,18}})")

DEEDS: Final = frozenset(
    {blocks.ACK, blocks.RESOLVE, blocks.UNACK, blocks.REOPEN, blocks.UNMERGE, blocks.MORE}
)
STALE: Final = "I cannot tell which incident this button belongs to. `/oncall list` shows what is open."


class Actions:
    def __init__(self, engine: Engine, identity: Identity, cards: Cards) -> None:
        self._engine = engine
        self._identity = identity
        self._cards = cards

    async def click(self, body: Mapping[str, Any], asker: Asker) -> Message | None:
        """Do what the button says; None when the card itself will show it."""
        action = body["actions"][0]
        value = _value(action)
        incident_id = await self._incident(value, body)
        person = await self._identity.person(asker)
        answer = await self._act(action["action_id"], value, incident_id, actor_of(person, asker))
        if not answer.changed:
            await self._cards.show(incident_id)
        elif action["action_id"] != blocks.MORE:
            return None
        return answers.done([answer])

    async def _act(
        self, action_id: str, value: re.Match[str] | None, incident_id: int, actor: Actor
    ) -> Answer:
        responder = self._engine.responder
        match action_id:
            case blocks.ACK:
                return await responder.acknowledge(incident_id, actor)
            case blocks.RESOLVE:
                return await responder.resolve(incident_id, actor)
            case blocks.UNACK:
                return await responder.unacknowledge(incident_id, actor)
            case blocks.REOPEN:
                return await responder.reopen(incident_id, actor)
            case blocks.UNMERGE:
                return await responder.unmerge(incident_id, actor)
        choice = value["choice"] if value else None
        if choice == "escalate":
            return await responder.escalate(incident_id, actor)
        if choice == "snooze" and value and value["minutes"]:
            until = self._engine.clock.now() + timedelta(minutes=int(value["minutes"]))
            return await responder.snooze(incident_id, actor, until)
        raise BadCommand(STALE)

    async def _incident(self, value: re.Match[str] | None, body: Mapping[str, Any]) -> int:
        """By the button's value, else any other block of the message, else where the message stands."""
        if value is not None:
            return int(value["id"])
        for block_id in _block_ids(body.get("message") or {}):
            found = _BLOCK.fullmatch(block_id)
            if found:
                return int(found[1])
        container = body.get("container") or {}
        async with self._engine.database.look() as tx:
            card = await store.by_message(
                tx, ORG, str(container.get("channel_id", "")), str(container.get("message_ts", ""))
            )
        if card is None:
            raise BadCommand(STALE)
        return card.incident_id


def _value(action: Mapping[str, Any]) -> re.Match[str] | None:
    chosen = action.get("selected_option") or {}
    return _VALUE.fullmatch(str(action.get("value") or chosen.get("value") or ""))


def _block_ids(message: Mapping[str, Any]) -> Iterator[str]:
    for block in message.get("blocks") or []:
        yield str(block.get("block_id", ""))
    for attachment in message.get("attachments") or []:
        yield from _block_ids(attachment)
