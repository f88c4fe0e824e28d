"""One batch of requests, in one transaction: from folded plans to alerts, incidents and timers.

Touches no policy, schedule or provider: routing is the work of the `escalate` timer, so a storm
costs the sender milliseconds. Locks in one order (dedup keys, incidents, then the rest); what moved
between reading and locking makes the transaction start again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from engine.db import Tx
from engine.directory import Directory
from engine.escalation.fate import Acknowledge, Joiner, LastAlertResolved, Refire
from engine.grouping import severity_weight
from engine.models import Action, Actor, Alert, Event, Rank, Receipt, TimerKind, Via
from engine.pager.apply import Moved, apply, earliest
from engine.pager.fold import Item, Plan
from engine.pager.memory import Seen
from engine.pager.rows import event_row, new_alert, refresh, source, title
from engine.pager.touched import Opening, Touched
from engine.store import alerts, cards, dedup_keys, incidents, journal, timers
from engine.store.alerts import Refresh
from engine.store.dedup_keys import DedupKey, Key
from engine.store.incidents import Incident
from engine.store.journal import TimelineRow
from engine.store.timers import Arming

STALE_FOR: Final = timedelta(minutes=2)  # how long an old message may still be under way
QUIET_AFTER_HUMAN: Final = timedelta(minutes=15)  # the source still fires what a person resolved

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Taken:
    """What the batch did: a receipt for each event, and what this process may remember of it."""

    receipts: dict[Place, Receipt]
    seen: list[tuple[int, str, Seen]]
    closed: list[Key]
    armed: bool


class Intake:
    """The work of one transaction; made anew for each try."""

    def __init__(
        self, tx: Tx, org_id: int, plans: dict[Key, Plan], directory: Directory, now: datetime, opened_by: str
    ) -> None:
        self._tx = tx
        self._org = org_id
        self._plans = plans
        self._directory = directory
        self._now = now
        self._opened_by = opened_by
        self._keys: dict[Key, DedupKey] = {}
        self._open: dict[Key, Alert] = {}
        self._closed: dict[Key, Alert] = {}
        self._groups: dict[tuple[int, str], int] = {}
        self._touched: dict[int, Touched] = {}
        self._openings: dict[tuple[int, str], Opening] = {}
        self._joining: list[tuple[Touched, Plan, Item]] = []
        self._repeats: dict[int, list[Alert]] = defaultdict(list)
        self._refreshes: list[Refresh] = []
        self._resolved: list[tuple[Plan, Alert]] = []
        self._remembered: list[DedupKey] = []
        self._outcomes: list[tuple[int, Item, str, str, int | None]] = []
        self._alert_ids: dict[Key, int] = {}
        self._sealed: list[Incident] = []
        self._acknowledged: list[tuple[Touched, Plan]] = []

    async def run(self) -> Taken:
        await self._lock()
        for _, plan in sorted(self._plans.items()):
            self._take(plan)
        await self._close_empty()
        opened = await self._write_incidents()
        await self._write_alerts(opened)
        armed = await self._write_changes(opened)
        numbers = await self._write_events(opened)
        return self._taken(opened, numbers, armed)

    # --- locks ---------------------------------------------------------------------------------------

    async def _lock(self) -> None:
        tx, org = self._tx, self._org
        keys = sorted(self._plans)
        self._keys = await dedup_keys.lock(tx, org, keys)
        before = await alerts.open_by_key(tx, org, keys)
        ended = [k for k in keys if k not in before and self._plans[k].trigger is not None]
        last = {k: i for k in ended if (i := self._keys[k].last_incident_id) is not None}
        groups = await self._read_groups()
        wanted = {alert.incident_id for alert in before.values()} | set(last.values()) | set(groups.values())
        locked = await incidents.lock(tx, sorted(wanted))
        self._touched = {one.id: Touched(one, one.fate) for one in locked}
        self._closed = await alerts.last_of_incidents(tx, org, sorted(set(last.values())), list(last))
        # Read again under the locks: an alert may have closed or moved while we waited for them.
        self._open = await alerts.open_by_key(tx, org, keys) if wanted else before
        self._groups = await self._read_groups() if wanted else groups
        holders = {alert.incident_id for alert in self._open.values()} | set(self._groups.values())
        if not holders <= set(self._touched):
            raise Moved

    async def _read_groups(self) -> dict[tuple[int, str], int]:
        triggers = [plan.trigger for plan in self._plans.values() if plan.trigger is not None]
        services = sorted({plan.service.id for plan in self._plans.values()})
        names = sorted({item.group_key for item in triggers})
        return await incidents.open_by_group(self._tx, self._org, services, names)

    # --- one key ---------------------------------------------------------------------------------------

    def _take(self, plan: Plan) -> None:
        key = (plan.service.id, plan.dedup_key)
        alert = self._open.get(key)
        for item, reason in plan.folded:
            self._outcomes.append(
                (plan.service.id, item, "folded", reason, alert.incident_id if alert else None)
            )
        if plan.resolve is not None and plan.trigger is None:
            self._resolve(plan, plan.resolve, alert)
        elif plan.resolve is not None:
            self._outcomes.append(
                (plan.service.id, plan.resolve, "folded", "fired again in the same batch", None)
            )
        if plan.trigger is not None and alert is not None:
            self._repeat(plan, plan.trigger, alert, flapped=plan.resolve is not None)
        elif plan.trigger is not None:
            self._trigger(plan, plan.trigger, self._keys[key])
        if plan.acknowledge is not None:
            self._acknowledge(plan, plan.acknowledge, alert)

    def _resolve(self, plan: Plan, item: Item, alert: Alert | None) -> None:
        key = self._keys[(plan.service.id, plan.dedup_key)]
        started = item.event.started_at or (alert.started_at if alert else None)
        self._remembered.append(
            replace(
                key,
                last_started_at=started,
                last_ended_at=item.event.ended_at,
                end_arrived_at=self._now,
                last_severity=alert.raw_severity if alert else key.last_severity,
                last_incident_id=alert.incident_id if alert else key.last_incident_id,
                ended_by="source",
            )
        )
        if alert is None:
            self._outcomes.append(
                (plan.service.id, item, "ignored", "nothing is open for this key", key.last_incident_id)
            )
            return
        touched = self._touched[alert.incident_id]
        touched.fate = replace(touched.fate, open_alerts=max(0, touched.fate.open_alerts - 1))
        touched.resolving = source(item)
        self._resolved.append((plan, alert))
        self._outcomes.append((plan.service.id, item, "resolved", "", alert.incident_id))

    def _repeat(self, plan: Plan, item: Item, alert: Alert, *, flapped: bool) -> None:
        event, touched = item.event, self._touched[alert.incident_id]
        worse = severity_weight(event.severity) > severity_weight(alert.severity)
        later = (
            event.started_at is not None
            and alert.started_at is not None
            and event.started_at > alert.started_at
            and not flapped
        )
        self._note_truncated(touched, item)
        unchanged = event.started_at == alert.started_at and event.raw_severity == alert.raw_severity
        if unchanged and not flapped:
            self._repeats[plan.triggers].append(alert)
        else:
            self._refreshes.append(refresh(alert, item, plan.triggers, flaps=int(flapped)))
        if worse or later:
            self._join(touched, item)
        reason = "a worse severity" if worse else "a later start" if later else ""
        self._outcomes.append((plan.service.id, item, "repeat", reason, alert.incident_id))

    def _trigger(self, plan: Plan, item: Item, key: DedupKey) -> None:
        if reason := self._stale(item.event, key):
            self._outcomes.append((plan.service.id, item, "ignored", reason, key.last_incident_id))
        elif not self._refired(plan, item, key):
            self._join_or_open(plan, item, key)

    def _stale(self, event: Event, key: DedupKey) -> str | None:
        """An old message of an occurrence that the source has ended, still under way."""
        if event.started_at is None or key.last_started_at is None or key.end_arrived_at is None:
            return None
        over = key.ended_by == "source" and event.started_at <= key.last_started_at
        if over and self._now - key.end_arrived_at < STALE_FOR:
            return "the source has ended this occurrence already"
        return None

    def _refired(self, plan: Plan, item: Item, key: DedupKey) -> bool:
        """Fired again right after the source's resolve: taken up where it was."""
        alert = self._closed.get((plan.service.id, plan.dedup_key))
        touched = self._touched.get(key.last_incident_id or 0)
        if alert is None or touched is None or key.ended_by != "source" or key.end_arrived_at is None:
            return False
        if self._now - key.end_arrived_at > plan.service.flap_window:
            return False
        outcome = "repeat"
        if not touched.fate.open:
            if self._groups.get((plan.service.id, touched.incident.group_key)) is not None:
                return False  # somebody else holds the group: a joiner there
            decision = touched.decide(Refire(plan.service.flap_window), "refired", source(item), self._now)
            if not decision.changed:
                return False
            self._groups[(plan.service.id, touched.incident.group_key)] = touched.incident.id
            outcome = "refired"
        touched.fate = replace(touched.fate, open_alerts=touched.fate.open_alerts + 1)
        self._refreshes.append(refresh(alert, item, plan.triggers, flaps=1))
        if severity_weight(item.event.severity) > severity_weight(alert.severity):
            self._join(touched, item)
        self._outcomes.append((plan.service.id, item, outcome, "fired again", touched.incident.id))
        return True

    def _join_or_open(self, plan: Plan, item: Item, key: DedupKey) -> None:
        group = (plan.service.id, item.group_key)
        touched = self._touched.get(self._groups.get(group, 0))
        if touched is not None and touched.fate.open and not self._sealed_now(plan, touched):
            touched.fate = replace(touched.fate, open_alerts=touched.fate.open_alerts + 1)
            touched.joined += 1
            self._note_truncated(touched, item)
            self._join(touched, item)
            self._joining.append((touched, plan, item))
            self._outcomes.append((plan.service.id, item, "joined", "", touched.incident.id))
            return
        due_at, last_paged_at = self._first_page(item.event, key)
        opening = self._openings.get(group)
        if opening is None:
            opening = self._openings[group] = Opening(*group, [], [], due_at, last_paged_at)
        opening.items.append(item)
        opening.plans.append(plan)
        opening.due_at = min(opening.due_at, due_at)

    def _sealed_now(self, plan: Plan, touched: Touched) -> bool:
        window = plan.service.group_window
        if window is None or self._now - touched.incident.last_joined_at <= window:
            return False
        if touched.incident not in self._sealed:
            self._sealed.append(touched.incident)
        return True

    def _first_page(self, event: Event, key: DedupKey) -> tuple[datetime, datetime | None]:
        """When the first page may go: later if a person resolved just this and the source still fires."""
        touched = self._touched.get(key.last_incident_id or 0)
        same = key.ended_by == "human" and (key.last_started_at, key.last_severity) == (
            event.started_at,
            event.raw_severity,
        )
        paged = touched.incident.last_paged_at if touched is not None else None
        if not same or paged is None:
            return self._now, None
        return max(self._now, paged + QUIET_AFTER_HUMAN), paged

    def _join(self, touched: Touched, item: Item) -> None:
        event = item.event
        weight = severity_weight(event.severity)
        if weight > touched.fate.severity:
            touched.worst = item
        command = Joiner(item.urgency, weight, title(event))
        touched.decide(command, "joined", source(item), self._now)

    def _note_truncated(self, touched: Touched, item: Item) -> None:
        if item.truncated:
            touched.truncated = item.truncated

    def _acknowledge(self, plan: Plan, item: Item, alert: Alert | None) -> None:
        if alert is None:
            self._outcomes.append((plan.service.id, item, "ignored", "nothing is open for this key", None))
            return
        touched = self._touched[alert.incident_id]
        actor = source(item)
        decision = touched.decide(Acknowledge(actor), "acknowledged", actor, self._now)
        self._acknowledged.append((touched, plan))
        outcome = "acknowledged" if decision.changed else "ignored"
        self._outcomes.append((plan.service.id, item, outcome, decision.reason, alert.incident_id))

    # --- writes, in the order of the locks ---------------------------------------------------------------

    async def _close_empty(self) -> None:
        """An incident whose last alert was resolved is over; its live timer is kept for a re-fire."""
        empty = [t for t in self._touched.values() if t.resolving and t.fate.open_alerts == 0 and t.fate.open]
        if not empty:
            return
        ids = [touched.incident.id for touched in empty]
        live = await timers.of_subjects(self._tx, self._org, timers.FATE_KINDS, ids)
        for touched in empty:
            own = [timer for timer in live if timer.subject_id == touched.incident.id]
            actor = touched.resolving or Actor("a source", Via.SOURCE)
            command = LastAlertResolved(actor, earliest(own))
            touched.decide(command, "resolved", actor, self._now)

    async def _write_incidents(self) -> dict[tuple[int, str], int]:
        tx, org = self._tx, self._org
        await dedup_keys.remember(tx, org, self._remembered)
        for incident in self._sealed:
            await incidents.seal(tx, incident)
        new = {group: one.new(self._now, self._opened_by) for group, one in sorted(self._openings.items())}
        opened = await incidents.insert(tx, org, list(new.values()))
        if set(opened) != set(new):
            raise Moved  # another process opened one of them in this instant
        await incidents.count(
            tx, [count for one in self._touched.values() if (count := one.count(self._now))]
        )
        return opened

    async def _write_alerts(self, opened: dict[tuple[int, str], int]) -> None:
        tx, org, now = self._tx, self._org, self._now
        await alerts.resolve(tx, org, [alert.id for _, alert in self._resolved], "source", now)
        for times, repeated in self._repeats.items():
            await alerts.repeat(tx, org, [alert.id for alert in repeated], times, now)
        await alerts.refresh(tx, self._refreshes, now)
        new = [new_alert(t.incident.id, plan, item) for t, plan, item in self._joining]
        new += [
            new_alert(opened[group], plan, item)
            for group, opening in self._openings.items()
            for plan, item in zip(opening.plans, opening.items, strict=True)
        ]
        self._alert_ids = await alerts.insert(tx, org, new, now)
        if len(self._alert_ids) != len(new):
            raise Moved

    async def _write_changes(self, opened: dict[tuple[int, str], int]) -> bool:
        tx, org, now = self._tx, self._org, self._now
        armings = [
            Arming(TimerKind.ESCALATE, opened[group], opening.due_at, epoch=1)
            for group, opening in self._openings.items()
        ]
        for touched, plan in self._acknowledged:
            if plan.service.channel and touched.changed:
                card = await cards.ensure(tx, org, touched.incident.id, plan.service.channel, None, now)
                armings.append(Arming(TimerKind.CARD, card, now, rank=Rank.CARD))
        changes = [one.change() for one in self._touched.values() if one.moved]
        applied = await apply(tx, org, changes, self._directory, now)
        await timers.arm(tx, org, armings)
        return bool(armings) or applied.armed

    async def _write_events(self, opened: dict[tuple[int, str], int]) -> dict[int, int]:
        tx, org, now = self._tx, self._org, self._now
        for group, opening in self._openings.items():
            self._outcomes += [
                (opening.service_id, item, "opened" if n == 0 else "joined", "", opened[group])
                for n, item in enumerate(opening.items)
            ]
        rows = [
            event_row(service_id, item, outcome, reason, incident_id)
            for service_id, item, outcome, reason, incident_id in self._outcomes
            if item.place is not None and not (outcome == "repeat" and not reason)
        ]
        await journal.append_events(tx, org, rows, now)
        await journal.append_timeline(tx, org, [self._entry(group, i) for group, i in opened.items()], now)
        return await incidents.number(tx, org, list(opened.values()))

    def _entry(self, group: tuple[int, str], incident_id: int) -> TimelineRow:
        opening = self._openings[group]
        by_hand = Actor(self._opened_by, Via.API) if self._opened_by else None
        actor = by_hand or source(opening.items[0])
        return TimelineRow(incident_id, "opened", actor, title(opening.items[0].event), 1, None, "triggered")

    # --- answers -----------------------------------------------------------------------------------------

    def _taken(self, opened: dict[tuple[int, str], int], numbers: dict[int, int], armed: bool) -> Taken:
        known = {one.incident.id: one.incident.number for one in self._touched.values()} | numbers
        receipts = {
            item.place: Receipt(item.event.dedup_key, outcome, reason, incident, known.get(incident or 0))
            for _, item, outcome, reason, incident in self._outcomes
            if item.place is not None
        }
        closed = [(plan.service.id, plan.dedup_key) for plan, _ in self._resolved]
        return Taken(receipts, list(self._seen(known)), closed, armed)

    def _seen(self, numbers: dict[int, int | None] | dict[int, int]) -> Iterable[tuple[int, str, Seen]]:
        placed = {item.place: incident for _, item, _, _, incident in self._outcomes}
        for (service_id, dedup_key), plan in self._plans.items():
            item, alert = plan.trigger, self._open.get((service_id, dedup_key))
            alert_id = self._alert_ids.get((service_id, dedup_key), alert.id if alert else None)
            incident = placed.get(item.place) if item is not None else None
            if item is not None and alert_id is not None and incident is not None:
                yield (
                    service_id,
                    dedup_key,
                    Seen(
                        alert_id,
                        incident,
                        numbers.get(incident),
                        item.event.started_at,
                        item.event.raw_severity,
                    ),
                )


def group_resolves(
    open_alerts: Sequence[tuple[str, str, datetime | None]],
    ends: dict[str, datetime | None],
    mentioned: set[str],
) -> list[Event]:
    """The alerts that a resolve of their whole group ends: those that began before it."""
    return [
        Event(Action.RESOLVE, dedup_key, "", group_key=group, ended_at=ends[group])
        for group, dedup_key, started_at in open_alerts
        if dedup_key not in mentioned
        and (ends[group] is None or started_at is None or started_at < ends[group])  # type: ignore[operator]  # None is ruled out before it
    ]
