"""Do Slack's tokens work, and may the app do what it needs to?

Never posts anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.doctor.finding import Finding, ok, problem, warning
from bot.manifest import optional_scopes, scopes
from bot.settings import Settings
from bot.why import why
from engine.clock import Clock

ABOUT: Final = "Slack"
TIMEOUT_S: Final = 5
SKEW_BAD: Final = timedelta(seconds=60)  # Slack's signatures are valid for five minutes


async def examine(settings: Settings, clock: Clock) -> Sequence[Finding]:
    if settings.slack_bot_token is None:
        advice = "Create the app from manifest.yaml, then set SLACK_BOT_TOKEN and SLACK_APP_TOKEN."
        else_by_phone = ": people are paged by phone only" if settings.twilio_from else ""
        return [warning(ABOUT, f"not set up{else_by_phone}", advice)]
    bot = await _bot(settings, clock, settings.slack_bot_token.get_secret_value())
    if settings.slack_app_token is None:
        return [*bot, _http_mode(settings)]
    return [*bot, await _socket_mode(settings, settings.slack_app_token.get_secret_value())]


async def _bot(settings: Settings, clock: Clock, token: str) -> list[Finding]:
    try:
        answer = await _client(settings, token).auth_test()
    except SlackApiError as error:
        return [
            _refused("the bot token", error, "Copy the Bot User OAuth Token again, into SLACK_BOT_TOKEN.")
        ]
    except (aiohttp.ClientError, TimeoutError) as error:
        return [_away(error)]
    headers = {name.lower(): value for name, value in answer.headers.items()}
    who = f"{answer.get('user')} in {answer.get('team')}"
    return [ok(ABOUT, f"the bot token works: {who}"), *_scopes(headers), *_skew(headers, clock)]


async def _socket_mode(settings: Settings, token: str) -> Finding:
    try:
        await _client(settings, token).apps_connections_open(app_token=token)
    except SlackApiError as error:
        advice = "Make an app-level token with connections:write, and switch Socket Mode on."
        return _refused("the app-level token", error, advice)
    except (aiohttp.ClientError, TimeoutError) as error:
        return _away(error)
    return ok(ABOUT, "Socket Mode works: no public URL is needed")


def _http_mode(settings: Settings) -> Finding:
    if settings.public_url is None:
        advice = "Set MIDWATCH_PUBLIC_URL, or use Socket Mode with SLACK_APP_TOKEN."
        return problem(ABOUT, "HTTP mode needs a public URL: buttons and commands do nothing", advice)
    return ok(ABOUT, f"HTTP mode: its request URLs must be {settings.public_url}/slack/events")


def _scopes(headers: Mapping[str, Any]) -> list[Finding]:
    given = {scope.strip() for scope in str(headers.get("x-oauth-scopes", "")).split(",")} - {""}
    if not given:  # not every answer says it
        return []
    needed = sorted(scopes() - optional_scopes() - given)
    off = sorted(optional_scopes() - given)
    found = []
    if needed:
        advice = "Put manifest.yaml into the app again and reinstall it."
        found.append(problem(ABOUT, f"scopes are missing: {', '.join(needed)}", advice))
    if off:
        found.append(
            warning(ABOUT, f"optional scopes are missing: {', '.join(off)}", "Reinstall to have them.")
        )
    return found or [ok(ABOUT, "every scope of manifest.yaml was granted")]


def _skew(headers: Mapping[str, Any], clock: Clock) -> list[Finding]:
    try:
        skew = abs(clock.now() - parsedate_to_datetime(str(headers["date"])))
    except (KeyError, ValueError, TypeError):  # no date, or none that can be compared
        return []
    if skew < SKEW_BAD:
        return []
    text = f"its clock and ours are {skew.total_seconds():.0f} s apart"
    return [problem(ABOUT, text, "Set this host's clock by NTP: signatures will not match.")]


def _refused(what: str, error: SlackApiError, advice: str) -> Finding:
    return problem(ABOUT, f"{what} is refused: {error.response.get('error', 'unknown error')}", advice)


def _away(error: Exception) -> Finding:
    text = f"cannot be reached: {why(error)}"
    return problem(
        ABOUT, text, "Let this host reach slack.com over https; Midwatch pages by phone meanwhile."
    )


def _client(settings: Settings, token: str) -> AsyncWebClient:
    return AsyncWebClient(token=token, base_url=settings.slack_api_url, timeout=TIMEOUT_S, retry_handlers=[])
