"""Folds what many requests say into one plan per dedup key.

Pure: never reads the clock or the database. A key folds to resolve?, trigger?, acknowledge?, in
that order; what folds away is kept, with the reason. A key's events keep the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from engine.directory import Service
from engine.grouping import bounded_key, group_key, severity_weight, urgency
from engine.models import Action, Actor, Body, Event, Urgency, Via
from engine.store.dedup_keys import Key

Place = tuple[int, int]  # (request, event)


@dataclass(frozen=True, slots=True)
class Item:
    """One event of one request; `place` is where its receipt goes."""

    event: Event
    source: str
    by: Actor
    group_key: str
    urgency: Urgency
    place: Place | None = None  # None: a group resolve named it, no event did
    truncated: int = 0

    @property
    def loudness(self) -> tuple[int, int]:
        return self.urgency.weight, severity_weight(self.event.severity)

    @property
    def position(self) -> int:
        return self.place[1] if self.place is not None else -1


@dataclass(slots=True)
class Plan:
    """What a batch asks of one dedup key of one service."""

    service: Service
    dedup_key: str
    resolve: Item | None = None
    triggers: list[Item] = field(default_factory=list)  # since the resolve, in the order they came
    acknowledge: Item | None = None
    folded: list[tuple[Item, str]] = field(default_factory=list)

    def add(self, item: Item) -> None:
        if item.event.action is Action.TRIGGER:
            self.triggers.append(item)
        elif item.event.action is Action.ACKNOWLEDGE:
            self._fold("repeated in the same batch", self.acknowledge)
            self.acknowledge = item
        else:
            self._fold("resolved in the same batch", *self.triggers, self.acknowledge)
            self._fold("repeated in the same batch", self.resolve)
            self.resolve, self.triggers, self.acknowledge = item, [], None

    def _fold(self, reason: str, *items: Item | None) -> None:
        self.folded += [(item, reason) for item in items if item is not None]

    @property
    def key(self) -> Key:
        return self.service.id, self.dedup_key

    @property
    def newest(self) -> Item:
        """The trigger whose words count."""
        return self.triggers[-1]

    @property
    def loudest(self) -> Item:
        """The trigger that people are paged by: a worse one that came first must not fold away."""
        return max(reversed(self.triggers), key=lambda item: item.loudness)


@dataclass(frozen=True)
class Request:
    """One body for one service, with everything that can be known before the transaction."""

    service: Service
    body: Body
    items: tuple[Item, ...]

    @cached_property  # asked for with every batch, and nearly always nothing
    def closes(self) -> frozenset[Key]:
        """The keys and groups that it may close."""
        resolving = [item for item in self.items if item.event.action is Action.RESOLVE]
        return frozenset(mark for item in resolving for mark in self._marks(item)) | self.sweeps

    @property
    def touches(self) -> set[Key]:
        return {mark for item in self.items for mark in self._touched(item)} | self.sweeps

    @property
    def sweeps(self) -> set[Key]:
        """The source's groups that it resolves as a whole."""
        return {(self.service.id, f"s{one.group_key}") for one in self.body.group_resolves}

    @property
    def fires(self) -> set[Key]:
        """The source's groups that it fires in."""
        return {
            (self.service.id, f"s{item.event.group_key}")
            for item in self.items
            if item.event.action is Action.TRIGGER and item.event.group_key
        }

    def meets(self, item: Item, closed: Set[Key]) -> bool:
        """Whether what `item` is about is among the keys and groups that somebody may close."""
        return not closed.isdisjoint(self._touched(item))

    def _marks(self, item: Item) -> tuple[Key, ...]:
        return (self.service.id, f"k{item.event.dedup_key}"), (self.service.id, f"g{item.group_key}")

    def _touched(self, item: Item) -> tuple[Key, ...]:
        if item.event.group_key is None:
            return self._marks(item)
        return (*self._marks(item), (self.service.id, f"s{item.event.group_key}"))


def prepare(service: Service, body: Body, by: Actor | None = None) -> Request:
    """The request's events with bounded keys, group key and urgency, in the order of the body."""
    actor = by or Actor(body.source, Via.SOURCE)
    items = [_item(service, body, event, n, actor) for n, event in enumerate(body.events)]
    return Request(service, body, tuple(items))


def _item(service: Service, body: Body, event: Event, position: int, by: Actor) -> Item:
    if event.dedup_key != (bounded := bounded_key(event.dedup_key)):
        event = replace(event, dedup_key=bounded)
    place = (0, position)
    group = group_key(event, service)
    return Item(event, body.source, by, group, urgency(event, service), place, body.truncated)


def fold(requests: Iterable[tuple[int, Request]]) -> dict[Key, Plan]:
    """One plan per (service, dedup key), in the order in which the requests came."""
    plans: dict[Key, Plan] = {}
    for number, request in requests:
        for item in request.items:
            placed = replace(item, place=(number, item.position))
            key = (request.service.id, item.event.dedup_key)
            plan = plans.get(key)
            if plan is None:
                plan = plans[key] = Plan(request.service, item.event.dedup_key)
            plan.add(placed)
    return plans


def take_together(waiting: Sequence[Request], fits: Callable[[int, int], bool]) -> int:
    """How many of the waiting requests may share one commit, from the first on.

    One that touches a group which an earlier one may close waits for the next commit, and so does
    one that resolves a whole group in which an earlier one fires: only then can it see the alert.
    """
    closed: set[Key] = set()
    fired: set[Key] = set()
    events = 0
    for count, request in enumerate(waiting):
        events += len(request.items)
        if count and not fits(count, events):
            return count
        if closed and not closed.isdisjoint(request.touches):
            return count
        if not fired.isdisjoint(request.sweeps):
            return count
        closed |= request.closes
        fired |= request.fires
    return len(waiting)
