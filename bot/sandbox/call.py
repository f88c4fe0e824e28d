"""One call of Slack's Web API as a value, and Slack's way of refusing it.

Knows how arguments are written on the wire; what they mean is the method's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TRUE = ("1", "true", "True", True, 1)


class SlackError(Exception):
    """Slack answers `{"ok": false, "error": …}`."""

    def __init__(self, error: str, **extra: Any) -> None:
        super().__init__(error)
        self.error = error
        self.extra = extra


def invalid(error: str, messages: list[str]) -> SlackError:
    """An error that says which rule was broken where, as Slack writes it."""
    return SlackError(error, response_metadata={"messages": [f"[ERROR] {m}" for m in messages]})


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    args: Mapping[str, Any] = field(default_factory=dict)

    def text(self, name: str) -> str:
        value = self.args.get(name)
        return "" if value is None else str(value)

    def flag(self, name: str, *, default: bool = False) -> bool:
        return self.args[name] in TRUE if self.args.get(name) is not None else default

    def number(self, name: str, default: int) -> int:
        try:
            return int(self.args.get(name) or default)
        except (TypeError, ValueError):
            raise SlackError("invalid_arguments") from None

    def has(self, name: str) -> bool:
        return self.args.get(name) is not None

    def json(self, name: str, error: str) -> Any:
        """A structured argument: JSON already, or JSON text as forms carry it."""
        value = self.args.get(name)
        if isinstance(value, str):
            try:
                return json.loads(value) if value else None
            except ValueError:
                raise SlackError(error) from None
        return value
