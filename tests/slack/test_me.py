"""`/oncall me` and the words behind it, against the sandbox Slack and its telephones."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.sandbox.content import visible_text
from bot.sandbox.server import SandboxServer
from bot.sandbox.state import Message
from bot.slack.contacts import showing
from engine.contacts.codes import SEALED
from engine.directory import Person
from engine.models import DeliveryKind, Method, Urgency
from engine.schema import deliveries
from tests.fakes import FakeClock
from tests.slack.conftest import VAULT, Desk, until
from tests.slack.office import Office, opened

OWN, NEW = "+12025550143", "+12025550177"  # ana's by midwatch.yaml, and one that she adds
DEES = "+12025550146"
TWILIO = {"twilio_account_sid": f"AC{'0' * 32}", "twilio_auth_token": "demo", "twilio_from": "+12025550100"}


@pytest.fixture
async def online(desk: Desk) -> Desk:
    await desk.connect()
    return desk


@pytest.fixture
async def office(
    clock: FakeClock, configured: Path, tmp_path: Path, sandbox: SandboxServer
) -> AsyncIterator[Office]:
    """With telephones."""
    url = sandbox.url
    async with opened(clock, configured, tmp_path, sandbox, **TWILIO, twilio_api_url=url) as office:
        yield office


async def person(desk: Desk, name: str = "ana") -> Person:
    people = (await desk.roster.directory()).people.values()
    return await desk.contacts.person(next(one.id for one in people if one.name == name))


async def code_of(desk: Desk) -> str:
    """The last code, as its provider would be given it."""
    async with desk.database.snapshot() as tx:
        rows = await tx.execute(
            deliveries.select()
            .where(deliveries.c.kind == DeliveryKind.VERIFICATION.value)
            .order_by(deliveries.c.id.desc())
        )
        row = rows.mappings().first()
    assert row is not None
    return VAULT.decrypt(row["body"][SEALED])


def answer(desk: Desk, user: str, channel: str = "#general") -> Message:
    """The last thing that only this person sees there."""
    found = desk.sandbox.state.find_user(f"@{user}")
    assert found is not None
    return [one for one in desk.said(channel, found.id) if one.ephemeral_to == found.id][-1]


def buttons(message: Message) -> list[str]:
    return re.findall(r"'action_id': '(\w+)'", str(message.blocks))


# --- who reads what ---------------------------------------------------------------------------------------


async def test_me_shows_ones_own_numbers_in_full_to_oneself(online: Desk) -> None:
    """Name, zone, methods, rules in words, and the buttons that change them."""
    said = await online.types("ana", "/oncall me")
    assert "You are *ana*, time zone Europe/Berlin" in said
    assert f"✓ SMS `{OWN}`" in said
    assert "*High urgency* (by midwatch.yaml): Slack at once, SMS after 1 min, call after 3 min" in said
    assert "*Low urgency* (by midwatch.yaml): Slack at once" in said
    assert "⚠️" not in said
    assert buttons(answer(online, "ana")) == [showing.METHODS, showing.RULES, showing.TEST]


async def test_where_others_read_numbers_are_masked(online: Desk) -> None:
    """A mention is answered for everybody: dots, no buttons, and an address is not taken there (S-14)."""
    await online.says("ana", "<@UMIDWATCH> me", "#payments")
    await until(lambda: len(online.said("#payments")) == 1)
    said = visible_text(online.said("#payments")[0])
    assert "SMS `+12•••••143`" in said
    assert OWN not in said
    assert buttons(online.said("#payments")[0]) == []
    await online.says("ana", f"<@UMIDWATCH> me add sms {NEW}", "#payments")
    await until(lambda: bool(online.whispers("ana", "#payments")))
    assert "Others read here" in online.whispers("ana", "#payments")[0]
    assert len((await person(online)).methods) == 3


async def test_in_a_direct_message_nobody_else_reads(online: Desk) -> None:
    """There the answer is the same as to a command."""
    ana = online.sandbox.state.direct("U0ANA").id
    await online.says("ana", "me", ana)
    await until(lambda: bool(online.direct("ana")))
    assert f"SMS `{OWN}`" in visible_text(online.direct("ana")[0])


# --- methods and codes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed",
    [
        f"add sms {NEW}",
        "add text +1 (202) 555-0177",
        "ADD SMS “+1 202 555 0177”",
    ],
)
async def test_a_number_is_added_by_words_and_verified_by_its_code(online: Desk, typed: str) -> None:
    """As telephones and Slack write numbers; a wrong code counts, the right one verifies."""
    said = await online.types("ana", f"/oncall me {typed}")
    assert f"A code is on its way to SMS `{NEW}`" in said
    assert buttons(answer(online, "ana")) == [showing.CODE]
    assert f"✗ SMS `{NEW}` – not verified; a code is on its way, 5 tries left" in await online.types(
        "ana", "/oncall me"
    )
    said = await online.types("ana", "/oncall me")
    assert (
        "No page goes by your SMS: it is not verified. Have a code sent with `/oncall me`. (`+12•••••177`)"
        in said
    )
    code = await code_of(online)
    wrong = f"{(int(code) + 1) % 1_000_000:06d}"
    assert "4 tries are left" in await online.types("ana", f"/oncall me verify {wrong}")
    assert "A code has 6 digits" in await online.types("ana", "/oncall verify twelve")
    assert f"✅ SMS `{NEW}` is verified" in await online.types("ana", f"/oncall verify {code[:3]} {code[3:]}")
    assert f"✓ SMS `{NEW}`" in await online.types("ana", "/oncall me")


async def test_a_new_person_is_reached_by_phone_in_two_commands(office: Office) -> None:
    """The code comes to the real telephone of the sandbox, and verifies it for calls too (S-15)."""
    dee = office.desk.sandbox.world.exchange.phones[DEES]
    await office.types("dee", f"/oncall me add sms {DEES}")
    code = re.findall(r"\d{6}", dee.sms[-1].body)[0]
    assert "is verified" in await office.types("dee", f"/oncall me verify {code}")
    assert "it is a number that you have proved" in await office.types("dee", f"/oncall me add call {DEES}")
    said = await office.types("dee", "/oncall me")
    assert "(the usual order): Slack at once, SMS after 1 min, call after 3 min" in said
    assert "⚠️" not in said


async def test_a_code_can_be_said_in_a_call(online: Desk) -> None:
    """Of a landline; a method is named by its kind or its number, and of several none is picked."""
    assert "A call with a code goes to Call" in await online.types("ana", f"/oncall me add voice {NEW}")
    assert "can be several: say which number" in await online.types("ana", "/oncall me remove voice")
    new = next(one for one in (await person(online)).methods if one.address == NEW)
    assert "A call with a code goes" in await online.types("ana", f"/oncall me code {new.id} by call")
    assert "is forgotten" in await online.types("ana", f"/oncall me remove {new.id}")
    assert NEW not in await online.types("ana", "/oncall me")


async def test_another_address_must_be_verified_again(online: Desk) -> None:
    """Its rules stay, and what cannot run meanwhile is said."""
    assert f"A code is on its way to SMS `{NEW}`" in await online.types(
        "ana", f"/oncall me change sms to {NEW}"
    )
    said = await online.types("ana", "/oncall me")
    assert OWN in said, "her call is as it was"
    assert "SMS after 1 min never runs for high urgency" in said


async def test_removing_says_what_it_leaves(online: Desk) -> None:
    """midwatch.yaml would bring it back; what is left is judged."""
    assert "midwatch.yaml names it still" in await online.types("ana", "/oncall me remove sms")
    assert "Nothing wakes you" in await online.types("ana", "/oncall me remove voice")


async def test_what_is_mistyped_is_said_and_changes_nothing(online: Desk) -> None:
    """Each with the form that works."""
    for typed, said in (
        ("add pigeon +12025550177", "Say what to add"),
        ("add sms 0202", "A number begins with +"),
        (f"add sms {OWN}", "among your contact methods already"),
        ("add email ana@x.example by call", "Only a telephone number can be called"),
        ("verify 123456", "no code"),
        ("remove fax", "There is no such contact method"),
        ("remove slack", "Slack is how you are known here"),
        ("change sms", "and its new address"),
        ("sideways", "I don't understand `sideways` here"),
        ("add <!channel> *x*", "Say what to add"),
        ("remove <!channel>&amp;<@U0BEN>", "There is no such contact method"),
        ("ask-everybody", "Only an admin may ask everybody"),
    ):
        answered = await online.types("ana", f"/oncall me {typed}")
        assert said.casefold() in answered.casefold(), typed
        assert "<!channel>" not in answered
    assert len((await person(online)).methods) == 3


async def test_one_command_asks_everybody_to_verify(online: Desk) -> None:
    """An admin's; it names whom it asked, and once a day is enough."""
    await online.types("ana", f"/oncall me add sms {NEW}")
    assert "Asked to verify: *ana*" in await online.types("cho", "/oncall me ask-everybody")
    assert "There is nobody to ask" in await online.types("cho", "/oncall me ask everybody")


