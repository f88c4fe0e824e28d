"""calendar: links to shifts for calendar programs, and calendars that schedules follow.

Never shows a link twice: it is printed when it is made.
"""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from bot.commands import names
from bot.commands.opened import Opened, opened
from bot.commands.say import local, say, say_json, say_table
from engine.directory import Directory
from engine.errors import BadCommand, NotFound
from engine.rota.calendars import Calendars, Subject
from engine.store.calendars import Feed, Import

Json = Annotated[bool, Parameter("--json", negative=())]

calendar = App(name="calendar", help="Links to shifts for calendar programs, and calendars to follow.")


@calendar.command(name="link")
async def link(*, person: str | None = None, schedule: str | None = None, as_json: Json = False) -> None:
    """Make a link to the shifts of a person or of a schedule. It is shown this once.

    Parameters
    ----------
    person
        By name, with or without @.
    schedule
        By name.
    """
    async with opened() as engine:
        subject = _subject(await engine.roster.directory(), person, schedule)
        # Why beside those that there are: each link that is made here is for somebody else.
        url = await _calendars(engine).make(subject, None, beside=True)
        say_json({"url": url}) if as_json else say(url)


@calendar.command(name="list")
async def list_links(*, as_json: Json = False) -> None:
    """The links that open something, and the calendars that schedules follow."""
    async with opened(look_only=True) as engine:
        directory = await engine.roster.directory()
        links = await _calendars(engine).links()
        followed = await _imports(engine).followed()
        if as_json:
            return say_json(
                {
                    "links": [_plain_link(one, directory) for one in links],
                    "followed": [_plain_import(one, directory) for one in followed.values()],
                }
            )
        rows = [_link_row(one, directory) for one in links]
        rows += [_import_row(one, directory) for one in followed.values()]
        say_table(rows, "There is no link, and no schedule follows a calendar.")


@calendar.command(name="revoke")
async def revoke(link_id: int, /) -> None:
    """Let a link open nothing any more.

    Parameters
    ----------
    link_id
        Its number, as `midwatch calendar list` shows it.
    """
    async with opened() as engine:
        if not await _calendars(engine).revoke_by_id(link_id):
            raise NotFound(f"There is no link {link_id} that opens something; see: midwatch calendar list")
        say(f"Link {link_id} opens nothing any more.")


@calendar.command(name="follow")
async def follow(schedule: str, url: str, /) -> None:
    """Let a schedule follow a calendar: whoever its events name is on call instead of the layers.

    Parameters
    ----------
    schedule
        By name.
    url
        Of an iCalendar file: https://, http:// or webcal://.
    """
    async with opened() as engine:
        named = names.schedule(await engine.roster.directory(), schedule)
        done = await _imports(engine).follow(named.id, url)
        say(f"{named.name} follows that calendar: {len(done.shifts)} shifts of it were read.")
        for title in done.unmatched:
            say(f"  {title!r} names nobody here and puts nobody on call.")


@calendar.command(name="unfollow")
async def unfollow(schedule: str, /) -> None:
    """From now on the layers of the schedule alone say who is on call.

    Parameters
    ----------
    schedule
        By name.
    """
    async with opened() as engine:
        named = names.schedule(await engine.roster.directory(), schedule)
        ended = await _imports(engine).unfollow(named.id)
        say(f"{named.name} follows no calendar{' any more' if ended else ''}.")


def _calendars(engine: Opened) -> Calendars:
    return Calendars(engine.database, engine.clock, engine.roster, engine.settings.public_url)


def _imports(engine: Opened) -> Any:
    # Why here: what reads calendars takes longer to load than most commands run.
    from engine.calendar.fetch import fetcher
    from engine.nudge import Nudge
    from engine.rota.imports import Imports

    fetch = fetcher(allow_private=engine.settings.calendar_private)
    nudge = Nudge(engine.database)
    return Imports(engine.database, engine.clock, nudge, engine.roster, engine.setup.vault, fetch)


def _subject(directory: Directory, person: str | None, schedule: str | None) -> Subject:
    if (person is None) is (schedule is None):
        raise BadCommand("Name one of them: --person NAME or --schedule NAME.")
    if person is not None:
        return Subject(person_id=names.person(directory, person).id)
    return Subject(schedule_id=names.schedule(directory, schedule or "").id)


def _whose(feed: Feed, directory: Directory) -> str:
    if feed.person_id is not None:
        person = directory.people.get(feed.person_id)
        return f"person {person.name}" if person else "a person"
    named = directory.schedules.get(feed.schedule_id or 0)
    return f"schedule {named.name}" if named else "a schedule"


def _holder(feed: Feed, directory: Directory) -> str:
    person = directory.people.get(feed.made_by or 0)
    return f"by {person.name}" if person else "by the command line"


def _name(one: Import, directory: Directory) -> str:
    named = directory.schedules.get(one.schedule_id)
    return named.name if named else "a schedule that was deleted"


def _link_row(feed: Feed, directory: Directory) -> tuple[str, ...]:
    return (
        f"link {feed.id}",
        _whose(feed, directory),
        _holder(feed, directory),
        f"since {local(feed.created_at)}",
    )


def _import_row(one: Import, directory: Directory) -> tuple[str, ...]:
    read = f"read {local(one.fetched_at)}" if one.fetched_at else "never read"
    trouble = f"cannot be read: {one.error}" if one.error else f"{len(one.shifts)} shifts"
    return ("followed", f"schedule {_name(one, directory)}", trouble, read)


def _plain_link(feed: Feed, directory: Directory) -> dict[str, Any]:
    return {
        "id": feed.id,
        "of": _whose(feed, directory),
        "made": _holder(feed, directory),
        "created_at": feed.created_at,
    }


def _plain_import(one: Import, directory: Directory) -> dict[str, Any]:
    return {
        "schedule": _name(one, directory),
        "shifts": len(one.shifts),
        "unmatched": list(one.unmatched),
        "fetched_at": one.fetched_at,
        "error": one.error,
    }
