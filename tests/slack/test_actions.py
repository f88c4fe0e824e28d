"""Clicks on cards: done, refused, or already so; and what no click may do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.sandbox.state import Message
from engine.errors import Unavailable
from engine.models import Actor, IncidentStatus, IncidentView, Via
from tests.slack.conftest import Desk, until

CLI = Actor("cho", Via.CLI)


@pytest.fixture
async def online(desk: Desk) -> Desk:
    await desk.connect()
    return desk


async def carded(desk: Desk) -> tuple[IncidentView, Message]:
    """An incident and its card in #payments."""
    incident = await desk.open()
    await desk.card(incident, "#payments")
    await desk.slack.cards.show(incident.id)
    await desk.run_cards()
    return incident, desk.said("#payments")[0]


async def dispatch(desk: Desk, **body: Any) -> BoltResponse:
    """A payload as Slack would send it, without the socket."""
    return await desk.slack.app.async_dispatch(AsyncBoltRequest(mode="socket_mode", body=body))


def a_click(value: str = "", **changes: Any) -> dict[str, Any]:
    return {
        "type": "block_actions",
        "team": {"id": "T0SANDBOX"},
        "user": {"id": "U0ANA"},
        "channel": {"id": "C0PAYMENTS"},
        "container": {"message_ts": "9.9", "channel_id": "C0PAYMENTS"},
        "actions": [
            {"type": "button", "action_id": "incident_ack", "block_id": "b", "value": value, "action_ts": "1"}
        ],
    } | changes


async def test_a_click_acknowledges_and_the_card_says_so(online: Desk) -> None:
    """Ack: the incident is acknowledged before Slack hears of it, and the card names who."""
    incident, card = await carded(online)
    await online.clicks("ben", card, "incident_ack")
    view = await online.view(incident.id)
    assert (view.acknowledged_by, view.acknowledged_via) == ("ben", Via.SLACK_BUTTON)
    await online.run_cards()
    assert online.said("#payments")[0].text.startswith("🟡 ACKED by @ben ·")
    assert online.whispers("ben", "#payments") == []


async def test_a_second_click_is_told_who_was_first(online: Desk) -> None:
    """Already done: an answer for the second person only, and the stale card is shown anew."""
    incident, card = await carded(online)
    await online.responder.acknowledge(incident.id, CLI)
    await online.run_cards()
    await online.clicks("ben", card, "incident_resolve")
    await online.run_cards()
    await online.clicks("ana", card, "incident_reopen")
    await online.run_cards()
    shown = online.said("#payments")[0]
    await online.clicks("ana", shown, "incident_ack")
    await online.clicks("ben", shown, "incident_ack")
    await until(lambda: bool(online.whispers("ben", "#payments")))
    assert "already acknowledged by ana" in online.whispers("ben", "#payments")[0]
    assert len(await online.card_due()) == 1


async def test_two_clicks_at_once_are_one_ack(online: Desk) -> None:
    """Of two people in the same instant one acknowledges, and the other is told."""
    incident, card = await carded(online)
    await asyncio.gather(
        online.clicks("ana", card, "incident_ack"), online.clicks("ben", card, "incident_ack")
    )
    first = (await online.view(incident.id)).acknowledged_by
    second = "ben" if first == "ana" else "ana"
    await until(lambda: bool(online.whispers(second, "#payments")))
    assert f"already acknowledged by {first}" in online.whispers(second, "#payments")[0]


async def test_a_merge_is_undone_by_its_button(online: Desk) -> None:
    """The card of what was merged offers nothing else; a second click is told that it was done."""
    incident, _ = await carded(online)
    other = await online.open("db-2 is down")
    await online.responder.merge(incident.id, CLI, other.id)
    await online.run_cards()
    card = next(one for one in online.said("#payments") if f"#{incident.number} " in one.text)
    await online.clicks("ana", card, "incident_unmerge")
    assert (await online.view(incident.id)).status is IncidentStatus.TRIGGERED
    await online.clicks("ben", card, "incident_unmerge")
    await until(lambda: bool(online.whispers("ben", "#payments")))
    assert "it was not merged" in online.whispers("ben", "#payments")[0]


