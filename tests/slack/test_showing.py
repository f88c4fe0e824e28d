"""User group and topic follow who is on call, by the real client against the sandbox Slack."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import bot
from bot.sandbox.content import visible_text
from engine.config.parse import parse_config
from engine.coverage import Membership
from engine.models import ORG, Actor, Timer, TimerKind, Via
from engine.schema import deliveries, schedules, shown
from engine.schema import timers as timer_rows
from engine.store.directory import bump
from engine.store.schedules import delete_schedule
from tests.fakes import START
from tests.slack.conftest import Desk

DEMO = (Path(bot.__file__).parent / "demo.yaml").read_text()
PRIMARY, SECONDARY = "- name: payments-primary\n", "- name: payments-secondary\n"
CHANGE = datetime(2026, 3, 9, 8, 0, tzinfo=UTC)  # Monday 09:00 in Berlin: ana hands over to ben
UPDATE, TOPIC = "usergroups.users.update", "conversations.setTopic"


async def shows(desk: Desk, primary: str = "", secondary: str = "", config: str = DEMO) -> None:
    """Let midwatch.yaml say where Slack shows the schedules."""
    config = config.replace(PRIMARY, PRIMARY + primary).replace(SECONDARY, SECONDARY + secondary)
    await desk.setup.apply(parse_config(config))


GROUP = '  user_group: "@payments-oncall"\n  channel: "#payments"\n'
IN_TOPIC = '  topic: true\n  channel: "#payments"\n'


async def show(desk: Desk, name: str = "payments-primary") -> datetime | None:
    """What the timer of this schedule does when it is due now."""
    directory = await desk.roster.directory()
    (one,) = [named.id for named in directory.schedules.values() if named.name == name]
    now = desk.clock.now()
    return await desk.slack.showing.show(Timer(1, ORG, TimerKind.SHOWN.value, one, now, 0, 0, 1, 0), now)


def group(desk: Desk) -> list[str]:
    users: list[str] = desk.sandbox.state.groups["S0PAYMENTS"]["users"]
    return users


def topic(desk: Desk) -> str:
    return desk.sandbox.state.channels["C0PAYMENTS"].topic


def calls(desk: Desk, method: str) -> int:
    return len(desk.sandbox.ledger.calls(method))


async def told(desk: Desk) -> list[str]:
    """What was to be said, and where."""
    async with desk.database.snapshot() as tx:
        rows = await tx.execute(sa.select(deliveries.c.address, deliveries.c.body).order_by(deliveries.c.id))
        return [f"{row.address} {row.body['text']}" for row in rows]


async def override(desk: Desk, name: str, hours: float) -> None:
    directory = await desk.roster.directory()
    (person,) = [one.id for one in directory.people.values() if one.name == name]
    (schedule,) = [one.id for one in directory.schedules.values() if one.name == "payments-primary"]
    now = desk.clock.now()
    await desk.roster.overrides.set(
        schedule_id=schedule,
        person_id=person,
        start_at=now,
        end_at=now + timedelta(hours=hours),
        actor=Actor("cho", Via.CLI),
    )


# --- the user group


async def test_the_group_holds_whoever_is_on_call_and_is_set_once_for_each_change(desk: Desk) -> None:
    """Right already: no call. A change: one call. The same again: none."""
    await shows(desk, GROUP)
    assert await show(desk) == START + timedelta(minutes=5)
    assert (group(desk), calls(desk, UPDATE)) == (["U0ANA"], 0)
    desk.clock.move_to(CHANGE - timedelta(minutes=2))
    assert await show(desk) == CHANGE
    desk.clock.move_to(CHANGE)
    for _ in range(3):
        await show(desk)
    assert (group(desk), calls(desk, UPDATE)) == (["U0BEN"], 1)
    assert await told(desk) == []


async def test_an_override_is_shown_too(desk: Desk) -> None:
    """The group asks the one resolver, as every page does."""
    await shows(desk, GROUP)
    await override(desk, "cho", 2)
    assert await show(desk) == START + timedelta(minutes=5)
    assert group(desk) == ["U0CHO"]
    desk.clock.move(hours=2)
    await show(desk)
    assert group(desk) == ["U0ANA"]


async def test_a_group_changed_by_hand_is_repaired(desk: Desk) -> None:
    """Within five minutes it holds whoever is on call, and nobody else."""
    await shows(desk, GROUP)
    await show(desk)
    group(desk).append("U0DEE")
    desk.clock.move(minutes=5)
    await show(desk)
    assert (group(desk), calls(desk, UPDATE)) == (["U0ANA"], 1)


async def test_schedules_that_own_one_group_fill_it_together(desk: Desk) -> None:
    """The union, by one call, by whatever they call it: the second tells the first (target/goalert#4338)."""
    await shows(desk, GROUP, "  user_group: S0PAYMENTS\n")
    assert await show(desk, "payments-secondary") is None
    assert calls(desk, UPDATE) == 0
    async with desk.database.snapshot() as tx:
        armed = (await tx.execute(sa.select(timer_rows).where(timer_rows.c.kind == "shown"))).all()
    assert [row.due_at for row in armed] == [START]
    await show(desk)
    assert (sorted(group(desk)), calls(desk, UPDATE)) == (["U0ANA", "U0BEN"], 1)


async def test_the_group_is_never_emptied(desk: Desk) -> None:
    """An empty shift leaves it as it was, and is told; not again the next night."""
    nights = DEMO.replace(
        "    users: [ana, ben]\n",
        "    users: [ana, ben]\n"
        '    restrictions: [{days: [mon, tue, wed, thu, fri], from: "08:00", to: "18:00"}]\n',
    )
    await shows(desk, GROUP, config=nights)
    for day in range(3):
        for hour in (12, 22):
            desk.clock.move_to(START.replace(hour=0) + timedelta(days=day, hours=hour))
            await show(desk)
    assert (group(desk), calls(desk, UPDATE)) == (["U0ANA"], 0)
    assert await told(desk) == [
        "#payments ⚠️ payments-primary: @payments-oncall was left as it is: nobody is on call."
    ]


async def test_who_is_not_linked_to_slack_is_named_and_holds_nobody_up(desk: Desk) -> None:
    """The others are in it."""
    together = DEMO.replace("users: [ana, ben]", "users: [[ana, gil]]") + "- {name: gil}\n"
    await shows(
        desk,
        GROUP,
        config=together.replace("fallback:\n- {person: cho}\n- {name: gil}\n", "").replace(
            "schedules:\n", '- {name: gil, contact: {sms: "+12025550199"}}\nschedules:\n'
        )
        + "fallback:\n- {person: cho}\n",
    )
    group(desk)[:] = ["U0BEN"]
    await show(desk)
    assert group(desk) == ["U0ANA"]
    assert await told(desk) == [
        "#payments ⚠️ payments-primary: @payments-oncall misses gil: not linked to a full member of Slack."
    ]


async def test_a_guest_or_somebody_who_left_holds_nobody_up(desk: Desk) -> None:
    """Slack refuses all for one, and does not say whom: we find out."""
    await shows(desk, GROUP, config=DEMO.replace("users: [ana, ben]", "users: [[ana, ben]]"))
    desk.sandbox.state.users["U0BEN"].deleted = True
    group(desk)[:] = ["U0CHO"]
    await show(desk)
    assert group(desk) == ["U0ANA"]
    assert "misses ben: not linked to a full member" in (await told(desk))[0]
    desk.clock.move(minutes=5)
    await show(desk)
    assert (group(desk), len(await told(desk))) == (["U0ANA"], 1)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("missing_scope", "reinstall it from manifest.yaml"),
        ("permission_denied", "Settings, Permissions, User Groups"),
        ("paid_teams_only", "need a paid plan"),
        ("plan_upgrade_required", "need a paid plan"),
        ("no_such_subteam", "there is no such user group"),
        ("subteam_max_users_exceeded", "may hold"),
        ("word_nobody_knows", "Slack says word_nobody_knows"),
    ],
)
async def test_what_a_person_must_change_is_told_once(desk: Desk, error: str, advice: str) -> None:
    """Each class of error: said in the channel with what to do, again only after it was well.
    (grafana/oncall#945, #4728: theirs was swallowed)"""
    await shows(desk, GROUP)
    group(desk)[:] = ["U0DEE"]
    desk.breaks(error, method=UPDATE)
    for _ in range(3):
        assert await show(desk) == desk.clock.now() + timedelta(minutes=5)
        desk.clock.move(minutes=5)
    assert len(await told(desk)) == 1
    assert advice in (await told(desk))[0]
    assert group(desk) == ["U0DEE"]
    desk.mends()
    await show(desk)
    assert group(desk) == ["U0ANA"]
    group(desk)[:] = ["U0DEE"]
    desk.breaks(error, method=UPDATE)
    desk.clock.move(minutes=5)
    await show(desk)
    assert len(await told(desk)) == 2