# --- rules -------------------------------------------------------------------------------------------------


async def test_rules_are_typed_and_said_again(online: Desk) -> None:
    """For both urgencies or one; what is wrong with them is said, and the usual order comes back."""
    said = await online.types(
        "ana", "/oncall me rules high: slack now, sms after 2 min; then call in 4m low: sms"
    )
    assert "✅ *High urgency* (your own): Slack at once, SMS after 2 min, call after 4 min" in said
    assert "✅ *Low urgency* (your own): SMS at once" in said
    assert "the next `midwatch apply` brings those back" in said
    assert "Nothing wakes you" in await online.types("ana", "/oncall me rules slack")
    rules = (await person(online)).rules
    assert [len(rules[one]) for one in (Urgency.HIGH, Urgency.LOW)] == [1, 1]
    assert "(the usual order): Slack at once, SMS after 1 min" in await online.types(
        "ana", "/oncall me rules reset"
    )


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("high:", "Say the steps"),
        ("high: slack high: sms", "Say the steps"),
        ("slack after lunch", '"slack after lunch" is no step'),
        ("sms after 2d", "between nothing and 24 hours"),
        ("pigeon now", "There is no such contact method"),
        ("slack, slack", "do the same at the same time"),
        ("high: slack low: sms, sms", "do the same at the same time"),
    ],
)
async def test_rules_that_cannot_be_are_refused_whole(online: Desk, typed: str, said: str) -> None:
    """Of both urgencies none is changed when one cannot be."""
    before = (await person(online)).rules
    assert said in await online.types("ana", f"/oncall me rules {typed}")
    assert (await person(online)).rules == before


