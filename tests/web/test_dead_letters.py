"""Dead letters by the API: what a script reads of them, and sends again."""

from __future__ import annotations

from typing import Any

from engine.models import ORG, DeliveryKind, DeliveryStatus, Method, NewDelivery
from engine.store import deliveries
from tests.fakes import START
from tests.web.conftest import PHONE, Client, World
from tests.web.fakes import ANA, BEN
from tests.web.test_api import AS_ANA, AUTH
from tests.web.test_ingest import is_a_problem


async def given_up(world: World, *reasons: str) -> list[int]:
    """Notices for ana that died, one of each reason."""

    async def unit(tx: Any) -> list[int]:
        ids = []
        for number, reason in enumerate(reasons):
            new = NewDelivery(None, DeliveryKind.NOTICE, Method.SMS, f"n:{number}", START, ANA.id)
            ((made, _),) = await deliveries.queue(tx, ORG, [new], START)
            await deliveries.set_status(tx, made, DeliveryStatus.DEAD, reason, START)
            ids.append(made)
        return ids

    return await world.database.write(unit)


async def counted(client: Client) -> int:
    return int((await client.get("/v1/dead_letters", headers=AUTH)).json["count"])


async def test_they_are_listed_newest_first_in_pages(client: Client, world: World) -> None:
    """With whom, why and when; never an address."""
    ids = await given_up(world, "no such number", "no such number", "a landline")
    page = (await client.get("/v1/dead_letters?limit=2", headers=AUTH)).json
    assert (page["count"], [one["id"] for one in page["items"]]) == (3, ids[:0:-1])
    assert page["items"][0] == {
        "id": ids[2],
        "kind": "notice",
        "method": "sms",
        "to": "ana",
        "incident": None,
        "reason": "a landline",
        "died_at": "2026-03-02T09:00:00Z",
    }
    rest = await client.get(f"/v1/dead_letters?limit=2&cursor={page['next']}", headers=AUTH)
    assert ([one["id"] for one in rest.json["items"]], rest.json["next"]) == ([ids[0]], None)
    assert PHONE not in rest.text


async def test_they_are_sent_again_or_put_aside(client: Client, world: World) -> None:
    """One, one with all alike, or all."""
    first, second, third = await given_up(world, "no such number", "no such number", "a landline")
    again = await client.post(f"/v1/dead_letters/{first}/retry", json={"alike": True}, headers=AUTH)
    assert (again.status, again.json) == (200, {"done": 2, "left": {}})
    assert is_a_problem(await client.post(f"/v1/dead_letters/{second}/clear", headers=AUTH), 404)
    assert await counted(client) == 1
    assert (await client.post(f"/v1/dead_letters/{third}/clear", headers=AUTH)).json["done"] == 1
    assert (await client.post("/v1/dead_letters/retry", headers=AUTH)).json == {"done": 0, "left": {}}
    assert await counted(client) == 0


async def test_who_may(client: Client, world: World) -> None:
    """Who acts for somebody that is no admin looks and changes nothing; without a token not even that."""
    await given_up(world, "no such number")
    for path in ("retry", "clear"):
        answer = await client.post(f"/v1/dead_letters/{path}", json={"user_id": BEN.id}, headers=AUTH)
        assert is_a_problem(answer, 403)
    assert (await client.get("/v1/dead_letters")).status == 401
    assert await counted(client) == 1
    assert (await client.post("/v1/dead_letters/clear", headers=AS_ANA)).json["done"] == 1
