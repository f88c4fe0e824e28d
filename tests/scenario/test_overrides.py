"""What an override does around itself: who is told, what it pages, and how the past remembers it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from engine.models import Actor, Via
from engine.rota.on_call import ShiftsOf
from engine.rota.overrides import OverrideSet
from tests.scenario.harness import CONFIG, Pager

HOUR = timedelta(hours=1)
TOLD = CONFIG.replace("timezone: UTC\n    layers", 'timezone: UTC\n    channel: "#rota"\n    layers')
NIGHTS = """
people:
  - {name: alice, slack: U0ALICE, timezone: Europe/Berlin}
schedules:
  - name: nights
    timezone: Europe/Berlin
    layers:
      - name: night
        users: [alice]
        start: "2026-01-05T09:00"
        rotation: {every: 1, unit: week}
        restrictions: [{days: [mon, tue, wed, thu, fri, sat, sun], from: "02:00", to: "03:00"}]
"""


async def set_override(pager: Pager, name: str, by: str = "bob", **more: object) -> OverrideSet:
    """For two hours from now on, on the schedule there is."""
    person = await pager.person(name)
    now = pager.clock.now()
    (schedule_id,) = (await pager.app.roster.directory()).schedules
    wanted = {"start_at": now, "end_at": now + 2 * HOUR, "actor": await pager.person(by)} | more
    assert person.person_id is not None
    return await pager.app.roster.overrides.set(schedule_id=schedule_id, person_id=person.person_id, **wanted)  # type: ignore[arg-type]  # tests name the fields


def told(pager: Pager) -> dict[str, str]:
    """Notices by who got them; taken."""
    heard = {page.person or page.address: page.text for page in pager.pages()}
    assert all(page.kind.value == "notice" for page in pager.pages())
    pager._heard.clear()
    return heard


def names(found: list[ShiftsOf]) -> list[tuple[str, str, list[str]]]:
    (one,) = found
    return [
        (f"{s.start:%m-%d %H:%M}", f"{s.end:%m-%d %H:%M}", [person.name for person in s.people])
        for s in one.shifts
    ]


async def test_everybody_concerned_is_told(pager: Pager) -> None:
    """Who takes over, whose place it is, who did it, and the channel; each on their own clock."""
    await pager.configure(TOLD)
    await set_override(pager, "carol")
    await pager.app.worker.run_due()
    assert told(pager) == {
        "carol": "📟 You are on call on primary in place of alice, Mon 02 Mar 09:00 to 11:00 UTC (by bob).",
        "alice": "🔁 carol takes over from you on primary, Mon 02 Mar 10:00 to 12:00 Europe/Berlin (by bob).",
        "bob": "🔁 carol is on call on primary in place of alice, "
        "Mon 02 Mar 04:00 to 06:00 America/New_York.",
        "#rota": "🔁 carol is on call on primary in place of alice, Mon 02 Mar 09:00 to 11:00 UTC (by bob).",
    }


async def test_what_is_told_outlives_a_restart(pager: Pager) -> None:
    """The messages are deliveries, stored with the override."""
    await pager.configure(TOLD)
    await set_override(pager, "carol", by="carol")
    await pager.restart()
    await pager.app.worker.run_due()
    assert set(told(pager)) == {"carol", "alice", "#rota"}


async def test_cancelled_it_is_taken_back_for_the_same_people(pager: Pager) -> None:
    """They hear who is on call again, and nobody is told twice."""
    await pager.configure(TOLD)
    done = await set_override(pager, "carol")
    await pager.app.worker.run_due()
    told(pager)
    await pager.app.roster.overrides.cancel(done.override.id, await pager.person("bob"))
    await pager.advance(seconds=2)  # a notice nudges nobody: it is found within a second
    heard = told(pager)
    assert set(heard) == {"carol", "alice", "bob", "#rota"}
    assert heard["carol"].startswith("↩️ Your override on primary was cancelled, ")
    assert heard["alice"].startswith("↩️ You are on call on primary again: ")
    assert heard["#rota"].startswith("↩️ The override of carol on primary is cancelled: alice on call, ")


async def test_a_button_pressed_twice_sets_one_override(pager: Pager) -> None:
    """The very same override is found again, and nobody is told anew."""
    first = await set_override(pager, "carol")
    await pager.app.worker.run_due()
    told(pager)
    again = await set_override(pager, "carol")
    assert (again.override, again.new) == (first.override, False)
    assert len(await pager.app.roster.overrides.listed()) == 1
    await pager.app.worker.run_due()
    pager.expect_silence()


async def test_pressed_twice_in_the_same_moment_it_is_one_override(pager: Pager) -> None:
    """Two presses that see nothing of each other: one sets it, and everybody is told once."""
    span = {"start_at": pager.clock.now(), "end_at": pager.clock.now() + HOUR}
    done = []

    async def press() -> None:
        pager.clock.move(milliseconds=1)
        done.append(await set_override(pager, "carol", by="carol", **span))

    async with asyncio.TaskGroup() as both:
        for _ in range(4):
            both.create_task(press())
    assert sorted(one.new for one in done) == [False, False, False, True]
    assert len(await pager.app.roster.overrides.listed()) == 1
    await pager.app.worker.run_due()
    assert sorted(page.person or "" for page in pager.pages()) == ["alice", "carol"]
    told(pager)


async def test_of_a_long_override_everybody_whose_turn_it_is_hears(pager: Pager) -> None:
    """It may take the place of several people, one after the other."""
    await pager.configure(CONFIG.replace("users: [alice]", "users: [alice, bob]"))
    now = pager.clock.now()
    done = await set_override(pager, "carol", by="carol", end_at=now + timedelta(days=10))
    assert [person.name for person in done.replaced] == ["alice", "bob"]
    await pager.app.worker.run_due()
    assert set(told(pager)) == {"alice", "bob", "carol"}


async def test_it_pages_for_incidents_that_escalate_from_then_on(pager: Pager) -> None:
    """An incident that opens during the override pages its person; one after it the turn's (B071, B078)."""
    await set_override(pager, "carol", by="carol")
    await pager.app.worker.run_due()
    told(pager)
    await pager.alert("during")
    pager.expect_page("carol", "sms")
    await pager.ack(1, by="carol")
    await pager.advance(hours=2)
    await pager.alert("after")
    pager.expect_page("alice")
    await pager.ack(2)


