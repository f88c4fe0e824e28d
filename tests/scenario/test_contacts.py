"""Contact methods through the whole of Midwatch: a code goes out, is typed in, and only then is it paged."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from bot.doctor.directory import examine
from engine.contacts.contacts import Contacts
from engine.directory import BY_CODE, BY_CONFIG, ContactMethod, Person
from engine.errors import BadInput, NotFound, Refused, TooMany
from engine.models import ORG, Actor, DeliveryStatus, Method, Page, Rejected, Urgency, Via
from engine.notify.render import sms
from engine.notify.speech import page_twiml
from engine.schema import attempts, contact_methods, deliveries, timeline, verifications
from engine.store import directory
from tests.scenario.harness import Pager

NUMBER, ANOTHER = "+12025550177", "+12025550178"
DORA = """
people: [{name: dora, contact: {sms: "+12025550104"}}]
policies: [{name: payments, levels: [{targets: [{person: dora}], timeout: 5m}]}]
"""
CLI = Actor("root", Via.CLI)


@pytest.fixture
def contacts(pager: Pager) -> Contacts:
    return pager.app.contacts


async def person(pager: Pager, name: str) -> Person:
    people = (await pager.app.roster.directory()).people.values()
    return next(one for one in people if one.name == name)


async def added(
    pager: Pager,
    kind: Method = Method.SMS,
    address: str = NUMBER,
    *,
    name: str = "bob",
    by_call: bool = False,
) -> ContactMethod:
    """A contact method that its person adds."""
    actor = await pager.person(name)
    assert actor.person_id is not None
    return await pager.app.contacts.add(actor.person_id, kind, address, actor, by_call=by_call)


async def code_by(pager: Pager, via: str, name: str = "bob") -> str:
    await pager.app.worker.run_due()
    return code_in(pager.expect_page(name, via, kind="verification"))


def code_in(page: Page) -> str:
    spoken = page.text.split(".")[1] if page.method is Method.VOICE else page.text
    return re.sub(r"\D", "", spoken)[:6]


async def tries(pager: Pager, code: str, name: str = "bob") -> ContactMethod:
    actor = await pager.person(name)
    assert actor.person_id is not None
    return await pager.app.contacts.verify(actor.person_id, code, actor)


def other(code: str, by: int = 1) -> str:
    return f"{(int(code) + by) % 1_000_000:06d}"


# --- a code, from end to end ----------------------------------------------------------------------------


async def test_a_number_is_paged_once_its_code_was_typed(pager: Pager, contacts: Contacts) -> None:
    """Its code is called out, nothing else goes there; verified, it rings by the usual order (S-15)."""
    method = await added(pager, Method.VOICE)
    code = await code_by(pager, "voice")
    await contacts.reset_rules(method.person_id, await pager.person("bob"))
    await pager.alert()
    await pager.advance(minutes=9)
    for one in (("alice", "slack"), ("alice", "sms"), ("alice", "voice"), ("bob", "slack"), ("bob", "sms")):
        pager.expect_page(*one)
    pager.expect_silence()
    await pager.resolve(by="bob")
    await pager.advance(minutes=2)
    pager.pages()
    pager._heard.clear()
    done = await tries(pager, code)
    assert (done.usable, done.verified_by, done.in_file) == (True, BY_CODE, False)
    await pager.alert("db-2 is down")
    await pager.advance(minutes=9)
    said = [one.method.value for one in pager.pages() if one.person == "bob"]
    assert sorted(said) == ["slack", "sms", "voice"]
    pager._heard.clear()


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        (Method.SMS, NUMBER),
        (Method.VOICE, NUMBER),
        (Method.EMAIL, "bob@example.com"),
        (Method.PUSH, "ntfy://bob-is-paged"),
    ],
)
async def test_each_kind_is_verified_by_what_came_there(pager: Pager, kind: Method, address: str) -> None:
    """Through the same pipeline as a page, by its own transport, to its own address."""
    method = await added(pager, kind, address)
    assert not method.usable
    await pager.app.worker.run_due()
    page = pager.expect_page("bob", kind.value, kind="verification")
    assert page.address == address
    assert (await tries(pager, code_in(page))).usable


async def test_a_landline_hears_its_code_digit_by_digit(pager: Pager) -> None:
    """Also a number for texts can be called; digits are spoken one by one, three times."""
    await added(pager, by_call=True)
    await pager.app.worker.run_due()
    page = pager.expect_page("bob", "voice", kind="verification")
    code = code_in(page)
    assert page.text.count(", ".join(code)) == 3
    assert page_twiml(page, None).count(", ".join(code)) == 3
    assert (await tries(pager, code)).kind is Method.SMS


async def test_a_code_reads_as_one_text_message(pager: Pager) -> None:
    """With what it is for; whoever has it typed it themselves."""
    await added(pager)
    await pager.app.worker.run_due()
    page = pager.expect_page("bob", "sms", kind="verification")
    assert sms(page) == (
        f"Midwatch: Your code is {code_in(page)}. It is good for 15 minutes, and nobody will ask you for it."
    )


async def test_what_is_verified_for_texts_is_verified_for_calls(pager: Pager) -> None:
    """The same number is proved once, whichever came first; midwatch.yaml's proof counts too."""
    await added(pager)
    await tries(pager, await code_by(pager, "sms"))
    call = await added(pager, Method.VOICE)
    assert (call.usable, call.verified_by) == (True, BY_CODE)
    by_file = await added(pager, Method.VOICE, "+12025550102")
    assert (by_file.usable, by_file.verified_by) == (True, BY_CONFIG)
    await pager.app.worker.run_due()
    pager.expect_silence()


