"""Turns effects into deliveries: who is told, by which method, when.

Pure: never reads the clock or the database. The idempotency key is kind, incident, round, pass,
level, recipient, method and step: nothing is sent twice in a round, everything again in the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from engine.contact import Step
from engine.directory import Directory
from engine.escalation.fate import FALLBACK, Effect, Fate, PageFallback, PageLevel, PageResponder, Say, Tell
from engine.models import DeliveryKind, Method, NewDelivery, Urgency
from engine.pager.ladder import Link, steps
from engine.skipped import noted, skipped


class Pages:
    """The deliveries of a batch, made at one instant; the steps of a person are worked out once."""

    def __init__(self, directory: Directory, now: datetime) -> None:
        self._directory = directory
        self._now = now
        self._known: dict[tuple[int, Urgency], tuple[Step, ...]] = {}
        self._left_out: dict[tuple[int, Urgency], dict[str, Any]] = {}

    def of(self, effect: Effect, incident_id: int, fate: Fate, chain: Sequence[Link]) -> list[NewDelivery]:
        """What must be sent for an effect, the incident's fate being this; none for most effects."""
        if isinstance(effect, PageLevel):
            return self._rung(effect.people, effect.channels, incident_id, fate, effect.level)
        if isinstance(effect, PageFallback):
            return self._fallback(chain[: effect.links], incident_id, fate)
        if isinstance(effect, PageResponder):
            return self._responder(effect, incident_id, fate)
        if isinstance(effect, Say):
            return [say(incident_id, fate, effect.key, effect.text, self._now)]
        if isinstance(effect, Tell):
            return _tell(incident_id, fate, effect, self._now)
        return []

    def _steps(self, person_id: int, urgency: Urgency) -> tuple[Step, ...]:
        asked = (person_id, urgency)
        if asked not in self._known:
            person = self._directory.people[person_id]
            self._known[asked] = steps(person, urgency)
            self._left_out[asked] = noted(skipped(person, self._known[asked]))
        return self._known[asked]

    def _body(self, person_id: int, urgency: Urgency, step: Step) -> dict[str, Any]:
        """Which methods are left out stands in the first step, for whoever asks why."""
        return self._left_out[person_id, urgency] if step.index == 0 else {}

    def _rung(
        self, people: Iterable[int], channels: Iterable[str], incident_id: int, fate: Fate, level: int
    ) -> list[NewDelivery]:
        pages = [page for one in people for page in self._person(one, incident_id, fate, level)]
        said = (self._addressed(Method.CHANNEL, "c", one, incident_id, fate, level) for one in channels)
        return [*pages, *said]

    def _fallback(self, links: Iterable[Link], incident_id: int, fate: Fate) -> list[NewDelivery]:
        pages: list[NewDelivery] = []
        for link in links:
            pages += self._rung(link.people, link.channels, incident_id, fate, FALLBACK)
            # Why the index: an apprise URL holds a secret, which stays in the settings.
            for url in link.urls:
                pages.append(self._addressed(Method.URL, "u", str(url), incident_id, fate, FALLBACK))
        return pages

    def _person(self, person_id: int, incident_id: int, fate: Fate, level: int) -> list[NewDelivery]:
        return [
            NewDelivery(
                incident_id=incident_id,
                kind=DeliveryKind.PAGE,
                method=step.method.kind,
                idem_key=_key(incident_id, fate, level, f"p{person_id}", step.method.kind, step.index),
                due_at=self._now + step.delay,
                person_id=person_id,
                method_id=step.method.id,
                round=fate.round,
                pass_=fate.pass_,
                level=level,
                step=step.index,
                body=self._body(person_id, fate.urgency, step),
            )
            for step in self._steps(person_id, fate.urgency)
        ]

    def _addressed(
        self, method: Method, mark: str, address: str, incident_id: int, fate: Fate, level: int
    ) -> NewDelivery:
        return NewDelivery(
            incident_id=incident_id,
            kind=DeliveryKind.PAGE,
            method=method,
            idem_key=_key(incident_id, fate, level, f"{mark}{address}", method, 0),
            due_at=self._now,
            address=address,
            round=fate.round,
            pass_=fate.pass_,
            level=level,
        )

    def _responder(self, ask: PageResponder, incident_id: int, fate: Fate) -> list[NewDelivery]:
        who = ask.person_id
        if who not in self._directory.people:
            return []
        return [
            NewDelivery(
                incident_id=incident_id,
                kind=DeliveryKind.RESPONDER,
                method=step.method.kind,
                idem_key=f"responder:{incident_id}:{ask.sequence}:p{who}:{step.method.kind}:{step.index}",
                due_at=self._now + step.delay,
                person_id=who,
                method_id=step.method.id,
                round=fate.round,
                pass_=ask.sequence,
                step=step.index,
                body=self._body(who, fate.urgency, step),
            )
            for step in self._steps(who, fate.urgency)
        ]


def _key(incident_id: int, fate: Fate, level: int, recipient: str, method: Method, step: int) -> str:
    return f"page:{incident_id}:{fate.round}:{fate.pass_}:{level}:{recipient}:{method}:{step}"


def say(incident_id: int, fate: Fate, key: str, text: str, now: datetime) -> NewDelivery:
    """A line in the thread of the incident's card; the channel is looked up when it is sent."""
    return NewDelivery(
        incident_id=incident_id,
        kind=DeliveryKind.STATUS,
        method=Method.CHANNEL,
        idem_key=f"say:{incident_id}:{fate.round}:{key}",
        due_at=now,
        round=fate.round,
        body={"text": text, "thread": True},
    )


def _tell(incident_id: int, fate: Fate, effect: Tell, now: datetime) -> list[NewDelivery]:
    """A quiet message to whoever acknowledged, if that was a person."""
    by = fate.acknowledged_by
    if by is None or by.person_id is None:
        return []
    return [
        NewDelivery(
            incident_id=incident_id,
            kind=DeliveryKind.STATUS,
            method=Method.SLACK,
            idem_key=f"tell:{incident_id}:{fate.round}:{effect.key}:p{by.person_id}",
            due_at=now,
            person_id=by.person_id,
            round=fate.round,
            body={"text": effect.text},
        )
    ]
