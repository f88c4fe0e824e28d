"""Schedules made, edited and deleted in Slack."""

from __future__ import annotations

import asyncio

import pytest

from bot.sandbox.hands import Hands
from engine.rota.schedules import Wanted
from engine.schedule import parse_schedule
from tests.slack.conftest import Desk, until
from tests.slack.schedule_forms import Forms, actor, calls, schedule_of, weekly, whispered


@pytest.fixture
async def online(desk: Desk) -> Desk:
    await desk.connect()
    return desk


async def test_a_schedule_of_two_layers_is_made_without_leaving_slack(online: Desk) -> None:
    """People chosen from Slack's own list, also one who is no person yet; then it pages."""
    form = await Forms(online).opened("/oncall schedule new search")
    assert form.title == "New schedule"
    await form.press("edit:l0")
    await form.press("add_person", "@dee")
    await form.press("entry:1", "up:1")
    assert (await form.submit(name="days", hours="mon-fri 09:00-17:00"))["ok"]
    await form.press("add_layer")
    await form.press("add_person", "@ben")
    await form.press("add_person", "@cho")
    await form.press("entry:1", "join:1")
    assert (await form.submit(name="nights", every="2"))["ok"]
    assert "days" in form.said
    assert (await form.submit(channel="#payments", fallback=["@cho"]))["ok"]
    assert form.title == "Review changes"
    assert "now to Mon 02 Mar 17:00: dee" in form.said
    assert "Mon 02 Mar 17:00 to Tue 09:00: ben and cho" in form.said
    assert (await form.submit())["response_action"] == "clear"
    await until(lambda: "*search* is made" in whispered(online))
    assert "No escalation policy pages *search* yet" in whispered(online)
    made = await schedule_of(online, "search")
    assert await calls(online, made) == [[("dee",), ("ana",)], [("ben", "cho")]]
    assert made.fallback == str((await actor(online, "cho")).person_id)
    assert "*search*: *dee*" in await online.types("ana", "/oncall who search")


async def test_whoever_is_nobody_here_makes_no_schedule(online: Desk) -> None:
    """`/oncall me` comes first; a guest is told whom to ask."""
    assert "Run `/oncall me` once" in await online.types("dee", "/oncall schedule new search")
    assert "Guests may not use Midwatch" in await online.types("gus", "/oncall schedule new search")
    assert Forms(online, "dee").stack == []


async def test_a_name_that_is_taken_opens_no_form(online: Desk) -> None:
    """It says how to edit the one that there is."""
    said = await online.types("ana", "/oncall schedule new Payments-Primary")
    assert "There is a schedule *payments-primary* already: `/oncall schedule edit payments-primary`" in said


async def test_mistakes_stand_at_their_fields_and_nothing_typed_is_lost(online: Desk) -> None:
    """The zone's name, the hours, a layer of nobody; then the same form goes through."""
    form = await Forms(online).opened("/oncall schedule new")
    wrong = await form.submit(name="search", zone="Europe/Berln", holidays="xmas")
    assert set(wrong["errors"]) == {"zone", "holidays"}
    await form.press("add_layer", None, name="search", zone="Europe/Berlin", holidays=None)
    wrong = await form.submit(name="nights", hours="after dark", every="x")
    assert {block.partition(":")[0] for block in wrong["errors"]} == {"hours", "every"}
    assert (await form.submit(name="nights", hours="daily 17:00-09:00", every="1"))["ok"]
    assert (await form.submit())["ok"]
    assert "Nobody is in layer nights" in form.said
    await form.press("edit:l1")
    await form.press("layer_remove")
    await form.submit()
    assert form.title == "Review changes"
    await form.press("back")
    assert "search" in form.said
    await form.submit()
    await form.submit()
    assert len((await schedule_of(online, "search")).layers) == 1


async def test_guests_bots_and_strangers_cannot_be_chosen(online: Desk) -> None:
    """The form says so, and goes on."""
    form = await Forms(online).opened("/oncall schedule new search")
    await form.press("edit:l0")
    await form.press("add_person", "@gus")
    assert "Guests, bots, people who left and people of other workspaces cannot be on call." in form.said
    await form.press("add_person", "@ben")
    assert "2. <@U0BEN>" in form.said


