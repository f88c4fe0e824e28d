"""Folds what many requests say into one plan per dedup key.

Pure: never reads the clock or the database. A key folds to resolve?, trigger?, acknowledge?, in
that order; what folds away is kept, with the reason. Within a body triggers come before resolves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from engine.directory import Service
from engine.grouping import bounded_key, group_key, urgency
from engine.models import Action, Body, Event, Urgency

ORDER = {Action.TRIGGER: 0, Action.ACKNOWLEDGE: 1, Action.RESOLVE: 2}


@dataclass(frozen=True, slots=True)
class Item:
    """One event of one request; `place` is (request, event), where its receipt goes."""

    event: Event
    source: str
    group_key: str
    urgency: Urgency
    place: tuple[int, int] | None = None  # None: a group resolve named it, no event did
    truncated: int = 0


@dataclass(slots=True)
class Plan:
    """What a batch asks of one dedup key of one service."""

    service: Service
    dedup_key: str
    resolve: Item | None = None
    trigger: Item | None = None
    acknowledge: Item | None = None
    triggers: int = 0  # how many triggers folded into `trigger`, itself included
    folded: list[tuple[Item, str]] = field(default_factory=list)

    def add(self, item: Item) -> None:
        action = item.event.action
        if action is Action.TRIGGER:
            self._fold(self.trigger, "repeated in the same batch")
            self.trigger, self.triggers = item, self.triggers + 1
        elif action is Action.ACKNOWLEDGE:
            self._fold(self.acknowledge, "repeated in the same batch")
            self.acknowledge = item
        else:
            self._fold(self.trigger, "resolved in the same batch")
            self._fold(self.acknowledge, "resolved in the same batch")
            self._fold(self.resolve, "repeated in the same batch")
            self.resolve, self.trigger, self.acknowledge, self.triggers = item, None, None, 0

    def _fold(self, item: Item | None, reason: str) -> None:
        if item is not None:
            self.folded.append((item, reason))

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(item for item in (self.resolve, self.trigger, self.acknowledge) if item is not None)


@dataclass(frozen=True, slots=True)
class Request:
    """One body for one service, with everything that can be known before the transaction."""

    service: Service
    body: Body
    items: tuple[Item, ...]

    @property
    def closes(self) -> set[tuple[int, str]]:
        """The keys and groups that it may close."""
        ids = self.service.id
        resolving = [item for item in self.items if item.event.action is Action.RESOLVE]
        return (
            {(ids, f"k{item.event.dedup_key}") for item in resolving}
            | {(ids, f"g{item.group_key}") for item in resolving}
            | {(ids, f"s{one.group_key}") for one in self.body.group_resolves}
        )

    @property
    def touches(self) -> set[tuple[int, str]]:
        ids = self.service.id
        return (
            {(ids, f"k{item.event.dedup_key}") for item in self.items}
            | {(ids, f"g{item.group_key}") for item in self.items}
            | {(ids, f"s{item.event.group_key}") for item in self.items if item.event.group_key}
            | {(ids, f"s{one.group_key}") for one in self.body.group_resolves}
        )


def prepare(service: Service, body: Body, index: int = 0) -> Request:
    """The request's events with bounded keys, group key and urgency; triggers before resolves."""
    items = [_item(service, body, event, (index, position)) for position, event in enumerate(body.events)]
    items.sort(key=lambda item: ORDER[item.event.action])
    return Request(service, body, tuple(items))


def _item(service: Service, body: Body, event: Event, place: tuple[int, int]) -> Item:
    if event.dedup_key != (bounded := bounded_key(event.dedup_key)):
        event = replace(event, dedup_key=bounded)
    return Item(event, body.source, group_key(event, service), urgency(event, service), place, body.truncated)


def fold(requests: Iterable[tuple[int, Request]]) -> dict[tuple[int, str], Plan]:
    """One plan per (service, dedup key), in the order in which the requests came."""
    plans: dict[tuple[int, str], Plan] = {}
    for number, request in requests:
        for item in request.items:
            placed = _placed(item, number)
            key = (request.service.id, item.event.dedup_key)
            plan = plans.get(key)
            if plan is None:
                plan = plans[key] = Plan(request.service, item.event.dedup_key)
            plan.add(placed)
    return plans


def _placed(item: Item, number: int) -> Item:
    return replace(item, place=(number, item.place[1] if item.place is not None else 0))


def take_together(waiting: Sequence[Request], fits: Callable[[int, int], bool]) -> int:
    """How many of the waiting requests may share one commit, from the first on.

    One that touches a group which an earlier one may close waits for the next commit.
    """
    closed: set[tuple[int, str]] = set()
    events = 0
    for count, request in enumerate(waiting):
        events += len(request.items)
        if count and not fits(count, events):
            return count
        if closed and not closed.isdisjoint(request.touches):
            return count
        closed |= request.closes
    return len(waiting)
