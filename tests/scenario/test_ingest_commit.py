"""The group commit: shared, all or nothing, told only afterwards, and poisoned by nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from engine.db import Database, Tx
from engine.errors import Overloaded, Unavailable
from engine.intake import receive
from engine.schema import alerts, incidents, timers
from engine.store import alerts as store
from tests.fakes import START, FakeClock
from tests.scenario.receiving import Receiving, end, fire


class Gate:
    """Stands in a database's way: units wait for it, and fail while it is `broken`."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = asyncio.Event()
        self.open = asyncio.Event()
        self.broken = False
        self.commits = 0
        self._write = database.write
        monkeypatch.setattr(database, "write", self._pass)

    async def _pass(self, unit: Any, **more: Any) -> Any:
        self.begun.set()
        await self.open.wait()
        if self.broken:
            raise Unavailable
        self.commits += 1
        return await self._write(unit, **more)


@pytest.fixture
def gate(receiving: Receiving, monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(receiving.database, monkeypatch)


async def test_what_arrives_during_a_commit_shares_the_next(receiving: Receiving, gate: Gate) -> None:
    """One body commits; forty that come meanwhile commit together."""
    first = asyncio.create_task(receiving.one(fire("first")))
    await gate.begun.wait()
    others = [asyncio.create_task(receiving.one(fire(f"k{n}"))) for n in range(40)]
    await asyncio.sleep(0)
    gate.open.set()
    receipts = [await first, *await asyncio.gather(*others)]
    assert gate.commits == 2
    assert sorted(one.incident_number or 0 for one in receipts) == list(range(1, 42))


async def test_nobody_is_answered_before_the_commit(receiving: Receiving, gate: Gate) -> None:
    """While the commit is under way no sender has an answer, and nothing is there to be seen."""
    waiting = asyncio.create_task(receiving.one(fire()))
    await gate.begun.wait()
    await asyncio.sleep(0)
    assert not waiting.done()
    assert await receiving.rows(incidents) == []
    gate.open.set()
    assert (await waiting).status == "opened"


async def test_a_failing_database_fails_all_and_stores_nothing(receiving: Receiving, gate: Gate) -> None:
    """Every waiting sender is told to come back, and what they send again is stored once (B004, B017)."""
    gate.open.set()
    gate.broken = True
    answers = await asyncio.gather(*(receiving.one(fire(f"k{n}")) for n in range(5)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unavailable] * 5
    assert await receiving.rows(incidents) == []
    gate.broken = False
    receipts = await asyncio.gather(*(receiving.one(fire(f"k{n}")) for n in range(5)))
    assert {receipt.status for receipt in receipts} == {"opened"}


async def test_a_full_queue_asks_senders_to_come_back(
    receiving: Receiving, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit is Unavailable, never a client's error; what fits is stored (B004)."""
    monkeypatch.setattr(receive, "WAITING_AT_MOST", 2)
    first = asyncio.create_task(receiving.one(fire("a")))
    await gate.begun.wait()
    queued = [asyncio.create_task(receiving.one(fire(key))) for key in "bc"]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await receiving.one(fire("d"))
    gate.open.set()
    assert [(await one).status for one in (first, *queued)] == ["opened"] * 3


async def test_a_sender_that_hangs_up_stops_nobody(receiving: Receiving, gate: Gate) -> None:
    """A cancelled request is stored like its neighbours, and the next one finds it (F-14)."""
    gone, stays = [asyncio.create_task(receiving.one(fire(key))) for key in ("gone", "stays")]
    await gate.begun.wait()
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    gate.open.set()
    assert (await stays).status == "opened"
    assert (await receiving.one(fire("gone"))).status == "repeat"
    await receiving.receiver.stop()


async def test_a_poisoned_body_fails_alone(receiving: Receiving, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that fails for one body's sake is halved until that one is alone; its neighbours are stored."""
    insert = store.insert

    async def poisoned(tx: Tx, org_id: int, new: Sequence[store.NewAlert], now: Any) -> Any:
        if any(one.dedup_key == "poison" for one in new):
            raise RuntimeError("this row can never be stored")
        return await insert(tx, org_id, new, now)

    monkeypatch.setattr(store, "insert", poisoned)
    keys = ["a", "b", "poison", "c", "d", "e", "f"]
    answers = await asyncio.gather(*(receiving.one(fire(key)) for key in keys), return_exceptions=True)
    failed = [key for key, answer in zip(keys, answers, strict=True) if isinstance(answer, BaseException)]
    assert failed == ["poison"]
    assert isinstance(answers[2], Unavailable)
    stored = await receiving.rows(incidents)
    assert sorted(one.title for one in stored) == sorted(f"{key} is down" for key in keys if key != "poison")
    assert sorted(one.number for one in stored) == list(range(1, 7))


async def test_a_trigger_behind_an_end_waits_for_its_commit(receiving: Receiving, gate: Gate) -> None:
    """Trigger, end, trigger of one key at once: the second trigger sees the end, and fires again."""
    gate.open.set()
    await receiving.one(fire("k"))
    repeat, ended, again = await asyncio.gather(
        receiving.one(fire("k")), receiving.one(end("k")), receiving.one(fire("k"))
    )
    assert (repeat.status, ended.status, again.status) == ("folded", "resolved", "refired")
    assert gate.commits == 3
    (alert,) = await receiving.rows(alerts)
    assert (alert.status, alert.flap_count) == ("firing", 1)


async def test_fifty_new_incidents_at_once_are_numbered_one_to_fifty(receiving: Receiving) -> None:
    """Parallel openings get distinct numbers without a gap (B029)."""
    receipts = await asyncio.gather(*(receiving.one(fire(f"k{n}")) for n in range(50)))
    assert sorted(one.incident_number or 0 for one in receipts) == list(range(1, 51))


# --- repeats -----------------------------------------------------------------------------------------------


async def test_unchanged_repeats_are_one_update(receiving: Receiving) -> None:
    """Thirty repeats of thirty alerts at once: one statement and no row but the alerts'."""
    keys = [f"k{n}" for n in range(30)]
    await asyncio.gather(*(receiving.one(fire(key)) for key in keys))
    with receiving.statements() as statements:
        await asyncio.gather(*(receiving.one(fire(key)) for key in keys))
    work = [one for one in statements if not one.startswith(("BEGIN", "SELECT 1"))]
    assert [one.split()[0] for one in work] == ["WITH"]
    assert "UPDATE alerts" in work[0]
    assert {one.event_count for one in await receiving.rows(alerts)} == {2}


async def test_a_batch_of_new_keys_costs_the_same_however_many_they_are(receiving: Receiving) -> None:
    """Round trips are the cost of a commit: two and a hundred new keys take equally few."""

    async def cost(*keys: str) -> int:
        with receiving.statements() as statements:
            await receiving.accept(*(fire(key) for key in keys))
        return len([one for one in statements if not one.startswith("BEGIN")])

    assert await cost("a", "b") == await cost(*(f"k{n}" for n in range(100))) <= 10


async def test_a_repeat_of_what_another_process_ended_opens_anew(
    receiving: Receiving, clock: FakeClock
) -> None:
    """The memory of an open alert is a hint: the UPDATE meets nothing, and the event takes the long way."""
    await receiving.one(fire())
    assert (await receiving.another(receiving.database).one(end())).status == "resolved"
    clock.move(minutes=10)
    receipt = await receiving.one(fire())
    assert (receipt.status, receipt.incident_number) == ("opened", 2)
    assert [(one.status, one.event_count) for one in await receiving.rows(alerts)] == [
        ("resolved", 1),
        ("firing", 1),
    ]


async def test_a_body_that_is_half_a_repeat_is_counted_once(receiving: Receiving, clock: FakeClock) -> None:
    """Of two known alerts another process has ended one: the open one is counted once, the other opens."""
    await receiving.accept(fire("a"), fire("b"))
    await receiving.another(receiving.database).one(end("b"))
    clock.move(minutes=10)
    receipts = await receiving.accept(fire("a"), fire("b"))
    assert [receipt.status for receipt in receipts] == ["repeat", "opened"]
    assert [(one.dedup_key, one.event_count) for one in await receiving.rows(alerts)] == [
        ("a", 2),
        ("b", 1),
        ("b", 1),
    ]


async def test_a_body_of_four_thousand_alerts_is_one_commit(receiving: Receiving, gate: Gate) -> None:
    """A flood in one body is kept whole, on one incident, and its repeat is counted whole (F-75)."""
    gate.open.set()
    many = [fire(f"k{n}", group_key="g", started_at=START) for n in range(4_000)]
    receipts = await receiving.accept(*many)
    assert [receipt.status for receipt in receipts] == ["opened", *["joined"] * 3_999]
    assert {receipt.status for receipt in await receiving.accept(*many)} == {"repeat"}
    assert gate.commits == 2
    (incident,) = await receiving.rows(incidents)
    assert (incident.alert_count, incident.open_alerts) == (4_000, 4_000)
    assert {one.event_count for one in await receiving.rows(alerts)} == {2}
    assert len(await receiving.rows(timers)) == 1
