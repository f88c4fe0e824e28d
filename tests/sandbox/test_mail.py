"""The mail server of the sandbox, by Midwatch's own way to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bot.sandbox.server import SandboxServer
from bot.sandbox.world import Options
from engine.models import Method, Rejected, Retry, Sent
from engine.notify.email import EmailTransport
from tests.fakes import FakeClock
from tests.notify.values import page
from tests.sandbox.conftest import Script


@pytest.fixture
async def sandbox() -> AsyncIterator[SandboxServer]:
    async with SandboxServer(options=Options(smtp_port=0)) as server:
        yield server


@pytest.fixture
def mail(sandbox: SandboxServer) -> EmailTransport:
    url = f"smtp://127.0.0.1:{sandbox.smtp_port}?from=midwatch@example.com"
    return EmailTransport(FakeClock(), url, link_of=lambda _: "http://127.0.0.1/answer/token")


async def test_a_mail_is_on_the_phone_of_whoever_it_is_for(mail: EmailTransport, script: Script) -> None:
    """With its subject, its words and the link that answers it; a stranger's is nowhere."""
    assert isinstance(await mail.send(page(method=Method.EMAIL, address="ana@example.com")), Sent)
    assert isinstance(await mail.send(page(method=Method.EMAIL, address="nobody@example.com")), Sent)
    phones = (await script.get("phones"))["phones"]
    ((name, (got,)),) = [(one["name"], one["mails"]) for one in phones if one["mails"]]
    assert (name, got["to"]) == ("ana", "ana@example.com")
    assert "#42" in got["subject"]
    assert "http://127.0.0.1/answer/token" in got["text"]


@pytest.mark.parametrize(("kind", "outcome"), [("outage", Retry), ("later", Retry), ("refuse", Rejected)])
async def test_it_breaks_in_every_way(
    mail: EmailTransport, script: Script, kind: str, outcome: type[object]
) -> None:
    """By its switch; then it takes mail again."""
    await script.post("fault", target="mail", kind=kind)
    assert isinstance(await mail.send(page(method=Method.EMAIL, address="ana@example.com")), outcome)
    await script.post("fault", target="mail", kind="none")
    assert isinstance(await mail.send(page(method=Method.EMAIL, address="ana@example.com")), Sent)


async def test_it_says_nothing_until_it_is_mended(mail: EmailTransport, script: Script) -> None:
    """A server that hangs holds the line."""
    await script.post("fault", target="mail", kind="hang")
    sending = asyncio.create_task(mail.send(page(method=Method.EMAIL, address="ana@example.com")))
    _, waiting = await asyncio.wait({sending}, timeout=0.3)
    assert waiting
    await script.post("fault", target="mail", kind="none")
    assert isinstance(await sending, Retry)
