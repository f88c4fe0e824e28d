"""When a day's SMS and calls are spent: pages go out still, the rest does not, and it is loud (S-16)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa

from engine.models import DeliveryKind, DeliveryStatus, Method
from engine.notify.admission import SPENT
from engine.schema import deliveries
from tests.fakes import FakeClock
from tests.scenario.harness import Pager

CONFIG = """
people:
  - {name: alice, contact: {sms: "+12025550101"}}
policies:
  - {name: payments, levels: [{targets: [{person: alice}], timeout: 30m}]}
services:
  - {name: checkout, policy: payments}
"""
NUMBER = "+12025550177"


class Saving(Pager):
    more = {"phone_per_day": 2}  # noqa: RUF012  # never changed


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Saving(any_database_url, clock, CONFIG).start()
    yield made
    await made.close()
    made.expect_silence()


async def became(pager: Pager, kind: DeliveryKind) -> list[tuple[str, str]]:
    async with pager.app.database.snapshot() as tx:
        rows = await tx.execute(
            sa.select(deliveries.c.status, deliveries.c.reason)
            .where(deliveries.c.kind == kind.value, deliveries.c.method == Method.SMS.value)
            .order_by(deliveries.c.id)
        )
        return [(row.status, row.reason) for row in rows]


async def test_a_page_goes_out_when_the_day_is_spent_and_a_code_does_not(pager: Pager) -> None:
    """Two were sent: an alarm says so, a code stays here, a third page is sent all the same; tomorrow
    codes go out again."""
    alice = await pager.person("alice")
    assert alice.person_id is not None
    for number, title in enumerate(("first", "second"), 1):
        await pager.alert(title)
        await pager.advance(minutes=2)
        pager.expect_page("alice", "sms")
        await pager.resolve(number, by="alice")
    alarms = [one for one in pager.silence_ops() if "MIDWATCH_PHONE_PER_DAY" in one.text]
    assert {one.address for one in alarms} == {"#ops", "json://localhost/last-resort"}
    method = await pager.app.contacts.add(alice.person_id, Method.SMS, NUMBER, alice)
    await pager.advance(minutes=1)
    assert await became(pager, DeliveryKind.VERIFICATION) == [(DeliveryStatus.CANCELLED, SPENT)]
    pending = await pager.app.contacts.pending(alice.person_id)
    assert (pending[method.id].status, pending[method.id].reason) == (DeliveryStatus.CANCELLED, SPENT)
    await pager.alert("third")
    pager.expect_page("alice", "sms")
    await pager.resolve(3, by="alice")
    await pager.advance(days=1)
    await pager.app.contacts.send_code(method.id, alice)
    await pager.advance(minutes=1)
    pager.expect_page("alice", "sms", kind="verification")
    pager.silence_ops()
