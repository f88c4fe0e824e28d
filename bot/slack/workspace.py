"""Who we are in Slack, once auth.test has said so. Never asks by itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Workspace:
    team_id: str | None = None
    bot_user_id: str | None = None
    bot_id: str | None = None
