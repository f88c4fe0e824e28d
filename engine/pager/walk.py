"""The policy that an incident walks: as it was when the incident opened, whatever became of it since.

Decides nothing. The first to move an incident stores the version, and gives it a card.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

from engine.db import Tx
from engine.directory import Directory, Policy
from engine.errors import NotFound
from engine.models import Rank, TimerKind
from engine.store import cards, directory, incidents, timers
from engine.store.incidents import Incident
from engine.store.timers import Arming

Walking: TypeAlias = Sequence[tuple[Incident, Policy | None]]


async def policy_of(tx: Tx, known: Directory, incident: Incident) -> Policy | None:
    """None: the service has none, or it is gone; the fallback is paged, and the timeline says why."""
    version = incident.policy_version_id
    if version is not None:
        newest = next((one for one in known.policies.values() if one.version_id == version), None)
        return newest or await directory.policy_by_version(tx, incident.org_id, version)
    service = known.services.get(incident.service_id)
    if service is None or service.policy_id is None:
        return None
    current = known.policies.get(service.policy_id)
    if current is not None and current.created_at is not None and current.created_at <= incident.opened_at:
        return current
    try:
        return await directory.policy_version(tx, incident.org_id, service.policy_id, incident.opened_at)
    except NotFound:
        return None


def new_versions(walking: Walking) -> dict[int, int]:
    """The policy versions that these incidents walk and that nobody has stored yet, by incident."""
    return {one.id: policy.version_id for one, policy in _fresh(walking) if policy is not None}


async def set_out(tx: Tx, known: Directory, walking: Walking, now: datetime) -> None:
    """Before its first timer has fired nobody has stored which policy it walks, nor shown it."""
    await incidents.set_policy(tx, new_versions(walking))
    await show(tx, known, walking, now)


async def show(tx: Tx, known: Directory, walking: Walking, now: datetime) -> None:
    """Give those that set out a card in the channel of their service."""
    places = []
    for incident, _ in _fresh(walking):
        service = known.services.get(incident.service_id)
        if service is not None and service.channel:
            places.append((incident.id, service.channel))
    if places:
        org_id = walking[0][0].org_id
        shown = await cards.ensure_all(tx, org_id, places, now)
        await timers.arm(tx, org_id, [Arming(TimerKind.CARD, card, now, rank=Rank.CARD) for card in shown])


def _fresh(walking: Walking) -> list[tuple[Incident, Policy | None]]:
    return [(incident, policy) for incident, policy in walking if incident.policy_version_id is None]
