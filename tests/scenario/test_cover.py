"""Cover: who is asked when, who has it, and what everybody hears."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from engine.errors import BadInput, NotFound, Refused
from engine.parts import Part
from tests.fakes import FakeClock
from tests.scenario.covering import EVENING, FRIDAY, HOUR, Team

MINUTE = timedelta(minutes=1)
FIRST, SECOND = Part(FRIDAY, FRIDAY + 2 * HOUR), Part(FRIDAY + 2 * HOUR, FRIDAY + 4 * HOUR)


@pytest.fixture
async def team(any_database_url: str, clock: FakeClock) -> AsyncIterator[Team]:
    made = await Team.start(any_database_url, clock)
    yield made
    await made.pager.close()
    made.pager.expect_silence()


async def both_asked(team: Team) -> None:
    """Carol and, after her head start, bob have the question; consumed."""
    await team.asks()
    team.hears("carol")
    await team.pager.advance(minutes=10)
    team.hears("bob")


async def test_the_least_loaded_is_asked_first(team: Team) -> None:
    """Bob is on call every night, so carol has ten minutes before him; dan has no button to press."""
    asked = await team.asks()
    assert [one.name for one in asked.people] == ["carol", "bob"]
    question = team.hears("carol")
    assert question.text == ("🙏 alice asks for cover on primary: Fri 06 Mar 18:00 to 22:00 UTC (4 h).")
    assert [one["label"] for one in question.body["buttons"]] == [
        "Accept all", "Only Fri 18:00-20:00", "Only Fri 20:00-22:00", "Decline"
    ]  # fmt: skip
    await team.pager.advance(minutes=9)
    team.pager.expect_silence()
    await team.pager.advance(minutes=1)
    team.hears("bob")
    assert (await team.accepts("bob")).changed
    for name in ("alice", "bob", "carol"):
        team.hears(name)
    team.channel()


async def test_near_the_shift_everybody_is_asked_at_once(team: Team) -> None:
    """A head start is for those who have time."""
    await team.asks(part=Part(team.pager.clock.now() + HOUR, team.pager.clock.now() + 2 * HOUR))
    asked = [team.hears(name).text for name in ("carol", "bob")]
    assert all(text.startswith("🙏 alice asks for cover on primary") for text in asked)
    team.pager.expect_silence()


async def test_the_first_accept_has_it(team: Team) -> None:
    """An override is there, the asker, the channel and the others are told, and their buttons are gone."""
    await both_asked(team)
    answer = await team.accepts("bob")
    assert (answer.changed, answer.text) == (
        True,
        "✅ You cover alice on primary: Fri 06 Mar 18:00 to 22:00 UTC.",
    )
    assert await team.overrides() == [("bob", "alice", EVENING.start, EVENING.end)]
    assert await team.on_call(FRIDAY) == ["bob"]
    assert await team.on_call(EVENING.end) == ["alice"]
    own = team.hears("alice").text
    assert own == "✅ bob covers you on primary: Fri 06 Mar 19:00 to 23:00 Europe/Berlin."
    assert team.hears("bob").text.startswith("✅ You cover alice on primary")
    other = team.hears("carol")
    assert other.text.startswith("☑️ bob covers alice on primary: Fri 06 Mar 18:00 to 22:00 UTC.")
    assert "buttons" not in other.body
    assert other.body["replaces"]
    assert team.channel() == "🔁 bob covers alice on primary: Fri 06 Mar 18:00 to 22:00 UTC."
    assert await team.status() == "filled"


async def test_a_late_click_is_told_who_has_it(team: Team) -> None:
    """Accept, a part of it, or Decline: nothing changes, and the answer names the one who was first."""
    await both_asked(team)
    await team.accepts("bob")
    team.pager._collect().clear()
    has = "It is taken already: bob covers Fri 06 Mar 18:00 to 22:00 UTC."
    for late in (
        await team.accepts("carol"),
        await team.accepts("carol", FIRST),
        await team.declines("carol"),
        await team.accepts("bob"),
    ):
        assert (late.changed, late.text) == (False, has)
    assert len(await team.overrides()) == 1


async def test_whoever_was_not_asked_yet_never_is(team: Team) -> None:
    """Taken within the head start of the first: the second hears nothing at all."""
    await team.asks()
    team.hears("carol")
    assert (await team.accepts("carol")).changed
    for name in ("alice", "carol"):
        team.hears(name)
    team.channel()
    await team.pager.advance(hours=2)
    team.pager.expect_silence()
    assert [who for who, *_ in await team.overrides()] == ["carol"]


async def test_cover_in_two_parts(team: Team) -> None:
    """What is left goes on being asked, in the question that stands there and in those to come."""
    await team.asks()
    team.hears("carol")
    assert (await team.accepts("carol", FIRST)).changed
    assert "Still open: Fri 06 Mar 21:00 to 23:00 Europe/Berlin; 1 person can still say yes" in (
        team.hears("alice").text
    )
    team.hears("carol")
    team.channel()
    assert await team.status() == "open"
    await team.pager.advance(minutes=10)
    question = team.hears("bob")
    assert question.text == (
        "🙏 alice asks for cover on primary: Fri 06 Mar 20:00 to 22:00 UTC (2 h). carol took the rest."
    )
    taken = await team.accepts("bob", EVENING)
    assert (taken.changed, taken.text) == (
        False,
        "That is not free: carol covers Fri 06 Mar 18:00 to 20:00 UTC. "
        "Still open: Fri 06 Mar 20:00 to 22:00 UTC.",
    )
    assert (await team.accepts("bob")).changed
    for name in ("alice", "bob"):
        team.hears(name)
    team.channel()
    assert await team.overrides() == [
        ("carol", "alice", FIRST.start, FIRST.end),
        ("bob", "alice", SECOND.start, SECOND.end),
    ]
    assert [await team.on_call(FRIDAY + n * HOUR) for n in (1, 3)] == [["carol"], ["bob"]]
    assert await team.status() == "filled"


async def test_a_question_that_stands_shows_what_is_left(team: Team) -> None:
    """The buttons of the others are for the rest, as soon as a part is taken."""
    await both_asked(team)
    await team.accepts("carol", FIRST)
    for name in ("alice", "carol"):
        team.hears(name)
    team.channel()
    shown = team.hears("bob")
    assert shown.body["replaces"]
    assert shown.text.endswith("Fri 06 Mar 20:00 to 22:00 UTC (2 h). carol took the rest.")
    assert [one["label"] for one in shown.body["buttons"]][1] == "Only Fri 20:00-21:00"


async def test_a_part_that_is_taken_back_is_open_again(team: Team) -> None:
    """Its override is cancelled: nobody covers it, and the next Accept takes it too."""
    await both_asked(team)
    await team.accepts("carol", FIRST)
    team.pager._collect().clear()
    (override,) = await team.pager.app.roster.overrides.listed()
    await team.pager.app.roster.overrides.cancel(override.id, await team.pager.person("carol"))
    assert (await team.accepts("bob")).changed
    assert await team.on_call(FRIDAY + HOUR) == ["bob"]
    assert await team.status() == "filled"
    team.pager._collect().clear()


async def test_a_no_asks_the_next_at_once(team: Team) -> None:
    """Nobody waits for the head start of whoever has said no."""
    await team.asks()
    team.hears("carol")
    assert (await team.declines("carol")).changed
    assert team.hears("carol").text.startswith("You said no to covering alice on primary")
    team.hears("bob")
    again = await team.declines("carol")
    assert not again.changed
    assert (await team.accepts("carol")).changed  # who changes their mind is welcome
    for name in ("alice", "bob", "carol"):
        team.hears(name)
    team.channel()


async def test_when_all_decline_the_asker_hears_at_once(team: Team) -> None:
    """There is nobody to wait for: the asker and the channel are warned."""
    await both_asked(team)
    await team.declines("carol")
    await team.declines("bob")
    for name in ("carol", "bob"):
        team.hears(name)
    warning = team.hears("alice").text
    lead = "⚠️ Everybody who was asked declined."
    assert warning.startswith(f"{lead} You are on call on primary: Fri 06 Mar 19:00")
    assert team.channel().startswith(f"{lead} alice sought cover on primary")
    assert await team.status() == "expired"
    await team.pager.advance(days=6)


async def test_nobody_in_time_is_a_warning_before_the_shift(team: Team) -> None:
    """An hour before, once; the questions end, and a click on one is told so."""
    await both_asked(team)
    await team.pager.advance(seconds=(FRIDAY - HOUR - team.pager.clock.now()).total_seconds() - 1)
    team.pager.expect_silence()
    await team.pager.advance(seconds=1)
    assert team.hears("alice").text.startswith("⚠️ Nobody accepted in time. You are on call on primary")
    assert team.channel().startswith("⚠️ Nobody accepted in time. alice sought cover on primary and stays")
    for name in ("bob", "carol"):
        assert team.hears(name).text.startswith("⌛ The request of alice on primary is over")
    late = await team.accepts("bob")
    assert (late.changed, late.text.startswith("The request of alice on primary is over")) == (False, True)
    assert await team.overrides() == []
    await team.pager.advance(hours=2)


async def test_a_rest_that_nobody_takes_is_a_warning_too(team: Team) -> None:
    """Of what is left; what was taken stays."""
    await both_asked(team)
    await team.accepts("bob", SECOND)
    team.pager._collect().clear()
    await team.pager.advance(seconds=(FRIDAY - HOUR - team.pager.clock.now()).total_seconds())
    assert "Fri 06 Mar 19:00 to 21:00 Europe/Berlin" in team.hears("alice").text
    team.channel()
    assert team.hears("carol").text.startswith("⌛ ")
    assert await team.on_call(FRIDAY + 3 * HOUR) == ["bob"]


async def test_down_over_its_end_it_expires_once(team: Team) -> None:
    """Late is late, and the people who are asked and the asker hear it once."""
    await both_asked(team)
    await team.pager.outage(days=5)
    assert team.hears("alice").text.startswith("⚠️ ")
    assert team.channel().startswith("⚠️ ")
    assert all(team.hears(name).text.startswith("⌛ ") for name in ("bob", "carol"))
    team.pager.expect_silence()
    assert await team.status() == "expired"


async def test_the_asker_takes_it_back(team: Team) -> None:
    """Nobody is asked any more; what was accepted stays, and who did not ask may not."""
    await both_asked(team)
    with pytest.raises(Refused, match="Only alice or an admin"):
        await team.withdraws("bob")
    done = await team.withdraws()
    assert (done.changed, done.text) == (True, "✅ Nobody is asked any more (number 1).")
    for name in ("bob", "carol"):
        assert team.hears(name).text.startswith("↩️ alice does not need cover any more")
    assert not (await team.withdraws()).changed
    late = await team.accepts("bob")
    assert (late.changed, late.text) == (False, "alice does not need cover any more.")
    await team.pager.advance(days=5)


async def test_what_was_accepted_stays_when_the_rest_is_taken_back(team: Team) -> None:
    """The stand-in counts on it: they are told how to end it."""
    await both_asked(team)
    await team.accepts("carol", FIRST)
    team.pager._collect().clear()
    done = await team.withdraws("carol")  # an admin
    assert "It stays that carol covers Fri 06 Mar 18:00 to 20:00 UTC" in done.text
    assert await team.on_call(FRIDAY) == ["carol"]
    team.pager._collect().clear()


async def test_one_cannot_answer_oneself_nor_for_others(team: Team) -> None:
    """The asker, and somebody of another schedule, are refused; a number that is none is said."""
    await both_asked(team)
    with pytest.raises(Refused, match="your own request"):
        await team.accepts("alice")
    for answer in (team.accepts, team.declines):
        with pytest.raises(Refused, match="Only those who were asked"):
            await answer("erin")
    strange = await team.accepts("bob", Part(FRIDAY - HOUR, FRIDAY + HOUR))
    assert not strange.changed
    assert strange.text.startswith("That is not what is asked for. Open: Fri 06 Mar 18:00 to 22:00 UTC")
    with pytest.raises(NotFound, match="There is no cover request 99"):
        await team.accepts("bob", number=99)
    assert await team.overrides() == []


async def test_what_cannot_be_covered_is_refused(team: Team) -> None:
    """Not one's shift, over, asked already, nobody there, two schedules: each with its sentence."""
    now = team.pager.clock.now()
    next_week = Part(EVENING.start + timedelta(days=7), EVENING.end + timedelta(days=7))
    for by, part, schedule, words in (
        ("alice", next_week, None, "You are on call on no schedule in that time"),
        ("alice", next_week, "primary", "You are not on call on primary in that time"),
        ("alice", Part(now - 2 * HOUR, now - HOUR), None, "over already"),
        ("bob", EVENING, None, "There is nobody else on night"),
        ("bob", next_week, None, "Say which schedule: night, primary"),
        ("alice", Part(now, now + timedelta(days=61)), None, "two months at most"),
    ):
        with pytest.raises(BadInput, match=words):
            await team.asks(by, part, schedule)
    await both_asked(team)
    with pytest.raises(BadInput, match="You ask for that already, as number 1"):
        await team.asks(part=FIRST)


