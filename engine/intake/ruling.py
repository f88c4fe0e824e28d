"""Rules what becomes of each plan of a batch, given what is held.

Pure: never reads the clock or the database; `Intake` writes what it gathers here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from engine.escalation.fate import Acknowledge, Joiner, Refire
from engine.grouping import severity_weight
from engine.intake.fold import Item, Plan
from engine.intake.held import Held
from engine.intake.outcome import Outcome, of_triggers
from engine.intake.repeats import Repeats
from engine.intake.rows import latest, refresh, title
from engine.intake.touched import Opening, Touched
from engine.models import Alert, Event, Via
from engine.store.alerts import Refresh
from engine.store.dedup_keys import DedupKey, Key
from engine.store.incidents import Incident, sealed_key

STALE_FOR: Final = timedelta(minutes=2)  # how long an old message may still be under way
QUIET_AFTER_HUMAN: Final = timedelta(minutes=15)  # the source still fires what a person resolved
NOTHING_OPEN: Final = "nothing is open for this key"


class Ruling:
    """One batch; `take` every plan of it once, then read what it has gathered."""

    def __init__(self, held: Held, repeats: Repeats, now: datetime) -> None:
        self.held = held
        self.repeats = repeats
        self.outcomes: list[Outcome] = []
        self.remembered: list[DedupKey] = []
        self.resolved: list[tuple[Plan, Alert]] = []
        self.refreshes: list[Refresh] = []
        self.joining: list[tuple[Incident, Plan]] = []
        self.openings: dict[Key, Opening] = {}
        self.sealed: dict[int, Incident] = {}
        self.acknowledged: list[tuple[Touched, Plan]] = []
        self._now = now

    def take(self, plans: Iterable[Plan]) -> None:
        # Why in this order: an incident that one key re-fires must be open before another key of
        # its group looks for an open one.
        fresh = [plan for plan in plans if self._known(plan)]
        for plan in fresh:
            self._join_or_open(plan)

    def _known(self, plan: Plan) -> bool:
        """Rule what there is something to hold against; True is left for joining or opening."""
        alert = self.held.open.get(plan.key)
        self._fold(plan, alert)
        if plan.resolve is not None and not plan.triggers:
            self._resolve(plan, plan.resolve, alert)
            alert = None
        fresh = False
        if plan.triggers and alert is not None:
            self._repeat(plan, alert, flapped=plan.resolve is not None)
        elif plan.triggers:
            fresh = not self._over(plan) and not self._refired(plan)
        if plan.acknowledge is not None:
            self._acknowledge(plan, plan.acknowledge, alert)
        return fresh

    def _fold(self, plan: Plan, alert: Alert | None) -> None:
        folded = list(plan.folded)
        if plan.resolve is not None and plan.triggers:
            folded.append((plan.resolve, "fired again in the same batch"))
        incident = alert.incident_id if alert is not None else None
        self.outcomes += [Outcome(plan.service.id, item, "folded", why, incident) for item, why in folded]

    # --- an end ------------------------------------------------------------------------------------------

    def _resolve(self, plan: Plan, item: Item, alert: Alert | None) -> None:
        key = self.held.keys[plan.key]
        if alert is None:
            self._remember_end(key, item)
            incident = key.last_incident_id
            self.outcomes.append(Outcome(plan.service.id, item, "ignored", NOTHING_OPEN, incident))
            return
        ended = replace(key, last_severity=alert.raw_severity, last_incident_id=alert.incident_id)
        self._end(ended, item.event, latest(item.event.started_at, alert.started_at))
        touched = self.held.touched[alert.incident_id]
        touched.fate = replace(touched.fate, open_alerts=max(0, touched.fate.open_alerts - 1))
        touched.resolving = item.by
        self.resolved.append((plan, alert))
        self.outcomes.append(Outcome(plan.service.id, item, "resolved", "", alert.incident_id))

    def _remember_end(self, key: DedupKey, item: Item) -> None:
        """An end without an open alert: of something that was never heard of, or the same end again.

        Why only a later one counts: an end that is repeated must not begin the times anew within
        which a trigger is taken for an old message or for flapping.
        """
        known, mentioned = key.last_started_at, item.event.started_at
        later = mentioned is not None and (known is None or mentioned > known)
        if key.ended_by != "source" or later:
            self._end(key, item.event, mentioned if later else known)

    def _end(self, key: DedupKey, event: Event, started_at: datetime | None) -> None:
        self.remembered.append(
            replace(
                key,
                last_started_at=started_at,
                last_ended_at=event.ended_at,
                end_arrived_at=self._now,
                ended_by="source",
            )
        )

    # --- a trigger ---------------------------------------------------------------------------------------

    def _repeat(self, plan: Plan, alert: Alert, *, flapped: bool) -> None:
        event, touched = plan.newest.event, self.held.touched[alert.incident_id]
        self._note_truncated(touched, plan)
        later = any(_later(item.event, alert) for item in plan.triggers)
        if not flapped and not later and event.raw_severity == alert.raw_severity:
            words = None if event.summary == alert.summary else event.summary
            self.repeats.add(alert.id, len(plan.triggers), words)
        else:
            self.refreshes.append(refresh(alert, plan, flaps=int(flapped)))
        worse = severity_weight(plan.loudest.event.severity) > severity_weight(alert.severity)
        if worse or (later and not flapped):
            self._join(touched, plan)
        reason = "a worse severity" if worse else "a later start" if later and not flapped else ""
        self.outcomes += of_triggers(plan, "repeat", reason, alert.incident_id)

    def _over(self, plan: Plan) -> bool:
        """Set aside old messages of an occurrence that the source has ended; True if no other is left."""
        key = self.held.keys[plan.key]
        old = [item for item in plan.triggers if self._stale(item.event, key)]
        plan.triggers = [item for item in plan.triggers if item not in old]
        reason, incident = "the source has ended this occurrence already", key.last_incident_id
        self.outcomes += [Outcome(plan.service.id, item, "ignored", reason, incident) for item in old]
        return not plan.triggers

    def _stale(self, event: Event, key: DedupKey) -> bool:
        if event.started_at is None or key.last_started_at is None or key.end_arrived_at is None:
            return False
        ended = key.ended_by == "source" and event.started_at <= key.last_started_at
        return ended and self._now - key.end_arrived_at < STALE_FOR

    def _refired(self, plan: Plan) -> bool:
        """Fired again right after the source's resolve: taken up where it was."""
        key = self.held.keys[plan.key]
        touched, alert = self.held.last(key), self.held.closed.get(plan.key)
        if touched is None or alert is None or alert.incident_id != touched.incident.id:
            return False
        if key.ended_by != "source" or key.end_arrived_at is None:
            return False
        if self._now - key.end_arrived_at > plan.service.flap_window:
            return False
        status = "repeat" if touched.fate.open else "refired"
        if not touched.fate.open and not self._take_up(touched, plan):
            return False
        touched.fate = replace(touched.fate, open_alerts=touched.fate.open_alerts + 1)
        self.refreshes.append(refresh(alert, plan, flaps=1))
        if severity_weight(plan.loudest.event.severity) > severity_weight(alert.severity):
            self._join(touched, plan)
        self.outcomes += of_triggers(plan, status, "fired again", touched.incident.id)
        return True

    def _take_up(self, touched: Touched, plan: Plan) -> bool:
        """Open the incident again; not if another holds its group by now, nor if it is grouped anew."""
        group, incident = plan.newest.group_key, touched.incident
        if (plan.service.id, group) in self.held.groups:
            return False
        if incident.group_key not in {group, sealed_key(group, incident.id)}:
            return False
        command = Refire(plan.service.flap_window)
        if not touched.decide(command, "refired", plan.newest.by, self._now).changed:
            return False
        self.held.groups[(plan.service.id, incident.group_key)] = incident.id
        return True

    def _join_or_open(self, plan: Plan) -> None:
        group = (plan.service.id, plan.newest.group_key)
        touched = self.held.touched.get(self.held.groups.get(group, 0))
        if touched is not None and touched.fate.open and not self._sealed(plan, touched):
            touched.fate = replace(touched.fate, open_alerts=touched.fate.open_alerts + 1)
            touched.joined += 1
            self._note_truncated(touched, plan)
            self._join(touched, plan)
            self.joining.append((touched.incident, plan))
            self.outcomes += of_triggers(plan, "joined", "", touched.incident.id)
        else:
            self._open(group, plan)

    def _open(self, group: Key, plan: Plan) -> None:
        after = self._still_fires(plan)
        paged = after.last_paged_at if after is not None else None
        due_at = self._now if paged is None else max(self._now, paged + QUIET_AFTER_HUMAN)
        opening = self.openings.get(group)
        if opening is None:
            opening = self.openings[group] = Opening(*group, due_at, after=after)
        opening.plans.append(plan)
        opening.due_at = min(opening.due_at, due_at)

    def _still_fires(self, plan: Plan) -> Incident | None:
        """The incident that a person resolved while the source goes on firing just the same."""
        event, key = plan.newest.event, self.held.keys[plan.key]
        touched = self.held.last(key)
        same = (key.last_started_at, key.last_severity) == (event.started_at, event.raw_severity)
        by_source = plan.newest.by.via is Via.SOURCE  # a person who opens it again means it
        resolved = touched is not None and key.ended_by == "human"
        return touched.incident if touched is not None and resolved and same and by_source else None

    def _sealed(self, plan: Plan, touched: Touched) -> bool:
        """Whether the last join is so long ago that a new alert is a new problem."""
        window, incident = plan.service.group_window, touched.incident
        if window is None or self._now - incident.last_joined_at <= window:
            return False
        self.sealed[incident.id] = incident
        return True

    def _join(self, touched: Touched, plan: Plan) -> None:
        loudest = plan.loudest
        weight = severity_weight(loudest.event.severity)
        if weight > touched.fate.severity:
            touched.worst = loudest
        known = self._still_fires(plan) is not None
        command = Joiner(loudest.urgency, weight, title(plan.newest.event), known)
        touched.decide(command, "joined", loudest.by, self._now)

    def _note_truncated(self, touched: Touched, plan: Plan) -> None:
        if plan.newest.truncated:
            touched.truncated = plan.newest.truncated

    # --- an acknowledgement ------------------------------------------------------------------------------

    def _acknowledge(self, plan: Plan, item: Item, alert: Alert | None) -> None:
        if alert is not None:
            touched = self.held.touched[alert.incident_id]
            ladder = self.held.ladders.get(alert.incident_id)
            decision = touched.decide(Acknowledge(item.by), "acknowledged", item.by, self._now, ladder)
            self.acknowledged.append((touched, plan))
            status = "acknowledged" if decision.changed else "ignored"
            self.outcomes.append(Outcome(plan.service.id, item, status, decision.reason, alert.incident_id))
        elif not plan.triggers:
            self.outcomes.append(Outcome(plan.service.id, item, "ignored", NOTHING_OPEN))
        # Else it has no outcome yet: the next batch finds the alert that the trigger opens in this one.


def _later(event: Event, alert: Alert) -> bool:
    known = event.started_at is not None and alert.started_at is not None
    return known and event.started_at > alert.started_at  # type: ignore[operator]  # `known` says neither is None
