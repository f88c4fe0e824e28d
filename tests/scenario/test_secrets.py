"""What a provider blurts out about its callers is kept nowhere: no row, no story, no alarm, no log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
import structlog

from bot.logs import set_up_logs
from engine import schema
from engine.models import Method
from engine.pager.story import story
from tests.fakes import FakeClock
from tests.scenario.harness import Pager
from tests.scenario.sending import LADDER

SECRETS = (
    "hunter2userinfo",
    "hunter2query",
    "xoxb-1234567890-hunter2hunter2hunter2",
    "xapp-1-A0123456789-hunter2hunter2hunter2",
    "AC" + "0" * 32 + ":hunter2token",
    "Basic aHVudGVyMmh1bnRlcjI=",
)
BLURTS = (
    f"POST https://midwatch:{SECRETS[0]}@sms.example.com/send?token={SECRETS[1]} failed",
    f"invalid_auth for {SECRETS[2]} and {SECRETS[3]}",
    f"401 for {SECRETS[4]}; sent Authorization: {SECRETS[5]}",
)


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Callable[[], str]]:
    """As a process of ours writes it."""
    handlers, level = list(logging.getLogger().handlers), logging.getLogger().level
    set_up_logs(json=True, path=tmp_path / "midwatch.log")
    yield (tmp_path / "midwatch.log").read_text
    logging.getLogger().handlers[0].close()
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    structlog.reset_defaults()


async def test_what_a_provider_blurts_out_is_kept_nowhere(
    any_database_url: str, clock: FakeClock, logged: Callable[[], str]
) -> None:
    """Errors that hold six kinds of secrets, again and again until the page is dead: none is found in any
    table, in the story, in what others are told of it, or in the log (S-13)."""
    pager = await Pager(any_database_url, clock, LADDER).start()
    pager.transports[Method.SMS].fail_next(*(RuntimeError(blurt) for blurt in (*BLURTS, *BLURTS)))
    await pager.alert(service="search")
    await pager.advance(minutes=30)
    tale = await pager.app.views.tale(1)
    assert tale is not None
    told_story = repr(story(tale, {}))
    told = repr([(page.text, page.body) for page in pager.pages()])
    rows = []
    async with pager.app.database.snapshot() as tx:
        for table in schema.metadata.sorted_tables:
            rows += [repr(tuple(row)) for row in await tx.execute(sa.select(table))]
    await pager.close()
    assert "unexpected RuntimeError" in "".join(rows), "the errors were met"
    assert "RuntimeError" in logged()
    for secret in SECRETS:
        for place, words in (
            ("rows", "".join(rows)),
            ("story", told_story),
            ("told", told),
            ("log", logged()),
        ):
            assert secret not in words, f"{secret[:4]}… is in the {place}"