# --- limits (S-15) --------------------------------------------------------------------------------------


async def test_after_five_wrong_codes_it_is_locked(pager: Pager, contacts: Contacts) -> None:
    """The sixth is refused though it is right; a new code opens it again (S-15)."""
    method = await added(pager)
    code = await code_by(pager, "sms")
    for left in ("4 tries are left", "3 tries are left", "2 tries are left", "1 try is left", "locked"):
        with pytest.raises(BadInput, match=left):
            await tries(pager, other(code))
    with pytest.raises(BadInput, match="wrong 5 times, so this code is locked"):
        await tries(pager, code)
    assert await contacts.pending(method.person_id) == {}
    await contacts.send_code(method.id, await pager.person("bob"))
    with pytest.raises(BadInput, match="4 tries are left"):
        await tries(pager, code)
    assert (await tries(pager, await code_by(pager, "sms"))).usable


async def test_a_code_is_good_for_fifteen_minutes(pager: Pager, contacts: Contacts) -> None:
    """Then it says so, and is not even sent any more."""
    method = await added(pager)
    code = await code_by(pager, "sms")
    await pager.advance(minutes=15)
    assert await contacts.pending(method.person_id) == {}
    with pytest.raises(BadInput, match="it may be too old"):
        await tries(pager, code)
    await contacts.send_code(method.id, await pager.person("bob"))
    await pager.outage(minutes=16)
    pager.expect_silence()


async def test_what_can_be_no_code_is_no_try(pager: Pager) -> None:
    """Spaces and hyphens are as telephones show codes; letters are a slip."""
    await added(pager)
    code = await code_by(pager, "sms")
    for slip in ("", "12345", "1234567", "abcdef", "٣٣٣٣٣٣"):
        with pytest.raises(BadInput, match="6 digits"):
            await tries(pager, slip)
    assert (await tries(pager, f" {code[:3]}-{code[3:]} ")).usable


async def test_a_new_code_takes_the_place_of_the_one_before(pager: Pager, contacts: Contacts) -> None:
    """Also before it was sent: only the newest goes out, and only it counts."""
    method = await added(pager)
    await contacts.send_code(method.id, await pager.person("bob"))
    await pager.app.worker.run_due()
    newest = code_in(pager.expect_page("bob", "sms", kind="verification"))
    pager.expect_silence()
    assert (await tries(pager, newest)).usable


