"""The echo probe: a reaction of ours is toggled on one message in the ops channel, and its event comes back.

Leaves no trace for people, and decides nothing: what a missing echo means, `engine.outage` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import structlog
from slack_sdk.errors import SlackApiError

from bot.slack.client import SlackClient
from bot.slack.errors import Kind, trouble_of
from bot.slack.health import SlackHealth
from bot.slack.message import note
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.models import ORG
from engine.outage import Standing
from engine.store import slack_state
from engine.store.slack_state import Spot

log = structlog.get_logger(__name__)

QUIET: Final = timedelta(seconds=60)  # so long nothing was heard, then it is asked
QUIET_DEAF: Final = timedelta(seconds=15)  # while nothing comes back
REACTION: Final = "white_check_mark"
TEXT: Final = "Midwatch checks here that it hears Slack."
REACTED: Final = frozenset({"reaction_added", "reaction_removed"})
NO_CHANNEL: Final = "MIDWATCH_OPS_CHANNEL is not set"


def is_echo(payload: Mapping[str, Any], bot_user_id: str | None) -> bool:
    """Is this the event of a reaction of our own? We react nowhere else."""
    event = payload.get("event")
    if not isinstance(event, Mapping) or bot_user_id is None:
        return False
    return event.get("type") in REACTED and event.get("user") == bot_user_id


class Probe:
    def __init__(
        self,
        client: SlackClient,
        health: SlackHealth,
        database: Database,
        clock: Clock,
        ops_channel: str | None,
    ) -> None:
        self._client = client
        self._health = health
        self._database = database
        self._clock = clock
        self._ops_channel = ops_channel
        health.probe_off = "" if ops_channel else NO_CHANNEL

    async def when_quiet(self, standing: Standing) -> None:
        """Toggle the reaction if nothing was heard for a while and no other process has just done so."""
        now, health = self._clock.now(), self._health
        if health.probe_off or standing.down or not (health.listening and health.posting):
            return
        pause = QUIET_DEAF if standing.deaf else QUIET
        if not standing.deaf and now - (standing.heard_at or standing.since) < pause:
            return

        async def unit(tx: Tx) -> tuple[bool, Spot | None]:
            return await slack_state.claim_probe(tx, ORG, now - pause, now), await slack_state.spot(tx, ORG)

        ours, at = await self._database.write(unit, rank=Writer.CARD)
        if ours:
            await self._toggle(at)

    async def _toggle(self, at: Spot | None) -> None:
        # Why before the call: the event may be here before the answer.
        asked_at = self._clock.now()
        try:
            done = await self._react(at)
        except Exception as error:  # whatever it is, it says nothing of what we hear
            trouble = trouble_of(error)
            self._health.failed(trouble)
            log.warning("slack.probe_not_sent", code=trouble.code)
            if trouble.kind is Kind.SCOPE:
                self._health.probe_off = f"the scope {trouble.needed or 'reactions:write'} is missing"
            return
        self._health.works()
        await self._database.write(lambda tx: slack_state.probed(tx, ORG, done, asked_at), rank=Writer.CARD)

    async def _react(self, at: Spot | None) -> Spot:
        """Toggle it, on a new message if the old one is gone."""
        if at is None:
            return await self._flip(await self._place())
        try:
            return await self._flip(at)
        except SlackApiError as error:
            if trouble_of(error).kind not in {Kind.GONE, Kind.DEAD}:
                raise
        return await self._flip(await self._place())

    async def _place(self) -> Spot:
        channel = self._ops_channel or ""
        placed = await self._client.post(channel, note(TEXT))
        try:
            await self._client.join(channel)  # events come from channels that we are in
        except SlackApiError as error:
            log.info("slack.probe_not_joined", code=trouble_of(error).code)
        return Spot(placed.channel_id, placed.ts, on=False)

    async def _flip(self, at: Spot) -> Spot:
        """The other way round than it is; whoever touched it by hand is followed."""
        try:
            await self._react_once(at)
        except SlackApiError as error:
            if trouble_of(error).code not in {"already_reacted", "no_reaction"}:
                raise
            at = replace(at, on=not at.on)
            await self._react_once(at)
        return replace(at, on=not at.on)

    async def _react_once(self, at: Spot) -> None:
        web = self._client.web
        call = web.reactions_remove if at.on else web.reactions_add
        await self._client.call(call(channel=at.channel, name=REACTION, timestamp=at.ts))
