"""A machine that plays with two processes on one database, and with everybody around them.

Every rule is something that a source, a person, a provider or a machine room does; `model` says what
must be true after each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from hypothesis import currently_in_test_context, event
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.directory import Target, TargetKind
from engine.models import DeliveryKind, Method, Receipt, Severity
from engine.pager.respond import Answer
from engine.schema import OPEN, attempts, deliveries, incidents
from tests.fakes import FakeClock
from tests.model.model import PAGING, Model
from tests.model.mortal import Mood, Mortal, Provider
from tests.scenario.fates import broken

KEYS = st.sampled_from(("db-1 is down", "db-2 is down", "disk is full"))
PEOPLE = st.sampled_from(("alice", "bob", "carol"))
SEVERITIES = st.sampled_from((Severity.CRITICAL, Severity.WARNING))
METHODS = st.sampled_from((Method.SLACK, Method.SMS, Method.VOICE))
MOODS = st.sampled_from([mood for mood in Mood if mood is not Mood.WELL])
MINUTES = st.sampled_from((1, 4, 5, 11, 31, 45))
DIES_IN = st.one_of(st.just(0), st.integers(1, 60))  # statements, commits and sends; 0: it lives
SKEW = timedelta(seconds=4)  # of the second host: what is more is warned about
LEASE = timedelta(seconds=31)
WRONG_BY = timedelta(hours=3)  # more than a clock that was set back goes on from


def _seen(what: str) -> None:
    """For the statistics, where there are any: steps may be played by themselves too."""
    if currently_in_test_context():
        event(what)


class Machine(RuleBasedStateMachine):
    numbers: Bundle[int] = Bundle("numbers")

    def __init__(self, make_url: Callable[[], Coroutine[Any, Any, str]]) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self.model = Model()
        self.clock = FakeClock()
        self.deaths = 0
        self.behind = timedelta()  # what timers were armed ahead of a clock that was set back
        self.ends: dict[tuple[int, int], Any] = {}  # of attempts, as they were recorded first
        slack = Provider(frozenset({Method.SLACK, Method.CHANNEL}), "slack", self.clock)
        others = [Provider(frozenset({m}), m.value, self.clock) for m in Method if m not in slack.methods]
        self.providers = {method: one for one in (slack, *others) for method in one.methods}
        self.pager: Mortal = self._do(self._start(make_url))

    async def _start(self, make_url: Callable[[], Coroutine[Any, Any, str]]) -> Mortal:
        url = await make_url()
        self.other = Mortal(url, self.clock, dict(self.providers), SKEW)
        pager = Mortal(url, self.clock, dict(self.providers), timedelta())
        await pager.start()
        return pager

    def _do(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(coroutine)

    def _live(self, make: Callable[[Mortal], Coroutine[Any, Any, Any]], dies_in: int = 0) -> Any:
        """Done by a process, or by its successor: whoever had no answer asks again."""
        self.pager.dies_in = dies_in
        while True:
            result, alive = self._do(self.pager.lives_through(make(self.pager)))
            if alive:
                self.pager.dies_in = 0
                return result
            self._do(self._succeed())

    async def _succeed(self) -> None:
        _seen("a process died")
        self.deaths += 1
        self.clock.move(seconds=1)
        await self.pager.begin_anew()
        sending = sa.select(deliveries.c.id).where(deliveries.c.status == "sending")
        self.model.in_doubt([row.id for row in await self._rows(sending)])

    def teardown(self) -> None:
        try:
            self._do(self._end())
        finally:
            for pager in (self.pager, self.other):
                self._do(pager.close())
            self._runner.close()

    # --- sources and people --------------------------------------------------------------------------------

    @initialize(target=numbers)
    def first(self) -> int:
        return self.fires("db-1 is down", Severity.CRITICAL, 0)

    @rule(target=numbers, key=KEYS, severity=SEVERITIES, dies_in=DIES_IN)
    def fires(self, key: str, severity: Severity, dies_in: int) -> int:
        before = self.deaths
        receipt = self._live(lambda pager: pager.alert(key, severity=severity), dies_in)
        self._note(receipt)
        if self.deaths > before:
            self._look()  # the first time it was stored, and nobody heard what it did
        return receipt.incident_number or 1  # one that says nothing new belongs to no incident

    def _note(self, receipt: Receipt) -> None:
        if receipt.incident_number and (receipt.status in {"opened", "refired", "joined"} or receipt.reason):
            self.model.moved(receipt.incident_number)

    @rule(key=KEYS)
    def resolves_by_source(self, key: str) -> None:
        receipt = self._live(lambda pager: pager.resolved_by_source(key))
        if receipt.incident_number:
            self._look(receipt.incident_number)

    @rule(number=numbers, by=PEOPLE, dies_in=DIES_IN)
    def acks(self, number: int, by: str, dies_in: int) -> None:
        self._ask("acknowledge", number, dies_in, by=by)

    @rule(number=numbers, by=PEOPLE, minutes=MINUTES)
    def acks_and_sleeps(self, number: int, by: str, minutes: int) -> None:
        self.acks(number, by, 0)
        self.time_passes(minutes, 0)

    @rule(number=numbers, by=PEOPLE)
    def resolves(self, number: int, by: str) -> None:
        self._ask("resolve", number, by=by)

    @rule(number=numbers, command=st.sampled_from(("unacknowledge", "escalate", "reopen")))
    def wants_more(self, number: int, command: str) -> None:
        self._ask(command, number)

    @rule(number=numbers, minutes=MINUTES)
    def snoozes(self, number: int, minutes: int) -> None:
        self._ask("snooze", number, until=self.clock.now() + timedelta(minutes=minutes))

    @rule(number=numbers, to=PEOPLE)
    def assigns(self, number: int, to: str) -> None:
        self._ask("reassign", number, target=Target(TargetKind.PERSON, self._id_of(to)))

    @rule(number=numbers, who=PEOPLE)
    def asks_for_help(self, number: int, who: str) -> None:
        self._ask("add_responder", number, person_id=self._id_of(who))

    def _id_of(self, name: str) -> Any:
        return self._do(self.pager.person(name)).person_id

    def _ask(self, command: str, number: int, dies_in: int = 0, **more: Any) -> None:
        answer: Answer = self._live(lambda pager: pager.answer(command, number, **more), dies_in)
        assert answer.reason
        self._look(number)

    def _look(self, number: int | None = None) -> None:
        """What was asked twice is as it is stored; every other incident must not have moved."""
        query = sa.select(incidents.c.number, incidents.c.status, incidents.c.snoozed_until)
        if number is not None:
            query = query.where(incidents.c.number == number)
        for row in self._do(self._rows(query)):
            silent = row.status not in PAGING and row.snoozed_until is None
            (self.model.silenced if silent else self.model.moved)(row.number)

    # --- time, processes and providers ---------------------------------------------------------------------

    @rule(minutes=MINUTES, dies_in=DIES_IN)
    def time_passes(self, minutes: int, dies_in: int) -> None:
        self._live(lambda pager: pager.advance(minutes=minutes), dies_in)

    @rule(minutes=MINUTES)
    def nothing_runs(self, minutes: int) -> None:
        self.clock.move(minutes=minutes)
        self._live(lambda pager: pager.app.worker.run_due())

    @rule()
    def was_wrong_by_hours(self) -> None:
        """Every host was wrong, is set right, and its process begins anew."""
        self.clock.move_to(self.clock.now() - WRONG_BY)
        self.behind += WRONG_BY
        for pager in (self.pager, self.other):
            self._do(pager.restart())

    @rule()
    def restarts(self) -> None:
        self._do(self.pager.restart())

    @rule()
    def the_other_goes_on(self) -> None:
        self.pager, self.other = self.other, self.pager

    @rule(minutes=MINUTES)
    def both_work_at_once(self, minutes: int) -> None:
        self.clock.move(minutes=minutes)

        async def work() -> None:
            await asyncio.gather(*(one.app.worker.run_due() for one in (self.pager, self.other)))

        self._do(work())

    @rule(key=KEYS, method=METHODS)
    def a_send_outlives_its_lease(self, key: str, method: Method) -> None:
        """One process stalls in a send, the other takes the page over, then the first wakes up."""
        self._note(self._do(self._stall(key, self.providers[method])))

    async def _stall(self, key: str, provider: Provider) -> Receipt:
        freed = provider.stalled = asyncio.Event()
        provider.entered.clear()
        working = asyncio.ensure_future(self.pager.alert(key))
        entered = asyncio.ensure_future(provider.entered.wait())
        await asyncio.wait({working, entered}, return_when=asyncio.FIRST_COMPLETED)
        if provider.entered.is_set():
            _seen("a send outlived its lease")
            sending = sa.select(deliveries.c.id).where(deliveries.c.status == "sending")
            self.model.in_doubt([row.id for row in await self._rows(sending)])
            self.clock.move_to(self.clock.now() + LEASE)
            await self.other.app.worker.run_due()
            await self._check_ends()
        freed.set()
        entered.cancel()
        provider.stalled = None
        return await working

    @rule(method=METHODS, mood=MOODS)
    def provider_fails(self, method: Method, mood: Mood) -> None:
        self.providers[method].mood = mood

    @precondition(lambda self: any(one.mood is not Mood.WELL for one in self.providers.values()))
    @rule()
    def providers_recover(self) -> None:
        for provider in self.providers.values():
            provider.mood = Mood.WELL

    # --- what must be true ---------------------------------------------------------------------------------

    @invariant()
    def nobody_hears_what_they_should_not(self) -> None:
        wrong = []
        for provider in {id(one): one for one in self.providers.values()}.values():
            self.model.in_doubt(provider.unclear)
            wrong += [self.model.heard(page) for page in provider.took]
            provider.took.clear()
            provider.unclear.clear()
        assert [one for one in wrong if one] == []

    @invariant()
    def the_audit_finds_nothing(self) -> None:
        assert self._do(broken(self.pager)) == []

    @invariant()
    def one_problem_is_one_open_incident(self) -> None:
        query = sa.select(incidents.c.service_id, incidents.c.group_key).where(OPEN)
        rows = [tuple(row) for row in self._do(self._rows(query))]
        assert len(rows) == len(set(rows))

    @invariant()
    def what_died_was_said(self) -> None:
        kinds = sa.select(deliveries.c.kind, sa.func.count()).group_by(deliveries.c.kind)
        dead = dict(self._do(self._rows(kinds.where(deliveries.c.status == "dead"))))
        dead.pop(DeliveryKind.OPS.value, None)
        assert not dead or DeliveryKind.OPS.value in dict(self._do(self._rows(kinds)))

    @invariant()
    def an_attempt_ends_once(self) -> None:
        self._do(self._check_ends())

    async def _check_ends(self) -> None:
        """Whoever lost the lease records nothing: what was said of an attempt's end stays."""
        columns = (attempts.c.delivery_id, attempts.c.number, attempts.c.outcome, attempts.c.ended_at)
        rows = await self._rows(sa.select(*columns).where(attempts.c.ended_at.is_not(None)))
        ends = {(row.delivery_id, row.number): (row.outcome, row.ended_at) for row in rows}
        again = [
            f"{one} ended as {was} and as {ends[one]}" for one, was in self.ends.items() if ends[one] != was
        ]
        assert not again, again
        self.ends = ends

    async def _rows(self, query: sa.Select[Any]) -> list[Any]:
        async with self.pager.app.database.snapshot() as tx:
            return list((await tx.execute(query)).all())

    # --- and in the end ------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """With every provider back, whatever nobody has answered reaches somebody, and nothing is left."""
        for provider in self.providers.values():
            provider.mood = Mood.WELL
        self.pager.dies_in = 0
        await self.pager.advance(seconds=(timedelta(hours=2) + self.behind).total_seconds())
        for incident in await self.pager.open_incidents():
            if incident.status.value in PAGING:
                reached = [one for one in incident.receipts if one.status in {"sent", "delivered"}]
                assert reached, f"#{incident.number} is {incident.status} and reached nobody"
        assert await broken(self.pager) == []
        old = self.clock.now() - timedelta(minutes=10)
        late = sa.select(deliveries.c.id).where(
            deliveries.c.status.in_(("queued", "sending")), deliveries.c.due_at < old
        )
        assert await self._rows(late) == []
        endless = sa.select(attempts.c.id).where(attempts.c.outcome == "sending", attempts.c.started_at < old)
        assert await self._rows(endless) == []
