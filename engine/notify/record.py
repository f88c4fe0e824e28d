"""Records how attempts ended, and everything that follows from it, in one transaction.

Fenced by the attempt number: whoever lost the lease changes nothing. Sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from engine import metrics
from engine.db import Tx
from engine.directory import Directory
from engine.escalation import still_wanted
from engine.models import (
    ORG,
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    Method,
    Outcome,
    Rejected,
    Sent,
    Urgency,
)
from engine.notify import death
from engine.notify.begin import Begun
from engine.notify.death import Death, Refusal, died, go_on
from engine.notify.next_rule import pull_next_rules
from engine.notify.receipts import receipt_armings
from engine.notify.verdict import PAGES, Unstarted, Verdict, Waits, judge
from engine.pager import consent
from engine.pager.alarm import pass_on
from engine.pager.apply import card_armings
from engine.store import attempts, cards, contacts, incidents, leases, timers
from engine.store import directory as directories
from engine.store.attempts import Record
from engine.store.cards import Posted
from engine.store.incidents import Incident

Key: TypeAlias = tuple[int, int]  # of an attempt: its timer, and the number that is its fence


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that ended: where it went, and what came of it."""

    begun: Begun
    address: str
    outcome: Outcome | Unstarted | Waits
    jitter: float  # in [-1, 1]: spreads the next try
    threaded: bool = False  # a line in a thread is no card
    provider: str = ""  # that was asked last
    passed_over: tuple[str, ...] = ()  # others, before it, and why
    refused: tuple[str, ...] = ()  # why a provider wants nothing of us at all

    @property
    def key(self) -> Key:
        return self.begun.timer.id, self.begun.timer.attempt

    @property
    def delivery(self) -> Delivery:
        return self.begun.delivery


@dataclass(frozen=True, slots=True)
class Recorded:
    """An attempt that was recorded: the verdict on it, and the incident as it was then."""

    ended: Ended
    verdict: Verdict
    incident: Incident | None
    at: datetime
    first: bool = False  # the first page of its incident that was sent

    @property
    def too_late(self) -> bool:
        """Had somebody answered while the message was in flight?"""
        delivery, incident = self.ended.delivery, self.incident
        return incident is not None and (
            still_wanted(delivery.kind, delivery.round, incident.fate) is not None
        )

    @property
    def sent(self) -> Sent | None:
        outcome = self.ended.outcome
        return outcome if isinstance(outcome, Sent) else None

    @property
    def about(self) -> int | None:
        """The incident, if it is a page."""
        page = self.ended.delivery.kind in PAGES
        return self.incident.id if page and self.incident is not None else None

    @property
    def dead(self) -> bool:
        return self.verdict.status is DeliveryStatus.DEAD

    @property
    def waits(self) -> bool:
        """Put off for as long as its provider is down: for the ladder that is as good as dead, unless
        nobody is to be woken."""
        high = self.incident is not None and self.incident.fate.urgency is Urgency.HIGH
        return high and isinstance(self.ended.outcome, Waits)

    @property
    def unheard(self) -> bool:
        """An alarm that did not get through, this time at least."""
        failed = self.verdict.word in {"retry", "rejected", "waits"}
        alarm = self.ended.delivery.kind is DeliveryKind.OPS
        return alarm and failed and self.verdict.status is not DeliveryStatus.CANCELLED

    @property
    def death(self) -> Death:
        return Death(self.ended.delivery, self.verdict.reason, self.incident)

    @property
    def waited(self) -> timedelta | None:
        """From the incident's opening to this page, if it is the first."""
        return self.at - self.incident.opened_at if self.first and self.incident is not None else None


@dataclass(frozen=True, slots=True)
class Done:
    """Whose attempt is in neither has lost the lease: another worker holds the timer by now."""

    recorded: Mapping[Key, Recorded]
    held: frozenset[Key] = frozenset()  # left alone: somebody has their incidents


