"""What runs for each alert, page and answer is asked with statements that were built once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from engine.models import Severity
from tests.fakes import FakeClock
from tests.scenario.harness import Pager
from tests.scenario.receiving import Receiving, end, fire, over, taken

EACH_TIME = re.compile(r"\b(alerts|incidents|timers|deliveries|attempts|cards|events|timeline|counters)\b")


@contextmanager
def statements() -> Iterator[dict[int, sa.ClauseElement]]:
    """The statements that are run, as the objects they are: all are kept, so that no two have one id."""
    run: dict[int, sa.ClauseElement] = {}

    def note(_connection: object, statement: Any, *_: object) -> None:
        run[id(statement)] = statement

    sa.event.listen(sa.Engine, "before_execute", note)
    try:
        yield run
    finally:
        sa.event.remove(sa.Engine, "before_execute", note)


async def incident(pager: Pager, number: int) -> None:
    """An alert, a page, the next rule, an answer, and the end."""
    await pager.alert(dedup_key=f"db-{number}")
    pager.expect_page("alice", "slack")
    await pager.outage(minutes=1)
    pager.expect_page("alice", "sms")
    await pager.ack(number)
    await pager.resolve(number)
    await pager.outage(seconds=10)


async def test_the_second_incident_builds_no_statement_that_the_first_one_ran(pager: Pager) -> None:
    """To build one takes longer than to run it, in the one thread that pages everybody. What is read of the
    directory is kept until that changes, and so may be built anew."""
    with statements() as run:
        await incident(pager, 1)
        before = set(run)
        await incident(pager, 2)
    anew = [str(statement) for one, statement in run.items() if one not in before]
    assert [text for text in anew if EACH_TIME.search(text)] == []
    assert len(before) > 30


async def group(receiving: Receiving, clock: FakeClock, name: str) -> None:
    """Two alerts of a group: new, seen again, worse and in new words, taken, ended and back, long over and
    new again, and ended together."""
    one, two = f"{name}-1", f"{name}-2"
    await receiving.accept(*(fire(key, group_key=name, severity=Severity.ERROR) for key in (one, two)))
    await receiving.accept(*(fire(key, group_key=name, severity=Severity.ERROR) for key in (one, two, two)))
    await receiving.accept(fire(one, "other words", group_key=name))
    await receiving.accept(taken(one))
    for minutes in (1, 60):
        await receiving.accept(end(one), end(two))
        clock.move(minutes=minutes)
        await receiving.accept(fire(one, group_key=name, started_at=clock.now()))
    await receiving.accept(end(one), **over(name))


async def test_the_second_group_builds_no_statement_that_the_first_one_ran(
    receiving: Receiving, clock: FakeClock
) -> None:
    """In a storm the same thread takes the alerts and pages for them."""
    with statements() as run:
        await group(receiving, clock, "disk")
        before = set(run)
        await group(receiving, clock, "net")
    assert [str(statement) for one, statement in run.items() if one not in before] == []
    assert len(before) > 20
