"""The recorder of locks sees what statements lock, and whether that is against the order."""

from __future__ import annotations

import pytest

from tests.scenario.locks import _too_late, locked_by


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        (
            "SELECT incidents.id FROM incidents WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE",
            ["incidents"],
        ),
        ("SELECT incidents.id FROM incidents ORDER BY id FOR NO KEY UPDATE SKIP LOCKED", ["incidents"]),
        ("SELECT incidents.id FROM incidents FOR SHARE", ["incidents"]),
        ("SELECT incidents.id FROM incidents", []),
        ("WITH held AS (SELECT alerts.id FROM alerts FOR NO KEY UPDATE) UPDATE alerts SET x=1", ["alerts"]),
        ("WITH free AS (SELECT id FROM timers FOR UPDATE SKIP LOCKED) UPDATE timers SET x=1", ["timers"]),
        ("INSERT INTO dedup_keys (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 1", ["dedup_keys"]),
        ("INSERT INTO incidents (a) VALUES (1) ON CONFLICT (a) DO NOTHING", ["new incidents"]),
        ("INSERT INTO events (a) VALUES (1)", []),
        ("INSERT INTO deliveries (a) VALUES (1)", []),
        ("UPDATE incidents SET status=$1 WHERE id = $2", ["incidents"]),
        ("DELETE FROM timers WHERE id = $1", ["timers"]),
        ("UPDATE people SET name=$1", []),
    ],
)
def test_what_a_statement_locks(statement: str, names: list[str]) -> None:
    """Row locks, changes and upserts, of the tables that have a place in the order."""
    assert list(locked_by(statement)) == names


@pytest.mark.parametrize(
    ("name", "taken", "wrong"),
    [
        ("incidents", ["dedup_keys"], None),
        ("dedup_keys", ["incidents"], "incidents"),
        ("incidents", ["alerts"], "alerts"),
        ("alerts", ["dedup_keys", "incidents"], None),
        ("timers", ["incidents", "deliveries"], None),
        ("timers", ["deliveries"], "deliveries"),
        ("incidents", ["deliveries"], "deliveries"),
        ("counters", ["timers", "deliveries"], None),
        ("timers", ["counters"], "counters"),
    ],
)
def test_what_is_against_the_order(name: str, taken: list[str], wrong: str | None) -> None:
    """Dedup keys, incidents, alerts, timers, the counter; deliveries under their incident or after timers."""
    assert _too_late(name, taken) == wrong