async def edited(desk: Desk, user: str = "ana") -> Forms:
    """The form of payments-primary with ben first, about to be saved."""
    form = await Forms(desk, user).opened("/oncall schedule edit payments-primary")
    await form.press("edit:l0")
    await form.press("entry:1", "up:1")
    await form.submit()
    await form.submit()
    assert form.title == "Review changes"
    return form


async def test_an_edit_shows_what_it_changes_before_it_is_saved(online: Desk) -> None:
    """A line per changed shift; nothing has changed until Save, and then it holds from now on."""
    form = await edited(online)
    assert "Mon 02 Mar 10:00 to Mon 09 Mar 09:00: ana → ben" in form.said
    assert "times in Europe/Berlin" in form.said
    assert "*payments-primary*: *ana*" in await online.types("ana", "/oncall who payments-primary")
    assert (await form.submit())["response_action"] == "clear"
    await until(lambda: "*payments-primary* is changed: 5 shifts in the next 4 weeks" in whispered(online))
    assert "*payments-primary*: *ben*" in await online.types("ana", "/oncall who payments-primary")


async def test_an_edit_that_changes_nobodys_shift_says_so(online: Desk) -> None:
    """Renaming a layer wakes nobody else."""
    form = await Forms(online).opened("/oncall schedule edit payments-primary")
    await form.press("edit:l0")
    await form.submit(name="renamed")
    await form.submit()
    assert "changes nobody's shift in the next 4 weeks" in form.said


async def test_whoever_is_neither_admin_nor_on_it_reads_the_rule(online: Desk) -> None:
    """No form opens for an edit or a deletion that could not be saved."""
    await online.types("dee", "/oncall me")
    for verb in ("edit", "delete"):
        said = await online.types("dee", f"/oncall schedule {verb} payments-primary")
        assert "Only admins and the people on payments-primary may change it" in said
    assert Forms(online, "dee").stack == []


async def test_whoever_was_taken_off_meanwhile_may_not_save(online: Desk) -> None:
    """The right is asked again when it is used; the form stays with what was typed."""
    form = await edited(online)
    known = next(
        one.id
        for one in (await online.roster.directory()).schedules.values()
        if one.name == "payments-primary"
    )
    current = await online.setup.schedules.current(known)
    wanted = Wanted(await weekly(online, "ben"))
    await online.setup.schedules.edit(known, current.version_id, wanted, await actor(online, "cho"))
    await form.submit()
    assert "Only admins and the people on payments-primary may change it" in form.said
    assert "*payments-primary*: *ben*" in await online.types("ana", "/oncall who payments-primary")


@pytest.mark.parametrize("back", [False, True], ids=["saved at once", "looked at again first"])
async def test_changed_by_another_meanwhile_says_by_whom_and_keeps_what_was_typed(
    online: Desk, back: bool
) -> None:
    """The review is shown again, against what the other saved; saving it then is meant."""
    form = await edited(online)
    if back:
        await form.press("back")
    other = await edited(online, "ben")
    await other.press("back")
    await other.press("edit:l0")
    await other.press("add_person", "@cho")
    await other.submit()
    await other.submit()
    assert (await other.submit())["response_action"] == "clear"
    assert (await form.submit())["ok"]
    assert "*ben* changed this schedule at" in form.said
    assert "What you typed is kept." in form.said
    assert form.title == "Review changes"
    assert (await form.submit())["response_action"] == "clear"
    assert await calls(online, await schedule_of(online, "payments-primary")) == [[("ben",), ("ana",)]]


async def test_submitted_after_the_schedule_was_deleted_it_can_be_made_anew(online: Desk) -> None:
    """Nobody types it twice: the form says who deleted it and what saving does now."""
    ana = await actor(online, "ana")
    made = await online.setup.schedules.create("search", Wanted(await weekly(online, "ana", "ben")), ana)
    form = await Forms(online).opened("/oncall schedule edit search")
    await form.press("edit:l0")
    await form.press("add_person", "@cho")
    await form.submit()
    await online.setup.schedules.delete(made, await actor(online, "ben"))
    await form.submit()
    assert "search was deleted by ben" in form.said
    assert "Saving makes the schedule anew." in form.said
    assert (await form.submit())["response_action"] == "clear"
    assert await calls(online, await schedule_of(online, "search")) == [[("ana",), ("ben",), ("cho",)]]


