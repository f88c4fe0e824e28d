"""Status updates: whoever was paged and is needed no more hears so, by the quietest way they have.

Runs inside the caller's transaction, under the incidents' locks; sends nothing. Never a call, never to
whoever did it, and never to somebody who was not told that it began.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine.clockwords import wall
from engine.db import Tx
from engine.directory import ContactMethod, Directory, Person
from engine.escalation.fate import CancelPages, Decision, Fate
from engine.models import (
    Actor,
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    IncidentStatus,
    Method,
    NewDelivery,
    Via,
)
from engine.notify.begin import NOT_AFTER
from engine.notify.bundle import UPDATE
from engine.store import deliveries, slack_state, timers
from engine.store.incidents import Incident

SETTLES: Final = timedelta(minutes=1)  # what changes again within it is told once, as it is then
STALE: Final = timedelta(minutes=15)  # then it is news no more
QUIETEST: Final = (Method.SLACK, Method.EMAIL, Method.PUSH, Method.SMS)
BY_PHONE: Final = frozenset({Method.SMS, Method.VOICE})
PAGES: Final = frozenset({DeliveryKind.PAGE, DeliveryKind.RESPONDER})
THERE: Final = frozenset({DeliveryStatus.SENT, DeliveryStatus.DELIVERED, DeliveryStatus.UNCONFIRMED})
QUIET: Final = frozenset({IncidentStatus.ACKNOWLEDGED, IncidentStatus.RESOLVED})
WAYS: Final = {
    Via.SMS: " via SMS",
    Via.VOICE: " by phone",
    Via.SLACK_BUTTON: " in Slack",
    Via.SLACK_COMMAND: " in Slack",
    Via.SLACK_MENTION: " in Slack",
    Via.WEB: " on the web",
    Via.API: " via the API",
    Via.CLI: " via the command line",
}


@dataclass(frozen=True, slots=True)
class News:
    """What became of an incident: an incident as it was, what was decided, and by whom."""

    incident: Incident
    decision: Decision
    kind: str
    actor: Actor

    @property
    def after(self) -> Fate:
        return self.decision.fate

    @property
    def moved(self) -> bool:
        return self.after.epoch != self.incident.fate.epoch

    @property
    def text(self) -> str | None:
        """What is told of it; None: nobody is told, since whoever is needed is paged."""
        if not self.moved:
            return None
        if self.kind == "assigned":
            return f"{self.decision.reason}{WAYS.get(self.actor.via, '')}"
        ended = [one.reason for one in self.decision.effects if isinstance(one, CancelPages)]
        if self.after.status not in QUIET or not ended:
            return None
        return f"{ended[-1]}{WAYS.get(self.actor.via, '')}"

    @property
    def takes_back(self) -> bool:
        """Is what was to be told not so any more?"""
        return self.moved and (self.text is not None or self.incident.fate.status in QUIET)


async def queue(
    tx: Tx, org_id: int, news: Sequence[News], directory: Directory, now: datetime
) -> list[tuple[int, datetime]]:
    """Queue what is to be told, in place of what is not so any more; returns (id, due_at) of the new rows."""
    about = {one.incident.id: one for one in news if one.takes_back}
    if not about:
        return []
    rows: dict[int, list[Delivery]] = defaultdict(list)
    for row in await deliveries.of_incidents(tx, org_id, sorted(about)):
        rows[row.incident_id or 0].append(row)
    waiting = [row for each in rows.values() for row in each if _waits(row)]
    await deliveries.supersede(tx, [row.id for row in waiting], "something newer happened", now)
    await timers.disarm_unsent(tx, org_id, [row.id for row in waiting])
    due = {(row.incident_id, row.person_id): row.due_at for row in waiting}
    told = [
        (one, person) for one in about.values() if one.text for person in _told(one, rows[one.incident.id])
    ]
    if not told:
        return []
    standing = await slack_state.standing(tx, org_id)
    slack = standing is None or not standing.down
    new = [
        _update(one, person, method, due.get((one.incident.id, person.id)), now)
        for one, person_id in told
        if (person := directory.people.get(person_id)) is not None
        and (method := quietest(person, rows[one.incident.id], one.incident.fate.round, slack=slack))
    ]
    return await deliveries.queue(tx, org_id, new, now)


def _waits(row: Delivery) -> bool:
    return row.kind is DeliveryKind.STATUS and row.status is DeliveryStatus.QUEUED and UPDATE in row.body


def _is_there(row: Delivery) -> bool:
    """Is it a page that its reader has, as far as anybody knows?"""
    return row.kind in PAGES and row.status in THERE and row.person_id is not None


def _told(news: News, rows: Iterable[Delivery]) -> list[int]:
    """Who was paged in the round that this ends, less whoever ended it and whoever is paged now."""
    round_ = news.incident.fate.round
    paged = {row.person_id for row in rows if _is_there(row) and row.round == round_}
    target = news.after.reassigned_to
    assigned = target.ref if news.kind == "assigned" and target is not None else None
    return sorted(one for one in paged if one is not None and one not in (news.actor.person_id, assigned))


def quietest(person: Person, rows: Iterable[Delivery], round_: int, *, slack: bool) -> ContactMethod | None:
    """By what to tell them; None: not at all, because their card in Slack says it, or there is nothing quiet.
    `slack`: Slack is up."""
    theirs = [row for row in rows if row.person_id == person.id and _is_there(row)]
    if slack and any(row.method is Method.SLACK for row in theirs):
        return None
    phoned = any(row.method in BY_PHONE and row.round == round_ for row in theirs)
    left = {Method.SLACK: slack, Method.SMS: phoned}
    usable: Mapping[Method, ContactMethod] = {
        one.kind: one for one in reversed(person.methods) if one.usable and left.get(one.kind, True)
    }
    return next((usable[kind] for kind in QUIETEST if kind in usable), None)


def _update(
    news: News, person: Person, method: ContactMethod, due: datetime | None, now: datetime
) -> NewDelivery:
    until = news.after.snoozed_until
    snoozed = until if news.after.status is IncidentStatus.ACKNOWLEDGED else None
    text = f"{news.text}{f' until {wall(snoozed, person.timezone)}' if snoozed else ''}"
    body = {"text": text, UPDATE: news.after.status.value, NOT_AFTER: (now + STALE).isoformat()}
    return NewDelivery(
        incident_id=news.incident.id,
        kind=DeliveryKind.STATUS,
        method=method.kind,
        # Why the epoch: what is told again later is news again.
        idem_key=f"update:{news.incident.id}:{news.after.epoch}:p{person.id}",
        due_at=now + SETTLES if due is None else due,
        person_id=person.id,
        method_id=method.id,
        round=news.incident.fate.round,
        body=body,
    )
