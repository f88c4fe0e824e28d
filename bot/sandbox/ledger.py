"""The record of every call Midwatch made and of every answer it gave.

Never holds a token or a password, and forgets the oldest when it is full.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from bot.sandbox.changes import Changes

REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request to the sandbox. `status` 0: it got no answer (reset, or given up)."""

    target: str  # slack, response_url, sms, voice
    method: str
    args: Mapping[str, Any]
    status: int
    error: str | None
    at: datetime
    ms: float


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """How Midwatch took one payload. `ms` None: not within Slack's time."""

    envelope_id: str
    kind: str  # slash_commands, interactive, events_api
    name: str  # /oncall, block_actions, app_mention …
    retry_attempt: int
    ms: float | None
    error: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Callback:
    """One post of the phone company to Midwatch. `status` 0: nobody answered."""

    kind: str  # sms, call_status, gather, message_status …
    url: str
    params: Mapping[str, str]
    status: int
    at: datetime


class Ledger:
    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._calls: deque[ApiCall] = deque(maxlen=REMEMBERED)
        self._acks: deque[Acknowledgement] = deque(maxlen=REMEMBERED)
        self._callbacks: deque[Callback] = deque(maxlen=REMEMBERED)

    def add(self, entry: ApiCall | Acknowledgement | Callback) -> None:
        if isinstance(entry, ApiCall):
            self._calls.append(entry)
        elif isinstance(entry, Acknowledgement):
            self._acks.append(entry)
        else:
            self._callbacks.append(entry)
        self._changes.mark("ledger")

    def calls(self, method: str | None = None, *, ok: bool | None = None) -> list[ApiCall]:
        return [
            call
            for call in self._calls
            if (method is None or call.method == method) and (ok is None or (call.error is None) is ok)
        ]

    def acks(self, kind: str | None = None) -> list[Acknowledgement]:
        return [ack for ack in self._acks if kind is None or ack.kind == kind]

    def callbacks(self, kind: str | None = None) -> list[Callback]:
        return [callback for callback in self._callbacks if kind is None or callback.kind == kind]

    def clear(self) -> None:
        for entries in (self._calls, self._acks, self._callbacks):
            entries.clear()

    def as_json(self) -> dict[str, Any]:
        return {
            "calls": _rows(self._calls),
            "acks": _rows(self._acks),
            "callbacks": _rows(self._callbacks),
            "counts": Counter(call.method for call in self._calls if call.error is None),
        }


def _rows(entries: Iterable[Any]) -> list[dict[str, Any]]:
    return [{**asdict(entry), "at": entry.at.isoformat()} for entry in entries]
