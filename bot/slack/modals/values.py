"""What the inputs of a modal hold, as plain values: by block id, and by "block.action" as well.

Never checks what they mean. An empty input is None, or an empty list where several may be chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, str | list[str] | None]


def read_values(view: Mapping[str, Any]) -> dict[str, str | list[str] | None]:
    """Of a block with several elements, the block id alone means its first."""
    found: dict[str, str | list[str] | None] = {}
    for block_id, elements in (view.get("state") or {}).get("values", {}).items():
        for action_id, part in elements.items():
            held = _held(part)
            found.setdefault(block_id, held)
            found[f"{block_id}.{action_id}"] = held
    return found


def text(values: Values, block_id: str) -> str:
    """What was typed or chosen, without the spaces around it; empty for nothing."""
    held = values.get(block_id)
    return held.strip() if isinstance(held, str) else ""


def many(values: Values, block_id: str) -> list[str]:
    """All that were chosen."""
    held = values.get(block_id)
    return held if isinstance(held, list) else [held] if held else []


def _held(part: Mapping[str, Any]) -> str | list[str] | None:
    """Slack names what was chosen after the kind of element: selected_user, selected_options …"""
    chosen = [value for key, value in part.items() if key != "type"]
    held = chosen[0] if chosen else None
    if isinstance(held, list):
        return [_one(each) for each in held]
    return None if held is None else _one(held)


def _one(held: Any) -> str:
    return str(held["value"]) if isinstance(held, Mapping) else str(held)
