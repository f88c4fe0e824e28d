"""A public URL that nobody else can reach is told at once, and pages go out all the same (F-64)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.app import build
from bot.doctor.finding import Level
from bot.doctor.phones import _replies
from bot.life import Role
from bot.reach import called_back_at, is_public, unreachable
from bot.settings import Settings
from tests.fakes import FakeClock

TWILIO: dict[str, Any] = {
    "twilio_account_sid": "AC" + "0" * 32,
    "twilio_auth_token": SecretStr("t"),
    "twilio_from": "+12025550100",
}


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://pager.example.com", True),
        ("https://pager.example.com:8443", True),
        ("https://8.8.8.8", True),
        ("https://[2001:4860:4860::8888]/x", True),
        ("http://localhost:8080", False),
        ("http://LOCALHOST.:8080", False),
        ("http://pager", False),
        ("http://pager.local", False),
        ("http://pager.svc.cluster.local", False),
        ("http://pager.internal", False),
        ("http://127.0.0.1", False),
        ("http://0.0.0.0:8080", False),
        ("http://10.0.0.5:8080", False),
        ("http://192.168.1.2", False),
        ("http://169.254.1.1", False),
        ("http://[::]:8081", False),
        ("http://[::1]:8081", False),
        ("http://[fd00::1]", False),
    ],
)
def test_an_address_says_whether_others_can_reach_it(url: str, public: bool) -> None:
    """Names of one machine and of one network, and addresses that are routed nowhere (B107)."""
    assert is_public(url) is public
    settings = Settings(public_url=url, **TWILIO)
    assert called_back_at(settings) == (settings.public_url if public else None)
    assert unreachable(settings) is not public


def test_a_phone_company_on_this_machine_reaches_this_machine() -> None:
    """As in the demo."""
    settings = Settings(public_url="http://127.0.0.1:8080", twilio_api_url="http://127.0.0.1:8081", **TWILIO)
    assert called_back_at(settings) == "http://127.0.0.1:8080"


def test_the_doctor_says_what_to_set() -> None:
    """A problem, not a remark."""
    found = _replies(Settings(public_url="http://[::]:8081", **TWILIO))
    assert (found.level, "MIDWATCH_PUBLIC_URL" in found.text) == (Level.PROBLEM, True)


async def test_it_starts_loudly_and_pages_without_callbacks(sqlite_url: str, clock: FakeClock) -> None:
    """One error in the log; replies are fetched instead, and a public address needs neither."""
    for url, loud in (("http://10.0.0.5:8080", True), ("https://pager.example.com", False)):
        settings = Settings(
            database_url=sqlite_url,
            secret_key=SecretStr("a secret for tests only"),
            public_url=url,
            bind="127.0.0.1:0",
            **TWILIO,
        )
        app = build(settings, clock, only=Role.WEB)
        assert (app.sms_poll is not None) is loud
        with capture_logs() as logs:
            await app.start()
            await app.stop()
        assert [one["log_level"] for one in logs if one["event"] == "twilio.no_callbacks"] == ["error"] * loud
