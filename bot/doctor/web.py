"""Can others reach us? The public URL, and who hears when something is wrong.

Never follows a redirect: senders must not need one either.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from bot.doctor.finding import Finding, ok, problem, warning
from bot.settings import Settings
from bot.why import why

ABOUT: Final = "public URL"
TIMEOUT: Final = aiohttp.ClientTimeout(total=5)


async def examine(settings: Settings) -> Sequence[Finding]:
    return [*await _public_url(settings), *_alarms(settings)]


async def _public_url(settings: Settings) -> list[Finding]:
    if settings.public_url is None:
        text = "not set: nothing outside of this host knows where Midwatch is"
        return [warning(ABOUT, text, "Set MIDWATCH_PUBLIC_URL, if Midwatch can be reached from outside.")]
    try:
        status = await _status(f"{settings.public_url}/healthz")
    except (aiohttp.ClientError, TimeoutError) as error:
        text = f"cannot be reached from here: {why(error)}"
        return [problem(ABOUT, text, "Start Midwatch, and see that the name and the proxy lead to it.")]
    if status != 200:
        text = f"answers {status}, which is not Midwatch"
        return [problem(ABOUT, text, "Let the proxy pass every path on, without a redirect.")]
    parts = urlsplit(settings.public_url)
    if parts.scheme != "https" and not _is_here(parts.hostname or ""):
        return [
            warning(ABOUT, "is not https: keys travel in clear", "Put a proxy with a certificate in front.")
        ]
    return [ok(ABOUT, f"{settings.public_url} is Midwatch")]


async def _status(url: str) -> int:
    async with (
        aiohttp.ClientSession(timeout=TIMEOUT) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        return response.status


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _alarms(settings: Settings) -> list[Finding]:
    if settings.ops_channel is None:
        text = "not set: nobody hears in Slack when a page could not be delivered"
        return [warning("ops channel", text, 'Set MIDWATCH_OPS_CHANNEL, like "#ops".')]
    return [ok("ops channel", settings.ops_channel)]
