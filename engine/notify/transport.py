"""What the pager sends with: the Transport protocol, and the transports an install has.

Never decides when or to whom; a transport turns one page into one outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import structlog

from engine.db import in_transaction
from engine.models import Method, Outcome, Page, Sent

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Told:
    """A provider's own words of a message or call: its status, and the code of its trouble."""

    status: str
    code: str | None = None


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


@runtime_checkable
class CanFind(Protocol):
    """A transport that can look for a message of which nobody heard whether it was sent."""

    async def sent_before(self, page: Page) -> Sent | None:
        """What an earlier attempt at this page sent; None also when that cannot be told. Never raises."""


@runtime_checkable
class CanTell(Protocol):
    """A transport that can be asked what became of a message or call that it took."""

    async def told(self, method: Method, ref: str) -> Told | None:
        """What the provider says of it now; None when it does not say. Never raises."""


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

    async def sent_before(self, page: Page) -> Sent | None:
        _refuse_in_transaction()
        return await self.transport.sent_before(page) if isinstance(self.transport, CanFind) else None

    async def told(self, method: Method, ref: str) -> Told | None:
        _refuse_in_transaction()
        return await self.transport.told(method, ref) if isinstance(self.transport, CanTell) else None

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

    def for_method(self, method: Method) -> tuple[Guarded, ...]:
        """The transports for `method`, the preferred provider first; empty when there is none."""
        return tuple(transport for transport in self._all if method in transport.methods)

    async def sent_before(self, page: Page) -> Sent | None:
        """What an earlier attempt sent, by whichever provider can tell."""
        for transport in self.for_method(page.method):
            if (found := await transport.sent_before(page)) is not None:
                return found
        return None

    async def told(self, provider: str, method: Method, ref: str) -> Told | None:
        """What `provider` says of what it took; None where it cannot be asked, or does not say."""
        for transport in self.for_method(method):
            if transport.provider == provider:
                return await transport.told(method, ref)
        return None

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
