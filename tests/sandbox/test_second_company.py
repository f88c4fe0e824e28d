"""The second phone company of the sandbox, by Midwatch's own way to it."""

from __future__ import annotations

import pytest

from bot.sandbox.server import SandboxServer
from engine.models import Method, Retry, Sent
from engine.notify.second_phone import SecondPhone
from tests.notify.values import page
from tests.sandbox.conftest import Script

ANA = "+12025550143"


def second(sandbox: SandboxServer, method: Method) -> SecondPhone:
    url = f"json{sandbox.url.removeprefix('http')}/second/{method}/{{to}}"
    return SecondPhone(method, url, answer_to="+12025550100")


async def test_what_it_takes_is_on_the_phone(sandbox: SandboxServer, script: Script) -> None:
    """A text and a spoken message; the first company's lists know nothing of them."""
    assert isinstance(await second(sandbox, Method.SMS).send(page(address=ANA)), Sent)
    assert isinstance(await second(sandbox, Method.VOICE).send(page(method=Method.VOICE, address=ANA)), Sent)
    ana = next(one for one in (await script.get("phones"))["phones"] if one["number"] == ANA)
    (text,), (call,) = ana["sms"], ana["calls"]
    assert (text["from"], text["direction"]) == ("second company", "in")
    assert "#42 FIRING" in text["body"]
    assert (call["status"], len(call["said"])) == ("completed", 1)
    assert sandbox.world.exchange.messages == {}


@pytest.mark.parametrize("kind", ["outage", "429"])
async def test_it_breaks_too(sandbox: SandboxServer, script: Script, kind: str) -> None:
    """By a switch of its own: the first company goes on."""
    await script.post("fault", target="second", kind=kind)
    assert isinstance(await second(sandbox, Method.SMS).send(page(address=ANA)), Retry)
    await script.post("fault", target="second", kind="none")
    assert isinstance(await second(sandbox, Method.SMS).send(page(address=ANA)), Sent)


async def test_it_takes_a_text_and_says_nothing(sandbox: SandboxServer, script: Script) -> None:
    """The line is cut after the text was taken: whoever sent it cannot know."""
    await script.post("fault", target="second", kind="reset_after")
    assert isinstance(await second(sandbox, Method.SMS).send(page(address=ANA)), Retry)
    ana = next(one for one in (await script.get("phones"))["phones"] if one["number"] == ANA)
    assert len(ana["sms"]) == 1
