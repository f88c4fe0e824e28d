"""One batch of requests, in one transaction: from folded plans to alerts, incidents and timers.

Touches no policy, schedule or provider: routing is the work of the `escalate` timer, so a storm
costs the sender milliseconds. Locks in one order (dedup keys, incidents, alerts, timers,
deliveries, the counter); what moved between reading and locking makes the transaction start again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from engine.db import Tx
from engine.directory import Directory
from engine.escalation.fate import LastAlertResolved
from engine.intake.fold import Place, Plan
from engine.intake.held import hold
from engine.intake.memory import Seen
from engine.intake.outcome import event_rows, of_triggers, receipts
from engine.intake.repeats import Repeats
from engine.intake.rows import new_alert, title
from engine.intake.ruling import Ruling
from engine.intake.touched import Opening, Touched
from engine.models import Actor, Rank, Receipt, TimerKind, Via
from engine.pager.apply import Moved, apply, earliest
from engine.store import alerts, cards, counts, dedup_keys, incidents, journal, timers
from engine.store.dedup_keys import Key
from engine.store.journal import TimelineRow
from engine.store.timers import Arming


@dataclass(frozen=True, slots=True)
class Taken:
    """What the batch did: a receipt for each event, and what this process may remember of it."""

    receipts: Mapping[Place, Receipt] = field(default_factory=dict)
    matched: frozenset[int] = frozenset()  # the alerts that were open to be counted
    seen: tuple[tuple[Key, Seen], ...] = ()
    closed: tuple[Key, ...] = ()
    armed: bool = False


class Intake:
    """The work of one transaction; made anew for each try."""

    def __init__(self, tx: Tx, org_id: int, directory: Directory, now: datetime) -> None:
        self._tx = tx
        self._org = org_id
        self._directory = directory
        self._now = now

    async def run(self, plans: Mapping[Key, Plan], repeats: Repeats) -> Taken:
        held = await hold(self._tx, self._org, plans, repeats.times, self._directory)
        ruling = Ruling(held, repeats, self._now)
        ruling.take(plans.values())
        await self._close_empty(held.touched.values())
        opened = await self._write_incidents(ruling)
        alert_ids = await self._write_alerts(ruling, opened)
        matched = await repeats.store(self._tx, self._org, self._now)
        armed = await self._write_changes(ruling, opened)
        await self._write_journal(ruling, opened)
        # Last of all: everybody waits for the counter's row until the commit.
        given = await counts.number(self._tx, self._org, list(opened.values()))
        numbers = {one.incident.id: one.incident.number for one in held.touched.values()} | given
        return Taken(
            receipts=receipts(ruling.outcomes, numbers),
            matched=matched,
            seen=tuple(_seen(ruling, alert_ids, numbers)),
            closed=tuple(plan.key for plan, _ in ruling.resolved),
            armed=armed,
        )

    async def _close_empty(self, touched: Iterable[Touched]) -> None:
        """An incident whose last alert was resolved is over; its live timer is kept for a re-fire."""
        resolving = {one.incident.id: one for one in touched if one.resolving is not None and one.fate.open}
        empty = [i for i, one in resolving.items() if one.fate.open_alerts == 0]
        live = await timers.of_subjects(self._tx, self._org, timers.FATE_KINDS, empty) if empty else []
        for incident_id, one in resolving.items():
            actor = one.resolving or Actor("a source", Via.SOURCE)
            own = [timer for timer in live if timer.subject_id == incident_id]
            decision = one.decide(LastAlertResolved(actor, earliest(own)), "resolved", actor, self._now)
            if not decision.changed:
                one.say("alert_resolved", actor, decision.reason)

    async def _write_incidents(self, ruling: Ruling) -> dict[Key, int]:
        tx, org, now = self._tx, self._org, self._now
        await dedup_keys.remember(tx, org, ruling.remembered)
        await incidents.seal(tx, list(ruling.sealed.values()))
        new = {group: opening.new(now) for group, opening in sorted(ruling.openings.items())}
        opened = await incidents.insert(tx, org, list(new.values()))
        if set(opened) != set(new):
            raise Moved  # another process opened one of them in this instant
        added = [one.count(now) for one in ruling.held.touched.values()]
        await counts.count(tx, [count for count in added if count is not None])
        for group, opening in ruling.openings.items():
            for n, plan in enumerate(opening.plans):
                status, reason = ("joined", "") if n else ("opened", _after(opening))
                ruling.outcomes += of_triggers(plan, status, reason, opened[group])
        return opened

    async def _write_alerts(self, ruling: Ruling, opened: Mapping[Key, int]) -> dict[Key, int]:
        tx, org, now = self._tx, self._org, self._now
        await alerts.resolve(tx, org, [alert.id for _, alert in ruling.resolved], "source", now)
        await alerts.refresh(tx, org, ruling.refreshes, now)
        new = [new_alert(incident.id, plan) for incident, plan in ruling.joining]
        for group, opening in ruling.openings.items():
            new += [new_alert(opened[group], plan) for plan in opening.plans]
        ids = await alerts.insert(tx, org, new, now)
        if len(ids) != len(new):
            raise Moved
        return ids

    async def _write_changes(self, ruling: Ruling, opened: Mapping[Key, int]) -> bool:
        tx, org, now = self._tx, self._org, self._now
        armings = [
            Arming(TimerKind.ESCALATE, opened[group], opening.due_at, epoch=1)
            for group, opening in ruling.openings.items()
        ]
        places = [
            (touched.incident.id, plan.service.channel)
            for touched, plan in ruling.acknowledged
            if plan.service.channel and touched.changed
        ]
        shown = await cards.ensure_all(tx, org, places, now)
        armings += [Arming(TimerKind.CARD, card, now, rank=Rank.CARD) for card in shown]
        changes = [one.change() for one in ruling.held.touched.values() if one.moved]
        applied = await apply(tx, org, changes, self._directory, now)
        await timers.arm(tx, org, armings)
        return bool(armings) or applied.armed

    async def _write_journal(self, ruling: Ruling, opened: Mapping[Key, int]) -> None:
        await journal.append_events(self._tx, self._org, event_rows(ruling.outcomes), self._now)
        entries = [_entry(ruling.openings[group], one) for group, one in opened.items()]
        await journal.append_timeline(self._tx, self._org, entries, self._now)


def _after(opening: Opening) -> str:
    if opening.after is None:
        return ""
    return f"a person resolved #{opening.after.number}, and the source still fires"


def _entry(opening: Opening, incident_id: int) -> TimelineRow:
    words = [title(opening.first.event), _after(opening)]
    text = "; ".join(word for word in words if word)
    return TimelineRow(incident_id, "opened", opening.first.by, text, 1, None, "triggered")


def _seen(
    ruling: Ruling, alert_ids: Mapping[Key, int], numbers: Mapping[int, int | None]
) -> Iterable[tuple[Key, Seen]]:
    """What is open now, so that its next repeat costs one UPDATE."""
    for one in ruling.outcomes:
        event = one.item.event
        key = (one.service_id, event.dedup_key)
        known = ruling.held.open.get(key)
        alert_id = alert_ids.get(key, known.id if known is not None else None)
        if one.status not in {"opened", "joined", "repeat"} or alert_id is None or one.incident_id is None:
            continue
        number = numbers.get(one.incident_id)
        seen = Seen(
            alert_id, one.incident_id, number, event.started_at, event.raw_severity, hash(event.summary)
        )
        yield key, seen
