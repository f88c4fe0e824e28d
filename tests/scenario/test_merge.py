"""Two incidents become one: nobody is paged twice for it, nobody is forgotten, and it can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from engine.models import ORG, Severity
from engine.pager.respond import Answer
from engine.schema import alerts
from tests.scenario.fates import broken, entries, fate_timers, queued, soon, take
from tests.scenario.harness import Pager, fire


async def into(pager: Pager, number: int, other: int, by: str = "alice") -> Answer:
    """`/oncall merge number into other`."""
    return await pager.answer("merge", number, by, into=(await pager.incident(other)).id)


async def firing(pager: Pager, number: int) -> list[str]:
    incident = await pager.incident(number)
    async with pager.app.database.snapshot() as tx:
        rows = await tx.execute(
            sa.select(alerts.c.dedup_key)
            .where(alerts.c.org_id == ORG, alerts.c.incident_id == incident.id, alerts.c.status == "firing")
            .order_by(alerts.c.id)
        )
        return list(rows.scalars())


@contextmanager
def executed(pager: Pager) -> Iterator[list[str]]:
    """What is executed meanwhile: a statement once for each row that it is executed with."""
    seen: list[str] = []

    def note(_c: Any, _cu: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        seen.extend([statement] * (len(parameters) if many else 1))

    engine = pager.app.database.writer_engine.sync_engine
    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


async def two(pager: Pager, **second: object) -> None:
    """#1 acknowledged by alice, #2 being paged."""
    await pager.alert("db-1 is down", severity=Severity.CRITICAL)
    await pager.ack()
    await pager.alert("db-2 is down", **{"severity": Severity.CRITICAL, **second})
    await soon(pager)


async def test_a_merged_incident_is_over_and_its_alerts_fire_on_the_other(pager: Pager) -> None:
    """Nobody is paged for it any more; whoever has the other one is told quietly."""
    await two(pager)
    answer = await into(pager, 2, 1)
    assert (answer.changed, answer.reason) == (True, "merged into #1")
    assert (answer.incident.status, answer.incident.merged_into) == ("resolved", 1)
    assert (await queued(pager, 2), await fate_timers(pager, 2)) == (0, [])
    one = await pager.incident(1)
    assert (one.status, one.firing_count, one.alert_count) == ("acknowledged", 2, 2)
    assert (await firing(pager, 1), await firing(pager, 2)) == (["db-1 is down", "db-2 is down"], [])
    await pager.advance(seconds=1)
    heard = pager.pages()
    assert [(page.person, page.kind.value) for page in heard if page.person] == [("alice", "status")]
    await pager.advance(minutes=1)
    take(pager)
    await pager.advance(hours=2)
    assert (take(pager), await broken(pager)) == ([], [])


async def test_a_worse_incident_wakes_the_one_it_is_merged_into(pager: Pager) -> None:
    """As a worse joiner does: the ack did not speak for it."""
    await pager.alert("disk is slow", severity=Severity.WARNING)
    await pager.ack()
    await pager.alert("db-2 is down", severity=Severity.CRITICAL)
    await soon(pager)
    await into(pager, 2, 1)
    one = await pager.incident(1)
    assert (one.status, one.round, one.severity) == ("triggered", 2, Severity.CRITICAL)
    assert ("alice", "slack") in await soon(pager)
    await pager.ack()


async def test_the_source_ends_what_was_merged_where_it_is_now(pager: Pager) -> None:
    """The last alert of both closes the incident that goes on; one that flaps stays with it."""
    await two(pager)
    await into(pager, 2, 1)
    assert (await pager.resolved_by_source("db-2 is down")).incident_number == 1
    again = await pager.alert("db-2 is down")
    assert (again.status, again.incident_number) == ("repeat", 1)
    await pager.resolved_by_source("db-1 is down")
    assert (await pager.incident(1)).status == "acknowledged"
    await pager.resolved_by_source("db-2 is down")
    assert (await pager.incident(1)).status == "resolved"
    take(pager)


