"""What an answer of Twilio means for a page: one table, for requests and for status callbacks.

Pure; never sends. A code that is not here is an answer we do not know, and that is Retry.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from engine.models import Outcome, Rejected, Retry, Throttled

THROTTLE: Final = timedelta(seconds=10)  # when Twilio does not say how long
LONGEST_WAIT: Final = timedelta(minutes=5)  # whatever a header says: a page does not wait for a day

# This number will not work by this method, however often it is tried.
PERMANENT: Final = {
    13223: "not a telephone number",
    13224: "not a telephone number",
    13225: "the number is blocked",
    21211: "not a telephone number",
    21214: "the number cannot be called",
    21215: "calls to this country are not enabled in the Twilio account",
    21216: "calls to this number are not allowed",
    21217: "not a telephone number",
    21219: "a trial account calls verified numbers only",
    21265: "short codes cannot be paged",
    21408: "SMS to this country are not enabled in the Twilio account",
    21608: "a trial account sends to verified numbers only",
    21610: "the person has replied STOP",
    21612: "no route from our number to this one",
    21614: "not a mobile number",
    21635: "a landline takes no SMS",
    30004: "the number is blocked",
    30005: "the number does not exist",
    30006: "a landline or an unreachable carrier",
    30007: "the carrier filtered the message",
    60410: "blocked by fraud protection",
}

# The provider refuses us, not this number: every page by it will fail until somebody acts.
DOWN: Final = {
    10001: "the account is not active",
    20003: "the credentials are refused",
    20005: "the account is not active",
    20006: "access is denied",
    20008: "these are test credentials",
    20404: "the account does not exist",
    21210: "TWILIO_FROM is not a verified number",
    21212: "TWILIO_FROM is not a number of the account",
    21603: "TWILIO_FROM is missing",
    21606: "TWILIO_FROM cannot send SMS",
    21659: "TWILIO_FROM is not a number of the account",
    21660: "TWILIO_FROM is not a number of the account",
    30002: "the account is suspended",
    30032: "TWILIO_FROM is a toll-free number that is not verified",
    30034: "TWILIO_FROM is not registered with the carriers",
}

THROTTLED: Final = frozenset({14107, 20429, 21611, 30022})

# It may work the next time.
TRANSIENT: Final = {
    30001: "Twilio's queue is full",
    30003: "the telephone is off or out of reach",
    30008: "the carrier gave no reason",
}

STOPPED: Final = 21610
CALLBACK_REFUSED: Final = frozenset({21205, 21609})


def outcome(code: int | None, status: int, now: datetime, retry_after: timedelta | None = None) -> Outcome:
    """The outcome of an answer that is not a success: its Twilio `code` first, then its HTTP status."""
    wait = None if retry_after is None else min(retry_after, LONGEST_WAIT)
    if code in THROTTLED or status == 429:
        return Throttled(now + (wait or THROTTLE), "throttled by Twilio")
    if code in PERMANENT:
        return Rejected(f"{PERMANENT[code]} (Twilio {code})", stopped=code == STOPPED)
    if code in DOWN:
        return Retry(f"provider down: {DOWN[code]} (Twilio {code})", down=True)
    if status in (401, 403, 404):
        return Retry(f"provider down: Twilio answered {status}", down=True)
    if code in TRANSIENT:
        return Retry(f"{TRANSIENT[code]} (Twilio {code})")
    shown = f"{status}, error {code}" if code else str(status)
    return Retry(f"Twilio answered {shown}", after=wait)
