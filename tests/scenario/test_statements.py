"""What runs for each alert, page and answer is asked with statements that were built once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from tests.scenario.harness import Pager

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
