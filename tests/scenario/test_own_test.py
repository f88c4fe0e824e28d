"""`/oncall me test`: one person is told by everything they have, and then what of it arrived."""

from __future__ import annotations

import pytest

from engine.errors import Refused, TooMany
from engine.models import Actor, DeliveryStatus, Method, Rejected, Via
from engine.pager.own_test import OwnTests
from engine.store import deliveries
from tests.scenario.harness import Pager


def own_tests(pager: Pager) -> OwnTests:
    app = pager.app
    return OwnTests(app.database, pager.clock, app.roster.directory, app.nudge)


async def begun(pager: Pager, name: str = "alice") -> Actor:
    actor = await pager.person(name)
    assert actor.person_id is not None
    await own_tests(pager).start(actor.person_id, actor)
    await pager.app.worker.run_due()
    return actor


async def takes(pager: Pager, method: Method) -> None:
    """The provider says that its message arrived."""
    page = next(one for one in pager.pages() if one.method is method)
    now = pager.clock.now()
    await pager.app.database.write(
        lambda tx: deliveries.set_status(tx, page.id, DeliveryStatus.DELIVERED, "", now)
    )


async def test_everything_of_one_person_rings_and_the_report_says_when(pager: Pager) -> None:
    """Slack, SMS and call at once, nobody else, no incident; one report, on the person's own clock."""
    await begun(pager)
    assert sorted((one.person, one.method.value, one.incident) for one in pager.pages()) == [
        ("alice", "slack", None),
        ("alice", "sms", None),
        ("alice", "voice", None),
    ]
    assert await own_tests(pager).finish_due() == 0, "the telephone company has said nothing yet"
    pager.clock.move(seconds=4)
    await takes(pager, Method.SMS)
    await takes(pager, Method.VOICE)
    for via in ("slack", "sms", "voice"):
        pager.expect_page("alice", via, kind="notice")
    assert await own_tests(pager).finish_due() == 1
    await pager.advance(seconds=1)
    assert pager.expect_page("alice", kind="notice").text.splitlines() == [
        "🔔 Your test page:",
        "• slack: sent 10:00:00",
        "• sms +12•••••101: arrived 10:00:04",
        "• voice +12•••••101: arrived 10:00:04",
    ]
    assert await own_tests(pager).finish_due() == 0, "it is said once"
    assert await pager.open_incidents() == []


async def test_what_did_not_arrive_is_said_with_its_reason(pager: Pager) -> None:
    """After two minutes the report goes out, whatever is still open."""
    pager.transports[Method.SMS].fail_next(Rejected("not a telephone number"))
    actor = await begun(pager)
    pager.expect_page("alice", kind="notice")
    pager.expect_page("alice", "voice", kind="notice")
    assert await own_tests(pager).finish_due() == 0
    await pager.advance(minutes=2)
    assert await own_tests(pager).finish_due() == 1
    await pager.advance(seconds=1)
    text = pager.expect_page("alice", kind="notice").text
    assert "• sms +12•••••101: did not arrive: not a telephone number" in text
    assert "• voice +12•••••101: sent 10:00:00; whether it arrived was not said yet" in text
    assert actor.person_id is not None
    assert [one.over for one in await own_tests(pager).last(actor.person_id)] == [True, True, False]
    pager.silence_ops()


async def test_it_is_for_oneself_and_not_all_the_time(pager: Pager) -> None:
    """Nobody makes somebody else's telephone ring by it, nor their own every minute."""
    actor = await begun(pager)
    assert actor.person_id is not None
    bob = await pager.person("bob")
    with pytest.raises(Refused, match="their own"):
        await own_tests(pager).start(actor.person_id, bob)
    with pytest.raises(TooMany, match="less than 5 minutes"):
        await own_tests(pager).start(actor.person_id, actor)
    await pager.advance(minutes=5)
    await own_tests(pager).start(actor.person_id, Actor("root", Via.CLI))
    await pager.app.worker.run_due()
    assert len(pager.pages()) == 6
    pager._heard.clear()
