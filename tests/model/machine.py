"""A machine that plays with a whole Midwatch, and a small model of what must be true after each step.

The model knows no ladder and no schedule. It knows who has answered, and what silence then means.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.directory import Target, TargetKind
from engine.models import DeliveryKind, Method, Retry, Severity
from engine.pager.respond import Answer
from engine.schema import OPEN, deliveries, incidents
from tests.fakes import FakeClock
from tests.scenario.fates import broken
from tests.scenario.harness import Pager

KEYS = st.sampled_from(("db-1 is down", "db-2 is down", "disk is full"))
PEOPLE = st.sampled_from(("alice", "bob", "carol"))
SEVERITIES = st.sampled_from((Severity.CRITICAL, Severity.WARNING))
PROVIDERS = st.sampled_from((Method.SLACK, Method.SMS, Method.VOICE))
MINUTES = st.sampled_from((1, 4, 5, 11, 31, 45))
PAGING = {"triggered", "unanswered"}


class Machine(RuleBasedStateMachine):
    """Every rule is something that a source, a person, a provider or a machine room does."""

    numbers: Bundle[int] = Bundle("numbers")

    def __init__(self, make_url: Callable[[], Coroutine[Any, Any, str]]) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self.answered: set[int] = set()  # acknowledged for good, or resolved, and not moved since
        self.sends: Counter[int] = Counter()
        self.pager: Pager = self._do(self._start(make_url))

    async def _start(self, make_url: Callable[[], Coroutine[Any, Any, str]]) -> Pager:
        return await Pager(await make_url(), FakeClock()).start()

    def _do(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(coroutine)

    def teardown(self) -> None:
        try:
            self._do(self._end())
        finally:
            self._do(self.pager.close())
            self._runner.close()

    # --- what happens --------------------------------------------------------------------------------------

    @initialize(target=numbers)
    def first(self) -> int:
        return self.fires("db-1 is down", Severity.CRITICAL)

    @rule(target=numbers, key=KEYS, severity=SEVERITIES)
    def fires(self, key: str, severity: Severity) -> int:
        receipt = self._do(self.pager.alert(key, severity=severity))
        number = receipt.incident_number or 1  # one that says nothing new belongs to no incident
        if receipt.status in {"opened", "refired", "joined"} or receipt.reason:
            self.answered.discard(number)
        return int(number)

    @rule(key=KEYS)
    def resolves_by_source(self, key: str) -> None:
        receipt = self._do(self.pager.resolved_by_source(key))
        if receipt.status == "resolved":
            self.answered.add(receipt.incident_number)

    @rule(number=numbers, by=PEOPLE)
    def acks(self, number: int, by: str) -> None:
        if self._ask("acknowledge", number, by=by).changed:
            self.answered.add(number)

    @rule(number=numbers, by=PEOPLE, minutes=MINUTES)
    def acks_and_sleeps(self, number: int, by: str, minutes: int) -> None:
        self.acks(number, by)
        self.time_passes(minutes)

    @rule(number=numbers, by=PEOPLE)
    def resolves(self, number: int, by: str) -> None:
        self._ask("resolve", number, by=by)
        self.answered.add(number)

    @rule(number=numbers, command=st.sampled_from(("unacknowledge", "escalate", "reopen")))
    def wants_more(self, number: int, command: str) -> None:
        if self._ask(command, number).changed:
            self.answered.discard(number)

    @rule(number=numbers, minutes=MINUTES)
    def snoozes(self, number: int, minutes: int) -> None:
        until = self.pager.clock.now() + timedelta(minutes=minutes)
        if self._ask("snooze", number, until=until).changed:
            self.answered.discard(number)  # it ends by itself

    @rule(number=numbers, to=PEOPLE)
    def assigns(self, number: int, to: str) -> None:
        person = self._do(self.pager.person(to)).person_id
        if self._ask("reassign", number, target=Target(TargetKind.PERSON, person)).changed:
            self.answered.discard(number)

    @rule(number=numbers, who=PEOPLE)
    def asks_for_help(self, number: int, who: str) -> None:
        self._ask("add_responder", number, person_id=self._do(self.pager.person(who)).person_id)

    @rule(minutes=MINUTES)
    def time_passes(self, minutes: int) -> None:
        self._do(self.pager.advance(minutes=minutes))

    @rule(minutes=MINUTES)
    def nothing_runs(self, minutes: int) -> None:
        self._do(self.pager.outage(minutes=minutes))

    @rule()
    def restarts(self) -> None:
        self._do(self.pager.restart())

    @rule(method=PROVIDERS)
    def provider_fails(self, method: Method) -> None:
        self.pager.transports[method].always = Retry("it is down")

    @precondition(lambda self: any(one.always for one in self.pager.transports.values()))
    @rule()
    def providers_recover(self) -> None:
        for transport in self.pager.transports.values():
            transport.always = None

    def _ask(self, command: str, number: int, **more: Any) -> Answer:
        answer: Answer = self._do(self.pager.answer(command, number, **more))
        assert answer.reason
        return answer

    # --- what must be true ---------------------------------------------------------------------------------

    @invariant()
    def nobody_is_paged_for_what_was_answered(self) -> None:
        for page in self.pager.pages():
            self.sends[page.id] += 1
            if page.kind is DeliveryKind.PAGE and page.incident is not None:
                assert page.incident.status.value in PAGING
                assert page.incident.number not in self.answered
        self.pager._heard.clear()

    @invariant()
    def nothing_was_sent_twice(self) -> None:
        assert [one for one, times in self.sends.items() if times > 1] == []

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

    async def _rows(self, query: sa.Select[Any]) -> list[Any]:
        async with self.pager.app.database.snapshot() as tx:
            return list((await tx.execute(query)).all())

    # --- and in the end ------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """With every provider back, whatever nobody has answered reaches somebody."""
        for transport in self.pager.transports.values():
            transport.always = None
        await self.pager.advance(hours=2)
        for incident in await self.pager.open_incidents():
            if incident.status.value in PAGING:
                reached = [one for one in incident.receipts if one.status in {"sent", "delivered"}]
                assert reached, f"#{incident.number} is {incident.status} and reached nobody"
        assert await broken(self.pager) == []