async def test_a_late_ack_on_a_resolved_incident(online: Desk) -> None:
    """Resolve wins: the click is answered, and nothing else changes."""
    incident, card = await carded(online)
    await online.responder.resolve(incident.id, CLI)
    await online.clicks("ana", card, "incident_ack")
    await until(lambda: bool(online.whispers("ana", "#payments")))
    assert "already resolved" in online.whispers("ana", "#payments")[0]
    assert (await online.view(incident.id)).status is IncidentStatus.RESOLVED


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ("dee", "Run `/oncall me` once"),
        ("gus", "Guests may not use Midwatch"),
        ("eve", "only people of its own workspace"),
    ],
)
async def test_a_click_of_somebody_else_changes_nothing(online: Desk, user: str, words: str) -> None:
    """Not yours: told what to do, and the incident is as it was."""
    incident, card = await carded(online)
    before = await online.view(incident.id)
    await online.clicks(user, card, "incident_ack")
    await until(lambda: bool(online.whispers(user, "#payments")))
    assert words in online.whispers(user, "#payments")[0]
    assert await online.view(incident.id) == before


@pytest.mark.parametrize(
    ("value", "state", "words"),
    [
        ("escalate", IncidentStatus.TRIGGERED, "*#1*"),
        ("snooze60", IncidentStatus.ACKNOWLEDGED, "snoozed"),
    ],
)
async def test_the_menu_of_a_card(online: Desk, value: str, state: IncidentStatus, words: str) -> None:
    """Escalate and snooze from the overflow, with an answer that says what was done."""
    incident, card = await carded(online)
    await online.clicks("ana", card, "incident_more", f"{value}:{incident.id}.{incident.epoch}")
    assert (await online.view(incident.id)).status is state
    await until(lambda: bool(online.whispers("ana", "#payments")))
    assert words in online.whispers("ana", "#payments")[0]


async def test_a_button_without_a_value_is_found_by_its_message(desk: Desk) -> None:
    """By the id of a block, else by where the card stands; names are not needed."""
    incident, card = await carded(desk)
    blocks = {"attachments": [{"blocks": [{"block_id": f"incident:{incident.id}"}]}]}
    assert (await dispatch(desk, **a_click("", message=blocks))).status == 200
    assert (await desk.view(incident.id)).status is IncidentStatus.ACKNOWLEDGED
    await desk.responder.unacknowledge(incident.id, CLI)
    container = {"channel_id": "C0PAYMENTS", "message_ts": card.ts}
    assert (await dispatch(desk, **a_click("garbage", container=container))).status == 200
    assert (await desk.view(incident.id)).status is IncidentStatus.ACKNOWLEDGED


@pytest.mark.parametrize("value", ["", "999.1", "1; DROP TABLE", "9" * 400, "1.1.1", "-1.1", "１.１"])
async def test_a_forged_value_is_answered_and_changes_nothing(desk: Desk, value: str) -> None:
    """Whatever a button claims, it is acked, and no incident moves."""
    incident = await desk.open()
    assert (await dispatch(desk, **a_click(value))).status == 200
    assert await desk.view(incident.id) == incident


async def test_a_click_from_another_workspace_is_refused(desk: Desk) -> None:
    """The user's own team counts, not the team of the channel."""
    await desk.connect()
    incident = await desk.open()
    value = f"{incident.id}.{incident.epoch}"
    await dispatch(desk, **a_click(value, user={"id": "U0ANA", "team_id": "T0OTHER"}))
    assert await desk.view(incident.id) == incident


