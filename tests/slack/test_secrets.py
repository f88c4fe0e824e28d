"""No secret of the settings leaves a Midwatch in trouble, and none that an alert holds is logged (S-13)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import sqlalchemy as sa
import structlog
from aiohttp import web

from bot.app import App, build
from bot.logs import set_up_logs
from bot.sandbox.faults import Fault
from bot.sandbox.server import SandboxServer
from bot.web.server import runner
from engine import schema
from engine.config.parse import parse_config
from engine.models import ORG, Link
from engine.pager.story import story
from engine.store import keys
from engine.vault import hash_key
from tests.fakes import FakeClock
from tests.slack.conftest import slack_settings
from tests.slack.test_slack_faults import DEMO, House

NOWHERE = "127.0.0.1:9"  # nobody answers there
API_TOKEN = "mw_token_of_the_test"
# In the settings: of Slack, of the phone company, in URLs before the host and after the question mark.
SET = {
    "slack_bot_token": "xoxb-1234567890-planted01",
    "slack_app_token": "xapp-1-A0123456789-planted02",
    "twilio_account_sid": "AC" + "0" * 32,
    "twilio_auth_token": "planted03",
    "twilio_subaccounts": "AC" + "1" * 32 + ":planted04",
    "sms_fallback_url": f"twilio://AC{'2' * 32}:planted05@12025550100/{{to}}?format=planted06",
    "fallback_urls": f"json://midwatch:planted07@{NOWHERE}/last?token=planted08",
    "smtp_url": f"smtp://midwatch:planted09@{NOWHERE}?from=midwatch@example.com",
    "heartbeat_url": f"http://{NOWHERE}/planted10?token=planted11",
    "secret_key": "planted12 and long enough for a key",
}
# In an alert: whoever wrote it put them there, so its cards show them, and nothing else does.
BLURTED = (
    "cannot reach https://db:blurted01@db.example.com/x?token=blurted02&access_token=blurted03",
    "xoxb-1234567890-blurted04 and xapp-1-A0123456789-blurted05 are no good",
    f"AC{'3' * 32}:blurted06; Authorization: Bearer blurted07",
    "https://blurted08@sentry.example.com/4?api_key=blurted09",
)


@dataclass
class Kept:
    """Where it was written to."""

    path: Path

    def text(self) -> str:
        return self.path.read_text()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Kept]:
    """As a process of ours writes it."""
    handlers, level = list(logging.getLogger().handlers), logging.getLogger().level
    kept = Kept(tmp_path / "midwatch.log")
    set_up_logs(json=True, path=kept.path)
    yield kept
    logging.getLogger().handlers[0].close()
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
async def house(sqlite_url: str, clock: FakeClock, sandbox: SandboxServer) -> AsyncIterator[House]:
    """Its Slack refuses the token; its mail, its second company and its last resort are not there."""
    settings = slack_settings(
        sandbox,
        database_url=sqlite_url,
        twilio_from="+12025550100",
        twilio_api_url=sandbox.api_url.removesuffix("/api/"),
        **SET,
    )
    app = build(settings, clock)
    await app.setup.apply(parse_config(DEMO))
    await app.database.write(
        lambda tx: keys.insert_token(tx, ORG, "test", hash_key(API_TOKEN), "", None, clock.now())
    )
    yield House(app, clock, sandbox)
    await app.pipeline.drain()
    await app.transports.close()
    await app.database.close()


async def rows(app: App, *tables: sa.Table) -> str:
    async with app.database.snapshot() as tx:
        return "".join([repr(tuple(row)) for table in tables for row in await tx.execute(sa.select(table))])


async def answers(app: App) -> str:
    """What the API and the pages for machines say."""
    served = runner(app.web)
    await served.setup()
    await web.TCPSite(served, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{served.addresses[0][1]}"
    paths = ("/healthz", "/readyz", "/metrics", "/v1/dead_letters", "/v1/incidents", "/v1/incidents/1")
    said = []
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {API_TOKEN}"}) as http:
        for path in paths:
            async with http.get(base + path) as answer:
                assert answer.status in {200, 503}, path
                said.append(await answer.text())
    await served.cleanup()
    return "".join(said)


async def test_a_night_in_which_everything_fails_tells_no_secret(house: House, log: Kept) -> None:
    """Slack refuses the token, texts and calls fail in one way after the other, mail and the last resort are
    nowhere, and alerts hold secrets themselves: none of the settings' is in the log, in a row, in the story,
    in what people were told or in what the API answers; and none of the alerts' in the log, in an attempt or
    in the reason of a delivery (S-13)."""
    links = (Link("https://ops:blurted10@wiki.example.com/?key=blurted11", "runbook"),)
    for number, fault in enumerate(("outage", "20003", "429", "reset_after", "30007")):
        house.sandbox.world.faults.clear()
        house.sandbox.world.faults.begin(Fault("twilio", fault))
        blurt = BLURTED[number % len(BLURTED)]
        await house.alert(blurt, labels={"error": blurt}, links=links)
        await house.passes(minutes=6)
    tale = await house.app.views.tale(1)
    assert tale is not None
    told = repr(
        [
            (one.body, phone)
            for phone in ("+12025550143", "+12025550145")
            for one in house.sandbox.world.exchange.phone(phone).sms
        ]
    )
    places: dict[str, Any] = {
        "log": log.text(),
        "rows": await rows(house.app, *schema.metadata.sorted_tables),
        "story": repr(story(tale, {})),
        "told": told,
        "API": await answers(house.app),
    }
    assert "Twilio" in places["rows"], "it failed"
    assert "Twilio" in places["API"], "and the API tells of it"
    planted = [f"planted{number:02}" for number in range(1, 13)]
    assert [(one, place) for one in planted for place, words in places.items() if one in words] == []
    attempts = await rows(house.app, schema.attempts)
    async with house.app.database.snapshot() as tx:
        reasons = repr(list(await tx.scalars(sa.select(schema.deliveries.c.reason))))
    for one in [f"blurted{number:02}" for number in range(1, 12)]:
        assert one not in places["log"] + attempts + reasons
