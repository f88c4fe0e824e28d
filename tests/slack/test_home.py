"""The App Home tab: what it shows to whom, and that a click there is answered like any other."""

from __future__ import annotations

from typing import Any

import pytest

from bot.sandbox.content import visible_text
from bot.sandbox.hands import Hands
from bot.sandbox.state import View
from engine.models import Actor, Via
from tests.slack.conftest import Desk, until

CLI = Actor("cho", Via.CLI)


@pytest.fixture
async def online(desk: Desk) -> Desk:
    await desk.connect()
    return desk


async def opened(desk: Desk, name: str) -> View:
    """The tab that this person sees when they open it."""
    user = desk.sandbox.state.find_user(f"@{name}")
    assert user is not None
    Hands(desk.sandbox.world).open_home(user)
    await until(lambda: user.id in desk.sandbox.state.homes)
    return desk.sandbox.state.homes[user.id]


async def clicks(desk: Desk, name: str, view: View, action_id: str) -> None:
    user = desk.sandbox.state.find_user(f"@{name}")
    assert user is not None
    seen = await Hands(desk.sandbox.world).click_in_view(user, view, action_id, None, {})
    assert seen.error is None


def shown(desk: Desk, user_id: str) -> str:
    return str(desk.sandbox.state.homes[user_id].body["blocks"])


def told(desk: Desk, name: str) -> list[str]:
    return [visible_text(message) for message in desk.direct(name)]


async def test_a_click_in_the_tab_is_seen_in_the_tab(online: Desk) -> None:
    """Acked there: the tab is shown anew with the new state, and nothing more is said."""
    incident = await online.open()
    await clicks(online, "ana", await opened(online, "ana"), "incident_ack")
    assert (await online.view(incident.id)).acknowledged_by == "ana"
    await until(lambda: f"ACKED by @ana · *#{incident.number}" in shown(online, "U0ANA"))
    assert told(online, "ana") == []


async def test_a_click_in_an_old_tab_is_told_who_was_first(online: Desk) -> None:
    """Already done: said by direct message, since a tab has no other way, and the tab is right again."""
    incident = await online.open()
    old = await opened(online, "ana")
    await online.responder.acknowledge(incident.id, CLI)
    await clicks(online, "ana", old, "incident_ack")
    await until(lambda: bool(told(online, "ana")))
    assert "already acknowledged by cho" in told(online, "ana")[0]
    await until(lambda: "ACKED by cho" in shown(online, "U0ANA"))


async def test_a_refused_click_in_the_tab_is_told_why(online: Desk) -> None:
    """Not yours: what to do comes by direct message."""
    incident = await online.open()
    await clicks(online, "dee", await opened(online, "dee"), "incident_ack")
    await until(lambda: bool(told(online, "dee")))
    assert "Run `/oncall me` once" in told(online, "dee")[0]
    assert await online.view(incident.id) == incident


async def test_a_failing_click_in_the_tab_is_said_to_be_not_applied(
    online: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error reaches the person there too."""
    await online.open()
    view = await opened(online, "ana")

    async def broken(*_: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(online.responder, "acknowledge", broken)
    await clicks(online, "ana", view, "incident_ack")
    await until(lambda: bool(told(online, "ana")))
    assert "was NOT applied. Ref " in told(online, "ana")[0]


@pytest.mark.parametrize(
    ("name", "words"), [("gus", "Guests may not use Midwatch"), ("eve", "only people of its own workspace")]
)
async def test_outsiders_see_no_incident_in_the_tab(online: Desk, name: str, words: str) -> None:
    """Guests and strangers are told that this is not for them."""
    await online.open("db-1 is down")
    blocks = str((await opened(online, name)).body["blocks"])
    assert words in blocks
    assert "db-1" not in blocks
    assert "payments-primary" not in blocks
