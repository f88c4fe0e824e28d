"""What is broken at the moment, and for how long: outages that a person or a test ordered.

Measured on real time, since whoever broke it waits for real; never moved by the sandbox clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from bot.sandbox.changes import Changes
from bot.sandbox.clock import SandboxClock, monotonic

TARGETS = ("slack", "slack_socket", "sms", "voice", "twilio", "callbacks", "second", "mail")
WHOLE = frozenset({"outage", "hang"})
# The ways to fail where there are no others; Slack's and Twilio's own errors are faults by their names.
KINDS: Mapping[str, frozenset[str]] = {
    "slack_socket": WHOLE | {"reset_after", "drop_ack", "deaf", "duplicate"},
    "callbacks": WHOLE | {"late", "duplicate", "disorder"},
    "second": WHOLE | {"429", "reset_after"},
    "mail": WHOLE | {"later", "refuse"},
}


@dataclass(eq=False, slots=True)
class Fault:
    """`kind` is a way to fail (outage, hang, reset_after, 429 …) or the error to answer with."""

    target: str
    kind: str
    ends: float | None = None  # on the monotonic clock; None: until somebody clears it
    retry_after: int = 30
    method: str | None = None  # only this API method
    channel: str | None = None  # only calls with this channel
    times: int | None = None  # only so many calls
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def hits(self, target: str, method: str, args: Mapping[str, Any]) -> bool:
        if target != self.target and not self._reaches(target):
            return False
        return (self.method in (None, method)) and (self.channel in (None, args.get("channel")))

    def _reaches(self, target: str) -> bool:
        """`twilio` is both phone services, and when all of Slack is down so is its socket."""
        if self.target == "twilio":
            return target in ("sms", "voice")
        whole = self.method is None and self.channel is None and self.kind in ("outage", "hang")
        return self.target == "slack" and target == "slack_socket" and whole


class Faults:
    def __init__(self, clock: SandboxClock, changes: Changes) -> None:
        self._clock = clock
        self._changes = changes
        self._faults: list[Fault] = []

    def begin(self, fault: Fault) -> None:
        """Break something; a second fault of the same reach replaces the first."""
        for old in self.active():
            if (old.target, old.method, old.channel) == (fault.target, fault.method, fault.channel):
                self._end(old)
        self._faults.append(fault)
        if fault.ends is not None:
            delay = max(0.0, fault.ends - monotonic())
            asyncio.get_running_loop().call_later(delay, self.active)
        self._changes.mark("state")

    def clear(self, target: str | None = None) -> None:
        for fault in tuple(self._faults):
            if target in (None, fault.target):
                self._end(fault)

    def find(self, target: str, method: str = "", args: Mapping[str, Any] | None = None) -> Fault | None:
        """The fault that this call would run into, the newest one first."""
        return next((f for f in reversed(self.active()) if f.hits(target, method, args or {})), None)

    def strike(
        self,
        target: str,
        method: str,
        args: Mapping[str, Any],
        matters: Callable[[str], bool] = lambda kind: True,
    ) -> Fault | None:
        """The fault that this call runs into, if its kind matters here; a counted one is used up."""
        fault = self.find(target, method, args)
        if fault is None or not matters(fault.kind):
            return None
        if fault.times is not None:
            fault.times -= 1
            if fault.times <= 0:
                self._end(fault)
        return fault

    def active(self) -> list[Fault]:
        for fault in tuple(self._faults):
            if fault.ends is not None and fault.ends <= monotonic():
                self._end(fault)
        return list(self._faults)

    def as_json(self) -> list[dict[str, Any]]:
        return [
            {"target": f.target, "kind": f.kind, "until": self._until(f), "method": f.method}
            for f in self.active()
        ]

    def _until(self, fault: Fault) -> str | None:
        if fault.ends is None:
            return None
        return (self._clock.now() + timedelta(seconds=fault.ends - monotonic())).isoformat()

    def _end(self, fault: Fault) -> None:
        self._faults.remove(fault)
        fault.over.set()
        self._changes.mark("state")
