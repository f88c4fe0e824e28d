"""Applies decisions: the one place where a new fate becomes rows.

Runs inside the caller's transaction, under the incidents' locks; sends nothing. What must happen
together (fate, timeline, timers, deliveries, cards) is written here together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from engine.db import Tx
from engine.directory import Directory
from engine.escalation import settled
from engine.escalation.fate import (
    Arm,
    Armed,
    CancelPages,
    CloseAlerts,
    Decision,
    Disarm,
    Effect,
    EndResponder,
    PageFallback,
    RevivePages,
)
from engine.models import Actor, Alert, DeliveryKind, Rank, Timer, TimerKind
from engine.pager import updates
from engine.pager.grounds import GROUNDS
from engine.pager.ladder import Link
from engine.pager.pages import Pages
from engine.store import alerts, cards, dedup_keys, deliveries, incidents, journal, timers
from engine.store.incidents import NOTHING_NEW, Incident
from engine.store.journal import TimelineRow
from engine.store.timers import FATE_KINDS, Arming

E = TypeVar("E")


class Moved(Exception):
    """What was read before the locks is no longer so; the unit starts again."""


@dataclass(frozen=True)  # no slots: what follows from it is worked out once
class Change:
    """An incident as it was, what was decided, and who caused it."""

    incident: Incident
    decision: Decision
    kind: str  # of the timeline entry: acknowledged, escalated, resolved …
    actor: Actor
    chain: tuple[Link, ...] = ()
    remarks: tuple[str, ...] = ()
    grounds: tuple[str, ...] = ()  # why it pages whom it pages
    quiet: bool = False  # no timeline entry and no card: nothing a person would see

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        return settled(self.decision.effects)

    @property
    def text(self) -> str:
        """The line of the timeline: the reason, and who should have been told and cannot be."""
        remarks = list(self.remarks)
        for effect in self.effects:
            if isinstance(effect, PageFallback):
                links = self.chain[: effect.links]
                remarks += [remark for link in links for remark in link.remarks]
                remarks += [] if links else ["the fallback chain is empty"]
        return "; ".join(dict.fromkeys((self.decision.reason, *remarks)))


class Effects:
    """What follows from a batch of changes, sorted by kind; each effect with its change."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self._by_kind: dict[type[Any], list[tuple[Change, Any]]] = defaultdict(list)
        for change in changes:
            for effect in change.effects:
                self._by_kind[type(effect)].append((change, effect))

    def of(self, kind: type[E]) -> Sequence[tuple[Change, E]]:
        return self._by_kind.get(kind, ())


@dataclass(frozen=True, slots=True)
class Applied:
    """Calls that may still ring for incidents that need them no more: (delivery, person)."""

    ringing: tuple[tuple[str, str, int | None], ...] = ()  # provider, reference, person
    armed: bool = field(default=False)


async def apply(
    tx: Tx,
    org_id: int,
    changes: Sequence[Change],
    directory: Directory,
    now: datetime,
    versions: Mapping[int, int] = NOTHING_NEW,
) -> Applied:
    """Write all changes; at most one for each incident. `versions`: the policy versions that they set
    out on."""
    if not changes:
        return Applied()
    effects = Effects(changes)
    await incidents.save_fates(tx, [(one.incident, one.decision.fate) for one in changes], versions)
    await _close_alerts(tx, org_id, effects, now)
    await _write_timeline(tx, org_id, changes, now)
    await timers.disarm(tx, org_id, FATE_KINDS, [change.incident.id for change, _ in effects.of(Disarm)])
    ringing = await _cancel(tx, org_id, effects, now)
    armings = _armings(effects)
    armings += await _queue(tx, org_id, changes, Pages(directory, now), now)
    armings += await _revive(tx, org_id, effects)
    news = [updates.News(one.incident, one.decision, one.kind, one.actor) for one in changes if not one.quiet]
    armings += deliver_armings(await updates.queue(tx, org_id, news, directory, now), Rank.NOTICE)
    armings += await card_armings(tx, org_id, [c.incident.id for c in changes if not c.quiet], now)
    await timers.arm(tx, org_id, armings)
    return Applied(ringing, bool(armings))


async def _close_alerts(tx: Tx, org_id: int, effects: Effects, now: datetime) -> None:
    for by in ("source", "human"):
        ids = [change.incident.id for change, effect in effects.of(CloseAlerts) if effect.by == by]
        if ids:
            closed = await alerts.close_all(tx, org_id, ids, by, now)
            await dedup_keys.remember(tx, org_id, [_memory(alert, by, now) for alert in closed])


