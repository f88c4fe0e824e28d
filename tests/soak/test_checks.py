"""What the soak calls sent twice, and what it does not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.soak.checks import Report, Rows, _sent_twice
from tests.soak.provider import Mood, Provider, Request


def found(deliveries: int, taken: int) -> tuple[list[str], int]:
    """What is wrong, and how many were sent again, when one person had so many messages of so many."""
    incident = SimpleNamespace(id=7, number=1)
    row = SimpleNamespace(id=0, incident_id=7, kind="page", method="sms", person_id=3, attempts=1)
    rows = Rows([incident], [], [row] * deliveries, [], [], [])
    provider, report = Provider(), Report()
    provider.ledger += [Request(1, "+12025550100", "sms", 0.0, Mood.TAKEN)] * taken
    return list(_sent_twice(rows, provider, report)), report.twice


@pytest.mark.parametrize("deliveries", [1, 2])
def test_one_message_for_each_delivery_is_as_it_should_be(deliveries: int) -> None:
    """Whoever is on a level and in the fallback chain is paged for both."""
    assert found(deliveries, taken=deliveries) == ([], 0)


def test_more_messages_than_deliveries_need_a_reason() -> None:
    """One delivery that was taken twice, with no crash and no lost answer, is a mistake."""
    wrong, twice = found(1, taken=2)
    assert "sent 2 times by sms to …0100 without a reason" in wrong[0]
    assert twice == 1
