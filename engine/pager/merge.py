"""Merging incidents: one is over, its alerts and responders go on on the other; and back again.

Runs inside the caller's transaction; sends nothing. Locks in one order: the dedup keys of the
alerts that move, then both incidents by id, then the alerts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from engine.db import Tx
from engine.directory import Directory
from engine.errors import NotFound
from engine.escalation import Decision, decide
from engine.escalation.fate import Joiner, LastAlertResolved, Merge, Unmerge
from engine.grouping import severity_weight
from engine.intake.touched import Touched
from engine.models import ORG, Actor, AlertStatus, Via
from engine.pager.apply import Applied, Change, Moved, apply, earliest
from engine.pager.walk import policy_of, set_out
from engine.store import counts, dedup_keys, incidents, journal, merges, timers
from engine.store.counts import Count
from engine.store.dedup_keys import Key
from engine.store.incidents import Incident
from engine.store.journal import TimelineRow
from engine.store.merges import Moving

MOVED: Final = "alerts_moved"  # the timeline entry that says which alerts an unmerge takes back

Done = tuple[bool, str, Applied]


@dataclass(frozen=True, slots=True)
class Move:
    """Two locked incidents, and the locked alerts that go from one to the other."""

    of: Incident
    to: Incident
    alerts: Sequence[Moving]

    @property
    def firing(self) -> int:
        return sum(alert.status is AlertStatus.FIRING for alert in self.alerts)

    @property
    def worst(self) -> Moving | None:
        return max(self.alerts, key=lambda alert: severity_weight(alert.severity), default=None)

    async def make(self, tx: Tx, now: datetime, *, worse: bool = False) -> None:
        """Count them there and no more here, and take along what their keys are remembered by."""
        ids = [alert.id for alert in self.alerts]
        moved, worst = len(ids), self.worst if worse else None
        gone = Count(self.of.id, joined=-moved)
        come = Count(
            self.to.id,
            joined=moved,
            last_joined_at=now if moved else None,
            worse=worst is not None,
            severity=worst.severity.value if worst and worst.severity else None,
            raw_severity=worst.raw_severity if worst else "",
        )
        await merges.move_memory(tx, ORG, ids, self.of.id, self.to.id)
        await counts.count(tx, sorted((gone, come), key=lambda one: one.incident_id))
        await merges.move_alerts(tx, ORG, ids, self.to.id)


# --- into another ------------------------------------------------------------------------------------


async def merge(
    tx: Tx, known: Directory, source_id: int, target_id: int, actor: Actor, now: datetime
) -> Done:
    """The source is over; the target takes what fires on it for a joiner."""
    if source_id == target_id:
        return _not_done("an incident cannot be merged into itself")
    keys = await merges.keys_of(tx, ORG, source_id)
    await dedup_keys.lock(tx, ORG, keys)
    source, target = await _both(tx, source_id, target_id)
    if not target.fate.open:
        return _not_done(f"#{target.number} is resolved: reopen it first, or merge into another one")
    decision = decide(source.fate, Merge(actor, target.id, target.number), now)
    if not decision.changed:
        return _not_done(decision.reason)
    move = Move(source, target, await merges.lock_alerts(tx, ORG, source.id))
    if not _keys(move.alerts) <= set(keys):
        raise Moved  # one more joined before the locks
    joined = _joined(move, actor, now)
    await move.make(tx, now, worse=joined.fate.severity > target.fate.severity)
    await _set_out(tx, known, [source, target], now)
    changes = [Change(source, decision, "merged", actor), joined.change()]
    applied = await apply(tx, ORG, changes, known, now)
    await merges.move_responders(tx, ORG, source.id, target.id, joined.fate.round)
    await _note(tx, move, decision, actor, now)
    return True, decision.reason, applied


def _joined(move: Move, actor: Actor, now: datetime) -> Touched:
    """One joiner for all that comes: as urgent and as bad as the source was, whoever had said so."""
    fate, source = move.to.fate, move.of
    touched = Touched(move.to, replace(fate, open_alerts=fate.open_alerts + move.firing))
    touched.say("merged_in", actor, f"#{source.number} was merged into this one")
    command = Joiner(source.fate.urgency, source.fate.severity, f"#{source.number} {source.title}")
    touched.decide(command, "merged_in", actor, now)
    return touched


async def _note(tx: Tx, move: Move, decision: Decision, actor: Actor, now: datetime) -> None:
    ids = [alert.id for alert in move.alerts]
    plural = "" if len(ids) == 1 else "s"
    text = f"{len(ids)} alert{plural} moved to #{move.to.number}"
    row = TimelineRow(move.of.id, MOVED, actor, text, decision.fate.epoch, detail={"alerts": ids})
    await journal.append_timeline(tx, ORG, [row], now)


# --- and back ----------------------------------------------------------------------------------------


async def unmerge(tx: Tx, known: Directory, incident_id: int, actor: Actor, now: datetime) -> Done:
    """A new round of its own, with those of its alerts that are still where they went."""
    before = await _read(tx, incident_id)
    if before.fate.merged_into is None:
        return _not_done("it was not merged")
    moved = await _moved(tx, incident_id)
    keys = await merges.keys_of(tx, ORG, before.fate.merged_into)
    await dedup_keys.lock(tx, ORG, keys)
    back, holder = await _both(tx, incident_id, before.fate.merged_into)
    if back.fate.merged_into != holder.id:
        raise Moved
    if holder.fate.merged_into is not None:  # its alerts went on with it: back the way they came
        return _not_done(f"#{holder.number} took it in and was merged itself: unmerge #{holder.number} first")
    there = [alert for alert in await merges.lock_alerts(tx, ORG, holder.id) if alert.id in moved]
    if not _keys(there) <= set(keys):
        raise Moved
    move = Move(holder, back, there)
    decision = decide(back.fate, Unmerge(actor, move.firing, await _holder(tx, back)), now)
    if not decision.changed:
        return _not_done(decision.reason)
    await move.make(tx, now)
    left = await _left(tx, move, actor, now)
    changes = [Change(back, decision, "unmerged", actor), left.change()]
    return True, decision.reason, await apply(tx, ORG, changes, known, now)


async def _left(tx: Tx, move: Move, actor: Actor, now: datetime) -> Touched:
    """The one that goes on without them; over, when all that it stayed open for has gone."""
    fate = move.of.fate
    left = Touched(move.of, replace(fate, open_alerts=fate.open_alerts - move.firing))
    left.say("unmerged", actor, f"#{move.to.number} was taken out again")
    if move.firing and left.fate.open and left.fate.open_alerts == 0:
        # Its own alerts the source has ended before: it will send no other word that could end it.
        live = await timers.of_subjects(tx, ORG, timers.FATE_KINDS, [move.of.id])
        command = LastAlertResolved(Actor("a source", Via.SOURCE), earliest(live))
        left.decide(command, "resolved", actor, now)
    return left


async def _moved(tx: Tx, incident_id: int) -> set[int]:
    """The alerts that the last merge took along."""
    entries = await journal.timeline_of(tx, ORG, [incident_id])
    lists = [entry.detail.get("alerts", []) for entry in entries if entry.kind == MOVED]
    return set(lists[-1]) if lists else set()


async def _holder(tx: Tx, incident: Incident) -> int | None:
    """The number of an incident that opened for its group meanwhile."""
    group = (incident.service_id, incident.group_key)
    found = await incidents.open_by_group(tx, ORG, [incident.service_id], [incident.group_key])
    others = await incidents.read(tx, [found[group]]) if group in found else []
    return next((one.number for one in others), None)


# --- of both -----------------------------------------------------------------------------------------


async def _both(tx: Tx, one: int, other: int) -> tuple[Incident, Incident]:
    held = {incident.id: incident for incident in await incidents.lock(tx, [one, other])}
    if len(held) < 2:
        raise NotFound("There is no such incident.")
    return held[one], held[other]


async def _read(tx: Tx, incident_id: int) -> Incident:
    found = await incidents.read(tx, [incident_id])
    if not found:
        raise NotFound("There is no such incident.")
    return found[0]


async def _set_out(tx: Tx, known: Directory, both: Iterable[Incident], now: datetime) -> None:
    walking = [(one, await policy_of(tx, known, one)) for one in sorted(both, key=lambda one: one.id)]
    await set_out(tx, known, walking, now)


def _keys(moving: Iterable[Moving]) -> set[Key]:
    return {(alert.service_id, alert.dedup_key) for alert in moving}


def _not_done(reason: str) -> Done:
    return False, reason, Applied()
