"""A day of random faults: alerts come and go, people answer or do not, providers fail in every way, and
processes die at any step. Everything is drawn from one seed.

Two processes work on one database, one at a time. Never judges: the history is left to `invariants`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any, Final

from engine.db import Database
from engine.errors import MidwatchError
from engine.models import Method, Outcome, Page, Severity
from tests.crash import history, witness
from tests.crash.faults import Fault, Kind
from tests.crash.history import History, Outside
from tests.crash.ledger import Message, Taken
from tests.fakes import START, FakeClock
from tests.model.mortal import Mood, Mortal, Provider

KEYS: Final = tuple(
    f"{what} on db-{number}" for what in ("disk full", "replica lag") for number in range(1, 7)
)
PEOPLE: Final = ("alice", "bob", "carol")
LONGEST_OUTAGE: Final = timedelta(seconds=60)
LONGEST_THROTTLE: Final = timedelta(seconds=60)
PEACE: Final = timedelta(hours=2)  # in which whatever is left comes to its end
MOST_DEATHS: Final = 5  # one after the other; then the process lives


@dataclass
class Kept(Provider):
    """A provider that says when it took what."""

    ledger: list[Taken] = field(default_factory=list)

    async def send(self, page: Page) -> Outcome:
        before = len(self.took)
        outcome = await super().send(page)
        now = self.clock.now()
        self.ledger += [Taken(each, now) for one in self.took[before:] for each in Message.of(one).each()]
        return outcome


class Day:
    """`live` it, then read its `history`."""

    def __init__(self, url: str, seed: int) -> None:
        self._url = url
        self._random = Random(seed)  # a day that can be lived again
        self._clock = FakeClock(START)
        self._ledger: list[Taken] = []
        slack = self._provider(Method.SLACK, Method.CHANNEL)
        others = [self._provider(one) for one in Method if one not in slack.methods]
        self._providers = {method: one for one in (slack, *others) for method in one.methods}
        self._well_at: dict[str, datetime] = {}  # when a provider that fails works again
        costs = LONGEST_OUTAGE + LONGEST_THROTTLE
        self.outside = Outside(Fault(Kind.HANG, 1, also=costs), START, problems=None)
        self._pager = self._mortal()
        self._other = self._mortal()

    def _provider(self, *methods: Method) -> Kept:
        return Kept(frozenset(methods), methods[0].value, self._clock, ledger=self._ledger)

    def _mortal(self) -> Mortal:
        return Mortal(self._url, self._clock, dict(self._providers), timedelta())

    async def live(self, length: timedelta) -> None:
        await self._pager.app.database.write(witness.set_up)
        await self._pager.start()
        end = self._clock.now() + length
        while self._clock.now() < end:
            await self._pass(timedelta(seconds=self._random.expovariate(1 / 240)))
            await self._random.choices(
                (
                    self._fires,
                    self._ends,
                    self._answers,
                    self._fails,
                    self._stands_still,
                    self._changes_places,
                ),
                (30, 12, 25, 12, 4, 8),
            )[0]()
        await self._peace()

    async def _peace(self) -> None:
        """Everything works again, somebody answers everything, and what is left comes to its end."""
        for provider in self._providers.values():
            provider.mood = Mood.WELL
        await self._do(lambda pager: pager.advance(seconds=PEACE.total_seconds()))
        for incident in await self._pager.open_incidents():
            await self._do(partial(Mortal.resolve, number=incident.number))
        await self._do(lambda pager: pager.advance(seconds=PEACE.total_seconds()))

    async def close(self) -> None:
        for pager in (self._pager, self._other):
            await pager.close()

    async def history(self, database: Database) -> History:
        async with database.snapshot() as tx:
            # Why all: each sending that nobody heard of is an attempt that says so, and that is the bound.
            self.outside.excused.update({one.message.delivery: 99 for one in self._ledger})
            return await history.read(tx, self.outside, self._ledger)

    # --- what happens in it --------------------------------------------------------------------------------

    async def _fires(self) -> None:
        key = self._random.choice(KEYS)
        severity = self._random.choice((Severity.CRITICAL, Severity.CRITICAL, Severity.WARNING))
        for _ in range(self._random.choice((1, 1, 1, 5))):
            await self._do(lambda pager: pager.alert(key, severity=severity), posts=1)
            self.outside.accepted += 1

    async def _ends(self) -> None:
        key = self._random.choice(KEYS)
        await self._do(lambda pager: pager.resolved_by_source(key))

    async def _answers(self) -> None:
        open_ = await self._pager.open_incidents()
        if not open_:
            return
        number, by = self._random.choice(open_).number, self._random.choice(PEOPLE)
        command, more = self._random.choice(
            (
                *((("acknowledge", {}),) * 5),
                *((("resolve", {}),) * 3),
                ("unacknowledge", {}),
                ("escalate", {}),
                ("snooze", {"until": self._clock.now() + timedelta(minutes=self._random.randint(2, 90))}),
            )
        )
        with suppress(MidwatchError):  # it cannot be done any more: somebody was faster
            await self._do(lambda pager: pager.answer(command, number, by=by, **more))

    async def _fails(self) -> None:
        provider = self._random.choice(list({id(one): one for one in self._providers.values()}.values()))
        provider.mood = self._random.choice([mood for mood in Mood if mood is not Mood.WELL])
        longest = LONGEST_THROTTLE if provider.mood is Mood.THROTTLES else timedelta(minutes=20)
        self._well_at[provider.provider] = self._clock.now() + longest * self._random.random()

    async def _stands_still(self) -> None:
        """Nothing runs for a while, and then everything late is worked."""
        self._clock.move_to(self._clock.now() + LONGEST_OUTAGE * self._random.random())
        await self._do(lambda pager: pager.app.worker.run_due())

    async def _changes_places(self) -> None:
        self._pager, self._other = self._other, self._pager

    # --- time, and deaths ----------------------------------------------------------------------------------

    async def _pass(self, gap: timedelta) -> None:
        end = self._clock.now() + gap
        while self._clock.now() < end:
            until = min([end, *self._well_at.values()])
            step = max(until - self._clock.now(), timedelta(milliseconds=1))
            await self._do(partial(Mortal.advance, seconds=step.total_seconds()))
            self._recover()

    def _recover(self) -> None:
        for name in [name for name, at in self._well_at.items() if at <= self._clock.now()]:
            del self._well_at[name]
            for provider in self._providers.values():
                if provider.provider == name:
                    provider.mood = Mood.WELL

    async def _do(
        self, make: Callable[[Mortal], Coroutine[Any, Any, Any] | Awaitable[Any]], posts: int = 0
    ) -> Any:
        """Done by a process that may die of it, or by its successor: whoever had no answer asks again."""
        for death in range(MOST_DEATHS + 1):
            dies = death < MOST_DEATHS and self._random.random() < 0.15
            self._pager.dies_in = self._random.randint(1, 80) if dies else 0
            self.outside.posted += posts
            result, alive = await self._pager.lives_through(_coroutine(make(self._pager)))
            self._pager.dies_in = 0
            if alive:
                return result
            self.outside.kills += 1
            self._clock.move(seconds=1)
            await self._pager.begin_anew()
        raise AssertionError("a process that lives has died")


async def _coroutine(doing: Awaitable[Any]) -> Any:
    return await doing