async def test_an_open_incident_asks_anew_at_its_next_level(pager: Pager) -> None:
    """What was paged stays paged; the next level is asked who is on call then."""
    ladder = "".join(
        f"      - {{targets: [{{{target}}}], timeout: 5m}}\n"
        for target in ("person: bob", "schedule: primary")
    )
    before = CONFIG.index("      - {targets: [{schedule")
    await pager.configure(CONFIG[:before] + ladder + CONFIG[CONFIG.index("services:") :])
    await pager.alert()
    pager.expect_page("bob")
    await set_override(pager, "carol", by="carol")
    await pager.app.worker.run_due()
    for person in ("carol", "alice"):
        pager.expect_page(person, kind="notice")
    await pager.advance(minutes=5)
    pager.expect_page("bob", "sms")
    pager.expect_page("carol", "sms")
    await pager.ack(by="carol")


async def test_the_past_keeps_a_cancelled_override_until_it_was_cancelled(pager: Pager) -> None:
    """Who was on call an hour ago stays true; shifts and the question about one instant agree."""
    began = pager.clock.now()
    done = await set_override(pager, "carol", by="carol")
    await pager.advance(hours=1)
    await pager.app.roster.overrides.cancel(done.override.id, await pager.person("carol"))
    await pager.advance(hours=1)
    told(pager)
    found = await pager.app.roster.shifts(began, began + 3 * HOUR)
    assert names(found) == [
        ("03-02 09:00", "03-02 10:00", ["carol"]),
        ("03-02 10:00", "03-02 12:00", ["alice"]),
    ]
    for minutes, name in ((30, "carol"), (90, "alice")):
        (row,) = await pager.app.roster.who(began + timedelta(minutes=minutes))
        assert [person.name for person in row.people] == [name]


async def test_shifts_go_over_versions(pager: Pager) -> None:
    """Each version answers for its own time, and before the first there is nothing."""
    began = pager.clock.now()
    await pager.advance(hours=1)
    await pager.configure(CONFIG.replace("users: [alice]", "users: [bob]"))
    found = await pager.app.roster.shifts(began - HOUR, began + 2 * HOUR)
    assert names(found) == [
        ("03-02 09:00", "03-02 10:00", ["alice"]),
        ("03-02 10:00", "03-02 11:00", ["bob"]),
    ]


async def test_gaps_and_hours_that_the_clock_skips_are_named(pager: Pager) -> None:
    """A gap is a shift with nobody; a window that a clock change leaves out is said."""
    await pager.configure(NIGHTS)
    a, b = datetime(2026, 3, 28, 12, 0, tzinfo=UTC), datetime(2026, 3, 30, 12, 0, tzinfo=UTC)
    found = [one for one in await pager.app.roster.shifts(a, b) if one.schedule == "nights"]
    assert names(found) == [
        ("03-28 12:00", "03-30 00:00", []),
        ("03-30 00:00", "03-30 01:00", ["alice"]),
        ("03-30 01:00", "03-30 12:00", []),
    ]
    (skipped,) = found[0].skipped
    assert (skipped.layer, f"{skipped.opens:%m-%d %H:%M}") == ("night", "03-29 02:00")


@pytest.mark.parametrize("via", [Via.API, Via.CLI])
async def test_it_may_be_set_by_nobody_in_particular(pager: Pager, via: Via) -> None:
    """A token or the command line is named, and there is nobody to be told back."""
    await set_override(pager, "carol", actor=Actor("a script", via))
    await pager.app.worker.run_due()
    heard = told(pager)
    assert set(heard) == {"carol", "alice"}
    assert heard["carol"].endswith("(by a script).")
