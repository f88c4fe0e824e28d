"""Contact methods and rules by the API: what a script may see of people, and change for them."""

from __future__ import annotations

from typing import Any

from engine.contacts.codes import SEALED
from engine.models import ORG, DeliveryKind
from engine.schema import deliveries
from engine.store import keys
from engine.vault import hash_key
from tests.fakes import START
from tests.web.conftest import PHONE, Client, World
from tests.web.fakes import ANA, BEN, GONE
from tests.web.test_api import AS_ANA, AUTH
from tests.web.test_ingest import is_a_problem

BENS = {"Authorization": "Bearer mw_token_of_ben"}
METHODS, RULES = f"/v1/people/{ANA.id}/contact_methods", f"/v1/people/{ANA.id}/contact_rules"
NEW = {"kind": "sms", "address": "+1 (202) 555-0177"}
NUMBER, DOTTED = "+12025550177", "+12•••••177"


async def ben_has_a_token(world: World) -> None:
    await world.database.write(
        lambda tx: keys.insert_token(tx, ORG, "ben", hash_key("mw_token_of_ben"), "", BEN.id, START)
    )


async def methods(client: Client, who: dict[str, str] = AUTH, path: str = METHODS) -> Any:
    return (await client.get(path, headers=who)).json["items"]


async def code_of(world: World) -> str:
    """The last code, as its provider would be given it."""
    async with world.database.snapshot() as tx:
        rows = await tx.execute(
            deliveries.select()
            .where(deliveries.c.kind == DeliveryKind.VERIFICATION.value)
            .order_by(deliveries.c.id.desc())
        )
        return world.parts.vault.decrypt(rows.mappings().first()["body"][SEALED])  # type: ignore[index]


async def test_a_number_is_in_clear_for_its_owner_and_admins_alone(client: Client, world: World) -> None:
    """A script of nobody and a colleague see dots (S-14)."""
    await ben_has_a_token(world)
    (owners,) = await methods(client, AS_ANA)
    assert (owners["address"], owners["usable"], owners["verified_by"]) == (PHONE, True, "test")
    for who in (AUTH, BENS):
        answer = await client.get(METHODS, headers=who)
        assert answer.json["items"][0]["address"] == "+12•••••143"
        assert PHONE not in answer.text
    bens = METHODS.replace(f"/{ANA.id}/", f"/{BEN.id}/")
    await client.post(bens, json=NEW, headers=BENS)
    assert [one["address"] for one in await methods(client, AS_ANA, bens)] == [NUMBER], "ana is an admin"
    assert [one["address"] for one in await methods(client, BENS, bens)] == [NUMBER]


async def test_a_number_is_added_and_verified(client: Client, world: World) -> None:
    """201 with how its code is on its way, a wrong code says what is left, the right one verifies."""
    made = await client.post(METHODS, json=NEW, headers=AS_ANA)
    assert made.status == 201
    assert (made.json["address"], made.json["usable"], made.json["code"]["tries_left"]) == (NUMBER, False, 5)
    assert made.json["code"]["status"] == "queued"
    verify = f"{METHODS}/{made.json['id']}/verify"
    code = await code_of(world)
    assert code not in made.text
    wrong = await client.post(verify, json={"code": f"{(int(code) + 1) % 10**6:06d}"}, headers=AS_ANA)
    assert is_a_problem(wrong, 400)
    assert "4 tries are left" in wrong.text
    done = await client.post(verify, json={"code": code}, headers=AS_ANA)
    assert (done.json["usable"], done.json["verified_by"], done.json["code"]) == (True, "code", None)
    assert is_a_problem(await client.post(verify, json={"code": code}, headers=AS_ANA), 400)


async def test_too_many_codes_are_refused_for_now(client: Client) -> None:
    """429, in words that say nothing of whose the number is."""
    made = await client.post(METHODS, json=NEW, headers=AS_ANA)
    send = f"{METHODS}/{made.json['id']}/send_code"
    assert (await client.post(send, json={"by_call": True}, headers=AS_ANA)).json["by_call"] is True
    assert (await client.post(send, headers=AS_ANA)).json["by_call"] is False
    refused = await client.post(send, headers=AS_ANA)
    assert is_a_problem(refused, 429)
    assert "Too many codes" in refused.text


async def test_it_is_changed_and_removed(client: Client) -> None:
    """Another address must be verified again; what is removed is gone, and not for another person's path."""
    (known,) = await methods(client)
    one = f"{METHODS}/{known['id']}"
    changed = await client.patch(one, json={"address": NUMBER}, headers=AUTH)
    assert (changed.json["address"], changed.json["verified"]) == (DOTTED, False)
    bens = one.replace(f"/people/{ANA.id}/", f"/people/{BEN.id}/")
    assert is_a_problem(await client.delete(bens, headers=AUTH), 404)
    removed = await client.delete(one, headers=AUTH)
    assert removed.status == 200
    assert await methods(client) == []


async def test_rules_are_read_set_and_reset(client: Client) -> None:
    """What was given, what is in force, and what is wrong with it."""
    (known,) = await methods(client)
    usual = (await client.get(RULES, headers=AUTH)).json
    step = {"method_id": known["id"], "delay_s": 0}
    assert (usual["by"], usual["high"], usual["in_force"]) == ("", [], {"high": [step], "low": [step]})
    late = {**step, "delay_s": 600}
    given = (await client.put(RULES, json={"high": [late]}, headers=AUTH)).json
    assert (given["by"], given["high"], given["low"]) == ("person", [late], [])
    assert given["in_force"] == {"high": [late], "low": [step]}
    assert [one["urgency"] for one in given["warnings"]] == ["high"]
    assert "10 min late" in given["warnings"][0]["text"]
    unknown = {"high": [step], "low": [{"method_id": 999}]}
    assert is_a_problem(await client.put(RULES, json=unknown, headers=AUTH), 400)
    assert (await client.get(RULES, headers=AUTH)).json["high"] == [late], "all of it or nothing"
    assert (await client.delete(RULES, headers=AUTH)).json["by"] == ""


async def test_who_may(client: Client, world: World) -> None:
    """A colleague changes nothing, and cannot tell who is here; without a token there is nothing."""
    await ben_has_a_token(world)
    (known,) = await methods(client)
    one = f"{METHODS}/{known['id']}"
    for answer in (
        await client.post(METHODS, json=NEW, headers=BENS),
        await client.put(RULES, json={"high": [{"method_id": known["id"]}]}, headers=BENS),
        await client.delete(RULES, headers=BENS),
    ):
        assert is_a_problem(answer, 403)
    for answer in (
        await client.patch(one, json={"address": NUMBER}, headers=BENS),
        await client.delete(one, headers=BENS),
        await client.post(f"{one}/send_code", headers=BENS),
        await client.get(METHODS.replace(f"/{ANA.id}/", f"/{GONE.id}/"), headers=AUTH),
    ):
        assert is_a_problem(answer, 404)
    assert (await client.get(METHODS)).status == 401
    assert await methods(client) == [known]
