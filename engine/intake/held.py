"""What a batch of plans has locked, and what it read under the locks.

Decides nothing. Locks in one order: dedup keys, incidents, alerts, each sorted. While a key is
locked nobody opens, closes or moves an alert of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.db import Tx
from engine.directory import Directory
from engine.escalation import Ladder
from engine.intake.fold import Plan
from engine.intake.touched import Touched
from engine.models import Alert
from engine.pager.apply import Moved
from engine.pager.walk import policy_of
from engine.store import alerts, dedup_keys, incidents
from engine.store.dedup_keys import DedupKey, Key
from engine.store.incidents import Incident


@dataclass(frozen=True, slots=True)
class Held:
    keys: dict[Key, DedupKey]
    open: dict[Key, Alert]
    closed: dict[Key, Alert]  # the last alert of a key that fires and has none open
    groups: dict[Key, int]  # the open incident of each (service, group key)
    touched: dict[int, Touched]
    ladders: dict[int, Ladder]  # of the incidents that a source acknowledges

    def last(self, key: DedupKey) -> Touched | None:
        """The incident that the key's last alert was on, if it was locked."""
        return self.touched.get(key.last_incident_id or 0)


async def hold(
    tx: Tx, org_id: int, plans: Mapping[Key, Plan], counted: Iterable[int], known: Directory
) -> Held:
    """Lock the plans' keys, incidents and alerts, and the alerts that are only `counted`.

    Raises Moved if what was read before a lock is no longer so.
    """
    names = sorted(plans)
    keys = await dedup_keys.lock(tx, org_id, names)
    before = await alerts.open_by_key(tx, org_id, names)
    ended = [name for name in names if name not in before and plans[name].triggers]
    last = {name: i for name in ended if (i := keys[name].last_incident_id) is not None}
    groups = await _groups(tx, org_id, plans)
    wanted = {alert.incident_id for alert in before.values()} | set(last.values()) | set(groups.values())
    locked = await incidents.lock(tx, sorted(wanted))
    found = await _lock_alerts(tx, org_id, before, counted)
    if wanted:
        groups = await _groups(tx, org_id, plans)
    closed = await alerts.last_of_incidents(tx, org_id, sorted(set(last.values())), list(last))
    touched = {one.id: Touched(one, one.fate) for one in locked}
    if not {alert.incident_id for alert in found.values()} | set(groups.values()) <= set(touched):
        raise Moved
    acknowledged = {found[name].incident_id for name in found if plans[name].acknowledge is not None}
    ladders = await _ladders(tx, known, [touched[one].incident for one in sorted(acknowledged)])
    return Held(keys, found, closed, groups, touched, ladders)


async def _groups(tx: Tx, org_id: int, plans: Mapping[Key, Plan]) -> dict[Key, int]:
    firing = [plan for plan in plans.values() if plan.triggers]
    services = sorted({plan.service.id for plan in firing})
    return await incidents.open_by_group(tx, org_id, services, sorted({p.newest.group_key for p in firing}))


async def _lock_alerts(
    tx: Tx, org_id: int, before: Mapping[Key, Alert], counted: Iterable[int]
) -> dict[Key, Alert]:
    """Read again under their locks, all in one order: a batch may close some and count others."""
    ids = {alert.id for alert in before.values()}
    rows = await alerts.lock_open(tx, org_id, sorted(ids.union(counted)))
    found = {key: rows[alert.id] for key, alert in before.items() if alert.id in rows}
    if len(found) < len(before):
        raise Moved
    return found


async def _ladders(tx: Tx, known: Directory, acknowledged: Iterable[Incident]) -> dict[int, Ladder]:
    ladders = {}
    for incident in acknowledged:
        policy = await policy_of(tx, known, incident)
        ladders[incident.id] = Ladder(ack_timeout=policy.ack_timeout if policy is not None else None)
    return ladders