async def test_what_was_over_before_the_merge_flaps_into_the_other(pager: Pager) -> None:
    """All alerts move, and what their keys are remembered by with them."""
    await pager.alert("db-1 is down")
    await pager.receive(fire("a", group_key="g"), fire("b", group_key="g"))
    await pager.resolved_by_source("a", group_key="g")
    await into(pager, 2, 1)
    receipt = await pager.alert("a", group_key="g")
    assert (receipt.status, receipt.incident_number) == ("repeat", 1)
    assert await firing(pager, 1) == ["db-1 is down", "a", "b"]
    await pager.resolve(1)
    take(pager)


async def test_whoever_was_asked_to_help_is_asked_for_the_other(pager: Pager) -> None:
    """Their next step goes out as it would have; their ack of the other ends it."""
    await two(pager)
    await pager.answer("add_responder", 2, person_id=(await pager.person("bob")).person_id)
    await soon(pager)
    await into(pager, 2, 1)
    await soon(pager)
    await pager.advance(minutes=1)
    page = pager.expect_page("bob", "sms", kind="responder")
    take(pager)
    assert page.incident is not None
    assert page.incident.number == 1
    await pager.advance(hours=1)
    assert take(pager) == []


async def test_a_merge_that_cannot_be_is_refused_and_says_why(pager: Pager) -> None:
    """Into itself, into what is over, of what is over, twice; and only an unmerge opens it again."""
    await two(pager)
    assert (await into(pager, 1, 1)).reason == "an incident cannot be merged into itself"
    await into(pager, 2, 1)
    assert (await into(pager, 2, 1)).reason == "already merged into another incident"
    assert (await into(pager, 1, 2)).reason == "#2 is resolved: reopen it first, or merge into another one"
    assert (await pager.ack(2)).reason == "already merged into another incident"
    reopened = await pager.answer("reopen", 2)
    assert (reopened.changed, reopened.reason) == (False, "it was merged into another incident: unmerge it")
    assert (await pager.answer("unmerge", 1)).reason == "it was not merged"
    take(pager)


async def test_an_unmerge_takes_its_alerts_back_and_pages_anew(pager: Pager) -> None:
    """As a round of its own; the other one keeps what was its own."""
    await two(pager)
    await into(pager, 2, 1)
    take(pager)
    answer = await pager.answer("unmerge", 2)
    assert (answer.changed, answer.reason) == (True, "taken out again by alice")
    assert (await firing(pager, 1), await firing(pager, 2)) == (["db-1 is down"], ["db-2 is down"])
    back, one = await pager.incident(2), await pager.incident(1)
    assert (back.status, back.round, back.merged_into, back.firing_count) == ("triggered", 2, None, 1)
    assert (one.status, one.firing_count, one.alert_count) == ("acknowledged", 1, 1)
    assert ("alice", "slack") in await soon(pager)
    await pager.resolved_by_source("db-2 is down")
    assert (await pager.incident(2)).status == "resolved"
    assert await broken(pager) == []
    take(pager)


async def test_an_unmerge_is_refused_while_another_incident_holds_the_problem(pager: Pager) -> None:
    """One open incident per problem; the answer names it."""
    await pager.alert("db-1 is down")
    await pager.alert("a", group_key="g")
    await into(pager, 2, 1)
    await pager.alert("b", group_key="g")
    answer = await pager.answer("unmerge", 2)
    assert (answer.changed, answer.reason) == (False, "#3 is already open for the same problem")
    take(pager)
    await pager.resolve(1)
    await pager.resolve(3)
    take(pager)


async def test_an_unmerge_of_what_is_over_opens_it_as_a_reopen_would(pager: Pager) -> None:
    """The other one was resolved with all that fired: it comes back without a firing alert."""
    await two(pager)
    await into(pager, 2, 1)
    await pager.resolve(1)
    await pager.answer("unmerge", 2)
    back = await pager.incident(2)
    assert (back.status, back.firing_count, back.alert_count) == ("triggered", 0, 1)
    assert (await pager.incident(1)).status == "resolved"
    await soon(pager)
    await pager.resolve(2)
    take(pager)
    assert await broken(pager) == []