async def record_all(
    tx: Tx, ended: Sequence[Ended], directory: Directory, now: datetime, *, skip_locked: bool = False
) -> Done:
    """`skip_locked`: what belongs to an incident that somebody holds is left, so that it keeps no other
    waiting."""
    ids = {one.delivery.incident_id for one in ended if one.delivery.incident_id is not None}
    locked = {one.id: one for one in await incidents.lock(tx, sorted(ids), skip_locked=skip_locked)}
    left = ids - locked.keys() if skip_locked else set()
    judged = [
        _judged(one, locked.get(one.delivery.incident_id or 0), now)
        for one in ended
        if one.delivery.incident_id not in left
    ]
    recorded = list(_with_firsts(await _fenced(tx, judged)))
    await attempts.record(tx, ORG, [_row(one) for one in recorded], now)
    await _sent(tx, recorded, now)
    await pull_next_rules(tx, [one.ended.delivery for one in recorded if one.verdict.next_rule], now)
    refusals = [Refusal(one.ended.delivery, why) for one in recorded for why in one.ended.refused]
    await died(tx, [one.death for one in recorded if one.dead], refusals, directory, now)
    await go_on(tx, [one.death for one in recorded if one.waits], directory, now)
    await pass_on(tx, ORG, [one.ended.delivery for one in recorded if one.unheard], directory, now)
    shown = {one.about for one in recorded if one.about is not None}
    await timers.arm(tx, ORG, await card_armings(tx, ORG, sorted(shown), now))
    await _stopped(tx, recorded, directory, now)
    held = frozenset(one.key for one in ended if one.delivery.incident_id in left)
    return Done({one.ended.key: one for one in recorded}, held)


def _judged(ended: Ended, incident: Incident | None, now: datetime) -> Recorded:
    urgency = incident.fate.urgency if incident is not None else Urgency.LOW
    verdict = judge(ended.delivery, ended.outcome, urgency, now, ended.jitter)
    return Recorded(ended, verdict, incident, now)


async def _fenced(tx: Tx, judged: Sequence[Recorded]) -> list[Recorded]:
    # Why first: the effects below happen once per attempt, however late a stalled worker wakes.
    ends = [leases.End(one.ended.begun.timer, one.verdict.again_at) for one in judged]
    return [one for one, held in zip(judged, await leases.end(tx, ends), strict=True) if held]


def _with_firsts(recorded: Iterable[Recorded]) -> Iterator[Recorded]:
    """Of each incident that nobody was paged for before, the first that was sent is the first page."""
    paged: set[int] = set()
    for one in recorded:
        if one.sent is None or one.incident is None or one.about is None:
            yield one
            continue
        first = one.incident.last_paged_at is None and one.about not in paged
        paged.add(one.about)
        yield replace(one, first=first)


def _row(one: Recorded) -> Record:
    return Record(
        delivery_id=one.ended.delivery.id,
        number=one.ended.begun.number,
        outcome=one.verdict.word,
        reason=one.verdict.reason,
        status=one.verdict.status,
        provider=(one.sent.provider if one.sent else "") or one.ended.provider,
        provider_ref=one.sent.ref if one.sent else "",
        counts=one.verdict.counts,
        passed_over="; ".join(one.ended.passed_over),
    )


async def _sent(tx: Tx, recorded: Sequence[Recorded], now: datetime) -> None:
    paged = {one.about for one in recorded if one.sent and one.about is not None}
    await incidents.paged(tx, sorted(paged), now)
    shown = [_card(one) for one in recorded]
    await cards.posted(tx, ORG, [card for card in shown if card is not None], now)
    awaited = [one.ended.delivery.id for one in recorded if one.sent and one.sent.receipt]
    await timers.arm(tx, ORG, receipt_armings(awaited, now))


async def _stopped(tx: Tx, recorded: Sequence[Recorded], directory: Directory, now: datetime) -> None:
    """Whoever replied STOP where we did not hear it: the provider told us now."""
    refused = [one.ended for one in recorded if isinstance(one.ended.outcome, Rejected)]
    off = {
        one.delivery.method_id: one.delivery.id
        for one in refused
        if isinstance(one.outcome, Rejected) and one.outcome.stopped and one.delivery.method_id
    }
    if off:
        whose = await contacts.stop_methods(tx, ORG, sorted(off))
        # Why no alarm of it: the page that died of it is one.
        await consent.tell(tx, whose, directory, consent.OFF, f"consent:off:{min(off.values())}", now)
        await directories.bump(tx, ORG)  # counters last


def _card(one: Recorded) -> Posted | None:
    """The message, if it shows its incident."""
    if one.sent is None or one.about is None or one.ended.threaded:
        return None
    channel_id, ts = one.sent.detail.get("channel_id"), one.sent.detail.get("ts")
    if not channel_id or not ts:
        return None
    delivery = one.ended.delivery
    person = delivery.person_id if delivery.method is Method.SLACK else None
    return Posted(one.about, one.ended.address, person, str(channel_id), str(ts))


def count(one: Recorded) -> None:
    """Once it is committed: a unit may be run again."""
    if one.sent is not None and one.about is not None:
        metrics.sent_after_ack.inc(one.too_late)
    if one.waited is not None:
        metrics.page_seconds.observe(one.waited.total_seconds())
    if one.dead:
        death.count([one.death])
