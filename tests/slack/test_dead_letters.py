"""Dead letters from Slack: seen by everybody, dealt with by admins."""

from __future__ import annotations

import pytest

from bot.slack.grammar.dead_text import DealDead, ListDead, parse
from engine.errors import BadCommand
from engine.models import ORG, DeliveryKind, DeliveryStatus, IncidentView, Method, NewDelivery
from engine.store import deliveries
from tests.slack.conftest import Desk


async def given_up(desk: Desk, incident: IncidentView, reason: str, *, step: int = 0) -> int:
    """A page for ana that died, as its sender would have recorded it."""
    ana = next(p for p in (await desk.roster.directory()).people.values() if p.name == "ana")
    now = desk.clock.now()
    new = NewDelivery(
        incident.id, DeliveryKind.PAGE, Method.SMS, f"{incident.id}:{step}", now, ana.id, round=incident.round
    )

    async def unit(tx: object) -> int:
        ((made, _),) = await deliveries.queue(tx, ORG, [new], now)  # type: ignore[arg-type]  # a Tx
        await deliveries.set_status(tx, made, DeliveryStatus.DEAD, reason, now)  # type: ignore[arg-type]  # a Tx
        return made

    return await desk.database.write(unit)


async def test_they_are_listed_by_cause(desk: Desk) -> None:
    """With the number of the newest, for whom, about what, why, and how many; hostile text stays text."""
    await desk.connect()
    first, second = await desk.open(), await desk.open("db-2 is down")
    await given_up(desk, first, "no such number")
    newest = await given_up(desk, second, "no such number")
    await given_up(desk, first, "<!channel> refused", step=1)
    said = await desk.types("ben", "/oncall dead")
    assert "*3* could not be delivered" in said
    assert f"`{newest}` SMS to *ana* for #{second.number}" in said
    assert "no such number · 2 of this cause" in said
    assert "<!channel>" not in said
    assert "3 dead letters: `/oncall dead`" in await desk.types("ben", "/oncall status")


async def test_an_admin_sends_them_again(desk: Desk) -> None:
    """By number, alike or all; what is wanted no more is named."""
    await desk.connect()
    incident = await desk.open()
    one = await given_up(desk, incident, "no such number")
    assert "1 queued again" in await desk.types("cho", f"/oncall retry {one}")
    assert "No dead letters" in await desk.types("cho", "/oncall dead")
    assert "dead letters" not in await desk.types("cho", "/oncall status")
    two = await given_up(desk, incident, "no such number", step=1)
    await desk.types("cho", f"/oncall resolve {incident.number}")
    said = await desk.types("cho", "/oncall retry all")
    assert "0 queued again" in said
    assert "1 not: the incident is resolved" in said
    assert "1 put aside" in await desk.types("cho", f"/oncall dead clear like {two}")


async def test_others_are_told_who_may(desk: Desk) -> None:
    """Somebody who is no admin changes nothing."""
    await desk.connect()
    one = await given_up(desk, await desk.open(), "no such number")
    assert "Only an admin may do that" in await desk.types("ben", f"/oncall retry {one}")
    assert "Only an admin may do that" in await desk.types("ben", "/oncall dead clear all")
    assert "1 dead letter:" in await desk.types("ben", "/oncall status")


@pytest.mark.parametrize(
    ("verb", "typed", "meant"),
    [
        ("dead", "", ListDead()),
        ("dead", "List", ListDead()),
        ("dead", "retry #17", DealDead(True, 17)),
        ("dead", "clear like 17", DealDead(False, 17, alike=True)),
        ("dead", "dismiss all", DealDead(False, None)),
        ("retry", "17", DealDead(True, 17)),
        ("retry", "alike 17", DealDead(True, 17, alike=True)),
        ("retry", "ALL", DealDead(True, None)),
    ],
)
def test_what_is_typed_is_understood(verb: str, typed: str, meant: object) -> None:
    """One, all of its cause, or all; sent again, or put aside."""
    assert parse(verb, typed) == meant


@pytest.mark.parametrize(
    ("verb", "typed"), [("retry", ""), ("retry", "17 18"), ("dead", "clear"), ("dead", "x")]
)
def test_what_is_not_understood_says_what_to_type(verb: str, typed: str) -> None:
    """Nothing is retried or put aside by guessing."""
    with pytest.raises(BadCommand, match="/oncall"):
        parse(verb, typed)
