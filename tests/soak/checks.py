"""What must be so when all is over: the database, the senders and the phone company agree.

Reads only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from engine import schema
from engine.db import Database
from engine.invariants import find
from engine.models import ORG, TimerKind
from engine.schema import EPOCH
from tests.soak.processes import Fleet
from tests.soak.provider import AMBIGUOUS, Provider, Request
from tests.soak.senders import Senders

LEASE_S: Final = 30.0
SLACK_S: Final = 5.0  # the next look, and a busy machine
RETRIES_S: Final = 30 + 60 + 120 + LEASE_S
WITHOUT_END: Final = ("queued", "sending")
NEWS: Final = "status"  # deliveries that only tell how it ended go on for minutes after it has


@dataclass(slots=True)
class Report:
    """The figures, and what is wrong."""

    alerts: int = 0
    incidents: int = 0
    requests: int = 0
    taken: int = 0
    lost: int = 0
    late: int = 0  # first attempts later than the kills on their way explain
    twice: int = 0
    ambiguous: int = 0
    unknown: int = 0  # attempts whose end nobody recorded: crashes and lost leases
    dead: int = 0
    kills: int = 0
    refused: int = 0
    lateness: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def quantile(self, q: float) -> float:
        ordered = sorted(self.lateness) or [float("nan")]
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))]

    def lines(self) -> Iterator[str]:
        yield f"{self.alerts:,} alerts on {self.incidents:,} incidents, {self.refused:,} posts said again"
        yield f"{self.kills} kills -9, {self.requests:,} requests to the phone company, {self.taken:,} taken"
        yield f"lost {self.lost}, sent twice {self.twice}, given up {self.dead} (each said)"
        yield f"may be sent twice: {self.ambiguous} ambiguous, {self.unknown} ended by a crash or a lease"
        figures = ", ".join(
            f"{name} {self.quantile(q):.3f} s" for name, q in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
        )
        yield f"from the alert to the first attempt: {figures}; later than kills explain: {self.late}"
        yield from (f"BROKEN: {words}" for words in self.broken[:50])


@dataclass
class Rows:
    """The tables, as they are at the end."""

    incidents: Sequence[Any]
    alerts: Sequence[Any]
    deliveries: Sequence[Any]
    attempts: Sequence[Any]
    timers: Sequence[Any]
    findings: Sequence[Any]


async def read(database: Database, now: Any) -> Rows:
    async with database.snapshot() as tx:

        async def all_of(table: sa.Table) -> Sequence[Any]:
            return (await tx.execute(sa.select(table))).all()

        return Rows(
            *[
                await all_of(table)
                for table in (schema.incidents, schema.alerts, schema.deliveries, schema.attempts)
            ],
            timers=(await tx.execute(sa.select(schema.timers).where(_of_pages()))).all(),
            findings=await find(tx, ORG, now),
        )


async def unfinished(database: Database) -> int:
    """Deliveries and timers that something is yet to come of; news left out, and what is only asked about
    later."""
    async with database.snapshot() as tx:
        deliveries = await tx.scalar(
            sa.select(sa.func.count())
            .select_from(schema.deliveries)
            .where(schema.deliveries.c.status.in_(WITHOUT_END), schema.deliveries.c.kind != NEWS)
        )
        timers = await tx.scalar(sa.select(sa.func.count()).select_from(schema.timers).where(_of_pages()))
    return int(deliveries or 0) + int(timers or 0)


def _of_pages() -> sa.ColumnElement[bool]:
    news = sa.select(schema.deliveries.c.id).where(schema.deliveries.c.kind == NEWS)
    timers = schema.timers.c
    of_news = sa.and_(timers.kind == TimerKind.DELIVER, timers.subject_id.in_(news))
    return sa.not_(sa.or_(timers.kind == TimerKind.RECEIPT, of_news))


def check(rows: Rows, senders: Senders, provider: Provider, fleet: Fleet) -> Report:
    report = Report(kills=len(fleet.killed_at), refused=senders.refused, incidents=len(rows.incidents))
    report.alerts = sum(alert.accepted_at is not None for alert in senders.alerts)
    report.requests, report.taken = len(provider.ledger), sum(one.taken for one in provider.ledger)
    report.ambiguous = sum(one.mood in AMBIGUOUS for one in provider.ledger)
    report.unknown = sum(row.outcome == "unknown" for row in rows.attempts)
    report.dead = sum(row.status == "dead" for row in rows.deliveries)
    report.broken += _kept(rows, senders)
    report.broken += _ended(rows)
    report.broken += _sent_twice(rows, provider, report)
    report.broken += _paged(rows, senders, provider, fleet, report)
    return report


def _kept(rows: Rows, senders: Senders) -> Iterator[str]:
    """Each accepted alert is in the database, once, on one incident; and nothing else is."""
    stored = Counter(row.dedup_key for row in rows.alerts)
    for alert in senders.alerts:
        if alert.accepted_at is None or stored[alert.key] != 1:
            yield f"{alert.key}: accepted at {alert.accepted_at}, stored {stored[alert.key]} times"
    if len(rows.incidents) != len(rows.alerts) or len({row.incident_id for row in rows.alerts}) != len(
        rows.alerts
    ):
        yield f"{len(rows.alerts)} alerts on {len(rows.incidents)} incidents"


def _ended(rows: Rows) -> Iterator[str]:
    """Nothing is stuck, and the audit is clean."""
    yield from (
        f"incident #{row.number} is {row.status}" for row in rows.incidents if row.status != "resolved"
    )
    yield from (f"a {row.kind} timer of {row.subject_id} is left" for row in rows.timers)
    yield from (
        f"delivery {row.id} is {row.status}"
        for row in rows.deliveries
        if row.status in WITHOUT_END and row.kind != NEWS
    )
    news = {row.id for row in rows.deliveries if row.kind == NEWS}
    yield from (
        f"attempt {row.number} of {row.delivery_id} has no end"
        for row in rows.attempts
        if row.outcome == "sending" and row.delivery_id not in news
    )
    yield from (f"audit: {finding}" for finding in rows.findings)


def _sent_twice(rows: Rows, provider: Provider, report: Report) -> Iterator[str]:
    """A message is sent again only when nobody could know that it had been taken."""
    numbers = {row.id: row.number for row in rows.incidents}
    reasons: Counter[tuple[int, str]] = Counter()
    of = {row.id: (numbers[row.incident_id], row.method) for row in rows.deliveries if row.incident_id}
    for row in rows.attempts:
        if row.outcome == "unknown" and row.delivery_id in of:
            reasons[of[row.delivery_id]] += 1
    for one in provider.ledger:
        reasons[one.incident, one.method] += one.mood in AMBIGUOUS
    meant = _meant(rows, numbers)
    taken = Counter(one.key for one in provider.ledger if one.taken)
    for (incident, to, method), times in taken.items():
        again = max(0, times - 1 - meant[incident, method])
        report.twice += again
        if again > reasons[incident, method]:
            yield f"#{incident} was sent {times} times by {method} to …{to[-4:]} without a reason"
    if report.twice > report.ambiguous + report.unknown:
        yield f"{report.twice} were sent twice"


def _meant(rows: Rows, numbers: dict[int, int]) -> Counter[tuple[int, str]]:
    """How many messages went to somebody who had one before: they are on a level, and the fallback too."""
    told = Counter(
        (numbers[row.incident_id], row.method, row.person_id)
        for row in rows.deliveries
        if row.incident_id and row.attempts and row.kind == "page"
    )
    meant: Counter[tuple[int, str]] = Counter()
    for (incident, method, _), times in told.items():
        meant[incident, method] += times - 1
    return meant


def _paged(rows: Rows, senders: Senders, provider: Provider, fleet: Fleet, report: Report) -> Iterator[str]:
    """Whoever was to be told was told, or somebody answered before."""
    incident_of = {row.dedup_key: row.incident_id for row in rows.alerts}
    number_of = {row.id: row.number for row in rows.incidents}
    opened_at = {row.id: (row.opened_at - EPOCH).total_seconds() for row in rows.incidents}
    first = {
        row.incident_id: row
        for row in rows.deliveries
        if row.kind == "page" and row.step == 0 and row.level == 0
    }
    requests: dict[int, list[Request]] = defaultdict(list)
    for one in provider.ledger:
        requests[one.incident].append(one)
    for alert in senders.alerts:
        incident = incident_of.get(alert.key)
        if incident is None or alert.accepted_at is None:
            continue  # said by _kept
        number = number_of[incident]
        ends = [at for at in (alert.resolved_at, senders.answered_at.get(number)) if at is not None]
        open_s = min(ends) - opened_at[incident]
        heard = requests[number]
        if heard:
            waited = heard[0].at - opened_at[incident]
            report.lateness.append(waited)
            report.late += waited > _slowest(fleet, opened_at[incident], heard[0].at)
        page = first.get(incident)
        if open_s > RETRIES_S and not any(one.taken for one in heard) and (not page or page.status != "dead"):
            report.lost += 1
            yield f"#{number}: its first page never arrived, and is {page.status if page else 'not there'}"
    for number, words in senders.untold.items():
        report.lost += 1
        yield f"#{number} is open, and {words}"


def _slowest(fleet: Fleet, opened: float, until: float) -> float:
    """How late the first attempt may be: each kill on the way may have cost a lease, and a while in
    which nobody worked."""
    kills = sum(opened - SLACK_S < at < until for at in fleet.killed_at)
    down = sum(end - start for start, end in fleet.down if end > opened and start < until)
    return SLACK_S + LEASE_S * kills + down
