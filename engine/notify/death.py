"""What follows when deliveries are given up: it is loud, and the ladder goes on past them.

Runs inside the caller's transaction, under the incidents' locks, once the dead are recorded as dead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from engine import metrics
from engine.db import Tx
from engine.directory import Directory
from engine.escalation.fate import FALLBACK
from engine.models import ORG, Delivery, DeliveryKind, Method, TimerKind
from engine.pager.alarm import CAUSE_LENGTH, channel_cause, raise_alarm
from engine.pager.ladder import Resolver
from engine.store import deliveries, timers
from engine.store.directory import policy_by_version
from engine.store.incidents import Incident

log = structlog.get_logger(__name__)

# How reasons begin that are of a provider, and not of a person or a message.
OUTAGES: Final = ("provider down:", "every provider for ", "Slack is down for us:")
PROVIDED_BY: Final = {
    Method.SMS: "phone",
    Method.VOICE: "phone",
    Method.SLACK: "slack",
    Method.CHANNEL: "slack",
}


@dataclass(frozen=True, slots=True)
class Death:
    """A delivery that was given up, and the incident that it was about."""

    delivery: Delivery
    reason: str
    incident: Incident | None = None

    @property
    def cause(self) -> str:
        """What makes several deaths one alarm: whoever is down is down for texts and for calls, and of a
        channel it is said by its card, too."""
        one = self.delivery
        if self.reason.startswith(OUTAGES):
            return down_cause(one.method)
        if one.method is Method.CHANNEL and one.address:
            return channel_cause(one.address, self.reason)
        return f"dead:{one.method}:{self.reason[:CAUSE_LENGTH]}"

    def text(self, directory: Directory) -> str:
        number = f"#{self.incident.number}: " if self.incident is not None else ""
        whom = self._whom(directory)
        return f"{number}a message by {self.delivery.method}{whom} could not be delivered: {self.reason}"

    def _whom(self, directory: Directory) -> str:
        one = self.delivery
        if one.person_id is not None:
            person = directory.people.get(one.person_id)
            return f" to {person.name}" if person is not None else ""
        return f" to {one.address}" if one.method is Method.CHANNEL and one.address else ""

    @property
    def is_loud(self) -> bool:
        """A number that was mistyped is for whoever typed it, and no alarm."""
        kind = self.delivery.kind
        asked_for = kind is DeliveryKind.VERIFICATION and not self.reason.startswith(OUTAGES)
        return kind is not DeliveryKind.OPS and not asked_for

    @property
    def in_present_level(self) -> bool:
        """Was it a page of the level that its incident is at?"""
        if self.incident is None or self.delivery.kind is not DeliveryKind.PAGE:
            return False
        one, fate = self.delivery, self.incident.fate
        return (one.round, one.pass_, one.level) == (fate.round, fate.pass_, fate.level)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A provider wants nothing of us at all; the page itself may have gone by another."""

    delivery: Delivery
    reason: str

    @property
    def cause(self) -> str:
        return down_cause(self.delivery.method)

    def text(self) -> str:
        return f"no message by {self.delivery.method} goes out this way until it is put right: {self.reason}"


def down_cause(method: Method) -> str:
    return f"down:{PROVIDED_BY.get(method, method.value)}"


async def died(
    tx: Tx, deaths: Sequence[Death], refusals: Sequence[Refusal], directory: Directory, now: datetime
) -> None:
    await _raise_alarms(tx, deaths, refusals, directory, now)
    await go_on(tx, deaths, directory, now)


def count(deaths: Iterable[Death]) -> None:
    """Once that is committed."""
    for one in deaths:
        method = one.delivery.method.value
        metrics.deliveries_dead.labels(method).inc()
        log.error("delivery.dead", delivery=one.delivery.id, method=method, reason=one.reason)


async def _raise_alarms(
    tx: Tx, deaths: Sequence[Death], refusals: Sequence[Refusal], directory: Directory, now: datetime
) -> None:
    # An alarm about an alarm would never end.
    causes = {one.cause: one.text() for one in refusals if one.delivery.kind is not DeliveryKind.OPS}
    loud = [one for one in deaths if one.is_loud]
    causes |= {one.cause: one.text(directory) for one in reversed(loud)}
    for cause, text in sorted(causes.items()):  # in one order: others may be raising the same
        await raise_alarm(tx, ORG, cause, text, now)


async def go_on(tx: Tx, deaths: Sequence[Death], directory: Directory, now: datetime) -> None:
    """When the last page of the present level is dead, or waits for a provider that is down, its time is
    over now."""
    stricken = {one.incident.id: one.incident for one in deaths if one.incident and one.in_present_level}
    if not stricken:
        return
    living = await deliveries.with_living_pages(tx, ORG, sorted(stricken))
    silent = [one for _, one in sorted(stricken.items()) if one.id not in living]
    over = [one.id for one in silent if one.fate.level != FALLBACK]
    # At the fallback one more link at once, while there is one; then its own interval rules.
    more = [
        one.id for one in silent if one.fate.level == FALLBACK and await _has_link(tx, one, directory, now)
    ]
    for kind, subjects in ((TimerKind.ESCALATE, over), (TimerKind.EXHAUST, more)):
        if subjects:
            await timers.pull(tx, ORG, kind, subjects, now)


async def _has_link(tx: Tx, incident: Incident, directory: Directory, now: datetime) -> bool:
    version = incident.policy_version_id
    policy = None if version is None else await policy_by_version(tx, incident.org_id, version)
    chain = Resolver(directory, incident.fate.urgency, now).chain(policy)
    return incident.fate.links < len(chain)
