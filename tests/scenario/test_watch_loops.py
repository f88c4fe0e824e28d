"""Everything that a process starts as a loop is expected to tick, by role; nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from bot.app import Role, build
from bot.settings import Settings
from engine.clock import SystemClock
from tests.product import free_port

EVERYWHERE = {"watch", "lookout", "slack_standing"}
ALL = EVERYWHERE | {"slack"}
LANES = {"fate", "deliver", "card", "rota", "outside"}
WORKING = LANES | EVERYWHERE | {"horizon", "own_tests", "sms_replies", "audit", "watch_loops"}
WORKING |= {"abreast", "refresh_cards", "forget", "heartbeat"}


def settings(url: str, **more: Any) -> Settings:
    return Settings.model_validate(
        {
            "database_url": url,
            "secret_key": SecretStr("a secret for tests only"),
            "bind": f"127.0.0.1:{free_port()}",
            "slack_bot_token": "xoxb-demo",
            "slack_app_token": "xapp-demo",
            "slack_api_url": "http://127.0.0.1:1/api",
            "twilio_account_sid": "AC" + "0" * 32,
            "twilio_auth_token": "demo",
            "twilio_from": "+12025550100",
            "twilio_api_url": "http://127.0.0.1:1",
            "heartbeat_url": "http://127.0.0.1:1/ping",
            **more,
        }
    )


@pytest.mark.parametrize(
    ("only", "loops"),
    [
        (None, ALL | WORKING),
        (Role.WORKER, WORKING),
        (Role.WEB, EVERYWHERE),
        (Role.SLACK, EVERYWHERE | {"slack"}),
    ],
)
async def test_every_loop_that_is_started_is_expected(
    any_database_url: str, only: Role | None, loops: set[str]
) -> None:
    """None runs unwatched, and no role is blamed for a loop of another (B129)."""
    app = build(settings(any_database_url), SystemClock(), only=only)
    with_others = set() if app.database.is_sqlite else {"nudge", *(["crew"] if loops >= WORKING else [])}
    try:
        await app.start()
        assert set((await app.health())["seconds_since_tick"]) == loops | with_others
        assert app.watch.pulse.silent() == []
    finally:
        await app.stop()


async def test_a_database_that_fails_is_said_by_the_way_that_is_left(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch of the whole process speaks through Slack and the URLs, not through rows (F-17)."""
    app = build(settings(sqlite_url, ops_channel="#ops"), SystemClock())
    said: list[str] = []

    async def heard(self: object, _method: object, address: str, text: str) -> None:
        said.append(f"{address}: {text}")

    monkeypatch.setattr("bot.outcry.Outcry._tell", heard)

    async def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(app.database, "write", full)
    for _ in range(4):
        assert not await app.watch.ask()
    assert len(said) == 1, "once per quarter of an hour"
    assert said[0].startswith("#ops: Midwatch cannot store anything (OSError)")
    await app.transports.close()
    await app.database.close()
