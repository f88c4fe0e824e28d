"""Real bodies of Alertmanager and of PagerDuty's clients, through their parsers, to incidents and pages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.models import ORG, IncidentView, Receipt
from engine.sources import SOURCES, decode
from tests.scenario.harness import CONFIG, Pager

BODIES = Path(__file__).parents[1] / "cases" / "payloads"


@dataclass(frozen=True)
class Case:
    """What stands after these bodies; `count` is how many events the incident counts."""

    bodies: str
    alerts: int = 0  # firing, on the one open incident; 0: none is open
    pages: int = 1
    count: int | None = None


CASES = (
    Case("01 05", alerts=1, count=2),
    Case("01 10"),
    Case("10", pages=0),
    Case("02", alerts=4),
    Case("02 06", alerts=4),
    Case("02 06 08", alerts=4),
    Case("03", alerts=2),
    Case("03 07", alerts=1),
    Case("14", alerts=1),
    Case("15", alerts=500),
    Case("20 23"),
    Case("20 20", alerts=1, count=2),
    Case("21", alerts=1),
)


def body_of(number: str) -> bytes:
    (path,) = BODIES.glob(f"{number}_*.json")
    return path.read_bytes()


async def post(pager: Pager, source: str, raw: bytes, service: str = "checkout") -> list[Receipt]:
    """As the web takes a body, and everything that it makes due."""
    body = SOURCES[source](decode(raw), lambda: "made-up")
    receipts = await pager.app.receiver.accept(ORG, await pager.service_id(service), body)
    await pager.app.worker.run_due()
    return receipts


async def send(pager: Pager, numbers: str, service: str = "checkout") -> list[list[Receipt]]:
    return [
        await post(pager, "pagerduty" if number.startswith("2") else "alertmanager", body_of(number), service)
        for number in numbers.split()
    ]


async def only(pager: Pager) -> IncidentView:
    (incident,) = await pager.open_incidents()
    return incident


def pages(pager: Pager) -> int:
    """How many people were paged; taken out of what was heard."""
    heard = pager.pages()
    pager._heard.clear()
    assert {page.kind.value for page in heard} <= {"page"}
    return len(heard)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.bodies.replace(" ", "-"))
async def test_bodies_become_incidents_alerts_and_pages(pager: Pager, case: Case) -> None:
    """The table of expectations that came with the captured bodies, line by line."""
    await send(pager, case.bodies)
    assert pages(pager) == case.pages
    if not case.alerts:
        assert await pager.open_incidents() == []
        return
    incident = await only(pager)
    assert incident.firing_count == case.alerts
    assert case.count in {None, incident.event_count}


async def test_each_fingerprint_alone_where_the_service_groups_by_nothing(pager: Pager) -> None:
    """With `group_by: []` a group of four is four incidents, and its ends are taken one by one."""
    await pager.configure(CONFIG.replace('channel: "#payments"}', 'channel: "#payments", group_by: []}'))
    await send(pager, "02 06")
    left = await pager.open_incidents()
    assert [(one.firing_count, one.alert_count) for one in left] == [(1, 1)] * 4
    assert (await pager.incident(5)).firing_count == 1
    pages(pager)
    for incident in left:
        await pager.ack(incident.number)
    await pager.advance(minutes=1)
    pages(pager)


async def test_what_alertmanager_left_out_is_said(pager: Pager) -> None:
    """ "3 more not shown" is known of the incident (F-74)."""
    await send(pager, "03")
    assert ((await only(pager)).truncated, pages(pager)) == (3, 1)


async def test_the_end_of_one_alert_is_not_the_end_of_its_group(pager: Pager) -> None:
    """Each alert has a status of its own: db-1 is over, db-5 has joined (B011)."""
    await send(pager, "02 06")
    incident = await only(pager)
    over = {alert.labels["instance"] for alert in incident.alerts if alert.status == "resolved"}
    firing = {alert.labels["instance"] for alert in incident.alerts if alert.status == "firing"}
    assert (over, "db-5" in firing, pages(pager)) == ({"db-1"}, True, 1)


async def test_text_is_kept_as_it_came(pager: Pager) -> None:
    """Umlaut, markup and newline are stored as they are; whoever shows them escapes them."""
    await send(pager, "14")
    (alert,) = (await only(pager)).alerts
    (sent,) = json.loads(body_of("14"))["alerts"]
    assert alert.summary == sent["annotations"]["summary"]
    assert pages(pager) == 1


async def test_a_word_nobody_knows_pages_loudly(pager: Pager) -> None:
    """Severity `page` is kept and is high urgency (B013)."""
    await send(pager, "21")
    incident = await only(pager)
    assert (incident.raw_severity, incident.severity, incident.urgency) == ("page", None, "high")
    assert pages(pager) == 1


async def test_every_answer_carries_the_dedup_key(pager: Pager) -> None:
    """A sender built for PagerDuty gets back the key that it sent, each time (B015)."""
    answers = await send(pager, "20 20 23")
    key = json.loads(body_of("20"))["dedup_key"]
    assert [(one.dedup_key, one.status) for (one,) in answers] == [
        (key, "opened"),
        (key, "repeat"),
        (key, "resolved"),
    ]
    assert pages(pager) == 1


@pytest.mark.parametrize(("number", "left"), [("30", ["no dedup"]), ("31", [])])
async def test_the_clients_of_pagerduty_end_what_they_began(
    pager: Pager, number: str, left: list[str]
) -> None:
    """Every event of the recorded sessions is taken; what has no key of its own stays open."""
    for request in json.loads(body_of(number)):
        body = json.loads(request["body"])
        if request["path"] == "/v2/enqueue" and len(body["routing_key"]) == 32:
            (receipt,) = await post(pager, "pagerduty", request["body"].encode())
            assert receipt.status in {"opened", "repeat", "acknowledged", "resolved"}
    assert [incident.title for incident in await pager.open_incidents()] == left
    assert ((await pager.incident(1)).status, (await pager.incident(1)).acknowledged_via) == (
        "resolved",
        "source",
    )
    pages(pager)
