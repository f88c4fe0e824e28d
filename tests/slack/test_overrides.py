"""Overrides in Slack: set at once, echoed when something was guessed, by a form."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import bot
from bot.sandbox.content import visible_text
from bot.sandbox.hands import Hands
from bot.sandbox.state import Message
from bot.slack.lint import lint_message, lint_view
from bot.slack.rota.override_answers import DROP, PICK, SAVE, UNDO, Echo, Proposal, echo, proposal_of
from engine.config.parse import parse_config
from engine.directory import NamedSchedule, Person
from engine.errors import BadCommand
from engine.models import ORG, Actor, Via
from engine.schedule import Schedule
from engine.schema import schedules
from engine.store import directory
from tests.slack.conftest import Desk, until

DEMO = (Path(bot.__file__).parent / "demo.yaml").read_text()
HOUR = timedelta(hours=1)


@pytest.fixture
async def online(desk: Desk) -> Desk:
    await desk.connect()
    return desk


def echoed(desk: Desk, user: str) -> Message:
    """The newest message that only this person sees."""
    person = desk.sandbox.state.find_user(f"@{user}")
    assert person is not None
    return [m for m in desk.said("#general", person.id) if m.ephemeral_to == person.id][-1]


def choices(message: Message) -> list[str]:
    (block,) = [block for block in message.blocks if block["type"] == "actions"]
    return [element.get("text", {}).get("text", element["type"]) for element in block["elements"]]


async def set_by(desk: Desk) -> list[tuple[str, str, str]]:
    """Overrides there are: schedule, person, times in UTC."""
    known = await desk.roster.directory()
    return [
        (
            known.schedules[one.schedule_id].name,
            known.people[one.person_id].name,
            f"{one.start_at:%m-%d %H:%M} to {one.end_at:%m-%d %H:%M}",
        )
        for one in await desk.roster.overrides.listed()
    ]


# --- set at once, and undone ---------------------------------------------------------------------------


async def test_what_was_said_in_full_is_saved_at_once(online: Desk) -> None:
    """No question where nothing was guessed; Undo takes it back, and a second Undo is told."""
    answer = await online.types("cho", "/override payments-primary @ben tomorrow 9am to 5pm")
    assert "✅ *ben* is on call on *payments-primary* for 8 h:" in answer
    assert "Tue 03 Mar 09:00 to 17:00 Asia/Tokyo" in answer
    assert "For ben that is Mon 02 Mar 19:00 to Tue 03:00 America/New_York" in answer
    assert await set_by(online) == [("payments-primary", "ben", "03-03 00:00 to 03-03 08:00")]
    await online.clicks("cho", echoed(online, "cho"), UNDO)
    await until(lambda: "is cancelled" in visible_text(echoed(online, "cho")))
    assert await set_by(online) == []
    assert "cancelled already" in await online.types("cho", "/override cancel 1")


async def test_a_number_that_never_was_cancels_nothing(online: Desk) -> None:
    """It says so, and where the numbers are."""
    answer = await online.types("cho", "/override cancel 99")
    assert "There is no override 99" in answer
    assert "`/override list`" in answer


async def test_undo_after_somebody_else_cancelled_it(online: Desk) -> None:
    """Already done: told, and nothing changes."""
    await online.types("cho", "/override payments-primary @ben 2h")
    message = echoed(online, "cho")
    await online.types("ana", "/override cancel 1")
    await online.clicks("cho", message, UNDO)
    await until(lambda: "cancelled already" in online.whispers("cho", "#general")[-1])
    assert await online.roster.overrides.listed() == []


async def test_in_the_thread_of_a_channel_it_works_too(online: Desk) -> None:
    """Where slash commands do not work, a mention sets an override."""
    await online.says("ana", "@midwatch override payments-primary @ben 2h", "#payments")
    await until(lambda: len(online.said("#payments")) == 1)
    assert "✅ *ben* is on call" in visible_text(online.said("#payments")[0])


# --- echoed ---------------------------------------------------------------------------------------------


async def test_what_was_guessed_is_echoed_before_it_is_saved(online: Desk) -> None:
    """Absolute times on both clocks, what was guessed, and nothing saved until Confirm."""
    answer = await online.types("cho", "/override payments-primary @ben fri 18:00 - mon 9:00")
    assert "❓ Is this meant? *ben* is on call on *payments-primary* for 2 d 15 h" in answer
    assert "Fri 06 Mar 18:00 to Mon 09:00 Asia/Tokyo" in answer
    assert "For ben that is Fri 06 Mar 04:00 to Sun 20:00 America/New_York" in answer
    assert "• `fri` means the coming one." in answer
    assert "In place of *ana*." in answer
    assert "Nothing is saved yet." in answer
    assert choices(echoed(online, "cho")) == ["Confirm", "Cancel"]
    assert await set_by(online) == []
    await online.clicks("cho", echoed(online, "cho"), SAVE)
    await until(lambda: "✅ *ben* is on call" in visible_text(echoed(online, "cho")))
    assert await set_by(online) == [("payments-primary", "ben", "03-06 09:00 to 03-09 00:00")]


async def test_cancel_leaves_all_as_it_was(online: Desk) -> None:
    """The question goes away, and nobody is put on call."""
    await online.types("cho", "/override payments-primary @ben 10pm - 6am")
    await online.clicks("cho", echoed(online, "cho"), DROP)
    await until(lambda: visible_text(echoed(online, "cho")) == "Nothing was changed.")
    assert await set_by(online) == []


async def test_several_schedules_are_a_question_which(online: Desk) -> None:
    """A button for each; the one that is pressed gets it."""
    answer = await online.types("ana", "/override @ben 2h")
    assert "❓ On which schedule? *ben* is on call for 2 h: Mon 02 Mar 10:00 to 12:00" in answer
    assert choices(echoed(online, "ana")) == ["payments-primary", "payments-secondary", "Cancel"]
    (second,) = [s.id for s in (await online.roster.directory()).schedules.values() if "secondary" in s.name]
    await online.clicks("ana", echoed(online, "ana"), f"{SAVE}_{second}")
    await until(lambda: "✅" in visible_text(echoed(online, "ana")))
    assert await set_by(online) == [("payments-secondary", "ben", "03-02 09:00 to 03-02 11:00")]


async def test_a_name_that_fits_several_asks_among_those(online: Desk) -> None:
    """ "payments" may be each of the two schedules that begin with it."""
    assert "On which schedule?" in await online.types("ana", "/override payments @ben 2h")


async def test_many_schedules_are_a_list(online: Desk) -> None:
    """More than a handful of buttons are a select."""
    copies = "".join(f"- {{name: team-{n}, timezone: UTC, layers: []}}\n" for n in range(30))
    await online.setup.apply(parse_config(DEMO.replace("\npolicies:", f"{copies}\npolicies:")))
    await online.types("ana", "/override @ben 2h")
    message = echoed(online, "ana")
    assert choices(message) == ["static_select", "Cancel"]
    await online.clicks("ana", message, PICK, "team-7")
    await until(lambda: "on *team-7*" in visible_text(echoed(online, "ana")))


async def test_only_the_asker_confirms(online: Desk) -> None:
    """In a channel everybody sees the question; another who presses is told, and nothing happens."""
    await online.says("cho", "@midwatch override @ben fri 18:00 to 20:00 payments-primary", "#payments")
    await until(lambda: len(online.said("#payments")) == 1)
    (message,) = online.said("#payments")
    await online.clicks("ana", message, SAVE)
    await until(lambda: bool(online.whispers("ana", "#payments")))
    assert "Only whoever asked for this override" in online.whispers("ana", "#payments")[0]
    await online.clicks("dee", message, SAVE)
    await until(lambda: bool(online.whispers("dee", "#payments")))
    assert "Run `/oncall me` once" in online.whispers("dee", "#payments")[0]
    assert await set_by(online) == []
    await online.clicks("cho", message, SAVE)
    await until(lambda: "✅" in visible_text(online.said("#payments")[0]))
    assert len(await set_by(online)) == 1


async def test_confirmed_too_late_it_is_over(online: Desk) -> None:
    """A question that was left standing for days changes nothing."""
    await online.types("cho", "/override payments-primary @ben fri 18:00 to 20:00")
    online.clock.move(days=7)
    online.sandbox.world.vouchers.responses.clear()
    message = echoed(online, "cho")
    await online.clicks("cho", message, SAVE)
    await until(lambda: any("over already" in text for text in online.whispers("cho", "#general")))
    assert await set_by(online) == []


async def test_confirmed_after_the_schedule_was_deleted(online: Desk) -> None:
    """What the button names is read anew."""
    await online.types("cho", "/override payments-secondary @ben fri 18:00 to 20:00")
    await deletes(online, "payments-secondary")
    await online.clicks("cho", echoed(online, "cho"), SAVE)
    await until(lambda: any("no such schedule" in text for text in online.whispers("cho", "#general")))
    assert await set_by(online) == []


@pytest.mark.parametrize("value", ["", "1", "1.2.3.4.5.6.7", "a.b.c.d.e.f.g", "1.99999999999999.2.3.add.0.0"])
def test_an_odd_button_is_no_proposal(value: str) -> None:
    """What a button carries is read strictly."""
    with pytest.raises(BadCommand):
        proposal_of(value)


# --- by the form ---------------------------------------------------------------------------------------


async def deletes(desk: Desk, *names: str) -> None:
    """Schedules that are gone, as if an admin had deleted them a moment ago."""
    gone = sa.update(schedules).where(schedules.c.name.in_(names)).values(deleted_at=desk.clock.now())

    async def unit(tx: Any) -> None:
        await tx.execute(gone)
        await directory.bump(tx, ORG)

    await desk.database.write(unit)


async def opens(desk: Desk, user: str = "cho") -> dict[str, Any]:
    assert await desk.types(user, "/override") == ""
    person = desk.sandbox.state.find_user(f"@{user}")
    assert person is not None
    (view,) = desk.sandbox.state.modals[person.id]
    return view.body


async def submits(desk: Desk, user: str = "cho", **values: Any) -> dict[str, Any]:
    person = desk.sandbox.state.find_user(f"@{user}")
    assert person is not None
    view = desk.sandbox.state.modals[person.id][-1]
    wanted = {block: {"in": value} for block, value in values.items()}
    return await Hands(desk.sandbox.world).submit(person, view, wanted)


async def test_the_form_sets_an_override(online: Desk) -> None:
    """Bare, the command opens a form; what it says in full is saved, and answered where it was asked."""
    view = await opens(online)
    assert lint_view({"type": "modal", **{k: view[k] for k in ("title", "submit", "blocks")}}) == []
    answer = await submits(online, schedule="payments-primary", person="@ben", when="2h")
    assert answer["response_action"] == "clear"
    await until(lambda: bool(online.whispers("cho", "#general")))
    assert "✅ *ben* is on call on *payments-primary* for 2 h" in online.whispers("cho", "#general")[0]
    assert await set_by(online) == [("payments-primary", "ben", "03-02 09:00 to 03-02 11:00")]


async def test_the_form_asks_when_something_was_guessed(online: Desk) -> None:
    """A second step shows the absolute times on both clocks; Confirm saves."""
    await opens(online)
    answer = await submits(online, schedule="payments-primary", person="@ben", when="Fri 18:00 – Mon 9:00")
    assert answer["response_action"] == "update"
    (view,) = online.sandbox.state.modals["U0CHO"]
    shown = str(view.body["blocks"])
    assert "Fri 06 Mar 18:00 to Mon 09:00 Asia/Tokyo" in shown
    assert "America/New_York" in shown
    assert view.body["submit"]["text"] == "Confirm"
    assert await set_by(online) == []
    assert (await submits(online))["response_action"] == "clear"
    assert await set_by(online) == [("payments-primary", "ben", "03-06 09:00 to 03-09 00:00")]


async def test_the_form_knows_the_other_kinds(online: Desk) -> None:
    """In addition, and in place of one person."""
    await opens(online)
    await submits(online, schedule="payments-primary", person="@ben", when="2h", kind="add")
    await until(lambda: bool(online.whispers("cho", "#general")))  # or it is taken for the next answer
    await opens(online)
    cover = {"schedule": "payments-primary", "person": "@cho", "when": "2h", "kind": "cover"}
    assert (await submits(online, **cover))["errors"] == {"covers": "Say whose turns are taken over."}
    assert "from themselves" in (await submits(online, **cover, covers="@cho"))["errors"]["covers"]
    assert (await submits(online, **cover, covers="@ana"))["ok"]
    assert [(one.kind, one.covers_id is None) for one in await online.roster.overrides.listed()] == [
        ("add", True),
        ("cover", False),
    ]


async def test_a_cover_of_somebody_off_duty_is_said_to_change_nothing(online: Desk) -> None:
    """It may be meant for later turns, and is no mistake; but nobody should sleep on it (B074)."""
    await opens(online)
    cover = {"schedule": "payments-primary", "person": "@cho", "when": "2h", "kind": "cover"}
    assert (await submits(online, **cover, covers="@ben"))["ok"]
    await until(lambda: bool(online.whispers("cho", "#general")))
    assert "is not on call then, so it changes nothing" in online.whispers("cho", "#general")[0]


@pytest.mark.parametrize(
    ("values", "block", "error"),
    [
        ({"when": "yesterday"}, "when", 'I don\'t understand "yesterday" as a time. Times: "2h"'),
        ({"when": "9"}, "when", '"9" is not a whole time'),
        ({"when": "2026-03-29 02:30 for 1h"}, "when", None),
        ({"person": "@dee"}, "person", 'they run "/oncall me" once'),
    ],
)
async def test_what_is_wrong_in_the_form_is_said_at_its_input(
    online: Desk, values: dict[str, str], block: str, error: str | None
) -> None:
    """Inline, with what was typed still there; and nothing is saved. Tokyo never changes its clock."""
    await opens(online)
    wanted = {"schedule": "payments-primary", "person": "@ben", "when": "2h"} | values
    answer = await submits(online, **wanted)
    if error is None:
        assert answer["ok"]
        return
    assert error in answer["errors"][block]
    assert await set_by(online) == []


async def test_the_form_submitted_after_its_schedule_was_deleted(online: Desk) -> None:
    """Said inline at the schedule, in the first step and in the second."""
    await opens(online)
    await opens(online, "ana")
    wanted = {"schedule": "payments-secondary", "person": "@ben"}
    assert (await submits(online, "ana", **wanted, when="fri 18:00 to 20:00"))["response_action"] == "update"
    await deletes(online, "payments-secondary")
    answer = await submits(online, **wanted, when="2h")
    assert "was deleted meanwhile" in answer["errors"]["schedule"]
    assert (await submits(online, "ana"))["ok"]
    assert "no such schedule" in str(online.sandbox.state.modals["U0ANA"][0].body["blocks"])
    assert await set_by(online) == []


async def test_the_form_is_not_for_everybody(online: Desk) -> None:
    """Who may not set an override is told before filling in a form; who lost the right, when sending it."""
    assert "Run `/oncall me` once" in await online.types("dee", "/override")
    assert "Guests may not use Midwatch" in await online.types("gus", "/override")
    await opens(online)
    known = await online.roster.directory()
    (cho,) = [person.id for person in known.people.values() if person.name == "cho"]
    await online.setup.deactivate(cho)
    answer = await submits(online, schedule="payments-primary", person="@ben", when="2h")
    assert "You were deactivated" in str(answer["errors"])
    assert await set_by(online) == []


async def test_without_a_schedule_there_is_no_form(desk: Desk) -> None:
    """The answer says how to make one."""
    await deletes(desk, "payments-primary", "payments-secondary")
    await desk.connect()
    assert "/oncall schedule new" in await desk.types("cho", "/override")
    assert "/oncall schedule new" in await desk.types("cho", "/override @ben 2h")


# --- limits --------------------------------------------------------------------------------------------


def test_an_echo_fits_slack_whatever_it_is_about(desk: Desk) -> None:
    """A hundred schedules with the longest names, and hostile ones."""
    now = desk.clock.now()
    people = [a_person(number, "<!channel> & `x` " * 20) for number in (1, 2)]
    for count in (1, 4, 5, 100):
        named = [NamedSchedule(10**17 + n, f"{'&<' * 60}{n}", Schedule("UTC")) for n in range(count)]
        proposal = Proposal(10**17, now, now + HOUR, 10**17, "replace_all", 10**17)
        about = Echo(proposal, *people, named, ["x" * 500] * 6, None, people * 40)
        assert lint_message(echo(about)) == []
    assert proposal_of(proposal.value()) == proposal


def a_person(number: int, name: str) -> Person:
    return Person(number, name, f"U{number}", "Europe/Berlin", admin=False, active=True)


async def test_the_command_line_and_slack_see_one_list(online: Desk) -> None:
    """What was set elsewhere is listed and can be cancelled here."""
    known = await online.roster.directory()
    ids = {person.name: person.id for person in known.people.values()}
    start: datetime = online.clock.now()
    (primary,) = [s.id for s in known.schedules.values() if s.name == "payments-primary"]
    await online.roster.overrides.set(
        schedule_id=primary,
        person_id=ids["cho"],
        start_at=start,
        end_at=start + HOUR,
        actor=Actor("a script", Via.CLI),
    )
    assert "`1` *cho* on *payments-primary*" in await online.types("dee", "/override list")
    assert "by a script" in await online.types("dee", "/override list payments-primary")
    assert "There is no override" in await online.types("dee", "/override list payments-secondary")
    assert "Run `/oncall me` once" in await online.types("dee", "/override cancel 1")
    assert "is cancelled" in await online.types("ana", "/override cancel 1")