@pytest.mark.parametrize(
    "body",
    [
        a_click(actions=[{"type": "button", "action_id": "open_runbook", "block_id": "b", "action_ts": "1"}]),
        {
            "type": "view_submission",
            "team": {"id": "T1"},
            "user": {"id": "U1"},
            "view": {"type": "modal", "callback_id": "x"},
        },
        {
            "type": "view_closed",
            "team": {"id": "T1"},
            "user": {"id": "U1"},
            "view": {"type": "modal", "callback_id": "x"},
        },
        {"type": "shortcut", "team": {"id": "T1"}, "user": {"id": "U1"}, "callback_id": "x"},
        {"type": "event_callback", "team_id": "T1", "event_id": "E1", "event": {"type": "user_change"}},
        {"command": "/other", "team_id": "T1", "user_id": "U1", "text": ""},
        {
            "type": "event_callback",
            "team_id": "T1",
            "event_id": "E2",
            "event": {"type": "message", "subtype": "message_changed", "channel_type": "im"},
        },
    ],
)
async def test_every_payload_is_acked(desk: Desk, body: dict[str, Any]) -> None:
    """What nobody listens to gets its ack, or its sender would see a warning."""
    assert (await dispatch(desk, **body)).status == 200


async def test_a_failing_unit_is_said_to_be_not_applied(
    online: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any exception: the person reads NOT applied with a ref, and the ack still comes."""
    incident, card = await carded(online)

    async def broken(*_: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(online.responder, "acknowledge", broken)
    await online.clicks("ana", card, "incident_ack")
    await until(lambda: bool(online.whispers("ana", "#payments")))
    assert "was NOT applied. Ref " in online.whispers("ana", "#payments")[0]
    assert "NOT applied" in await online.types("ana", f"/oncall ack {incident.number}")


async def test_a_database_that_is_away_is_not_applied(online: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unavailable: the click is not lost in silence."""
    _, card = await carded(online)

    async def away(*_: Any) -> None:
        raise Unavailable

    monkeypatch.setattr(online.responder, "acknowledge", away)
    await online.clicks("ana", card, "incident_ack")
    await until(lambda: bool(online.whispers("ana", "#payments")))
    assert "was NOT applied. Ref " in online.whispers("ana", "#payments")[0]


async def test_what_takes_long_is_acked_and_answered_later(
    online: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time for an ack: "working…" at once, and the result by the response URL."""
    incident = await online.open()
    go_on = asyncio.Event()
    acknowledge = online.responder.acknowledge

    async def slow(*given: Any) -> Any:
        await go_on.wait()
        return await acknowledge(*given)

    monkeypatch.setattr(online.responder, "acknowledge", slow)
    monkeypatch.setattr(online.slack._answering, "_soon", 0.05)
    assert "Working…" in await online.types("ana", f"/oncall ack {incident.number}")
    go_on.set()
    await until(lambda: len(online.whispers("ana", "#general")) == 2)
    assert "acknowledged" in online.whispers("ana", "#general")[1]
    assert (await online.view(incident.id)).acknowledged_by == "ana"


async def test_an_event_that_comes_twice_has_one_effect(desk: Desk) -> None:
    """Slack repeats events it heard no ack for: a note is written once."""
    incident = await desk.open()
    event = {
        "type": "app_mention",
        "user": "U0ANA",
        "team": "T0SANDBOX",
        "text": f"<@UMIDWATCH> note {incident.number} once",
        "ts": "1.1",
        "channel": "C0PAYMENTS",
    }
    for _ in range(3):
        body = {"type": "event_callback", "team_id": "T0SANDBOX", "event_id": "Ev1", "event": event}
        assert (await dispatch(desk, **body)).status == 200
    await until(lambda: bool(desk.sandbox.ledger.calls("chat.postMessage")))
    await desk.slack._answering.stop()
    notes = [entry.text for entry in await desk.views.timeline(incident.id) if entry.kind == "note"]
    assert notes == ["once"]


@pytest.mark.parametrize("kind", ["app_uninstalled", "tokens_revoked"])
async def test_an_uninstalled_app_is_noticed_at_once(desk: Desk, kind: str) -> None:
    """Slack says that our token may be gone: nobody believes that posting works until it is tried."""
    desk.slack.health.works()
    body = {"type": "event_callback", "team_id": "T0SANDBOX", "event_id": "Ev1", "event": {"type": kind}}
    assert (await dispatch(desk, **body)).status == 200
    await until(lambda: not desk.slack.health.posting)