async def test_both_timelines_tell_of_it(pager: Pager) -> None:
    """What went where, on the one that is over and on the one that goes on."""
    await two(pager)
    await into(pager, 2, 1)
    await pager.answer("unmerge", 2)
    assert await entries(pager, "merged", 2) == ["merged into #1"]
    assert await entries(pager, "alerts_moved", 2) == ["1 alert moved to #1"]
    (text,) = await entries(pager, "merged_in", 1)
    assert text.startswith("#2 was merged into this one; ")
    assert await entries(pager, "unmerged", 1) == ["#2 was taken out again"]
    take(pager)
    await pager.resolve(2)
    take(pager)


async def test_what_an_unmerge_leaves_with_nothing_firing_is_over(pager: Pager) -> None:
    """The source ended its own alert before: it would send no other word, and people would be paged on."""
    await pager.alert("x")
    await pager.alert("y")
    await soon(pager)
    await into(pager, 2, 1)
    await pager.resolved_by_source("x")
    assert (await pager.incident(1)).status == "triggered"
    await pager.answer("unmerge", 2)
    one = await pager.incident(1)
    assert (one.status, one.firing_count, one.resolved_by) == ("resolved", 0, "a source")
    assert (await queued(pager, 1), await fate_timers(pager, 1)) == (0, [])
    assert await entries(pager, "resolved", 1) == ["#2 was taken out again; resolved"]
    assert await firing(pager, 2) == ["y"]
    await pager.ack(2)
    await pager.advance(seconds=1)
    take(pager)
    await pager.advance(hours=2)
    assert (take(pager), await broken(pager)) == ([], [])
    again = await pager.alert("x")
    assert again.status == "opened"
    await pager.resolve(again.incident_number or 0)
    take(pager)


async def test_what_an_unmerge_leaves_flaps_as_after_any_last_alert(pager: Pager) -> None:
    """It was the source that ended what fired there: firing again at once takes it up where it was."""
    await pager.alert("x")
    await pager.ack(1)
    await pager.alert("y")
    await into(pager, 2, 1)
    await pager.resolved_by_source("x")
    await pager.answer("unmerge", 2)
    await pager.alert("x")
    assert (await pager.incident(1)).status == "acknowledged"
    await pager.resolve(2)
    take(pager)


async def test_an_unmerge_within_a_chain_goes_back_the_way_it_came(pager: Pager) -> None:
    """What took it in has been merged on, with its alerts: the refusal names what to unmerge first."""
    for name in ("x", "y", "z"):
        await pager.alert(name)
    await into(pager, 1, 2)
    await into(pager, 2, 3)
    answer = await pager.answer("unmerge", 1)
    assert (answer.changed, answer.reason) == (False, "#2 took it in and was merged itself: unmerge #2 first")
    assert (await pager.incident(1)).status == "resolved"
    assert await firing(pager, 3) == ["x", "y", "z"]
    assert (await pager.answer("unmerge", 2)).changed
    assert (await pager.answer("unmerge", 1)).changed
    assert [await firing(pager, number) for number in (1, 2, 3)] == [["x"], ["y"], ["z"]]
    assert await broken(pager) == []
    for number in (1, 2, 3):
        await pager.resolve(number)
    take(pager)


async def test_a_merge_of_many_alerts_changes_them_in_sets(pager: Pager) -> None:
    """Locks are held meanwhile: no statement for each, and the words of an alert stay where they are."""
    await pager.alert("x")
    await pager.alert("y")
    await pager.receive(*(fire(f"a{n}", group_key="many") for n in range(60)))
    await into(pager, 2, 1)
    with executed(pager) as many:
        await into(pager, 3, 1)
    with executed(pager) as back:
        await pager.answer("unmerge", 3)
    assert max(len(many), len(back)) < 60
    assert [one for one in (*many, *back) if "SELECT" in one and "labels" in one] == []
    take(pager)
    for number in (1, 3):
        await pager.resolve(number)
    take(pager)
