"""STOP and START by SMS: whoever wants no texts gets none, and is paged by their other methods.

Never touches voice, and never answers: the carrier does that itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import structlog

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory
from engine.models import ORG
from engine.pager.alarm import raise_alarm
from engine.rota import addressed, notice
from engine.store import contacts
from engine.store import directory as store
from engine.vault import Vault

log = structlog.get_logger(__name__)

OFF = "📵 You replied STOP, so Midwatch texts you no more: pages come by your other methods. START undoes it."
ON = "📱 You replied START: Midwatch texts you again."


class Consent:
    def __init__(self, database: Database, clock: Clock, vault: Vault) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault

    async def stop(self, address_hash: str) -> bool:
        """Turn every SMS method with this number off; False if none was on."""
        return await self._turn(address_hash, on=False)

    async def start(self, address_hash: str) -> bool:
        """Turn on again what STOP turned off; False if nothing was."""
        return await self._turn(address_hash, on=True)

    async def _turn(self, address_hash: str, *, on: bool) -> bool:
        now = self._clock.now()
        key = f"consent:{'on' if on else 'off'}:{address_hash[:16]}:{now.timestamp()}"

        async def unit(tx: Tx) -> bool:
            found = await contacts.texts_to(tx, ORG, address_hash, stopped=on)
            if not found:
                return False
            if on:
                await contacts.start_methods(tx, ORG, sorted(found))
            else:
                await contacts.stop_methods(tx, ORG, sorted(found))
            directory = await store.read(tx, ORG, now, self._vault)
            await tell(tx, found.values(), directory, ON if on else OFF, key, now)
            if not on:
                await raise_alarm(
                    tx, ORG, f"stopped:{address_hash[:16]}", _said(directory, found.values()), now
                )
            await store.bump(tx, ORG)  # counters last
            return True

        done = await self._database.write(unit, rank=Writer.RESPOND)
        if done:
            log.info("sms.consent", on=on)
        return done


async def tell(
    tx: Tx, person_ids: Iterable[int], directory: Directory, text: str, key: str, now: datetime
) -> None:
    """By another way than the one that was turned off or on."""
    whom = [directory.people[one] for one in sorted(set(person_ids)) if one in directory.people]
    told = [addressed.to_person(one, f"{key}:{one.id}", {"text": text}, now) for one in whom]
    await notice.tell(tx, ORG, told, now)


def _said(directory: Directory, person_ids: Iterable[int]) -> str:
    names = " and ".join(directory.people[one].name for one in sorted(set(person_ids)))
    return f"{names} replied STOP: no page goes out by SMS there until they reply START."
