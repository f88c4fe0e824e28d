"""Addresses as others may see them: enough to recognise one's own, too little to use it.

Pure, and the one place where an address is masked. Never shows more of a short address than of a long one.
"""

from __future__ import annotations

from typing import Final

from engine.directory import ContactMethod
from engine.models import Method

DOTS: Final = "•••••"
SHOWN_DIGITS: Final = 3
LEAST_HIDDEN: Final = 4


def masked(method: ContactMethod) -> str:
    """+44•••••123, a…@example.com, ntfy://…; a Slack id as it is, since it is no secret in its workspace."""
    return masked_address(method.kind, method.address)


def masked_address(kind: Method, address: str) -> str:
    if kind in {Method.SLACK, Method.CHANNEL}:
        return address
    if kind is Method.EMAIL:
        name, _, domain = address.rpartition("@")
        return f"{name[:1]}…@{domain}" if name else "…"
    if kind in {Method.PUSH, Method.URL}:
        scheme, mark, _ = address.partition("://")
        return f"{scheme}://…" if mark and scheme.isalnum() else "…"
    return _number(address)


def _number(number: str) -> str:
    hidden = len(number) - len("+44") - SHOWN_DIGITS
    return f"{number[:3]}{DOTS}{number[-SHOWN_DIGITS:]}" if hidden >= LEAST_HIDDEN else DOTS
