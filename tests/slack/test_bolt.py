"""Bolt as we set it up: it says nothing at start that nobody can do anything about."""

from __future__ import annotations

import pytest

from bot.slack.listeners import bolt_app
from bot.slack.workspace import Workspace


def test_a_token_in_the_environment_is_no_warning(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Bolt would warn of it at each start, although each call has the token."""
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1")
    bolt_app("https://slack.com/api/", Workspace())
    assert "unused" not in caplog.text
    assert "unused" not in capfd.readouterr().err
