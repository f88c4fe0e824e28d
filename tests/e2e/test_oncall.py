"""Who is on call, and putting somebody else on call."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.e2e.team import Team

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[2]
FORM = "/override @user"


async def who(team: Team) -> list[dict[str, object]]:
    """What `midwatch who` says on the same database, at the time it is there."""
    app = team.midwatch.app
    key = app.settings.secret_key
    assert key is not None
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MIDWATCH_", "SLACK_"))}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "who", "--json", "--at", app.clock.now().isoformat()),
        cwd=ROOT,
        env={
            **kept,
            "MIDWATCH_DATABASE_URL": app.settings.database_url,
            "MIDWATCH_SECRET_KEY": key.get_secret_value(),
        },
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    rows: list[dict[str, object]] = json.loads(said)
    return rows


async def test_who_is_on_call(team: Team) -> None:
    """/oncall and `midwatch who` say who, since when, until when and who is next, per schedule."""
    said = await team.types("dee", "/oncall")
    primary, secondary, *_ = said.splitlines()
    row = r"📟 \*{}\*: \*{}\* · since <!date\^.+ · until <!date\^.+ · next: \*{}\*"
    assert re.fullmatch(row.format("payments-primary", "ana", "ben"), primary)
    assert re.fullmatch(row.format("payments-secondary", "ben", "cho"), secondary)
    rows = await who(team)
    assert [(row["schedule"], row["people"], row["next_people"]) for row in rows] == [
        ("payments-primary", ["ana"], ["ben"]),
        ("payments-secondary", ["ben"], ["cho"]),
    ]
    assert all(row["since"] and row["until"] for row in rows)


async def test_an_override_takes_the_next_page(team: Team) -> None:
    """The answer says exactly what was done, in the time zones of both; the page goes there; then it ends."""
    now = team.midwatch.app.clock.now()
    said = await team.types("ana", "/override payments-primary @ben 2h")
    assert "*ben* is on call on *payments-primary* for 2 h" in said
    assert "In place of *ana*" in said
    for zone in ("Europe/Berlin", "America/New_York"):
        assert f"{now.astimezone(ZoneInfo(zone)):%H:%M}" in said
        assert f"{(now + timedelta(hours=2)).astimezone(ZoneInfo(zone)):%H:%M} {zone}" in said
    assert "*ben*" in (await team.types("ana", "/oncall payments-primary"))
    for told in ("ben", "ana"):
        await team.until(
            lambda name=told: any("payments-primary" in one for one in team.direct_messages(name))
        )
    number = await team.fire("The override is asked")
    await team.until(lambda: team.card(number, "ben"))
    await team.time_passes(minutes=1)
    await team.until(lambda: team.texts_to("ben", number))
    assert len(team.texts_to("ben", number)) == 1
    assert team.card(number, "ana") is None
    assert not team.texts_to("ana", number)
    await team.types("ben", f"/oncall resolve {number}")
    await team.time_passes(minutes=120)
    assert "*ana*" in (await team.types("ana", "/oncall payments-primary"))


async def test_of_several_schedules_one_is_asked_for(team: Team) -> None:
    """Without a name it is a question which, and nothing is saved."""
    said = await team.types("ana", "/override @ben 2h")
    assert "On which schedule?" in said
    assert "Nothing is saved yet." in said
    assert await team.midwatch.app.roster.overrides.listed() == []


@pytest.mark.parametrize("typed", ["/override @ben yesterday", "/override ben 2h", "/override @ben"])
async def test_a_wrong_override_is_shown_the_form(team: Team, typed: str) -> None:
    """A time that is over, no mention, no time: nothing is done, and the answer shows how it is written."""
    said = await team.types("ana", typed)
    assert FORM in said
    assert await team.midwatch.app.roster.overrides.listed() == []