async def test_two_presses_in_one_moment_do_one_thing(online: Desk) -> None:
    """The second was made on a form that is no longer there: it must not move somebody else."""
    form = await Forms(online).opened("/oncall schedule new search")
    await form.press("edit:l0")
    for name in ("@ben", "@cho", "@dee"):
        await form.press("add_person", name)
    hands, view = Hands(online.sandbox.world), form.view
    before = view.body["hash"]
    await asyncio.gather(
        *(hands.click_in_view(form.person, view, "entry:1", "remove:1", {}) for _ in range(2))
    )
    await until(lambda: form.view.body["hash"] != before)
    await form.press("entry:0", "down:0")
    assert sum(f"{number}. <@" in form.said for number in range(1, 5)) == 3
    assert "<@U0BEN>" not in form.said


async def test_a_form_of_three_days_ago_says_that_it_is_too_old(online: Desk) -> None:
    """What was typed is kept for two days; then the form is opened again."""
    form = await Forms(online).opened("/oncall schedule new search")
    online.clock.move(days=3)
    await Forms(online, "ben").opened("/oncall schedule new other")
    answer = await form.submit()
    assert "This form is too old" in str(answer["errors"])


async def test_sixty_people_are_edited_within_slacks_limits(online: Desk) -> None:
    """Every screen is one that Slack takes: the sandbox refuses others."""
    people = [await online.setup.enrol(f"U9{number:03}", f"person-{number}", "UTC") for number in range(60)]
    layer = {"users": [str(person.id) for person in people], "start": "2026-01-05T09:00"}
    layers = [{**layer, "rotation": {"every": 1, "unit": "day"}, "name": f"layer {at}"} for at in range(12)]
    wanted = Wanted(parse_schedule({"timezone": "UTC", "layers": layers}))
    await online.setup.schedules.create("everybody", wanted, await actor(online, "ana"))
    form = await Forms(online, "cho").opened("/oncall schedule edit everybody")
    await form.press("edit:l11")
    await form.press("entry:59", "up:59")
    await form.submit(name="the last")
    await form.press("edit:l0")
    await form.press("entry:1", "up:1")
    await form.submit()
    await form.submit()
    assert form.title == "Review changes"
    assert (await form.submit())["response_action"] == "clear"
    saved = await schedule_of(online, "everybody")
    assert [entry[0] for entry in saved.layers[11].users[-2:]] == [str(people[59].id), str(people[58].id)]
    assert "No picture" not in await online.types("ana", "/oncall schedule show everybody")


async def test_a_deletion_asks_first(online: Desk) -> None:
    """Cancelled it is still there; confirmed it is gone."""
    await online.setup.schedules.create(
        "search", Wanted(await weekly(online, "ana")), await actor(online, "ana")
    )
    form = await Forms(online).opened("/oncall schedule delete search")
    assert "Delete the schedule *search*?" in form.said
    await Hands(online.sandbox.world).close(form.person, form.view)
    assert "*search*: *ana*" in await online.types("ana", "/oncall who search")
    form = await form.opened("/oncall schedule delete search")
    assert (await form.submit())["response_action"] == "clear"
    await until(lambda: "*search* is deleted" in whispered(online))
    assert "I don't know a schedule `search`" in await online.types("ana", "/oncall who search")


async def test_one_that_a_policy_pages_is_not_deleted(online: Desk) -> None:
    """The policy is named, and no question is asked."""
    said = await online.types("ana", "/oncall schedule delete payments-primary")
    assert "payments-primary cannot be deleted: the policy payments pages it." in said
    assert Forms(online).stack == []


async def test_deleted_twice_says_who_was_first(online: Desk) -> None:
    """Two people with the question open."""
    ana = await actor(online, "ana")
    made = await online.setup.schedules.create("search", Wanted(await weekly(online, "ana", "ben")), ana)
    form = await Forms(online).opened("/oncall schedule delete search")
    await online.setup.schedules.delete(made, await actor(online, "ben"))
    await form.submit()
    assert "search was deleted by ben." in form.said
