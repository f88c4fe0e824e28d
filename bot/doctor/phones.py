"""Does the phone company know us?

Never sends a message: credentials are checked by reading the account.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import aiohttp
from twilio.rest import Client

from bot.doctor.finding import Finding, ok, problem, warning
from bot.reach import unreachable
from bot.settings import Settings, env_name
from bot.why import why
from engine.notify.apprise_url import is_known
from engine.notify.second_phone import TO
from engine.notify.twilio import HttpClient, TwilioRefused

ABOUT: Final = "Twilio"
TIMEOUT: Final = timedelta(seconds=5)
SAMPLE: Final = "12025550143"


async def examine(settings: Settings) -> Sequence[Finding]:
    return [*await _twilio(settings), *await asyncio.to_thread(_second, settings)]


def _second(settings: Settings) -> list[Finding]:
    """The URLs of the second company. Nothing is sent to it."""
    found = []
    for name in ("sms_fallback_url", "voice_fallback_url"):
        secret = getattr(settings, name)
        if secret is None:
            continue
        if is_known(secret.get_secret_value().replace(TO, SAMPLE)):
            found.append(ok(env_name(name), "apprise knows this URL"))
        else:
            advice = "Look up its form at github.com/caronc/apprise; {to} stands for the number."
            found.append(problem(env_name(name), "apprise knows no such URL: nothing is sent by it", advice))
    return found


async def _twilio(settings: Settings) -> Sequence[Finding]:
    sid, token = settings.twilio_account_sid, settings.twilio_auth_token
    if sid is None or token is None:
        advice = "Set TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_FROM."
        alone = ": nobody is paged while Slack is down" if settings.slack_bot_token else ""
        return [warning(ABOUT, f"not set up{alone}", advice)]
    try:
        status, kind = await _account(settings, sid, token.get_secret_value())
    except TwilioRefused as refused:
        advice = "Copy the Account SID and the Auth Token again from Twilio's console."
        return [problem(ABOUT, f"refuses the credentials: HTTP {refused.status}", advice)]
    except (aiohttp.ClientError, TimeoutError) as error:
        text = f"cannot be reached: {why(error)}"
        return [problem(ABOUT, text, "Let this host reach api.twilio.com over https.")]
    if status != "active":
        return [problem(ABOUT, f"the account is {status}", "See Twilio's console.")]
    if kind == "Trial":
        text = "is a trial account: it calls verified numbers only"
        return [warning(ABOUT, text, "Upgrade the account."), _replies(settings)]
    return [ok(ABOUT, "the account works"), _replies(settings)]


def _replies(settings: Settings) -> Finding:
    """Whether answers can come back. Where the number points is Twilio's own setting, so it is said."""
    if settings.public_url is None:
        text = "no keypress can reach Midwatch: calls say so, and SMS replies are fetched every 5 s"
        advice = "Set MIDWATCH_PUBLIC_URL, and point the number's messaging webhook at it."
        return warning(ABOUT, text, advice)
    if unreachable(settings):
        text = "cannot call back: MIDWATCH_PUBLIC_URL is no address that others can reach"
        advice = "Set the address that the internet sees. Until then calls take no key, and SMS are fetched."
        return problem(ABOUT, text, advice)
    url = f"{settings.public_url.rstrip('/')}/webhooks/twilio/sms"
    return ok(ABOUT, f"the number's messaging webhook must be {url}, with POST")


async def _account(settings: Settings, sid: str, token: str) -> tuple[str, str]:
    """Its status and its type."""
    http = HttpClient(settings.twilio_api_url, TIMEOUT)
    try:
        async with asyncio.timeout(TIMEOUT.total_seconds()):
            account = await Client(sid, token, http_client=http).api.v2010.accounts(sid).fetch_async()
    finally:
        await http.close()
    return str(account.status), str(account.type)
