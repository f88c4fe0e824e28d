"""The Slack app manifest keeps Slack's rules, and asks for what Midwatch uses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bot.manifest import manifest, optional_scopes, scopes
from bot.slack.connection import NEEDED_SCOPES
from bot.slack.listeners import COMMANDS

TOP = {"_metadata", "display_information", "features", "oauth_config", "settings"}
SETTINGS = {
    "event_subscriptions",
    "interactivity",
    "org_deploy_enabled",
    "socket_mode_enabled",
    "token_rotation_enabled",
}
# Which scope lets an event through (docs.slack.dev, the page of each event).
EVENT_SCOPES = {
    "app_home_opened": set[str](),
    "app_mention": {"app_mentions:read"},
    "channel_archive": {"channels:read"},
    "channel_deleted": {"channels:read"},
    "channel_left": {"channels:read"},
    "channel_rename": {"channels:read"},
    "channel_unarchive": {"channels:read"},
    "group_archive": {"groups:read"},
    "group_left": {"groups:read"},
    "member_joined_channel": {"channels:read"},
    "message.im": {"im:history"},
    "reaction_added": {"reactions:read"},
    "reaction_removed": {"reactions:read"},
    "subteam_updated": {"usergroups:read"},
    "user_change": {"users:read"},
    "app_uninstalled": set[str](),
    "tokens_revoked": set[str](),
}


@pytest.fixture
def app() -> dict[str, Any]:
    return manifest()


def test_only_known_fields_stand_in_it(app: dict[str, Any]) -> None:
    """Slack refuses a manifest with a field it does not know."""
    assert app.keys() == TOP
    assert app["settings"].keys() == SETTINGS
    assert app["features"].keys() <= {"app_home", "bot_user", "shortcuts", "slash_commands"}
    assert app["oauth_config"]["scopes"].keys() == {"bot", "bot_optional"}


def test_names_are_as_short_as_slack_wants_them(app: dict[str, Any]) -> None:
    """Each text keeps its limit."""
    about = app["display_information"]
    assert len(about["name"]) <= 35
    assert len(about["description"]) <= 140
    assert re.fullmatch(r"#[0-9a-f]{6}", about["background_color"])
    assert len(app["features"]["bot_user"]["display_name"]) <= 80


def test_commands_keep_slacks_limits(app: dict[str, Any]) -> None:
    """Each command that is listened to has a description and a hint, and mentions arrive as ids."""
    commands = app["features"]["slash_commands"]
    assert tuple(each["command"] for each in commands) == COMMANDS
    for each in commands:
        assert each.keys() == {"command", "description", "usage_hint", "should_escape"}
        assert len(each["description"]) <= 2000
        assert len(each["usage_hint"]) <= 1000
        assert each["should_escape"] is True


def test_every_event_has_the_scope_it_needs(app: dict[str, Any]) -> None:
    """An event without its scope would never arrive, silently; those that are listened to are there."""
    events = app["settings"]["event_subscriptions"]["bot_events"]
    assert {"app_home_opened", "app_mention", "message.im"} <= set(events)
    assert len(events) == len(set(events)) <= 100
    for event in events:
        assert EVENT_SCOPES[event] <= scopes(), event


def test_optional_scopes_are_asked_for_too() -> None:
    """A scope that may be refused is still one of those asked for, and none that pages is optional."""
    assert optional_scopes() < scopes()
    assert not NEEDED_SCOPES & optional_scopes()
    assert {"dnd:read", "files:write"} <= optional_scopes(), "a warning and a contact card, not a page"


def test_it_runs_without_a_public_url_and_with_tokens_that_last(app: dict[str, Any]) -> None:
    """Socket Mode is on, buttons work, and no token expires at three in the night."""
    settings = app["settings"]
    assert settings["socket_mode_enabled"] is True
    assert settings["interactivity"] == {"is_enabled": True}
    assert settings["token_rotation_enabled"] is False