@pytest.mark.parametrize("error", ["outage", "internal_error", "service_unavailable", "token_revoked"])
async def test_what_passes_by_itself_is_tried_again_and_not_told(desk: Desk, error: str) -> None:
    """A minute later; Slack's outage has an alarm of its own."""
    await shows(desk, GROUP)
    group(desk)[:] = ["U0DEE"]
    desk.breaks(error)
    assert await show(desk) == START + timedelta(minutes=1)
    assert await told(desk) == []
    desk.mends()
    await show(desk)
    assert group(desk) == ["U0ANA"]


async def test_when_slack_says_wait_it_waits(desk: Desk) -> None:
    """As long as Slack says, if that is longer than a minute."""
    await shows(desk, GROUP)
    desk.breaks("429", retry_after=90)
    assert await show(desk) == START + timedelta(seconds=90)


async def test_a_free_plan_a_disabled_group_and_one_that_is_not_there(desk: Desk) -> None:
    """As the workspace really is, and not as an error that was ordered."""
    await shows(desk, GROUP)
    desk.sandbox.state.paid = False
    await show(desk)
    desk.sandbox.state.paid = True
    desk.sandbox.state.only_admins_edit_groups = True
    desk.clock.move(minutes=5)
    group(desk)[:] = ["U0DEE"]
    await show(desk)
    desk.sandbox.state.only_admins_edit_groups = False
    await desk.slack._client.web.usergroups_disable(usergroup="S0PAYMENTS")
    desk.clock.move(minutes=5)
    await show(desk)
    await shows(desk, GROUP.replace("payments-oncall", "nobody-made-this"))
    desk.clock.move(minutes=5)
    await show(desk)
    said = await told(desk)
    for number, words in enumerate(
        ("paid plan", "only admins", "is disabled in Slack", "no user group @nobody-made")
    ):
        assert words in said[number]


