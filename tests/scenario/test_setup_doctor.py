"""doctor: what is wrong with an install is found, and each finding says what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.doctor import Finding, Level, examine
from bot.sandbox.server import SandboxServer
from bot.sandbox.world import Options
from bot.settings import Settings
from engine import checks, coverage
from engine.clock import SystemClock
from engine.config.parse import parse_config
from engine.db import Database
from engine.migrate import upgrade
from engine.models import ORG
from engine.pager.setup import Setup
from engine.schema import schedules
from engine.store import findings as rows
from engine.store import marks
from engine.vault import Vault

DEMO = (Path(__file__).parents[2] / "bot" / "demo.yaml").read_text(encoding="utf-8")
VAULT = Vault("a key for tests")
TWILIO = {
    "twilio_account_sid": "AC" + "0" * 32,
    "twilio_auth_token": "demo",
    "twilio_from": "+12025550100",
}
SLACK = {"slack_bot_token": "xoxb-demo", "slack_app_token": "xapp-demo"}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/midwatch.sqlite3")
    yield database
    await database.close()


@pytest.fixture
async def setup(store: Database) -> Setup:
    await upgrade(store)
    setup = Setup(store, SystemClock(), VAULT)
    await setup.apply(parse_config(DEMO))
    await setup.create_key("checkout", "demo")
    return setup


@pytest.fixture
async def healthy() -> AsyncIterator[str]:
    """A public URL with Midwatch behind it."""
    app = web.Application()
    app.router.add_get("/healthz", _ok)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


async def _ok(_request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


async def findings(store: Database | None, vault: Vault = VAULT, **settings: object) -> list[Finding]:
    return await examine(Settings.model_validate(settings), store, SystemClock(), vault)


def bad(found: list[Finding]) -> dict[str, str]:
    assert all(bool(finding.advice) is (finding.level is not Level.OK) for finding in found)
    return {finding.about: finding.text for finding in found if finding.level is Level.PROBLEM}


async def test_a_sound_install_has_no_finding(store: Database, setup: Setup, healthy: str) -> None:
    """With Slack, phones, a URL and a directory everything is ok, checked against the sandbox."""
    async with SandboxServer() as sandbox:
        found = await findings(
            store,
            **SLACK,
            **TWILIO,
            slack_api_url=sandbox.api_url,
            twilio_api_url=sandbox.url,
            public_url=healthy,
            ops_channel="#ops",
        )
    assert [finding for finding in found if finding.level is not Level.OK] == []
    texts = " | ".join(f"{finding.about}: {finding.text}" for finding in found)
    for said in (
        "up to date",
        "the bot token works",
        "Socket Mode works",
        "the account works",
        "reaches somebody",
    ):
        assert said in texts


async def test_tokens_that_are_refused_are_named(store: Database, setup: Setup) -> None:
    """A wrong bot token, app token or Twilio token is a problem of its own."""
    async with SandboxServer(options=Options(bot_token="xoxb-other", app_token="xapp-other")) as sandbox:
        found = bad(
            await findings(
                store,
                **SLACK,
                **{**TWILIO, "twilio_auth_token": "wrong"},
                slack_api_url=sandbox.api_url,
                twilio_api_url=sandbox.url,
            )
        )
    assert "refused: invalid_auth" in found["Slack"]
    assert "HTTP 401" in found["Twilio"]


async def test_a_missing_scope_is_named(store: Database, setup: Setup) -> None:
    """What Slack did not grant is a problem when pages need it, and worth knowing when a feature does."""
    granted = Options().scopes - {"im:write", "usergroups:write"}
    async with SandboxServer(options=Options(scopes=granted)) as sandbox:
        found = await findings(store, **SLACK, slack_api_url=sandbox.api_url)
    assert bad(found)["Slack"] == "scopes are missing: im:write"
    noted = [finding.text for finding in found if finding.level is Level.WARNING]
    assert "optional scopes are missing: usergroups:write" in noted


async def test_providers_that_are_away_are_told_apart_from_wrong_tokens(
    store: Database, setup: Setup
) -> None:
    """Nobody listening is "cannot be reached"."""
    nowhere = "http://127.0.0.1:9"
    found = bad(
        await findings(
            store, **SLACK, **TWILIO, slack_api_url=nowhere, twilio_api_url=nowhere, public_url=nowhere
        )
    )
    assert all("cannot be reached" in found[about] for about in ("Slack", "Twilio", "public URL"))


async def test_a_new_install_is_led_by_the_hand(store: Database) -> None:
    """Without anything: no tables, nobody to page, no way to page them."""
    found = bad(await findings(store))
    assert found == {
        "settings": "neither Slack nor Twilio is set up: nobody can be paged",
        "database": "its tables are missing or old",
    }
    await upgrade(store)
    assert bad(await findings(store, **TWILIO, twilio_api_url="http://127.0.0.1:9"))["people"] == (
        "there is nobody yet"
    )


async def test_a_database_that_is_away_is_one_finding() -> None:
    """The directory is not blamed for it."""
    away = Database("postgresql://midwatch:hunter2@127.0.0.1:1/x")
    found = await findings(away)
    await away.close()
    assert bad(found)["database"] == "cannot be used: nobody listens at its address"
    assert "hunter2" not in str(found)


HOLES = """
people:
- {name: dan, contact: {email: dan@example.com}}
- {name: eve, slack: U0EVE}
schedules:
- {name: empty, timezone: UTC, layers: []}
policies:
- name: holes
  levels:
  - {targets: [{schedule: empty}], timeout: 5m}
  - {targets: [{channel: "#ops"}], timeout: 5m}
  - {targets: [{person: dan}], timeout: 5m}
