"""How Slack is, as rows: the standing of the organisation, and what each process reports. Decides nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from engine.db import Tx, upsert
from engine.outage import Probe, Report, Standing, State
from engine.schema import slack_reports, slack_state


@dataclass(frozen=True, slots=True)
class Spot:
    """Where the probe's reaction is toggled, and whether it is on."""

    channel: str
    ts: str
    on: bool


async def standing(tx: Tx, org_id: int, *, lock: bool = False) -> Standing | None:
    """None where nobody has looked yet. With `lock` it is ours until the transaction ends."""
    query = sa.select(slack_state).where(slack_state.c.org_id == org_id)
    row = (await tx.execute(query.with_for_update() if lock else query)).mappings().first()
    if row is None:
        return None
    probe = Probe(
        row["probe_sent_at"], bool(row["probe_waiting"]), row["probe_echoed_at"], row["probe_missed"]
    )
    named = {
        name: row[name]
        for name in ("since", "reason", "heard_at", "ok_at", "told", "down_from", "down_until")
    }
    return Standing(State(row["state"]), probe=probe, **named)


async def begin(tx: Tx, org_id: int, first: Standing) -> None:
    """Write the first standing, unless somebody has."""
    insert = upsert(tx, slack_state).values(org_id=org_id, probe_on=0, **_columns(first))
    await tx.execute(insert.on_conflict_do_nothing(index_elements=["org_id"]))


async def save(tx: Tx, org_id: int, standing: Standing) -> None:
    await tx.execute(
        sa.update(slack_state).where(slack_state.c.org_id == org_id).values(**_columns(standing))
    )


def _columns(standing: Standing) -> dict[str, Any]:
    probe = standing.probe
    return {
        "state": standing.state.value,
        "since": standing.since,
        "reason": standing.reason,
        "heard_at": standing.heard_at,
        "ok_at": standing.ok_at,
        "told": standing.told,
        "down_from": standing.down_from,
        "down_until": standing.down_until,
        "probe_sent_at": probe.sent_at,
        "probe_waiting": int(probe.waiting),
        "probe_echoed_at": probe.echoed_at,
        "probe_missed": probe.missed,
    }


async def report(tx: Tx, org_id: int, one: Report) -> None:
    insert = upsert(tx, slack_reports).values(org_id=org_id, owner=one.owner, at=one.at, body=_body(one))
    new = {"at": insert.excluded.at, "body": insert.excluded.body}
    await tx.execute(insert.on_conflict_do_update(index_elements=["org_id", "owner"], set_=new))


async def reports(tx: Tx, org_id: int) -> list[Report]:
    rows = await tx.execute(
        sa.select(slack_reports.c.owner, slack_reports.c.at, slack_reports.c.body)
        .where(slack_reports.c.org_id == org_id)
        .order_by(slack_reports.c.owner)
    )
    return [_report(row.owner, row.at, row.body) for row in rows]


async def forget_reports(tx: Tx, org_id: int, before: datetime) -> None:
    """Those of processes that are gone."""
    gone = sa.delete(slack_reports).where(slack_reports.c.org_id == org_id, slack_reports.c.at < before)
    await tx.execute(gone)


_OWN: Final = frozenset({"owner", "at"})
_INSTANTS: Final = ("ok_at", "dead_at", "heard_at", "echo_at", "cut_at")


def _body(one: Report) -> dict[str, Any]:
    said = {name: value for name, value in asdict(one).items() if name not in _OWN}
    said |= {name: None if said[name] is None else said[name].isoformat() for name in _INSTANTS}
    return said | {"failed": [at.isoformat() for at in one.failed], "skew": one.skew.total_seconds()}


def _report(owner: str, at: datetime, body: dict[str, Any]) -> Report:
    known = {one.name for one in fields(Report)}  # of a newer version there may be more
    said = {name: value for name, value in body.items() if name in known}
    instants = {
        name: None if said[name] is None else datetime.fromisoformat(said[name]) for name in _INSTANTS
    }
    failed = tuple(datetime.fromisoformat(one) for one in said["failed"])
    return Report(
        owner, at, **{**said, **instants, "failed": failed, "skew": timedelta(seconds=said["skew"])}
    )


# --- the probe ---------------------------------------------------------------------------------------------


async def claim_probe(tx: Tx, org_id: int, before: datetime, now: datetime) -> bool:
    """Take the next probe on, unless one was taken on between `before` and now."""
    taken = await tx.execute(
        sa.update(slack_state)
        .where(
            slack_state.c.org_id == org_id,
            sa.or_(
                slack_state.c.probe_claimed_at.is_(None),
                slack_state.c.probe_claimed_at <= before,
                slack_state.c.probe_claimed_at > now,  # the clock was set back
            ),
        )
        .values(probe_claimed_at=now)
    )
    return taken.rowcount == 1


async def spot(tx: Tx, org_id: int) -> Spot | None:
    columns = (slack_state.c.probe_channel, slack_state.c.probe_ts, slack_state.c.probe_on)
    row = (await tx.execute(sa.select(*columns).where(slack_state.c.org_id == org_id))).first()
    if row is None or not row.probe_channel or not row.probe_ts:
        return None
    return Spot(row.probe_channel, row.probe_ts, bool(row.probe_on))


async def probed(tx: Tx, org_id: int, at: Spot, sent_at: datetime) -> None:
    """A reaction was toggled there, and its echo is waited for."""
    await tx.execute(
        sa.update(slack_state)
        .where(slack_state.c.org_id == org_id)
        .values(
            probe_channel=at.channel,
            probe_ts=at.ts,
            probe_on=int(at.on),
            probe_sent_at=sent_at,
            probe_waiting=1,
        )
    )
