"""Slack's signature on HTTP requests, checked over the raw bytes.

Never raises for what a sender wrote: anything odd is simply not signed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from datetime import UTC, datetime, timedelta
from typing import Final

WINDOW: Final = timedelta(minutes=5)
_TIMESTAMP: Final = re.compile(r"[0-9]{10}", re.ASCII)
_SIGNATURE: Final = re.compile(r"v0=[0-9a-f]{64}", re.ASCII)


def is_signed(secret: str, timestamp: str, signature: str, body: bytes, now: datetime) -> bool:
    """Was this body signed with `secret`, less than five minutes from `now`?"""
    if not secret or not _TIMESTAMP.fullmatch(timestamp) or not _SIGNATURE.fullmatch(signature):
        return False
    if abs(now - datetime.fromtimestamp(int(timestamp), UTC)) > WINDOW:
        return False
    base = b"v0:" + timestamp.encode() + b":" + body
    expected = "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, signature)