async def test_without_user_groups_somebody_is_paged_by_name_all_the_same(desk: Desk) -> None:
    """`@Midwatch page checkout …` needs no group and no plan."""
    desk.sandbox.state.paid = False
    await desk.connect()
    await desk.says("dee", "<@UMIDWATCH> me", "#payments")
    await desk.sandbox.until(lambda: any("You are *dee*" in visible_text(m) for m in desk.said("#payments")))
    await desk.says("dee", "<@UMIDWATCH> page checkout the shop is down", "#payments")
    await desk.sandbox.until(lambda: any("Opened" in visible_text(m) for m in desk.said("#payments")))


# --- the topic


async def test_the_topic_names_whoever_is_on_call_beside_what_people_wrote(desk: Desk) -> None:
    """Our part in front, the rest as it was, one line in the channel for each change."""
    desk.sandbox.state.channels["C0PAYMENTS"].topic = "Runbook: <https://wiki.example.com|wiki> &amp; more"
    await shows(desk, IN_TOPIC)
    await show(desk)
    await show(desk)
    rest = "Runbook: <https://wiki.example.com|wiki> &amp; more"
    assert (topic(desk), calls(desk, TOPIC)) == (f"📟 payments-primary: ana | {rest}", 1)
    desk.clock.move_to(CHANGE)
    await show(desk)
    assert (topic(desk), calls(desk, TOPIC)) == (f"📟 payments-primary: ben | {rest}", 2)


