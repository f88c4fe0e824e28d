"""What the pager sends with: the Transport protocol, and the transports an install has.

Never decides when or to whom; a transport turns one page into one outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import structlog

from engine.db import in_transaction
from engine.models import Method, Outcome, Page

log = structlog.get_logger(__name__)


class Transport(Protocol):
    """One provider and the methods it can send by."""

    @property
    def methods(self) -> frozenset[Method]: ...

    @property
    def provider(self) -> str: ...

    async def send(self, page: Page) -> Outcome:
        """Send it once. Raising means Retry: nobody knows whether it was sent."""

    async def close(self) -> None:
        """Give back connections; nothing is sent afterwards."""


@runtime_checkable
class CanHangUp(Protocol):
    """A transport whose ringing calls can be ended when somebody acknowledges."""

    async def hang_up(self, ref: str) -> None:
        """End the call; never raises, and a call that is over already is fine."""


class Guarded:
    """A transport that refuses to send while a transaction is open."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.methods = transport.methods
        self.provider = transport.provider

    async def send(self, page: Page) -> Outcome:
        _refuse_in_transaction()
        return await self.transport.send(page)

    async def hang_up(self, ref: str) -> None:
        _refuse_in_transaction()
        if isinstance(self.transport, CanHangUp):
            await self.transport.hang_up(ref)

    async def close(self) -> None:
        await self.transport.close()


def guarded(transport: Transport) -> Guarded:
    return transport if isinstance(transport, Guarded) else Guarded(transport)


def _refuse_in_transaction() -> None:
    # Why: a provider that takes ten seconds would hold the incident's lock for ten seconds, and a
    # rollback cannot take a message back.
    if in_transaction.get():
        raise RuntimeError("a transport was called inside a transaction; send after the commit")


class Transports:
    """All transports of this install, each guarded, in order of preference."""

    def __init__(self, transports: Iterable[Transport]) -> None:
        self._all = tuple(guarded(transport) for transport in transports)

    @property
    def methods(self) -> frozenset[Method]:
        return frozenset().union(*(transport.methods for transport in self._all))

    def for_method(self, method: Method) -> tuple[Transport, ...]:
        """The transports for `method`, the preferred provider first; empty when there is none."""
        return tuple(transport for transport in self._all if method in transport.methods)

    async def hang_up(self, provider: str, ref: str) -> None:
        """End a call that `provider` is ringing; does nothing where calls cannot be ended."""
        for transport in self._all:
            if transport.provider == provider:
                await transport.hang_up(ref)

    async def close(self) -> None:
        """Close every transport; one that fails to close does not keep the others open."""
        for transport in self._all:
            try:
                await transport.close()
            except Exception as error:
                log.warning("transport.close_failed", provider=transport.provider, error=type(error).__name__)