services:
- {name: lost}
- {name: leaky, policy: holes}
"""


async def test_a_directory_with_holes_is_shown_where_it_leaks(store: Database) -> None:
    """No fallback, a service without policy or key, levels that reach nobody, people without phones."""
    await upgrade(store)
    await Setup(store, SystemClock(), VAULT).apply(parse_config(HOLES))
    found = await findings(store)
    problems, warnings = bad(found), [f for f in found if f.level is Level.WARNING]
    assert "the chain is empty" in problems["fallback"]
    assert "has no policy" in problems["service lost"]
    assert problems["policy holes"] == "level 1 reaches nobody now: nobody is on call on empty"
    told = {(finding.about, finding.text.split(":")[0]) for finding in warnings}
    assert ("policy holes", "level 2 reaches nobody now") in told
    assert {about for about, text in told if text.startswith("has no phone")} == {"person dan", "person eve"}
    assert ("service leaky", "has no key") in told


async def test_a_lost_secret_key_is_one_problem(store: Database, setup: Setup) -> None:
    """With another key no address can be read; that nobody can be reached by them is not said as well."""
    found = bad(await findings(store, Vault("another key"), **TWILIO, twilio_api_url="http://127.0.0.1:9"))
    # Slack, SMS and voice of three people
    assert found.pop("secret key") == "9 of 9 addresses were written with another key"
    assert set(found) == {"Twilio"}


async def test_without_a_way_out_nothing_is_said_to_reach_anybody(store: Database, setup: Setup) -> None:
    """With neither Slack nor phones no level reaches somebody, however whole the directory is."""
    found = await findings(store)
    assert "nobody can be paged" in bad(found)["settings"]
    texts = " | ".join(finding.text for finding in found)
    assert "reaches somebody" not in texts
    assert "somebody is paged" not in texts
    assert "paged by phone only" not in texts
    assert "while Slack is down" not in texts


async def test_an_outage_is_said_once_and_in_words(store: Database, setup: Setup) -> None:
    """Slack is away for both of its tokens, and the reason is no name of a class."""
    nowhere = "http://127.0.0.1:9"
    found = await findings(store, **SLACK, **TWILIO, slack_api_url=nowhere, twilio_api_url=nowhere)
    assert len(found) == len(set(found))
    for about in ("Slack", "Twilio"):
        told = [finding.text for finding in found if finding.about == about]
        assert told[0] == "cannot be reached: nobody listens at its address"


async def test_an_email_that_nobody_can_send_is_worth_knowing(store: Database) -> None:
    """An address in the file does nothing without a mail server; who has no other is not reached."""
    await upgrade(store)
    await Setup(store, SystemClock(), VAULT).apply(parse_config(HOLES))
    found = await findings(store, **TWILIO, twilio_api_url="http://127.0.0.1:9")
    (told,) = [finding for finding in found if finding.about == "email"]
    assert (told.level, told.text) == (Level.WARNING, "not set up: dan would be sent email, and is not")
    assert bad(found)["person dan"] == "cannot be reached: email is not set up here"
    found = await findings(store, smtp_url="smtp://127.0.0.1:9")
    assert [finding for finding in found if finding.about == "email"] == []


async def test_a_proxy_that_redirects_is_told(store: Database, setup: Setup) -> None:
    """Senders lose alerts over a redirect, so doctor does not follow one either."""

    async def elsewhere(_request: web.Request) -> web.Response:
        raise web.HTTPFound("/elsewhere")

    app = web.Application()
    app.router.add_get("/healthz", elsewhere)
    async with TestServer(app) as server:
        found = bad(await findings(store, public_url=str(server.make_url(""))))
    assert found["public URL"] == "answers 302, which is not Midwatch"


async def test_keypresses_need_a_public_url(store: Database, setup: Setup, healthy: str) -> None:
    """Twilio without a URL is half of it; with one, where the number must point is said."""
    async with SandboxServer() as sandbox:
        without = await findings(store, **TWILIO, twilio_api_url=sandbox.url)
        having = await findings(store, **TWILIO, twilio_api_url=sandbox.url, public_url=healthy)
    (half,) = [finding for finding in without if finding.about == "Twilio" and finding.advice]
    assert half.level is Level.WARNING
    assert half.text == "no keypress can reach Midwatch: calls say so, and SMS replies are fetched every 5 s"
    assert "MIDWATCH_PUBLIC_URL" in half.advice
    assert [finding.level for finding in having if finding.about == "Twilio"] == [Level.OK, Level.OK]
    assert f"{healthy}/webhooks/twilio/sms" in str(having)


async def test_a_second_company_that_apprise_does_not_know_is_told(store: Database, setup: Setup) -> None:
    """Nothing is sent to it, and its URL, which holds a key, is in no finding."""
    urls = {"sms_fallback_url": "vonnage://sesame@from/{to}", "voice_fallback_url": "json://localhost/{to}"}
    found = await findings(store, **urls)
    told = {one.about: one for one in found if one.about.endswith("_FALLBACK_URL")}
    assert told["MIDWATCH_SMS_FALLBACK_URL"].level is Level.PROBLEM
    assert told["MIDWATCH_VOICE_FALLBACK_URL"].level is Level.OK
    assert "sesame" not in str(found)


async def test_http_mode_needs_a_public_url(store: Database, setup: Setup) -> None:
    """A signing secret without a URL means that buttons do nothing."""
    async with SandboxServer() as sandbox:
        found = bad(
            await findings(
                store,
                slack_bot_token="xoxb-demo",
                slack_signing_secret="s",
                slack_api_url=sandbox.api_url,
            )
        )
    assert "HTTP mode needs a public URL" in found["Slack"]


async def test_a_worker_that_has_gone_is_told(store: Database, setup: Setup) -> None:
    """An install that ran and does not run now pages nobody: the doctor says since when."""
    gone = SystemClock().now() - timedelta(minutes=5)
    await store.write(lambda tx: marks.tick(tx, ORG, gone))
    found = await findings(store)
    told = [finding for finding in found if finding.about == "worker"]
    assert [finding.level for finding in told] == [Level.WARNING]
    assert told[0].text.startswith(f"no worker has ticked since {gone:%Y-%m-%d %H:%M} UTC")


async def test_a_worker_whose_clock_is_a_little_off_has_not_gone(store: Database, setup: Setup) -> None:
    """It looks once, by the clock of another host: skew that does no harm is no outage (F-23)."""
    behind = SystemClock().now() - timedelta(seconds=45)
    await store.write(lambda tx: marks.tick(tx, ORG, behind))
    assert [finding for finding in await findings(store) if finding.about == "worker"] == []


async def test_the_doctor_sees_what_start_refuses(
    store: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file on a network share is a problem with the same words (F-19)."""
    table = tmp_path / "mountinfo"
    table.write_text("1 0 0:1 / / rw - nfs4 nas:/export rw\n")
    monkeypatch.setattr(checks, "MOUNTS", table)
    found = await findings(store)
    assert any(finding.level is Level.PROBLEM and "network share" in finding.text for finding in found)


async def test_what_was_found_ahead_is_a_warning(store: Database, setup: Setup) -> None:
    """The same that `/oncall status` lists, by the name of the schedule."""
    now = SystemClock().now()
    async with store.snapshot() as tx:
        (schedule_id, *_) = await tx.scalars(sa.select(schedules.c.id).order_by(schedules.c.id))
    finding = coverage.Finding("gap:x", "Nobody is on call at all.")
    await store.write(lambda tx: rows.add(tx, ORG, schedule_id, [finding], now))
    found = [one for one in await findings(store) if "Nobody" in one.text]
    assert [(one.level, one.about) for one in found] == [(Level.WARNING, "schedule payments-primary")]