# --- a test, the numbers, Slack's silence ------------------------------------------------------------------


async def test_a_test_pages_oneself_alone_and_says_what_arrived(office: Office) -> None:
    """Every method at once, nobody else; the report comes, and too early a second one shows it again."""
    said = await office.types("ana", "/oncall me test")
    assert "on its way: Slack <@U0ANA>, SMS `+12•••••143`, Call `+12•••••143`" in said
    phones = office.desk.sandbox.world.exchange.phones
    assert len(phones[OWN].sms) == 1
    assert len(phones[OWN].calls) == 1
    assert not phones[DEES].sms
    await office.later(minutes=3)
    await office.app.sweeps._own_tests.finish_due()
    await office.later(seconds=2)
    assert any("Your test page" in visible_text(one) for one in office.direct("ana"))
    again = await office.types("ana", "/oncall test me")
    assert "less than 5 minutes old" in again
    assert "slack: sent" in again
    assert await office.desk.views.list() == []


async def test_the_buttons_do_what_they_say(office: Office) -> None:
    """The test is answered where it was pressed, and the card with our numbers comes as a file."""
    await office.types("ana", "/oncall me")
    await office.clicks("ana", answer(office.desk, "ana"), showing.CARD)
    (file,) = [one for message in office.direct("ana") for one in message.files]
    assert file["name"] == "midwatch.vcf"
    kept = office.desk.sandbox.world.shelf.by_id(file["id"])
    assert kept is not None
    assert b"+12025550100" in (kept.data or b"")
    assert "Android:" in visible_text(answer(office.desk, "ana"))
    await office.clicks("ana", answer(office.desk, "ana"), showing.TEST)
    assert "A test page to you alone" in visible_text(answer(office.desk, "ana"))
    assert buttons(answer(office.desk, "ana"))[0] == showing.METHODS


async def test_without_files_the_numbers_are_said(office: Office) -> None:
    """An app that may write no files still tells what to save."""
    office.desk.breaks("missing_scope", method="files.getUploadURLExternal")
    assert "Midwatch calls and texts from `+12025550100`" in await office.types("ana", "/oncall me numbers")


async def test_an_install_without_a_telephone_has_no_number_to_save(online: Desk) -> None:
    """It says so."""
    assert "no telephone number" in await online.types("ana", "/oncall me numbers")


async def test_slacks_silence_is_warned_about(online: Desk) -> None:
    """Whoever is on call is told from when to when; who set nothing is told nothing."""
    now = online.clock.now()
    online.sandbox.state.quiet["U0ANA"] = (now + timedelta(hours=1), now + timedelta(hours=9))
    said = await online.types("ana", "/oncall me")
    assert "🔕 You are on call, and Slack is silent from" in said
    online.sandbox.state.quiet["U0CHO"] = (now - timedelta(hours=1), now + timedelta(hours=1))
    assert "🔕 Slack is silent for you from" in await online.types("cho", "/oncall me")
    assert "🔕" not in await online.types("ben", "/oncall me")


@pytest.mark.parametrize(
    "code", ["missing_scope", "internal_error", "user_not_found", "hang", "reset_after", "429"]
)
async def test_a_slack_that_does_not_say_breaks_nothing(online: Desk, code: str) -> None:
    """Without the scope there is no warning, and everything else is there."""
    online.sandbox.state.quiet["U0ANA"] = (online.clock.now(), online.clock.now() + timedelta(hours=9))
    online.breaks(code, method="dnd.info")
    said = await online.types("ana", "/oncall me")
    assert "🔕" not in said
    assert f"✓ SMS `{OWN}`" in said


async def test_methods_of_every_kind_can_be_named(online: Desk) -> None:
    """Mail and push, with whatever stands around them."""
    await online.types("ana", "/oncall me add mail ana@x.example")
    await online.types("ana", "/oncall me add push `ntfy://my-topic?priority=high&x=1`")
    added = {one.kind: one.address for one in (await person(online)).methods if not one.verified}
    assert added == {Method.EMAIL: "ana@x.example", Method.PUSH: "ntfy://my-topic?priority=high&x=1"}
