"""Everything that can happen to incident #1, by name: what sources, workers and people do.

A move acts through one pager, as it would in a process of its own; who races whom is not known here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from engine.db import Writer
from engine.directory import Target, TargetKind
from engine.models import ORG, Action, Event, GroupResolve, LaneName, Rejected, Severity, TimerKind
from engine.pager.maintenance import Maintenance
from engine.store import timers
from engine.store.timers import Arming
from tests.fakes import START
from tests.scenario.harness import Pager, fire

FIRED_AT: Final = START - timedelta(minutes=1)

Act = Callable[[Pager], Awaitable[Any]]


@dataclass(frozen=True)
class Move:
    """`before` is done before the race; `rank` is of the write that is stopped, None: the first."""

    act: Act
    before: Act | None = None
    rank: Writer | None = None


def event(action: Action = Action.TRIGGER, key: str = "a", **more: Any) -> Event:
    """About the alert of #1, unless it says otherwise."""
    words = {"group_key": "g", "severity": Severity.ERROR, "started_at": FIRED_AT, "dedup_key": key} | more
    made = fire(key, **words)
    if action is Action.TRIGGER:
        return made
    return Event(action, key, key, made.group_key, made.severity, started_at=made.started_at)


def _sends(*events: Event, **body: Any) -> Act:
    return lambda pager: pager.receive(*events, **body)


def lane(name: LaneName) -> Act:
    async def work(pager: Pager) -> None:
        (one,) = (one for one in pager.app.worker.lanes if one.name is name)
        await one.run_due()
        await pager.app.pipeline.drain()

    return work


def answers(command: str, by: str = "alice", number: int = 1, **more: Act) -> Act:
    """A command of the Responder; nothing is worked by it."""

    async def answer(pager: Pager) -> Any:
        incident = await pager.app.responder.find(number)
        given = {name: await value(pager) for name, value in more.items()}
        return await getattr(pager.app.responder, command)(incident, await pager.person(by), **given)

    return answer


async def _carol(pager: Pager) -> int:
    found = (await pager.person("carol")).person_id
    assert found is not None
    return found


async def _to_carol(pager: Pager) -> Target:
    return Target(TargetKind.PERSON, await _carol(pager))


async def _half_an_hour_on(pager: Pager) -> datetime:
    return pager.clock.now() + timedelta(minutes=30)


async def _words(_pager: Pager) -> str:
    return "looking"


def _incident(number: int) -> Act:
    return lambda pager: pager.app.responder.find(number)


async def _window_begins(pager: Pager) -> None:
    now, windows = pager.clock.now(), Maintenance(pager.app.database, pager.clock)
    service, bob = await pager.service_id("checkout"), await pager.person("bob")
    await windows.start(service, now, now + timedelta(hours=1), "", bob)


async def _window_ends(pager: Pager) -> None:
    windows = Maintenance(pager.app.database, pager.clock)
    await windows.end(await pager.service_id("checkout"), await pager.person("bob"))


async def _nothing_goes_out(pager: Pager) -> None:
    """Slack and the phone company refuse what this process sends next, for good."""
    for transport in pager.transports.values():
        transport.always = Rejected("no such number")


async def _urgency_rises_now(pager: Pager) -> None:
    incident = await pager.incident()
    arming = Arming(TimerKind.RAISE_URGENCY, incident.id, pager.clock.now(), incident.epoch)
    await pager.app.database.write(lambda tx: timers.arm(tx, ORG, [arming]))


MOVES: Final[Mapping[str, Move]] = {
    # what sources send
    "repeat": Move(_sends(event()), before=_sends(event())),
    "joiner": Move(_sends(event(key="b"))),
    "worse": Move(_sends(event(severity=Severity.CRITICAL))),
    "worse joiner": Move(_sends(event(key="c", severity=Severity.CRITICAL))),
    "elsewhere": Move(_sends(event(key="x", group_key="x"))),
    "source acks": Move(_sends(event(Action.ACKNOWLEDGE))),
    "source ends": Move(_sends(event(Action.RESOLVE))),
    "group ends": Move(_sends(group_resolves=(GroupResolve("g", None),))),
    "fires again": Move(_sends(event(started_at=START + timedelta(hours=1)))),
    "stale": Move(_sends(event())),
    # what workers do
    "fate": Move(lane(LaneName.FATE)),
    "raise": Move(lane(LaneName.FATE), before=_urgency_rises_now),
    "begin": Move(lane(LaneName.DELIVER), rank=Writer.ESCALATE),
    "record": Move(lane(LaneName.DELIVER), rank=Writer.OUTCOME),
    "dead": Move(lane(LaneName.DELIVER), before=_nothing_goes_out, rank=Writer.OUTCOME),
    "card": Move(lane(LaneName.CARD)),
    # what people do
    "ack": Move(answers("acknowledge")),
    "second ack": Move(answers("acknowledge", "bob")),
    "unack": Move(answers("unacknowledge", "bob")),
    "snooze": Move(answers("snooze", until=_half_an_hour_on)),
    "escalate": Move(answers("escalate", "bob")),
    "reassign": Move(answers("reassign", "bob", target=_to_carol)),
    "add": Move(answers("add_responder", "bob", person_id=_carol)),
    "note": Move(answers("note", text=_words)),
    "resolve": Move(answers("resolve", "bob")),
    "reopen": Move(answers("reopen", "bob")),
    # windows and merges
    "window begins": Move(_window_begins),
    "window ends": Move(_window_ends, before=_window_begins),
    "merge": Move(answers("merge", "bob", into=_incident(2))),
    "merge other": Move(answers("merge", "bob", 2, into=_incident(1))),
    "unmerge": Move(answers("unmerge", "bob"), before=answers("merge", into=_incident(2))),
}
WORKERS: Final = frozenset({"fate", "raise", "begin", "record", "dead", "card"})
CLOSED_ONLY: Final = frozenset({"reopen", "stale"})  # what changes nothing while it is open
OPEN_ONLY: Final = frozenset(
    WORKERS - {"card"} | {"repeat", "worse", "worse joiner", "source acks", "group ends", "second ack"}
    | {"unack", "snooze", "escalate", "reassign", "add", "window ends", "merge", "unmerge"}
)  # fmt: skip
