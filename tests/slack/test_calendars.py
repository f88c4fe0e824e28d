"""Calendars, groups and topics by command: done, refused, and by somebody who may not."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa
from aiohttp import web

import bot
from bot.sandbox.content import visible_text
from bot.sandbox.server import SandboxServer
from bot.slack.connection import Rhythm
from bot.slack.rota import calendars, places
from bot.slack.rota.calendars import Follow, Link, Wish
from engine.config.parse import parse_config
from engine.db import Database, Tx
from engine.errors import BadCommand, NotFound
from engine.models import ORG
from engine.rota.calendars import Calendars
from engine.schema import calendar_imports, findings
from engine.store import directory as store
from engine.store import shown
from engine.store.shown import Shown, What
from tests.fakes import FakeClock
from tests.slack.conftest import Desk, build_desk, slack_settings

URL = re.compile(r"https://pager\.example\.com/calendar/(mwc_[\w-]+)\.ics")


@pytest.fixture
async def office(
    clock: FakeClock, configured: Path, tmp_path: Path, sandbox: SandboxServer, rhythm: Rhythm
) -> AsyncIterator[Desk]:
    """A desk whose Midwatch can be reached from outside, and may fetch from this machine."""
    path = tmp_path / "office.sqlite3"
    shutil.copy(configured, path)
    database = Database(f"sqlite:///{path}")
    settings = slack_settings(sandbox, public_url="https://pager.example.com", calendar_private=True)
    made = build_desk(clock, database, sandbox, settings, rhythm)
    await made.connect()
    yield made
    await made.slack.stop()
    await made.slack.transport.close()
    await database.close()


@dataclass
class Server:
    url: str = ""
    text: str = field(
        default="BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:20260302T080000Z\r\n"
        "DTEND:20260302T180000Z\r\nSUMMARY:cho\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nUID:2\r\n"
        "DTSTART:20260304T080000Z\r\nDTEND:20260304T180000Z\r\nSUMMARY:Team <lunch>\r\nEND:VEVENT\r\n"
        "END:VCALENDAR\r\n"
    )

    async def answer(self, _request: web.Request) -> web.Response:
        return web.Response(text=self.text)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    app = web.Application()
    app.add_routes([web.get("/team.ics", made.answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/team.ics"
    yield made
    await runner.cleanup()


def opened(desk: Desk) -> Calendars:
    return Calendars(desk.database, desk.clock, desk.roster, "https://pager.example.com")


def token(answer: str) -> str:
    found = URL.search(answer)
    assert found is not None, answer
    return found[1]


# --- what is typed


def test_what_is_understood() -> None:
    """Names with spaces and quotes, an address as Slack links it, and verbs at the end."""
    assert calendars.parse_own("") == Link(None, Wish.GET)
    assert calendars.parse_own("new") == Link(None, Wish.NEW)
    assert calendars.parse("calendar payments") == Link("payments", Wish.GET)
    assert calendars.parse('Calendar "late nights" revoke') == Link("late nights", Wish.REVOKE)
    assert calendars.parse("import payments <https://Ex.com/A.ics?k=1&amp;b=2|Ex.com>") == Follow(
        "payments", "https://Ex.com/A.ics?k=1&b=2"
    )
    assert calendars.parse("import late nights webcal://ex.com/a.ics") == Follow(
        "late nights", "webcal://ex.com/a.ics"
    )
    assert calendars.parse("import payments off") == Follow("payments", "")
    assert calendars.parse("import payments") == Follow("payments", None)
    assert places.parse("group payments <!subteam^S0PAYMENTS|@payments-oncall>") == places.InGroup(
        "payments", "@payments-oncall"
    )
    assert places.parse("group late nights <!subteam^S0PAYMENTS>") == places.InGroup(
        "late nights", "S0PAYMENTS"
    )
    assert places.parse("group payments off") == places.InGroup("payments", None)
    assert places.parse("topic payments on") == places.InTopic("payments", on=True)


@pytest.mark.parametrize(
    "text", ["calendar", "import", "import https://ex.com/a.ics", "import https://ex.com off"]
)
def test_what_is_not_understood_is_answered_with_the_form(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(BadCommand, match="/oncall schedule"):
        calendars.parse(text)


@pytest.mark.parametrize(
    "text", ["group", "group payments", "group payments Payments", "topic payments", "topic a b"]
)
def test_a_place_that_is_not_understood_is_answered_with_the_form(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(BadCommand, match="/oncall schedule"):
        places.parse(text)


# --- links


async def test_a_link_to_ones_own_shifts(office: Desk) -> None:
    """Shown once; asked again it says that there is one; a new one ends the old; revoked it opens nothing."""
    first = token(await office.types("ana", "/oncall me calendar"))
    assert b"On call: payments-primary" in (await opened(office).open(first)).body
    again = await office.types("ana", "/oncall me calendar")
    assert "cannot be shown again" in again
    assert URL.search(again) is None
    second = token(await office.types("ana", "/oncall me calendar new"))
    for link, opens in ((first, False), (second, True)):
        assert (await _opens(office, link)) is opens
    assert "opens nothing any more" in await office.types("ana", "/oncall me calendar revoke")
    assert not await _opens(office, second)
    assert "You have no link" in await office.types("ana", "/oncall me calendar revoke")
    assert "I don't understand `sideways`" in await office.types("ana", "/oncall me calendar sideways")


async def _opens(desk: Desk, link: str) -> bool:
    try:
        await opened(desk).open(link)
    except NotFound:
        return False
    return True


async def test_a_link_to_a_schedule(office: Desk) -> None:
    """In any case; a mistyped name gets the nearest one."""
    link = token(await office.types("ben", "/oncall schedule calendar PAYMENTS-primary"))
    assert b"ana (payments-primary)" in (await opened(office).open(link)).body
    assert "Did you mean `payments-primary`?" in await office.types(
        "ben", "/oncall schedule calendar payment-primary"
    )


async def test_who_may_not_use_midwatch_gets_no_link(office: Desk) -> None:
    """Somebody who is no person here yet, and a guest."""
    assert "Run `/oncall me` once" in await office.types("dee", "/oncall me calendar")
    assert "Guests may not" in await office.types("gus", "/oncall schedule calendar payments-primary")
    assert await opened(office).links() == []


async def test_a_link_is_not_shown_where_others_read(office: Desk) -> None:
    """Asked for by a mention in a channel, it is refused; the answer is seen by the asker alone."""
    await office.says("ana", "<@UMIDWATCH> me calendar", "#general")
    await office.sandbox.until(
        lambda: any("others read here" in one for one in office.whispers("ana", "#general"))
    )
    assert all(URL.search(visible_text(message)) is None for message in office.said("#general"))
    assert await opened(office).links() == []


async def test_without_a_public_url_it_says_what_to_set(desk: Desk) -> None:
    """A link that nobody can open would be no help."""
    await desk.connect()
    assert "MIDWATCH_PUBLIC_URL" in await desk.types("ana", "/oncall me calendar")


# --- a calendar to follow


async def test_a_schedule_follows_a_calendar(office: Desk, server: Server) -> None:
    """By an admin: read at once, and whom it names is on call; who is not matched is named."""
    answer = await office.types("cho", f"/oncall schedule import payments-primary {server.url}")
    assert "1 shifts of it were read" in answer
    assert "Team &lt;lunch&gt; names nobody here" in answer
    assert "*cho*" in await office.types("dee", "/oncall who payments-primary")
    assert "follows a calendar" in await office.types("ben", "/oncall schedule import payments-primary")
    async with office.database.snapshot() as tx:
        assert server.url not in (await tx.execute(sa.select(calendar_imports.c.url))).scalar_one()
    assert "follows no calendar any more" in await office.types(
        "cho", "/oncall schedule import payments-primary off"
    )
    assert "*ana*" in await office.types("dee", "/oncall who payments-primary")
    assert "follows no calendar" in await office.types("cho", "/oncall schedule import payments-primary off")


async def test_what_cannot_be_followed_changes_nothing(office: Desk, server: Server) -> None:
    """No calendar there, no server there, no such schedule."""
    server.text = "<html>log in</html>"
    answer = await office.types("cho", f"/oncall schedule import payments-primary {server.url}")
    assert "What is there is no calendar. Nothing was changed." in answer
    assert "There are:" in await office.types("cho", f"/oncall schedule import nights {server.url}")
    async with office.database.snapshot() as tx:
        assert (await tx.execute(sa.select(calendar_imports))).all() == []


async def test_only_an_admin_lets_a_schedule_follow_a_calendar(office: Desk, server: Server) -> None:
    """Whoever writes the calendar puts people on call."""
    answer = await office.types("ana", f"/oncall schedule import payments-primary {server.url}")
    assert "Only an admin" in answer
    assert "Only an admin" in await office.types("ana", "/oncall schedule import payments-primary off")


# --- where Slack shows it


async def named(desk: Desk, name: str = "payments-primary") -> tuple[str | None, bool]:
    async with desk.database.snapshot() as tx:
        directory = await store.read(tx, ORG, desk.clock.now(), desk.setup.vault)
    (found,) = [one for one in directory.schedules.values() if one.name == name]
    return found.user_group, found.topic


async def test_a_group_and_a_topic_by_command(office: Desk) -> None:
    """On and off, by somebody on the schedule."""
    answer = await office.types(
        "ben", "/oncall schedule group payments-primary <!subteam^S0PAYMENTS|@payments-oncall>"
    )
    assert "@payments-oncall holds whoever is on call" in answer
    assert await named(office) == ("@payments-oncall", False)
    assert "follows" in await office.types("ben", "/oncall schedule group payments-primary off")
    assert await named(office) == (None, False)
    assert "has no channel" in await office.types("ben", "/oncall schedule topic payments-primary on")
    assert "is no user group" in await office.types(
        "ben", "/oncall schedule group payments-primary Payments!"
    )


async def test_a_topic_by_command(office: Desk) -> None:
    """On and off in the schedule's channel; not by somebody who is not on it."""
    demo = (Path(bot.__file__).parent / "demo.yaml").read_text()
    name = "- name: payments-secondary\n"
    await office.setup.apply(parse_config(demo.replace(name, f'{name}  channel: "#payments"\n')))
    answer = await office.types("ben", "/oncall schedule topic payments-secondary on")
    assert "The topic of #payments says who is on call" in answer
    assert await named(office, "payments-secondary") == (None, True)
    assert "you are neither" in await office.types("ana", "/oncall schedule topic payments-secondary off")
    assert "Say on or off" in await office.types("ben", "/oncall schedule topic payments-secondary maybe")
    assert "is taken out" in await office.types("ben", "/oncall schedule topic payments-secondary off")
    assert await named(office, "payments-secondary") == (None, False)


async def test_who_is_not_on_the_schedule_may_not_change_where_it_is_shown(office: Desk) -> None:
    """Ana is not on the second schedule, and no admin of Midwatch."""
    answer = await office.types("ana", "/oncall schedule group payments-secondary @payments-oncall")
    assert "you are neither" in answer
    assert await named(office, "payments-secondary") == (None, False)


# --- the status


async def test_the_status_lists_what_was_found_and_what_slack_does_not_show(office: Desk) -> None:
    """With the schedule's name, escaped."""
    ids = (await office.roster.directory()).schedules
    now = office.clock.now()

    async def unit(tx: Tx) -> None:
        await tx.execute(
            sa.insert(findings).values(
                org_id=ORG,
                schedule_id=min(ids),
                key="x",
                text="Nobody is on call <ever>.",
                found_at=now,
                told_at=now,
            )
        )
        await shown.save_shown(tx, ORG, min(ids), What.TOPIC, Shown(None, "The topic is too long."), now)

    await office.database.write(unit)
    answer = await office.types("dee", "/oncall status")
    assert "🔭 *payments-primary*: Nobody is on call &lt;ever&gt;." in answer
    assert "🔭 *payments-primary*: The topic is too long." in answer
