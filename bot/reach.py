"""By what does this install reach people, and can the phone company call it back? Judged by settings alone.

Pure: never looks a name up, and never asks anybody.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from bot.settings import Settings
from engine.models import Method

INSIDE: Final = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".test", ".invalid")


def is_public(url: str) -> bool:
    """May a machine elsewhere reach this address?"""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(INSIDE)


def called_back_at(settings: Settings) -> str | None:
    """What the phone company is told to call: the public URL, unless it leads nowhere from there."""
    url = settings.public_url
    # Why the second: a phone company on this machine (the sandbox) reaches what is on this machine.
    reached = url is not None and (is_public(url) or not is_public(settings.twilio_api_url))
    return url if reached else None


def sends_by(settings: Settings) -> frozenset[Method]:
    """What the settings say that this install can send by; whether it works, `doctor` looks."""
    ways = {Method.PUSH}
    for method, given in (
        (Method.SLACK, settings.slack_bot_token),
        (Method.SMS, settings.twilio_from or settings.sms_fallback_url),
        (Method.VOICE, settings.twilio_from or settings.voice_fallback_url),
        (Method.EMAIL, settings.smtp_url),
    ):
        ways |= {method} if given else set()
    return frozenset(ways)


def unreachable(settings: Settings) -> bool:
    """Is there a public URL that the phone company cannot call?"""
    used = settings.public_url is not None and settings.twilio_from is not None
    return used and called_back_at(settings) is None
