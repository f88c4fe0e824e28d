"""The transports of an install: found by method, closed together, never used inside a transaction."""

from __future__ import annotations

import pytest

from engine.db import in_transaction
from engine.models import DeliveryKind, Method, Outcome, Page, Sent
from engine.notify.transport import Transports

PAGE = Page(id=7, attempt=1, kind=DeliveryKind.PAGE, method=Method.SMS, address="+12025550143")


class Phone:
    """A transport that remembers what it sent and which calls it ended."""

    methods = frozenset({Method.SMS, Method.VOICE})

    def __init__(self, provider: str, *, breaks: bool = False) -> None:
        self.provider = provider
        self.sent: list[Page] = []
        self.ended: list[str] = []
        self.closed = False
        self._breaks = breaks

    async def send(self, page: Page) -> Outcome:
        self.sent.append(page)
        return Sent("SM1", self.provider)

    async def hang_up(self, ref: str) -> None:
        self.ended.append(ref)

    async def close(self) -> None:
        if self._breaks:
            raise OSError("gone")
        self.closed = True


class Mail:
    """A transport that cannot hang up."""

    methods = frozenset({Method.EMAIL})
    provider = "smtp"

    async def send(self, page: Page) -> Outcome:
        return Sent("m1", self.provider)

    async def close(self) -> None:
        return None


async def test_a_transport_is_found_by_method_in_order_of_preference() -> None:
    """The first named provider of a method is the preferred one; a method nobody has gives none."""
    transports = Transports([Phone("twilio"), Mail(), Phone("second")])
    assert [t.provider for t in transports.for_method(Method.SMS)] == ["twilio", "second"]
    assert transports.for_method(Method.SLACK) == ()
    assert transports.methods == {Method.SMS, Method.VOICE, Method.EMAIL}


async def test_nothing_is_sent_inside_a_transaction() -> None:
    """A send or a hang-up while a transaction is open is a mistake in the program, said loudly."""
    phone = Phone("twilio")
    transports = Transports([phone])
    token = in_transaction.set(True)
    try:
        with pytest.raises(RuntimeError, match="inside a transaction"):
            await transports.for_method(Method.SMS)[0].send(PAGE)
        with pytest.raises(RuntimeError, match="inside a transaction"):
            await transports.hang_up("twilio", "CA1")
    finally:
        in_transaction.reset(token)
    assert (phone.sent, phone.ended) == ([], [])
    assert await transports.for_method(Method.SMS)[0].send(PAGE) == Sent("SM1", "twilio")


async def test_a_call_is_ended_by_the_provider_that_rings_it() -> None:
    """Only that provider is asked; one that cannot hang up is left out without a word."""
    one, two = Phone("twilio"), Phone("second")
    transports = Transports([one, two, Mail()])
    await transports.hang_up("second", "CA1")
    await transports.hang_up("smtp", "m1")
    await transports.hang_up("nobody", "CA1")
    assert (one.ended, two.ended) == ([], ["CA1"])


async def test_one_that_fails_to_close_does_not_keep_the_others_open() -> None:
    """Every transport is closed at the end."""
    phone = Phone("second")
    await Transports([Phone("twilio", breaks=True), phone]).close()
    assert phone.closed
