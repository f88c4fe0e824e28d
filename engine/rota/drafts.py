"""Keeps what somebody types into a form that is too large for Slack to remember. One transaction each.

Never reads a meaning into it, and never shows it to anybody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.errors import NotFound, Overtaken
from engine.models import ORG
from engine.store import drafts
from engine.store.drafts import Draft

KEPT_FOR: Final = timedelta(days=2)
GONE: Final = "This form is too old: what was typed into it is kept for two days only. Open it again."

TWICE: Final = "You pressed twice: only the first counts."


class Drafts:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def begin(self, person_id: int, form: str, body: Mapping[str, Any]) -> Draft:
        """Keep a new one; whatever has grown old goes."""
        now = self._clock.now()

        async def unit(tx: Tx) -> Draft:
            await drafts.delete_drafts_before(tx, ORG, now - KEPT_FOR)
            return await drafts.insert_draft(tx, ORG, person_id, form, body, now)

        return await self._database.write(unit, rank=Writer.RESPOND)

    async def read(self, person_id: int, draft_id: int) -> Draft:
        async with self._database.look() as tx:
            draft = await drafts.read_draft(tx, ORG, person_id, draft_id)
        if draft is None:
            raise NotFound(GONE)
        return draft

    async def keep(self, person_id: int, draft: Draft, body: Mapping[str, Any]) -> Draft:
        """What it says from now on, if it still says what was read."""
        now = self._clock.now()

        async def unit(tx: Tx) -> Draft | None:
            return await drafts.update_draft(tx, ORG, person_id, draft, body, now)

        kept = await self._database.write(unit, rank=Writer.RESPOND)
        if kept is None:
            await self.read(person_id, draft.id)
            raise Overtaken(TWICE)
        return kept

    async def drop(self, person_id: int, draft_id: int) -> None:
        async def unit(tx: Tx) -> None:
            await drafts.delete_draft(tx, ORG, person_id, draft_id)

        await self._database.write(unit, rank=Writer.RESPOND)
