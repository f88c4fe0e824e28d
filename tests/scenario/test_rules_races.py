"""Races whose outcome is a rule: who wins is said beforehand, whoever comes first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
import sqlalchemy as sa

from engine.models import DeliveryKind, DeliveryStatus, IncidentStatus, Method
from engine.schema import policies
from tests.scenario.fates import change, entries, fate_timers, level, queued, to
from tests.scenario.harness import Pager
from tests.scenario.interleave import Deadlocks, Ended, Point, interleave
from tests.scenario.moves import MOVES, Act
from tests.scenario.racing import Arena
from tests.scenario.sending import counted

BOTH = list(Point)


@pytest.fixture
async def arena(any_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Arena]:
    made = Arena(any_database_url, monkeypatch)
    deadlocks = Deadlocks(monkeypatch)
    yield made
    assert deadlocks.codes == []
    await made.close()


def told(arena: Arena) -> list[tuple[str | None, str]]:
    """Whom both processes paged in the race, and how."""
    pages = [page for page in arena.sent() if page.kind == DeliveryKind.PAGE]
    return sorted((page.person, page.method.value) for page in pages)


async def race(arena: Arena, state: str, first: str, second: str, point: Point = Point.COMMIT) -> Ended:
    await arena.enter(state)
    ended = await arena.race(first, second, point)
    assert ended.errors == []
    return ended


@pytest.mark.parametrize("point", BOTH)
async def test_two_workers_on_one_timer_page_its_level_once(arena: Arena, point: Point) -> None:
    """Both have read that it is due; one of them works it, whichever (F-33)."""
    await race(arena, "level_due", "fate", "fate", point)
    await arena.pagers[0].app.worker.run_due()
    assert told(arena) == [("alice", "sms"), ("bob", "sms")]
    assert await entries(arena.pagers[0], "escalated") == ["paging level 1", "paging level 2"]
    assert await arena.wrong() == []


@pytest.mark.parametrize("point", BOTH)
async def test_two_workers_on_one_delivery_send_it_once(arena: Arena, point: Point) -> None:
    """One holds the lease; the other finds nothing to send (F-33)."""
    await race(arena, "level_due", "begin", "begin", point)
    assert told(arena) == [("alice", "sms")]
    await race(arena, "level_due", "record", "begin", point)
    assert told(arena) == [("alice", "sms")]
    assert await arena.wrong() == []


@pytest.mark.parametrize("state", ["level_due", "pass_due", "exhaust_due", "unanswered", "fresh"])
async def test_an_ack_just_before_the_timer_stops_it(arena: Arena, state: str) -> None:
    """The timer is of an epoch that is over: no page, no change, and it is counted (F-35)."""
    for point in BOTH:
        stale = counted("timers_stale_total")
        first, second = ("ack", "fate") if point is Point.COMMIT else ("fate", "ack")
        await race(arena, state, first, second, point)  # the worker has read, or reads, what was due
        incident = await arena.pagers[0].incident()
        assert (incident.status, incident.acknowledged_by) == (IncidentStatus.ACKNOWLEDGED, "alice")
        await arena.pagers[0].app.worker.run_due()
        assert told(arena) == []
        assert await fate_timers(arena.pagers[0]) == ["ack_timeout"]
        assert await queued(arena.pagers[0]) == 0
        assert counted("timers_stale_total") >= stale
        assert await arena.wrong() == []


async def test_an_ack_just_after_the_timer_takes_back_what_it_queued(arena: Arena) -> None:
    """What has not gone out of the level is cancelled, and the card says who has it (F-36)."""
    await race(arena, "level_due", "fate", "ack")
    incident = await arena.pagers[0].incident()
    assert (incident.status, incident.level, incident.acknowledged_by) == ("acknowledged", 1, "alice")
    pages = {(one.person, one.method): one.status for one in incident.receipts}
    assert pages[("bob", Method.SMS)] is DeliveryStatus.CANCELLED
    assert (await queued(arena.pagers[0]), await fate_timers(arena.pagers[0])) == (0, ["ack_timeout"])
    await arena.pagers[0].app.worker.run_due()
    assert told(arena) == []


async def test_an_ack_while_a_page_is_in_flight_leaves_it_sent(arena: Arena) -> None:
    """What had begun is recorded as it ended, and nothing follows it (F-36)."""
    await race(arena, "level_due", "record", "ack")
    incident = await arena.pagers[0].incident()
    assert incident.status == "acknowledged"
    assert told(arena) == [("alice", "sms")]
    sms = next(one for one in incident.receipts if one.method is Method.SMS)
    assert sms.status is DeliveryStatus.SENT
    assert await arena.wrong() == []


@pytest.mark.parametrize(
    "end", ["resolve", *(pytest.param(end, marks=pytest.mark.slow) for end in ("source ends", "group ends"))]
)
@pytest.mark.parametrize(
    "answer", ["ack", "second ack", "source acks", "snooze", "escalate", "reassign", "add"]
)
async def test_resolve_wins_in_any_order_and_the_other_is_told(arena: Arena, end: str, answer: str) -> None:
    """A late answer changes nothing and says why; an early one is over with it (F-37)."""
    for first, second in ((end, answer), (answer, end)):
        ended = await race(arena, "level_due", first, second)
        assert (await arena.pagers[0].incident()).status == IncidentStatus.RESOLVED
        assert (await queued(arena.pagers[0]), await fate_timers(arena.pagers[0])) == (0, [])
        late = ended.second if first == end else None
        if late is not None and answer != "source acks":
            assert not late.changed
            assert late.reason.startswith("already resolved by ")
        assert await arena.wrong() == []


async def test_two_acks_have_one_owner_and_the_other_is_told(arena: Arena) -> None:
    """Whoever commits first has it, and there is one entry that says so (F-38)."""
    for first, second, owner in (("ack", "second ack", "alice"), ("second ack", "ack", "bob")):
        ended = await race(arena, "level_due", first, second)
        assert (ended.first.changed, ended.second.changed) == (True, False)
        assert ended.second.reason == f"already acknowledged by {owner} 0 s ago"
        assert (await arena.pagers[0].incident()).acknowledged_by == owner
        assert await entries(arena.pagers[0], "acknowledged") == ["acknowledged"]
        assert await entries(arena.pagers[0], "also_acknowledged") == ["acknowledged it too"]
        assert await arena.wrong() == []


async def edited(pager: Pager) -> None:
    await change(pager, policies=[{"name": "payments", "levels": [level(to("carol"))]}])


async def deleted(pager: Pager) -> None:
    """As a directory without it would be: no service names it, and nobody can choose it."""
    gone = sa.update(policies).where(policies.c.name == "payments").values(deleted_at=pager.clock.now())
    await change(pager, services=[{"name": "checkout", "channel": "#payments"}])
    await pager.app.database.write(lambda tx: tx.execute(gone))


@pytest.mark.parametrize("edit", [edited, deleted])
@pytest.mark.parametrize("state", ["fresh", "level_due"])
async def test_an_open_incident_walks_its_policy_whatever_becomes_of_it(
    arena: Arena, state: str, edit: Act
) -> None:
    """Edited or deleted in the very instant of a timer: alice and then bob are paged all the same (F-39)."""
    for point in BOTH:
        await arena.enter(state)
        pagers = arena.pagers
        working, editing = partial(MOVES["fate"].act, pagers[0]), partial(edit, pagers[1])
        ended = await interleave(arena.databases, working, editing, point)
        assert ended.errors == []
        pagers[0].clock.move(seconds=1)
        await pagers[0].app.worker.run_due()
        await pagers[0].advance(minutes=6)
        heard = told(arena)
        assert {person for person, _ in heard} == {"alice", "bob"}
        assert await arena.wrong() == []
        await arena.restore_directory()


async def test_two_merges_across_leave_one_open(arena: Arena) -> None:
    """Each into the other at once: the second one finds its goal closed, and is told (no deadlock)."""
    for first, second, stays in (("merge", "merge other", 2), ("merge other", "merge", 1)):
        ended = await race(arena, "level_due", first, second)
        assert (ended.first.changed, ended.second.changed) == (True, False)
        assert ended.second.reason.startswith(f"#{3 - stays} is resolved")
        (open_,) = await arena.pagers[0].open_incidents()
        assert (open_.number, open_.firing_count) == (stays, 2)
        assert await arena.wrong() == []


async def test_an_alert_that_ends_while_its_incident_is_merged_ends_where_it_is(arena: Arena) -> None:
    """Before the merge it closes the one, after it it is one alert less on the other."""
    for first, second in (("merge", "source ends"), ("source ends", "merge")):
        ended = await race(arena, "level_due", first, second)
        two = await arena.pagers[0].incident(2)
        assert (await arena.pagers[0].incident(1)).status == "resolved"
        assert (two.status, two.firing_count) == ("acknowledged", 1)
        if second == "merge":
            assert not ended.second.changed
        assert await arena.wrong() == []


@pytest.mark.parametrize("point", BOTH)
async def test_a_window_and_a_timer_in_one_instant_are_one_after_the_other(
    arena: Arena, point: Point
) -> None:
    """The level is paged before it or held by it, never both, and never neither."""
    for first, second in (("window begins", "fate"), ("fate", "window begins")):
        await race(arena, "level_due", first, second, point)
        incident = await arena.pagers[0].incident()
        await arena.pagers[0].app.worker.run_due()
        paged = ("bob", "sms") in told(arena)
        assert paged is (incident.held_until is None)
        assert await arena.wrong() == []