async def test_three_codes_an_hour_for_a_person(pager: Pager, contacts: Contacts) -> None:
    """The fourth waits for the hour to pass; what was being added is not written down meanwhile."""
    for number in range(3):
        await added(pager, address=f"+1202555018{number}")
    with pytest.raises(TooMany, match="Try again later"):
        await added(pager)
    assert NUMBER not in {one.address for one in (await person(pager, "bob")).methods}
    await pager.advance(minutes=60)
    pager._collect().clear()
    assert not (await added(pager)).usable
    await code_by(pager, "sms")


async def test_three_codes_a_day_for_a_number_whoever_asks(pager: Pager, contacts: Contacts) -> None:
    """And whatever becomes of the contact method: removed and added again it is the same number."""
    for name in ("alice", "bob", "carol"):
        method = await added(pager, name=name)
        await code_by(pager, "sms", name)
        await contacts.remove(method.id, await pager.person(name))
        await pager.advance(hours=2)
    with pytest.raises(TooMany):
        await added(pager)
    await pager.advance(hours=17)
    with pytest.raises(TooMany):
        await added(pager)
    await pager.advance(hours=2)
    await added(pager)
    await code_by(pager, "sms")


async def test_the_thirty_first_code_of_an_hour_is_refused_and_said_loudly(pager: Pager) -> None:
    """Many people at once look like fraud; the ops channel hears of it, once (S-16)."""
    people = "".join(f"  - {{name: p{one}, slack: U0P{one:03}}}\n" for one in range(12))
    await pager.configure(f"people:\n{people}")
    for one in range(30):
        await added(pager, name=f"p{one // 3}", address=f"+12025551{one:03}")
    for _ in range(2):
        with pytest.raises(TooMany, match="by everybody together"):
            await added(pager, name="p11")
    await pager.app.worker.run_due()
    alarms = [one for one in pager.silence_ops() if one.text.startswith("30 codes to verify")]
    assert sorted(one.address for one in alarms) == ["#ops", "json://localhost/last-resort"]
    await pager.advance(minutes=1)
    assert len([one for one in pager.pages() if one.kind.value == "verification"]) == 30
    pager._heard.clear()
    await pager.advance(minutes=60)
    await added(pager, name="p11")
    await code_by(pager, "sms", "p11")


@pytest.mark.parametrize(
    "number", ["+882 13 123 456", "+870 773 111 111", "+1 900 555 0123", "+979 123456789"]
)
async def test_numbers_that_cost_their_callers_money_are_refused(pager: Pager, number: str) -> None:
    """Satellites and premium rates, before any code is made (S-16)."""
    with pytest.raises(BadInput, match="Satellite and premium-rate numbers"):
        await added(pager, Method.VOICE, number)
    assert await rows(pager, verifications) == []


# --- what is kept, and who sees it ----------------------------------------------------------------------


async def rows(pager: Pager, table: sa.Table) -> list[dict[str, Any]]:
    async with pager.app.database.snapshot() as tx:
        return [dict(one) for one in (await tx.execute(sa.select(table))).mappings()]


