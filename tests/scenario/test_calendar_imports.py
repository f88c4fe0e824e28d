"""A schedule that follows a calendar: fetched from a real server, which may fail in every way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from aiohttp import web

from engine.calendar.fetch import LARGEST, fetcher
from engine.errors import BadCalendar, BadInput, NotFound
from engine.models import ORG, TimerKind
from engine.rota.calendars import Calendars, Subject
from engine.rota.imports import Imports
from engine.schedule import people_at
from engine.schema import calendar_imports, overrides
from engine.schema import timers as timer_rows
from engine.store import findings
from engine.vault import Vault
from tests.fakes import START
from tests.scenario.harness import CONFIG, Pager

FOLLOWING = (
    CONFIG.replace(
        "    timezone: UTC\n    layers:", '    timezone: UTC\n    channel: "#payments"\n    layers:'
    )
    .replace("schedules:", '  - {name: dave, contact: {sms: "+12025550104"}}\nschedules:')
    .replace("targets: [{person: bob}]", "targets: [{person: dave}]")
)


def event(day: int, who: str, hour: int = 9, until: int = 17) -> str:
    return (
        f"BEGIN:VEVENT\r\nUID:{day}-{hour}-{who}\r\nDTSTART:202603{day:02d}T{hour:02d}0000Z\r\n"
        f"DTEND:202603{day:02d}T{until:02d}0000Z\r\nSUMMARY:{who}\r\nEND:VEVENT\r\n"
    )


def ics(*events: str) -> str:
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{''.join(events)}END:VCALENDAR\r\n"


@dataclass
class Server:
    """Somebody's calendar, and what was asked of it."""

    text: str = ics(event(2, "bob"), event(3, "bob"))
    status: int = 200
    etag: str | None = None
    url: str = ""
    asked: list[str | None] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.headers.get("If-None-Match"))
        if self.etag is not None and self.asked[-1] == self.etag:
            return web.Response(status=304)
        headers = {"ETag": self.etag} if self.etag else {}
        return web.Response(status=self.status, text=self.text, headers=headers, content_type="text/plain")

    async def moved(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(request.query.get("to", "/moved"))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    app = web.Application()
    app.add_routes([web.get("/team.ics", made.answer), web.get("/moved", made.moved)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@pytest.fixture
async def following(pager: Pager, server: Server) -> AsyncIterator[Pager]:
    """`primary` follows the server's calendar."""
    _allow_private(pager)
    await pager.configure(FOLLOWING)
    await imports(pager).follow(await schedule_id(pager), f"{server.url}/team.ics")
    yield pager
    pager.pages()
    # Handoffs are told too; that is another story.
    pager._heard = [page for page in pager._heard if page.kind.value != "notice"]


def imports(pager: Pager, *, allow_private: bool = True) -> Imports:
    app = pager.app
    vault = Vault("a secret for tests only")
    return Imports(
        app.database, pager.clock, app.nudge, app.roster, vault, fetcher(allow_private=allow_private)
    )


def _allow_private(pager: Pager) -> None:
    """The worker's own errand, fetching from this machine."""
    (lane,) = [lane for lane in pager.app.worker.lanes if lane.name.value == "outside"]
    errands = lane._handler._handler  # type: ignore[attr-defined]  # the wiring of bot.app
    errands._work[TimerKind.CALENDAR.value] = imports(pager).fetch


async def schedule_id(pager: Pager) -> int:
    (found,) = (await pager.app.roster.directory()).schedules
    return found


async def on_call(pager: Pager, day: int, hour: int) -> list[str]:
    directory = await pager.app.roster.directory()
    (named,) = directory.schedules.values()
    at = datetime(2026, 3, day, hour, tzinfo=UTC)
    return [directory.people[int(one)].name for one in people_at(named.schedule, at)]


async def row(pager: Pager) -> sa.Row[tuple[object, ...]]:
    async with pager.app.database.snapshot() as tx:
        return (await tx.execute(sa.select(calendar_imports))).one()


async def keys(pager: Pager) -> list[str]:
    async with pager.app.database.snapshot() as tx:
        return [found.key for found in await findings.read_findings(tx, ORG)]


async def test_whoever_an_event_names_is_on_call_and_paged(following: Pager) -> None:
    """From its start to its end; in between the layers answer."""
    assert [await on_call(following, 2, hour) for hour in (8, 9, 16, 17)] == [
        ["alice"],
        ["bob"],
        ["bob"],
        ["alice"],
    ]
    await following.alert()
    following.expect_page("bob")
    await following.ack(by="bob")


async def test_an_override_comes_before_the_calendar(following: Pager) -> None:
    """Whoever is put on call by hand is, whatever the calendar says and whenever it is read."""
    carol = (await following.person("carol")).person_id
    assert carol is not None
    await following.app.roster.overrides.set(
        schedule_id=await schedule_id(following),
        person_id=carol,
        start_at=START,
        end_at=START + timedelta(hours=2),
        actor=await following.person("carol"),
    )
    await following.advance(minutes=16)
    assert [await on_call(following, 2, hour) for hour in (9, 10, 11)] == [["carol"], ["carol"], ["bob"]]
    async with following.app.database.snapshot() as tx:
        assert len((await tx.execute(sa.select(overrides))).all()) == 1


async def test_it_is_read_again_every_quarter_of_an_hour_by_its_etag(
    following: Pager, server: Server
) -> None:
    """Once unchanged, nothing is sent again; changed, it is on call at once."""
    server.etag = '"1"'
    await following.advance(minutes=15)
    await following.advance(minutes=15)
    assert server.asked == [None, None, '"1"']
    server.text, server.etag = ics(event(2, "carol"), event(3, "bob")), '"2"'
    await following.advance(minutes=15)
    assert (await on_call(following, 2, 12), await on_call(following, 3, 12)) == (["carol"], ["bob"])


async def test_what_was_is_not_changed_by_an_edit_of_the_calendar(following: Pager, server: Server) -> None:
    """Bob was on call until the calendar said otherwise."""
    await following.advance(hours=2, minutes=5)
    server.text = ics(event(2, "carol"))
    await following.advance(minutes=15)
    assert [await on_call(following, 2, hour) for hour in (9, 10, 12)] == [["bob"], ["bob"], ["carol"]]


@pytest.mark.parametrize(
    ("breaks", "why"),
    [
        (lambda server: setattr(server, "status", 500), "it answered 500"),
        (lambda server: setattr(server, "text", "<html>log in</html>"), "What is there is no calendar"),
        (lambda server: setattr(server, "text", ""), "What is there is no calendar"),
        (lambda server: setattr(server, "text", ics()), "it names nobody any more"),
        (lambda server: setattr(server, "text", ics(event(2, "Lunch"))), "it names nobody any more"),
        (lambda server: setattr(server, "text", "x" * (LARGEST + 1)), "it is larger than 2 MB"),
    ],
)
async def test_the_last_good_copy_stays_and_the_failure_is_told_once(
    following: Pager, server: Server, breaks: Callable[[Server], None], why: str
) -> None:
    """Told when it fails for the second time, a minute later, and no more; told again after it was well.
    (grafana/oncall#3603, #5570: theirs emptied the schedule)"""
    good = server.text
    breaks(server)
    await following.advance(hours=3)
    told = following.expect_message("channel", "#payments").text
    assert f"Its calendar cannot be read: {why}. What it said on Mon 02 Mar 09:00 goes on." in told
    following.expect_silence()
    assert await on_call(following, 2, 16) == ["bob"]
    assert (await row(following)).error == why
    server.text, server.status = good, 200
    await following.advance(minutes=16)
    assert ((await row(following)).error, (await row(following)).failures) == (None, 0)
    assert await keys(following) == []
    breaks(server)
    await following.advance(hours=1)
    following.expect_message("channel", "#payments")


async def test_an_unchanged_text_is_not_written_again(following: Pager, server: Server) -> None:
    """A 304, and the same text once more, leave the megabytes of the row alone."""
    server.etag = '"1"'
    await following.advance(minutes=15)
    statements: list[str] = []

    def note(_c: object, _cu: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    engine = following.app.database.writer_engine.sync_engine
    sa.event.listen(engine, "before_cursor_execute", note)
    await following.advance(minutes=15)
    saved = [one for one in statements if one.startswith("UPDATE calendar_imports")]
    assert saved
    assert not any("body" in one for one in saved)


async def test_one_failure_that_is_over_a_minute_later_is_not_told(following: Pager, server: Server) -> None:
    """A server that is restarted is no finding."""
    server.status = 503
    await following.advance(minutes=15, seconds=30)
    server.status = 200
    await following.advance(minutes=2)
    assert (await row(following)).failures == 0
    assert await keys(following) == []


async def test_a_server_that_is_gone_is_a_failure_like_any_other(following: Pager, server: Server) -> None:
    """And its URL, which may hold a secret, is in no error."""
    with pytest.raises(BadCalendar, match="not reached") as caught:
        await fetcher(allow_private=True)("http://127.0.0.1:1/secret-token.ics", None)
    assert "secret-token" not in str(caught.value)


async def test_an_event_that_names_nobody_is_named(following: Pager, server: Server) -> None:
    """In the channel, once, and who is on call is not guessed."""
    server.text = ics(event(2, "bob"), event(4, "Team lunch"))
    await following.advance(minutes=16)
    assert "'Team lunch'" in following.expect_message("channel", "#payments").text
    assert await on_call(following, 4, 12) == ["alice"]
    assert await keys(following) == ["calendar:nobody:Team lunch"]


async def test_a_calendar_that_cannot_be_read_is_not_followed(pager: Pager, server: Server) -> None:
    """Refused with the reason, and nothing was changed."""
    server.text = "<html>log in</html>"
    with pytest.raises(BadInput, match=r"no calendar\. Nothing was changed"):
        await imports(pager).follow(await schedule_id(pager), f"{server.url}/team.ics")
    assert await imports(pager).followed() == {}
    with pytest.raises(BadInput, match="begins with https"):
        await imports(pager).follow(await schedule_id(pager), "ftp://example.com/x.ics")
    with pytest.raises(NotFound):
        await imports(pager).follow(4711, f"{server.url}/team.ics")


async def test_private_addresses_are_refused_unless_they_are_allowed(pager: Pager, server: Server) -> None:
    """By address, by name, and behind a redirect from wherever."""
    closed, opened = fetcher(allow_private=False), fetcher(allow_private=True)
    port = server.url.rpartition(":")[2]
    for url in (
        server.url,
        f"http://localhost:{port}",
        f"http://[::1]:{port}",
        f"http://[::ffff:127.0.0.1]:{port}",
    ):
        with pytest.raises(BadCalendar, match="private"):
            await closed(f"{url}/team.ics", None)
    assert server.asked == []
    assert (await opened(f"{server.url}/moved?to=/team.ics", None)).body is not None
    with pytest.raises(BadCalendar, match="redirects"):
        await opened(f"{server.url}/moved", None)


async def test_following_no_more_leaves_the_past_as_it_was(following: Pager, server: Server) -> None:
    """From now on the layers answer, and the calendar is asked no more."""
    await following.advance(hours=2)
    assert await imports(following).unfollow(await schedule_id(following))
    assert not await imports(following).unfollow(await schedule_id(following))
    asked = len(server.asked)
    await following.advance(hours=1)
    assert len(server.asked) == asked
    assert [await on_call(following, 2, hour) for hour in (10, 11, 12)] == [["bob"], ["alice"], ["alice"]]


async def test_the_url_is_no_text_in_the_database(following: Pager, server: Server) -> None:
    """Who reads a dump of it cannot fetch the calendar."""
    assert server.url not in str((await row(following)).url)


async def test_an_unchanged_calendar_makes_nothing_new(following: Pager) -> None:
    """Read a hundred times, the directory is what it was: nobody reads it again."""
    before = (await following.app.roster.directory()).rev
    await following.advance(hours=3)
    assert (await following.app.roster.directory()).rev == before


async def test_a_lost_timer_is_armed_again_at_the_next_start(following: Pager) -> None:
    """Or the calendar would be read no more."""

    async def armed() -> int:
        async with following.app.database.snapshot() as tx:
            rows = await tx.execute(timer_rows.select().where(timer_rows.c.kind == "calendar"))
            return len(rows.all())

    await following.app.database.write(
        lambda tx: tx.execute(sa.delete(timer_rows).where(timer_rows.c.kind == "calendar"))
    )
    assert await armed() == 0
    await following.app.sweeps.abreast.go()
    assert await armed() == 1


async def test_every_reader_of_the_schedule_knows_its_calendar(following: Pager) -> None:
    """Who was, is and will be on call, and the file that others subscribe to: one answer."""
    day = START.replace(hour=0)
    (primary,) = await following.app.roster.shifts(day, day + timedelta(days=1))
    (row,) = await following.app.roster.who()
    assert row.reason.startswith("calendar: bob until 2026-03-02 17:00")
    said = [(f"{shift.start:%H:%M}", [one.name for one in shift.people]) for shift in primary.shifts]
    assert said == [("09:00", ["bob"]), ("17:00", ["alice"])]
    link = await Calendars(
        following.app.database, following.clock, following.app.roster, "https://pager.example.com"
    ).make(Subject(schedule_id=await schedule_id(following)), None)
    opened = Calendars(following.app.database, following.clock, following.app.roster, None)
    content = await opened.open(link.rpartition("/")[2].removesuffix(".ics"))
    assert b"SUMMARY:bob (primary)" in content.body
