"""What an error of Slack's Web API means for us, in one place: trouble of a class, then an outcome.

Never decides what is done about it, and never repeats what Slack wrote besides its error code.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError

from engine.models import Rejected, Retry, Throttled

THROTTLE_DEFAULT: Final = timedelta(seconds=30)  # a 429 without a usable header
THROTTLE_MAX: Final = timedelta(hours=1)


class Kind(StrEnum):
    THROTTLED = "throttled"
    TRANSIENT = "transient"  # an outage, a timeout, an answer nobody knows
    DOWN = "down"  # our token is dead: Slack is down for us
    DEAD = "dead"  # this channel or person cannot be written to
    SCOPE = "scope"  # the app was installed without a permission
    FORMAT = "format"  # our own mistake: send it plainly
    GONE = "gone"  # the message that was to be changed is not there


CODES: Final = {
    Kind.THROTTLED: ("ratelimited", "rate_limited"),
    Kind.DOWN: (
        "token_revoked", "token_expired", "account_inactive", "invalid_auth", "not_authed",
        "org_login_required", "team_access_not_granted", "not_allowed_token_type", "ekm_access_denied",
    ),
    Kind.DEAD: (
        "channel_not_found", "is_archived", "not_in_channel", "restricted_action", "user_not_found",
        "cannot_dm_bot", "user_disabled", "users_not_found", "user_not_visible", "is_inactive",
        "restricted_action_read_only_channel", "restricted_action_non_threadable_channel", "not_in_dm",
        "messages_tab_disabled", "user_is_restricted", "users_list_not_supplied",
        "method_not_supported_for_channel_type", "thread_not_found", "cannot_reply_to_message",
    ),
    Kind.SCOPE: ("missing_scope", "no_permission", "access_denied"),
    Kind.FORMAT: (
        "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "no_text",
        "invalid_attachments", "too_many_attachments", "attachment_payload_limit_exceeded",
        "metadata_too_large", "invalid_metadata_format", "invalid_metadata_schema",
    ),
    Kind.GONE: ("message_not_found", "cant_update_message", "edit_window_closed"),
}  # fmt: skip
# Of Slack's own words for "not now", those that hold for every channel.
OUTAGES: Final = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "message_limit_exceeded"}
)
UNREACHED: Final = (aiohttp.ClientError, OSError, TimeoutError)
_KIND_OF: Final = {code: kind for kind, codes in CODES.items() for code in codes}


@dataclass(frozen=True, slots=True)
class Trouble:
    kind: Kind
    code: str  # Slack's word, or the name of the exception
    retry_after: timedelta = timedelta()
    needed: str = ""  # the scope that is missing
    outage: bool = False  # it speaks against Slack itself, and not against what was asked


class FaultyMessage(Exception):
    """Our own linter refused a message before Slack could."""


def trouble_of(error: BaseException) -> Trouble:
    if isinstance(error, FaultyMessage):
        return Trouble(Kind.FORMAT, "faulty_message")
    if not isinstance(error, SlackApiError):
        return Trouble(Kind.TRANSIENT, type(error).__name__, outage=isinstance(error, UNREACHED))
    status, headers, data = _parts(error.response)
    code = str(data.get("error") or (f"http_{status}" if status else "unknown"))
    kind = _KIND_OF.get(code, Kind.TRANSIENT)
    if status == 429 or kind is Kind.THROTTLED:
        return Trouble(Kind.THROTTLED, "ratelimited", _retry_after(headers))
    outage = kind is Kind.DOWN or status >= 500 or code in OUTAGES
    return Trouble(kind, code, needed=str(data.get("needed") or ""), outage=outage)


def _parts(response: Any) -> tuple[int, Any, dict[str, Any]]:
    """Status, headers and data: the library hands over its own response, or aiohttp's bare one."""
    status = getattr(response, "status_code", None) or getattr(response, "status", None) or 0
    data = response if isinstance(response, dict) else getattr(response, "data", None)
    return int(status), getattr(response, "headers", {}), data if isinstance(data, dict) else {}


def _retry_after(headers: Any) -> timedelta:
    value = headers.get("Retry-After") or headers.get("retry-after") or ""
    try:
        seconds = float(value[0] if isinstance(value, list) else value)
    except ValueError:
        return THROTTLE_DEFAULT
    if not 0 < seconds < float("inf"):
        return THROTTLE_DEFAULT
    return min(timedelta(seconds=seconds), THROTTLE_MAX)


def outcome_of(trouble: Trouble, now: datetime) -> Retry | Rejected | Throttled:
    match trouble.kind:
        case Kind.THROTTLED:
            return Throttled(now + trouble.retry_after, "Slack: rate limited")
        case Kind.DOWN:
            return Retry(f"Slack is down for us: {trouble.code}", down=True)
        case Kind.DEAD | Kind.GONE:
            return Rejected(f"Slack: {trouble.code}")
        case Kind.SCOPE:
            needed = f", needs {trouble.needed}" if trouble.needed else ""
            return Rejected(f"Slack: {trouble.code}{needed}: reinstall the app from manifest.yaml")
        case Kind.FORMAT:
            return Rejected(f"Slack refused even plain text: {trouble.code}")
        case Kind.TRANSIENT:
            return Retry(f"Slack: {trouble.code}")
