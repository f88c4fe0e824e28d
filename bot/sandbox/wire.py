"""How payloads reach Midwatch: the parcel, the reply, and what both ways of delivery offer.

Never decides what a payload says or what becomes of the reply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from bot.sandbox.state import Json

SLASH = "slash_commands"
INTERACTIVE = "interactive"
EVENT = "events_api"


@dataclass(frozen=True, slots=True)
class Parcel:
    kind: str
    name: str  # for the ledger: the command, the type of interaction, the event
    payload: Json
    retry_attempt: int = 0
    retry_reason: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """`error` is what went wrong, in the word that Slack shows people."""

    error: str | None = None
    body: Json = field(default_factory=dict)
    ms: float | None = None
    retry_reason: str = "timeout"
    no_retry: bool = False

    @property
    def ok(self) -> bool:
        return self.error is None


class Wire(Protocol):
    @property
    def connected(self) -> bool: ...

    async def deliver(self, parcel: Parcel) -> Reply:
        """Hand over one payload and wait for the answer, as long as Slack waits."""

    async def close(self) -> None: ...


def body_of(payload: Any) -> Json:
    """An answer to a payload as an object; plain text is a message's text."""
    if isinstance(payload, dict):
        return payload
    return {"text": payload} if isinstance(payload, str) and payload.strip() else {}