async def test_only_ones_own_time_is_asked_for(team: Team) -> None:
    """Friday to Tuesday, of which the own week ends on Monday at nine."""
    asked = await team.asks(part=Part(FRIDAY, FRIDAY + timedelta(days=4)))
    assert asked.request.whole == Part(FRIDAY, FRIDAY + timedelta(days=2, hours=15))
    team.hears("carol")


async def test_a_stand_in_may_need_cover_too(team: Team) -> None:
    """Bob covers alice, and then seeks cover for that: the newest wins (goalert#862)."""
    await both_asked(team)
    await team.accepts("bob")
    team.pager._collect().clear()
    again = await team.asks("bob", FIRST, "primary")
    assert [one.name for one in again.people] == ["alice", "carol"]
    await team.accepts("carol", number=2)
    assert await team.on_call(FRIDAY) == ["carol"]
    assert await team.on_call(SECOND.start) == ["bob"]
    team.pager._collect().clear()


async def test_the_list_says_how_each_request_stands(team: Team) -> None:
    """What is left, and what everybody has said; what is over is not in it."""
    await both_asked(team)
    await team.accepts("carol", FIRST)
    team.pager._collect().clear()
    ((story, answers),) = await team.cover.list()
    assert (story.asker.name, story.left) == ("alice", (SECOND,))
    assert sorted(answers.values()) == ["accepted", "asked"]
    await team.withdraws()
    assert await team.cover.list() == []
    team.pager._collect().clear()