def _memory(alert: Alert, by: str, now: datetime) -> dedup_keys.DedupKey:
    return dedup_keys.DedupKey(
        service_id=alert.service_id,
        dedup_key=alert.dedup_key,
        last_started_at=alert.started_at,
        last_ended_at=None,
        end_arrived_at=now,
        last_severity=alert.raw_severity,
        last_incident_id=alert.incident_id,
        ended_by=by,
    )


async def _write_timeline(tx: Tx, org_id: int, changes: Sequence[Change], now: datetime) -> None:
    rows = [
        TimelineRow(
            incident_id=change.incident.id,
            kind=change.kind,
            actor=change.actor,
            text=change.text,
            before=change.incident.fate.status.value,
            after=change.decision.fate.status.value,
            epoch=change.decision.fate.epoch,
            detail=_detail(change),
        )
        for change in changes
        if not change.quiet
    ]
    await journal.append_timeline(tx, org_id, rows, now)


def _detail(change: Change) -> dict[str, Any]:
    fate = change.decision.fate
    why = {GROUNDS: list(change.grounds)} if change.grounds else {}
    return {"level": fate.level, "pass": fate.pass_, **why}


async def _cancel(
    tx: Tx, org_id: int, effects: Effects, now: datetime
) -> tuple[tuple[str, str, int | None], ...]:
    """Cancel what is queued; say which calls may still be ringing."""
    alike: dict[CancelPages, dict[int, int]] = defaultdict(dict)  # to the epochs of the incidents
    for change, effect in effects.of(CancelPages):
        alike[effect][change.incident.id] = change.decision.fate.epoch
    for change, ended in effects.of(EndResponder):
        gone = await deliveries.cancel_responder(
            tx, org_id, change.incident.id, ended.person_id, "answered", now
        )
        await timers.disarm_unsent(tx, org_id, gone)
    for effect, epochs in alike.items():
        kinds = [DeliveryKind.PAGE, *((DeliveryKind.RESPONDER,) if effect.responders else ())]
        gone = await deliveries.cancel(tx, org_id, sorted(epochs), kinds, effect.reason, epochs, now)
        await timers.disarm_unsent(tx, org_id, gone)
    stopped = sorted({incident for epochs in alike.values() for incident in epochs})
    calls = await deliveries.ringing(tx, org_id, stopped) if stopped else []
    return tuple((call.provider, call.provider_ref, call.person_id) for call in calls)


def _armings(effects: Effects) -> list[Arming]:
    return [
        Arming(arm.kind, change.incident.id, arm.due_at, change.decision.fate.epoch)
        for change, arm in effects.of(Arm)
    ]


async def _queue(tx: Tx, org_id: int, changes: Sequence[Change], pages: Pages, now: datetime) -> list[Arming]:
    new = [
        delivery
        for change in changes
        for effect in change.effects
        for delivery in pages.of(effect, change.incident.id, change.decision.fate, change.chain)
    ]
    return deliver_armings(await deliveries.queue(tx, org_id, new, now))


def deliver_armings(queued: Iterable[tuple[int, datetime]], rank: Rank = Rank.PAGE) -> list[Arming]:
    return [Arming(TimerKind.DELIVER, one, due_at, rank=rank) for one, due_at in queued]


async def _revive(tx: Tx, org_id: int, effects: Effects) -> list[Arming]:
    armings: list[Arming] = []
    for change, effect in effects.of(RevivePages):
        armings += deliver_armings(await deliveries.revive(tx, org_id, change.incident.id, effect.epoch))
    return armings


def earliest(live: Iterable[Timer]) -> Armed | None:
    """The timer that a resolve puts away, for a re-fire to take up again."""
    first = min(live, key=lambda timer: timer.due_at, default=None)
    return None if first is None else Armed(TimerKind(first.kind), first.due_at)


async def card_armings(tx: Tx, org_id: int, incident_ids: Sequence[int], now: datetime) -> list[Arming]:
    """One live timer per card; a change while it is being shown makes it due again."""
    if not incident_ids:
        return []
    shown = await cards.of_incidents(tx, org_id, incident_ids)
    return [Arming(TimerKind.CARD, card.id, now, rank=Rank.CARD) for card in shown]
