"""Each error of Slack has one class, and each class one outcome."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.slack.errors import CODES, FaultyMessage, Kind, outcome_of, trouble_of
from engine.models import Rejected, Retry, Throttled
from tests.slack.views import NOW


def answered(data: Any, status: int = 200, headers: dict[str, Any] | None = None) -> SlackApiError:
    response = AsyncSlackResponse(
        client=None,  # type: ignore[arg-type]  # only pages of results ask for it
        http_verb="POST",
        api_url="",
        req_args={},
        data=data,
        headers=headers or {},
        status_code=status,
    )
    return SlackApiError("failed", response)


OUTCOMES = {
    Kind.THROTTLED: Throttled,
    Kind.TRANSIENT: Retry,
    Kind.DOWN: Retry,
    Kind.DEAD: Rejected,
    Kind.SCOPE: Rejected,
    Kind.FORMAT: Rejected,
    Kind.GONE: Rejected,
}


@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in CODES.items() for code in codes])
def test_a_code_has_its_class(kind: Kind, code: str) -> None:
    """Every code that we know is of one class, and the class decides the outcome."""
    trouble = trouble_of(answered({"ok": False, "error": code}))
    assert trouble.kind is kind
    assert isinstance(outcome_of(trouble, NOW), OUTCOMES[kind])


@pytest.mark.parametrize("code", CODES[Kind.DOWN])
def test_a_dead_token_is_no_use_asking_again(code: str) -> None:
    """Slack refuses us altogether: the outcome says so, and need not be met five times to be believed."""
    outcome = outcome_of(trouble_of(answered({"ok": False, "error": code})), NOW)
    assert outcome == Retry(f"Slack is down for us: {code}", down=True)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (answered({"ok": False, "error": "message_limit_exceeded"}), "Slack: message_limit_exceeded"),
        (answered({"ok": False, "error": "something_new"}), "Slack: something_new"),
        (answered({}, 503), "Slack: http_503"),
        (answered("<html>", 502), "Slack: http_502"),
        (TimeoutError(), "Slack: TimeoutError"),
        (aiohttp.ServerDisconnectedError(), "Slack: ServerDisconnectedError"),
        (ConnectionResetError(), "Slack: ConnectionResetError"),
        (ValueError("token xoxb-secret"), "Slack: ValueError"),
    ],
)
def test_what_may_pass_is_tried_again(error: Exception, reason: str) -> None:
    """Outages, timeouts and answers we do not know are retried, with a reason that holds no secret."""
    assert outcome_of(trouble_of(error), NOW) == Retry(reason)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": ["7"]}, 7),
        ({}, 30),
        ({"Retry-After": "soon"}, 30),
        ({"Retry-After": "-1"}, 30),
        ({"Retry-After": "inf"}, 30),
        ({"Retry-After": "999999"}, 3600),
    ],
)
def test_a_throttle_waits_as_long_as_slack_says(headers: dict[str, Any], seconds: int) -> None:
    """429 is no attempt: it waits for Retry-After, or half a minute without a usable one."""
    trouble = trouble_of(answered({"ok": False, "error": "ratelimited"}, 429, headers))
    assert outcome_of(trouble, NOW) == Throttled(NOW + timedelta(seconds=seconds), "Slack: rate limited")


def test_a_throttle_without_a_body_is_one_too() -> None:
    """An empty 429 reaches us as aiohttp's own response."""
    bare = SimpleNamespace(status=429, headers={"Retry-After": "3"})
    trouble = trouble_of(SlackApiError("failed", bare))
    assert (trouble.kind, trouble.retry_after) == (Kind.THROTTLED, timedelta(seconds=3))


def test_a_missing_scope_is_named() -> None:
    """The reason says which scope is needed."""
    trouble = trouble_of(answered({"ok": False, "error": "missing_scope", "needed": "im:write"}))
    outcome = outcome_of(trouble, NOW)
    assert isinstance(outcome, Rejected)
    assert "needs im:write" in outcome.reason


def test_our_own_linter_counts_as_slack() -> None:
    """A message that we see is faulty is of the class that is sent plainly."""
    assert trouble_of(FaultyMessage()).kind is Kind.FORMAT