async def test_what_people_change_around_our_part_stays_and_our_part_is_repaired(desk: Desk) -> None:
    """Moved, wrapped in other words, or overwritten inside."""
    await shows(desk, IN_TOPIC)
    channel = desk.sandbox.state.channels["C0PAYMENTS"]
    channel.topic = "Freeze until Friday · 📟 payments-primary: somebody else | · ask in #help"
    await show(desk)
    assert topic(desk) == "Freeze until Friday · 📟 payments-primary: ana | · ask in #help"
    channel.topic = "Freeze until Friday"
    desk.clock.move(minutes=5)
    await show(desk)
    assert topic(desk) == "📟 payments-primary: ana | Freeze until Friday"
    channel.topic = ":pager: payments-primary: ana | Freeze until Friday"
    before = calls(desk, TOPIC)
    await show(desk)
    assert calls(desk, TOPIC) == before


async def test_two_schedules_in_one_topic_are_set_by_one_call(desk: Desk) -> None:
    """Each in its own part; the second one tells the first."""
    await shows(desk, IN_TOPIC, IN_TOPIC)
    assert await show(desk, "payments-secondary") is None
    await show(desk)
    assert topic(desk) == "📟 payments-primary: ana | 📟 payments-secondary: ben |"
    desk.clock.move_to(CHANGE)
    await show(desk)
    assert topic(desk) == "📟 payments-primary: ben | 📟 payments-secondary: cho |"
    assert calls(desk, TOPIC) == 2


async def test_a_topic_says_nobody_when_nobody_is(desk: Desk) -> None:
    """A name that is not true any more would be worse."""
    await shows(desk, IN_TOPIC, config=DEMO.replace("    users: [ana, ben]\n", "    users: []\n"))
    await show(desk)
    assert topic(desk) == "📟 payments-primary: nobody |"


async def test_a_schedule_that_is_shown_no_more_leaves_no_name_behind(desk: Desk) -> None:
    """What people wrote stays."""
    desk.sandbox.state.channels["C0PAYMENTS"].topic = "Freeze until Friday"
    await shows(desk, IN_TOPIC)
    await show(desk)
    await shows(desk)
    assert await show(desk) is None
    assert topic(desk) == "Freeze until Friday"
    async with desk.database.snapshot() as tx:
        assert [(row.value, row.trouble) for row in await tx.execute(sa.select(shown))] == [(None, None)]


async def test_one_of_two_that_is_shown_no_more_is_taken_out_and_the_other_stays(desk: Desk) -> None:
    """Whichever of them it is that does the work for both."""
    await shows(desk, IN_TOPIC, IN_TOPIC)
    await show(desk)
    await shows(desk, IN_TOPIC)
    await show(desk)
    assert topic(desk) == "📟 payments-primary: ana |"
    await shows(desk, IN_TOPIC, IN_TOPIC)
    await show(desk)
    await shows(desk, "", IN_TOPIC)
    await show(desk)
    assert topic(desk) == "📟 payments-secondary: ben |"


