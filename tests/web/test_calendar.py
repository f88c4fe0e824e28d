"""GET /calendar/{token}.ics: what a link opens, and that one which opens nothing says no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp.web import AppRunner, TCPSite
from icalendar import Calendar

from bot.app import build
from bot.settings import Settings
from engine.config.parse import parse_config
from engine.errors import BadInput
from engine.rota.calendars import Calendars, Subject
from tests.fakes import FakeClock

CONFIG = """
people:
  - {name: ana, slack: U0ANA, timezone: Europe/Berlin}
  - {name: ben, slack: U0BEN, timezone: UTC}
schedules:
  - name: payments
    timezone: UTC
    layers: [{name: week, users: [ana, ben], start: "2026-01-05T09:00", rotation: {every: 1, unit: week}}]
  - name: nights
    timezone: UTC
    layers: [{name: all, users: [ben], start: "2026-01-05T09:00", rotation: {every: 1, unit: week}}]
"""


@dataclass
class Office:
    """A whole Midwatch's web on a port, and links to calendars."""

    url: str
    clock: FakeClock
    calendars: Calendars
    apply: object
    deactivate: object
    ids: dict[str, int]

    async def get(self, link: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        path = link.removeprefix("https://pager.example.com")
        async with aiohttp.ClientSession() as session:
            asked = {name.replace("_", "-"): value for name, value in headers.items()}
            async with session.request(method, self.url + path, headers=asked) as answer:
                return answer.status, dict(answer.headers), await answer.text()


@pytest.fixture
async def office(any_database_url: str, clock: FakeClock) -> AsyncIterator[Office]:
    settings = Settings(
        database_url=any_database_url,
        secret_key="a secret for tests only",  # type: ignore[arg-type]  # made one
        public_url="https://pager.example.com",
    )
    app = build(settings, clock, [])
    await app.setup.apply(parse_config(CONFIG))
    clock.move(days=60)  # before a schedule was made nobody was on call by it
    runner = AppRunner(app.web)
    await runner.setup()
    await TCPSite(runner, "127.0.0.1", 0).start()
    directory = await app.roster.directory()
    ids = {person.name: person.id for person in directory.people.values()}
    ids |= {named.name: named.id for named in directory.schedules.values()}
    calendars = Calendars(app.database, clock, app.roster, settings.public_url)

    async def apply(config: str) -> None:
        await app.setup.apply(parse_config(config))

    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield Office(url, clock, calendars, apply, app.setup.deactivate, ids)
    await runner.cleanup()
    await app.database.close()


def events(text: str) -> list[tuple[str, str]]:
    return [
        (f"{event['DTSTART'].dt:%m-%d %H:%M}", str(event["SUMMARY"]))
        for event in Calendar.from_ical(text).walk("VEVENT")
    ]


async def test_a_schedules_calendar_has_everybodys_shifts(office: Office) -> None:
    """A month back and a year ahead, whole shifts, by the name of whoever has them."""
    link = await office.calendars.make(Subject(schedule_id=office.ids["payments"]), office.ids["ana"])
    status, headers, text = await office.get(link)
    assert (status, headers["Content-Type"]) == (200, "text/calendar; charset=utf-8")
    shown = events(text)
    assert shown[0] == ("03-30 09:00", "ana (payments)")
    assert ("05-04 09:00", "ben (payments)") in shown
    assert len(shown) == 57


async def test_a_persons_calendar_has_their_shifts_on_every_schedule(office: Office) -> None:
    """And nobody else's."""
    link = await office.calendars.make(Subject(person_id=office.ids["ben"]), office.ids["ben"])
    shown = events((await office.get(link))[2])
    assert {summary for _, summary in shown} == {"On call: payments", "On call: nights"}
    assert ("04-27 09:00", "On call: payments") not in shown
    assert ("05-04 09:00", "On call: payments") in shown


async def test_what_did_not_change_is_not_sent_again(office: Office) -> None:
    """By ETag, a weak one too, over hours; an edit changes it."""
    link = await office.calendars.make(Subject(schedule_id=office.ids["payments"]), None)
    _, headers, _ = await office.get(link)
    etag = headers["Etag"] if "Etag" in headers else headers["ETag"]
    office.clock.move(hours=3)
    assert (await office.get(link, If_None_Match=etag))[0] == 304
    assert (await office.get(link, If_None_Match=f'"x", W/{etag}'))[0] == 304
    assert headers["Cache-Control"] == "private, no-cache"
    await office.apply(CONFIG.replace("users: [ana, ben]", "users: [ben, ana]"))  # type: ignore[operator]  # set by the fixture
    status, _, text = await office.get(link, If_None_Match=etag)
    assert status == 200
    assert ("05-04 09:00", "ana (payments)") in events(text)


async def test_ids_stay_from_day_to_day(office: Office) -> None:
    """A program that subscribed moves its events, and does not double them."""
    link = await office.calendars.make(Subject(schedule_id=office.ids["payments"]), None)

    async def ids() -> set[str]:
        return {str(event["UID"]) for event in Calendar.from_ical((await office.get(link))[2]).walk("VEVENT")}

    today = await ids()
    office.clock.move(days=1)
    assert len(today & await ids()) >= len(today) - 1


async def test_unknown_and_revoked_links_are_answered_alike(office: Office) -> None:
    """404 with the same words, for a schedule or person that is gone too."""
    ana, ben = office.ids["ana"], office.ids["ben"]
    revoked = await office.calendars.make(Subject(person_id=ana), ana)
    renewed = await office.calendars.make(Subject(person_id=ana), ana)
    left = await office.calendars.make(Subject(person_id=ben), ben)
    of_who_left = await office.calendars.make(Subject(schedule_id=office.ids["payments"]), ben)
    await office.deactivate(ben)  # type: ignore[operator]  # set by the fixture
    unknown = await office.get("/calendar/mwc_nobody-made-this.ics")
    assert unknown[0] == 404
    for link in (revoked, left, of_who_left):
        status, _, text = await office.get(link)
        assert (status, text) == (404, unknown[2])
    assert (await office.get(renewed))[0] == 200
    assert await office.calendars.revoke(Subject(person_id=ana), ana)
    assert not await office.calendars.revoke(Subject(person_id=ana), ana)
    assert (await office.get(renewed))[::2] == unknown[::2]


async def test_each_person_has_a_link_of_their_own_to_a_schedule(office: Office) -> None:
    """One person's revoking ends nobody else's subscription."""
    payments = Subject(schedule_id=office.ids["payments"])
    mine, yours = [await office.calendars.make(payments, office.ids[name]) for name in ("ana", "ben")]
    await office.calendars.revoke(payments, office.ids["ana"])
    assert [(await office.get(link))[0] for link in (mine, yours)] == [404, 200]


async def test_a_link_is_stored_as_a_hash(office: Office) -> None:
    """Who reads the database cannot open it."""
    link = await office.calendars.make(Subject(person_id=office.ids["ana"]), None)
    (feed,) = await office.calendars.links()
    assert link.rpartition("/")[2].removesuffix(".ics") not in str(feed)


async def test_without_a_public_url_there_is_no_link(office: Office) -> None:
    """It says what to set."""
    offline = Calendars(office.calendars._database, office.clock, office.calendars._roster, None)
    with pytest.raises(BadInput, match="MIDWATCH_PUBLIC_URL"):
        await offline.make(Subject(person_id=office.ids["ana"]), None)
