"""Signed links by which a page is answered: made for one delivery, good for a day.

Pure: never reads the clock or the database. A link says nothing of its incident; whoever holds it may answer
that one incident as the person it was sent to, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

LIFE: Final = timedelta(hours=24)
PATH: Final = "/answer/"
MAC_BYTES: Final = 16  # 128 bits: nobody guesses one
ID_BYTES: Final = 7
TIME_BYTES: Final = 4  # seconds, until 2106
# 27 bytes are 36 characters with no bit left over, so that a token has one spelling.
FORM: Final = re.compile(r"[A-Za-z0-9_-]{36}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a token says by itself. Believe it only after `Links.holds`."""

    delivery_id: int
    until: datetime
    mac: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Links:
    """`public_url` is where people's browsers reach us."""

    key: bytes = field(repr=False)
    public_url: str

    def url(self, delivery_id: int, incident_id: int, person_id: int, now: datetime) -> str:
        """Where this person answers this incident, from now on for a day."""
        body = _body(delivery_id, int((now + LIFE).timestamp()))
        token = base64.urlsafe_b64encode(body + self._mac(body, incident_id, person_id)).decode()
        return f"{self.public_url.rstrip('/')}{PATH}{token}"

    def holds(self, claim: Claim, incident_id: int, person_id: int, now: datetime) -> bool:
        """Was the link made here for this incident and this person, and is it still good?"""
        body = _body(claim.delivery_id, int(claim.until.timestamp()))
        ours = hmac.compare_digest(claim.mac, self._mac(body, incident_id, person_id))
        return ours and now < claim.until

    def _mac(self, body: bytes, incident_id: int, person_id: int) -> bytes:
        # Why both, though the delivery's row names them: after a backup was restored the same id may be
        # given to another delivery, and a link from before must not answer that one.
        about = b"%d:%d:" % (incident_id, person_id)
        return hmac.digest(self.key, about + body, hashlib.sha256)[:MAC_BYTES]


def read(token: str) -> Claim | None:
    """What the token claims; None for what cannot be one."""
    if not FORM.fullmatch(token):
        return None
    raw = base64.urlsafe_b64decode(token)
    until = int.from_bytes(raw[ID_BYTES : ID_BYTES + TIME_BYTES])
    at = datetime.fromtimestamp(until, UTC)
    return Claim(int.from_bytes(raw[:ID_BYTES]), at, raw[ID_BYTES + TIME_BYTES :])


def _body(delivery_id: int, until: int) -> bytes:
    return delivery_id.to_bytes(ID_BYTES) + until.to_bytes(TIME_BYTES)