async def test_a_schedule_that_is_deleted_or_moves_leaves_no_name_behind(desk: Desk) -> None:
    """Its timer takes it out of where it stood last."""
    desk.sandbox.state.channels["C0PAYMENTS"].topic = "Freeze until Friday"
    await shows(desk, IN_TOPIC)
    await show(desk)
    await shows(desk, IN_TOPIC.replace("#payments", "#general"))
    await show(desk)
    general = desk.sandbox.state.channels["C0GENERAL"]
    assert (topic(desk), general.topic) == ("Freeze until Friday", "📟 payments-primary: ana |")
    (one,) = [i for i, named in (await desk.roster.directory()).schedules.items() if named.topic]
    await desk.database.write(lambda tx: delete_schedule(tx, ORG, one, "cho", START))
    await desk.database.write(lambda tx: bump(tx, ORG))
    now = desk.clock.now()
    again = await desk.slack.showing.show(Timer(1, ORG, TimerKind.SHOWN.value, one, now, 0, 0, 1, 0), now)
    assert (again, general.topic) == (None, "")


async def test_a_topic_without_room_is_shortened_then_left(desk: Desk) -> None:
    """Slack allows 250 characters; what people wrote is not cut."""
    channel = desk.sandbox.state.channels["C0PAYMENTS"]
    channel.topic = "x" * 217
    await shows(desk, IN_TOPIC, config=DEMO.replace("users: [ana, ben]", "users: [[ana, ben, cho]]"))
    await show(desk)
    assert topic(desk) == f"📟 payments-primary: ana +2 | {'x' * 217}"
    channel.topic = "x" * 249
    desk.clock.move(minutes=5)
    await show(desk)
    assert topic(desk) == "x" * 249
    assert any("no room for it in the topic" in one for one in await told(desk))


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("missing_scope", "reinstall it from manifest.yaml"),
        ("restricted_action", "only some people"),
        ("user_is_restricted", "only full members"),
        ("is_archived", "is archived"),
        ("channel_not_found", "invite @Midwatch"),
        ("method_not_supported_for_channel_type", "has no topic"),
        ("too_long", "no room"),
    ],
)
async def test_what_keeps_a_topic_from_being_set_is_told_once(desk: Desk, error: str, advice: str) -> None:
    """Each class of error of Slack's."""
    await shows(desk, IN_TOPIC)
    desk.breaks(error, method=TOPIC)
    for _ in range(2):
        await show(desk)
        desk.clock.move(minutes=5)
    assert len(await told(desk)) == 1
    assert advice in (await told(desk))[0]


async def test_a_public_channel_is_joined_to_set_its_topic(desk: Desk) -> None:
    """Slack sets no topic for who is not in there."""
    desk.sandbox.state.channels["C0PAYMENTS"].members.discard("UMIDWATCH")
    await shows(desk, IN_TOPIC)
    await show(desk)
    assert topic(desk) == "📟 payments-primary: ana |"


async def test_a_topic_without_a_channel_is_said_to_whoever_runs_midwatch(desk: Desk) -> None:
    """There is no channel to say it in."""
    await desk.database.write(_topic_without_channel)
    await show(desk)
    assert await told(desk) == [
        "ops ⚠️ payments-primary: The topic cannot show who is on call: the schedule has no channel."
    ]


async def _topic_without_channel(tx: Any) -> None:
    await tx.execute(sa.update(schedules).where(schedules.c.name == "payments-primary").values(topic=True))
    await bump(tx, ORG)


# --- who left


async def test_slack_is_asked_who_left(desk: Desk) -> None:
    """Once an hour for each; nobody is known when Slack does not answer, and it is not asked on."""
    directory = await desk.roster.directory()
    ids = {person.name: person.id for person in directory.people.values()}
    people = [ids["ana"], ids["ben"], ids["cho"]]
    desk.sandbox.state.users["U0BEN"].deleted = True
    assert await desk.slack.showing.who_left(directory, people) == Membership({ids["ben"]}, frozenset())
    desk.breaks("outage")
    assert await desk.slack.showing.who_left(directory, people) == Membership({ids["ben"]}, frozenset())
    desk.clock.move(hours=1)
    assert await desk.slack.showing.who_left(directory, people) == Membership(frozenset(), frozenset(people))
    assert calls(desk, "users.info") == 4
