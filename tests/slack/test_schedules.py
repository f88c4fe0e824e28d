"""`/oncall schedule`: each command and form once right, once wrong, once without the right to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bot.sandbox.content import visible_text
from bot.sandbox.server import SandboxServer
from bot.sandbox.state import Message
from bot.sandbox.world import Options
from bot.slack.rota import schedule_text
from bot.slack.rota.schedules import ScheduleDeed, Verb, parse
from engine.rota.schedules import Wanted
from tests.slack.conftest import PATIENT_S, Desk, build_desk, slack_settings, until
from tests.slack.schedule_forms import actor, weekly


@pytest.fixture
async def online(desk: Desk) -> Desk:
    await desk.connect()
    return desk


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("", ScheduleDeed(Verb.LIST, "")),
        ("list", ScheduleDeed(Verb.LIST, "")),
        ("new", ScheduleDeed(Verb.NEW, "")),
        ("New Payments EU", ScheduleDeed(Verb.NEW, "Payments EU")),
        ("edit “payments”", ScheduleDeed(Verb.EDIT, "payments")),
        ("remove payments", ScheduleDeed(Verb.DELETE, "payments")),
        ("payments primary", ScheduleDeed(Verb.SHOW, "payments primary")),
        ("show", ScheduleDeed(Verb.SHOW, "")),
    ],
)
def test_the_verb_comes_first_and_the_name_after_it(typed: str, wanted: ScheduleDeed) -> None:
    """A name alone shows that schedule."""
    assert parse(typed) == wanted


async def test_the_list_says_who_is_on_call_on_each(online: Desk) -> None:
    """Everybody may see, also whoever is no person yet."""
    said = await online.types("dee", "/oncall schedule list")
    assert "*payments-primary* · now *ana* · 1 layer · Europe/Berlin" in said
    assert "`/oncall schedule show NAME`" in said


@pytest.mark.parametrize("words", ["", "show payments-primary"])
async def test_a_guest_sees_nothing(online: Desk, words: str) -> None:
    """Everybody may see who is a full member of the workspace."""
    assert "Guests may not use Midwatch" in await online.types("gus", f"/oncall schedule {words}")
    assert [message for message in online.said("#general") if message.files] == []


def pictures(desk: Desk, channel: str = "#general") -> list[Message]:
    return [message for message in desk.said(channel) if message.files]


async def test_show_puts_the_picture_where_it_was_asked_and_says_it_in_words(online: Desk) -> None:
    """A PNG that everybody there sees, with an alternative for whoever cannot see it."""
    said = await online.types("dee", "/oncall schedule show payments-primary")
    (message,) = pictures(online)
    (file,) = message.files
    assert (file["mimetype"], file["title"]) == ("image/png", "payments-primary")
    assert "now to Mon 09 Mar 09:00: ana" in file["alt_txt"]
    kept = online.sandbox.world.shelf.by_id(file["id"])
    assert kept is not None
    assert (kept.data or b"").startswith(b"\x89PNG")
    assert "now to Mon 09 Mar 09:00: ana" in said
    assert "Mon 09 Mar 09:00 to Mon 16 Mar 09:00: ben" in said
    assert "No picture" not in said


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"kind": "missing_scope", "method": "files.getUploadURLExternal"}, "`files:write`"),
        (
            {"kind": "file_uploads_disabled", "method": "files.getUploadURLExternal"},
            "(file_uploads_disabled)",
        ),
        ({"kind": "outage", "method": "files.upload"}, "did not take the upload"),
        ({"kind": "internal_error", "method": "files.completeUploadExternal"}, "(internal_error)"),
    ],
)
async def test_without_a_picture_the_words_go_alone_and_say_why(
    online: Desk, broken: dict[str, Any], why: str
) -> None:
    """A scope that the admin left out, a workspace without uploads, an outage half way through."""
    online.breaks(**broken)
    said = await online.types("ana", "/oncall schedule show payments-primary")
    assert "now to Mon 09 Mar 09:00: ana" in said
    assert f"No picture: {'Slack wants the scope ' if 'scope' in broken['kind'] else ''}" in said
    assert why in said
    assert pictures(online) == []


async def test_where_the_bot_is_not_a_member_the_picture_comes_by_direct_message(online: Desk) -> None:
    """Slack lets a bot upload only where it belongs."""
    general = online.sandbox.state.find_channel("#general")
    assert general is not None
    general.members.discard(online.sandbox.state.team.bot_user)
    said = await online.types("ana", "/oncall schedule show payments-primary")
    assert "No picture" not in said
    assert pictures(online) == []
    assert len([message for message in online.direct("ana") if message.files]) == 1


@pytest.mark.parametrize("verb", ["show", "edit", "delete"])
async def test_an_unknown_name_is_answered_with_the_one_that_was_meant(online: Desk, verb: str) -> None:
    """And a verb without a name with all there are."""
    said = await online.types("ana", f"/oncall schedule {verb} paymnts-primary")
    assert "I don't know a schedule `paymnts-primary`. Did you mean `payments-primary`?" in said
    said = await online.types("ana", f"/oncall schedule {verb}")
    assert f"Say which schedule: `/oncall schedule {verb} NAME`" in said


async def test_a_schedule_that_nothing_pages_says_so(online: Desk) -> None:
    """Whoever has made one may think that it pages already; one that a policy pages says nothing of it."""
    await online.setup.schedules.create(
        "search", Wanted(await weekly(online, "ana")), await actor(online, "ana")
    )
    said = await online.types("ana", "/oncall schedule show search")
    assert "No escalation policy pages *search* yet" in said
    assert "`levels: [{targets: [{schedule: search}], timeout: 5m}]`" in said
    assert "{schedule: 'on'}" in schedule_text.unpaged("on"), "it can be pasted, whatever the name"
    assert "No escalation policy" not in await online.types("ana", "/oncall schedule show payments-primary")


async def test_a_mention_gets_the_picture_and_a_button_for_the_form(online: Desk) -> None:
    """Slash commands do not work in threads."""
    await online.says("ana", "@midwatch schedule show payments-primary", "#payments")
    await until(lambda: len(pictures(online, "#payments")) == 1 and len(online.said("#payments")) == 2)
    await online.says("ana", "@midwatch schedule edit payments-primary", "#payments")
    await until(lambda: any("Fill it in here" in visible_text(one) for one in online.said("#payments")))
    assert len(pictures(online, "#payments")) == 1


@pytest.mark.parametrize("scopes", [["files:write"]])
async def test_a_sandbox_without_the_scope_refuses_as_slack_does(desk: Desk, scopes: Sequence[str]) -> None:
    """The scope that is missing is named by Slack, and passed on."""
    fewer = Options(now=desk.clock.now, ack_timeout_s=PATIENT_S, scopes=Options().scopes.difference(scopes))
    async with SandboxServer(options=fewer) as sandbox:
        other = build_desk(
            desk.clock, desk.database, sandbox, slack_settings(sandbox), desk.slack._connection._rhythm
        )
        await other.connect()
        said = await other.types("ana", "/oncall schedule show payments-primary")
        assert "Slack wants the scope `files:write`" in said
        await other.slack.stop()
        await other.slack.transport.close()