async def test_neither_code_nor_number_is_anywhere_in_clear(
    pager: Pager, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not in the database, sent or not, used or not, nor in what was logged."""
    await added(pager)
    code = await code_by(pager, "sms")
    with pytest.raises(BadInput):
        await tries(pager, other(code))
    for table in (verifications, deliveries, contact_methods, attempts, timeline):
        for row in await rows(pager, table):
            shown = {name: value for name, value in row.items() if not name.endswith("_at")}
            assert code not in str(shown), table.name
            assert NUMBER not in str(shown), table.name
    await tries(pager, code)
    logged = capsys.readouterr()
    assert "contact.verified" in logged.out + logged.err
    for secret in (code, other(code), NUMBER):
        assert secret not in re.sub(r"\d{4}-\d\d-\d\dT\S+", "", logged.out + logged.err)


async def test_a_number_that_was_mistyped_is_no_alarm(pager: Pager, contacts: Contacts) -> None:
    """Whoever typed it sees what became of its code; the next one may be called."""
    pager.transports[Method.SMS].fail_next(Rejected("this is no mobile number"))
    method = await added(pager)
    await pager.app.worker.run_due()
    pending = (await contacts.pending(method.person_id))[method.id]
    assert (pending.status, pending.reason) == (DeliveryStatus.DEAD, "this is no mobile number")
    assert pager.silence_ops() == []
    await contacts.send_code(method.id, await pager.person("bob"), by_call=True)
    await code_by(pager, "voice")


# --- changed, removed, added by others ------------------------------------------------------------------


async def test_a_changed_number_must_be_verified_again(pager: Pager, contacts: Contacts) -> None:
    """Its rules stay; until its code was typed it is not paged, and what was queued goes by the next rule."""
    bob = await pager.person("bob")
    sms_of_bob = next(one for one in (await person(pager, "bob")).methods if one.kind is Method.SMS)
    await pager.alert()
    await pager.advance(minutes=5)
    for one in (("alice", "slack"), ("alice", "sms"), ("alice", "voice"), ("bob", "slack")):
        pager.expect_page(*one)
    changed = await contacts.change(sms_of_bob.id, NUMBER, bob)
    assert (changed.id, changed.usable, changed.in_file) == (sms_of_bob.id, False, False)
    code = await code_by(pager, "sms")
    await pager.advance(minutes=1)
    pager.silence_ops()
    pager.expect_silence()
    assert any("not verified" in one.reason for one in (await pager.incident()).receipts)
    await pager.resolve(by="bob")
    await tries(pager, code)
    kept = (await person(pager, "bob")).rules[Urgency.HIGH]
    assert [one.method_id for one in kept][1:] == [sms_of_bob.id]
    await pager.advance(minutes=2)
    pager._collect().clear()


async def test_what_is_removed_is_forgotten(pager: Pager, contacts: Contacts) -> None:
    """Its address, the code that is waiting and the rules that use it; what is wrong then is said."""
    method = await added(pager)
    bob = await pager.person("bob")
    said = await contacts.remove(method.id, bob)
    assert said == ()
    await pager.app.worker.run_due()
    pager.expect_silence()
    sms_of_bob = next(one for one in (await person(pager, "bob")).methods if one.kind is Method.SMS)
    nothing_rings, by_file = await contacts.remove(sms_of_bob.id, bob)
    assert nothing_rings.startswith("Nothing wakes you")
    assert by_file == "midwatch.yaml names it still: the next `midwatch apply` brings it back."
    now = await person(pager, "bob")
    assert [one.kind for one in now.methods] == [Method.SLACK]
    assert len(now.rules[Urgency.HIGH]) == 1
    with pytest.raises(NotFound):
        await contacts.remove(sms_of_bob.id, bob)


async def test_who_may_change_whose(pager: Pager, contacts: Contacts) -> None:
    """Oneself, an admin, the command line; nobody else, and what they ask tells them nothing."""
    alice = await pager.person("alice")
    bob = await person(pager, "bob")
    (slack, number) = bob.methods
    with pytest.raises(Refused):
        await contacts.add(bob.id, Method.SMS, NUMBER, alice)
    with pytest.raises(Refused):
        await contacts.add(999, Method.SMS, NUMBER, alice)
    with pytest.raises(Refused):
        await contacts.set_rules(bob.id, Urgency.HIGH, [], alice)
    with pytest.raises(Refused):
        await contacts.ask_everybody(alice)
    for method_id in (number.id, 999):
        with pytest.raises(NotFound, match="no such contact method"):
            await contacts.change(method_id, NUMBER, alice)
    with pytest.raises(BadInput, match="how you are known here"):
        await contacts.remove(slack.id, await pager.person("bob"))
    with pytest.raises(NotFound):
        await contacts.add(999, Method.SMS, NUMBER, CLI)


async def test_whoever_is_changed_by_others_is_told(pager: Pager, contacts: Contacts) -> None:
    """By a method that was not touched; of what they do themselves they hear nothing."""
    bob = await person(pager, "bob")
    method = await contacts.add(bob.id, Method.VOICE, NUMBER, CLI)
    await code_by(pager, "voice")
    assert pager.expect_page("bob", kind="notice").text == (
        "🔑 root added voice +12•••••177 to your contact methods. Was that right? `/oncall me` shows them."
    )
    await contacts.remove(method.id, CLI)
    await contacts.reset_rules(bob.id, await pager.person("bob"))
    await pager.advance(seconds=2)
    assert "removed voice" in pager.expect_page("bob", kind="notice").text


async def test_the_same_number_twice_is_said_once(pager: Pager, contacts: Contacts) -> None:
    """Verified, waiting or stopped: each with what to do."""
    with pytest.raises(BadInput, match="and it is verified"):
        await added(pager, address="+1 202 555 0102")
    await added(pager)
    await code_by(pager, "sms")
    with pytest.raises(BadInput, match="waits for its code"):
        await added(pager)


# --- rules, and everybody -------------------------------------------------------------------------------


async def test_the_rules_of_a_person_are_followed(pager: Pager, contacts: Contacts) -> None:
    """From the next page on: here the call first."""
    alice = await person(pager, "alice")
    by = {one.kind: one.id for one in alice.methods}
    steps = [(by[Method.SLACK], timedelta(minutes=1)), (by[Method.VOICE], timedelta())]
    (by_file,) = await contacts.set_rules(alice.id, Urgency.HIGH, steps, await pager.person("alice"))
    assert by_file.text.startswith("midwatch.yaml gives you contact rules: the next `midwatch apply`")
    assert await contacts.set_rules(alice.id, Urgency.HIGH, steps, await pager.person("alice")) == ()
    await pager.alert()
    pager.expect_page("alice", "voice")
    pager.expect_silence()
    await pager.advance(minutes=1)
    pager.expect_page("alice", "slack")
    await pager.resolve()
    await pager.advance(minutes=2)
    pager._collect().clear()


async def test_everybody_is_asked_to_verify_once_a_day(pager: Pager, contacts: Contacts) -> None:
    """By what is verified; whom nothing verified reaches is named instead."""
    await added(pager)
    await code_by(pager, "sms")
    asked = await contacts.ask_everybody(CLI)
    assert [one.name for one in asked.people] == ["bob"]
    assert asked.unreached == ()
    await pager.app.worker.run_due()
    assert "sms +12•••••177" in pager.expect_page("bob", kind="notice").text
    assert (await contacts.ask_everybody(CLI)).people == ()
    await pager.advance(days=1)
    assert [one.name for one in (await contacts.ask_everybody(CLI)).people] == ["bob"]
    await pager.app.worker.run_due()
    pager.expect_page("bob", kind="notice")


async def whose(pager: Pager, number: str) -> list[str]:
    async with pager.app.database.snapshot() as tx:
        ids = await directory.persons_by_address(tx, ORG, pager.app.vault.fingerprint(number))
    people = (await pager.app.roster.directory()).people
    return [people[one].name for one in ids]


async def test_an_imported_number_is_paged_while_nothing_is_verified(pager: Pager) -> None:
    """Not after: a verified method takes its place, and it goes on to wait for its code."""
    await pager.configure(DORA)

    async def unverify(tx: Any) -> None:
        await tx.execute(
            sa.update(contact_methods)
            .where(contact_methods.c.person_id == (await person(pager, "dora")).id)
            .values(verified_at=None, verified_by="import")
        )
        await directory.bump(tx, ORG)

    await pager.app.database.write(unverify)
    assert await whose(pager, "+12025550104") == ["dora"], "so what is replied from there is heard"
    found = await examine(pager.app.settings, pager.app.database, pager.clock, pager.app.vault)
    (finding,) = [one for one in found if one.about == "person dora"]
    assert finding.advice == "Ask them to verify it: midwatch contacts ask"
    await pager.alert()
    pager.expect_page("dora", "sms")
    await pager.resolve(by="bob")
    await pager.advance(minutes=2)
    pager._collect().clear()
    (warning,) = await pager.app.contacts.warnings((await person(pager, "dora")).id)
    assert warning.text.startswith("Nothing of yours is verified")
    await added(pager, Method.EMAIL, "dora@example.com", name="dora")
    await tries(pager, await code_by(pager, "email", "dora"), "dora")
    assert await whose(pager, "+12025550104") == []
    await pager.alert("db-2 is down")
    pager.expect_page("dora", "email")
    pager.expect_silence()
    await pager.resolve(2, by="bob")
    await pager.advance(minutes=2)
    pager._collect().clear()
