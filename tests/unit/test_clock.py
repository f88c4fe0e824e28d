"""The clock goes on, whatever is done to the machine's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine import clock as module
from engine.clock import MovableClock, SystemClock

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Machine:
    """A wall clock that can be set, and a monotonic one that cannot."""

    def __init__(self) -> None:
        self.wall, self.mono = NOW, 100.0

    def pass_(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.mono += seconds

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make it the machine whose clocks are read."""
        machine = self

        class Wall(datetime):
            @classmethod
            def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # the one call there is
                return machine.wall

        monkeypatch.setattr(module, "datetime", Wall)
        monkeypatch.setattr(module, "monotonic", lambda: machine.mono)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    made.install(monkeypatch)
    return made


def test_a_clock_set_back_an_hour_costs_no_hour_of_silence(machine: Machine) -> None:
    """Time goes on by the monotonic clock until the wall clock has caught up (F-25)."""
    clock = SystemClock()
    machine.pass_(10)
    assert clock.now() == NOW + timedelta(seconds=10)
    machine.wall -= timedelta(hours=1)
    machine.pass_(5)
    assert clock.now() == NOW + timedelta(seconds=15)
    machine.wall += timedelta(hours=1)
    machine.pass_(5)
    assert clock.now() == NOW + timedelta(seconds=20)


def test_a_clock_set_forward_is_believed(machine: Machine) -> None:
    """What is late by then fires once, late (F-24)."""
    clock = SystemClock()
    machine.wall += timedelta(hours=1)
    assert clock.now() == NOW + timedelta(hours=1)


def test_the_clock_of_the_demo_moves_forward_only(machine: Machine) -> None:
    """An instant in the past changes nothing."""
    clock = MovableClock()
    clock.move_to(NOW + timedelta(minutes=5))
    clock.move_to(NOW - timedelta(minutes=5))
    assert clock.now() == NOW + timedelta(minutes=5)
