"""Alertmanager's webhook: real bodies, and the ones that broke other pagers."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.errors import BadPayload
from engine.models import Action, Body, Event, GroupResolve, Link, Severity
from engine.sources import SOURCES, decode

PAYLOADS = Path(__file__).parent.parent / "cases" / "payloads"
STARTED = datetime(2026, 11, 30, 9, 1, 47, tzinfo=UTC)


def _no_key() -> str:
    raise AssertionError("an alert's key is its fingerprint")


def _parse(payload: Any) -> Body:
    return SOURCES["alertmanager"](decode(json.dumps(payload).encode()), _no_key)


def _file(name: str) -> Body:
    return SOURCES["alertmanager"](decode((PAYLOADS / f"{name}.json").read_bytes()), _no_key)


def _body(*alerts: Any, **changes: Any) -> dict[str, Any]:
    return {"status": "firing", "groupKey": "{}:{}", "alerts": list(alerts), **changes}


def _alert(**changes: Any) -> dict[str, Any]:
    return {"status": "firing", "labels": {"alertname": "Down"}, "fingerprint": "f1", **changes}


def _one(**changes: Any) -> Event:
    (event,) = _parse(_body(_alert(**changes))).events
    return event


def test_a_firing_alert_becomes_a_trigger_with_all_it_says() -> None:
    """Fingerprint, group, texts, labels, links and start are taken as they are; no end while it fires."""
    body = _file("01_firing_single")
    assert (body.source, body.group_resolves, body.truncated) == ("alertmanager", (), 0)
    (event,) = body.events
    assert event == Event(
        action=Action.TRIGGER,
        dedup_key="6bb710ed11b2b558",
        summary="p99 > 2s",
        group_key='{}:{alertname="HighLatency", service="checkout"}',
        severity=Severity.CRITICAL,
        raw_severity="critical",
        labels={
            "alertname": "HighLatency",
            "instance": "web-1",
            "service": "checkout",
            "severity": "critical",
        },
        links=(
            Link("https://runbooks.example/checkout", "Runbook"),
            Link("http://prometheus.example:9090/graph?g0.expr=x", "Source"),
            Link("http://alertmanager.example:9093", "Alertmanager"),
        ),
        details={
            "annotations": {
                "description": "checkout p99 is 3.1 s",
                "runbook_url": "https://runbooks.example/checkout",
                "summary": "p99 > 2s",
            }
        },
        started_at=STARTED,
        ended_at=None,
    )


def test_a_repeat_says_the_same() -> None:
    """The repeat of an alert has the same key, start and severity."""
    assert _file("05_repeat_of_single") == _file("01_firing_single")


def test_each_alert_has_a_status_of_its_own() -> None:
    """A resolved member of a firing group is a resolve (grafana/oncall#542), and closes nothing else."""
    body = _file("06_group_firing_with_one_resolved_inside")
    actions = [(event.labels["instance"], event.action) for event in body.events]
    assert actions == [("db-1", Action.RESOLVE)] + [(f"db-{n}", Action.TRIGGER) for n in (2, 3, 4, 5)]
    assert body.events[0].ended_at == datetime(2026, 11, 30, 9, 2, 2, tzinfo=UTC)
    assert body.group_resolves == ()


def test_a_resolved_group_closes_what_began_before_its_newest_end() -> None:
    """Members that were cut off are over as well: the group says so."""
    body = _file("10_resolved_single")
    group = '{}:{alertname="HighLatency", service="checkout"}'
    assert body.group_resolves == (GroupResolve(group, datetime(2026, 11, 30, 9, 2, 22, tzinfo=UTC)),)
    assert body.events[0].action is Action.RESOLVE
    ends = [_alert(status="resolved", endsAt=f"2026-11-30T0{n}:00:00Z") for n in (1, 3, 2)]
    (group_resolve,) = _parse(_body(*ends, status="resolved")).group_resolves
    assert group_resolve.before == datetime(2026, 11, 30, 3, tzinfo=UTC)


def test_alerts_that_were_left_out_are_counted() -> None:
    """max_alerts hides alerts; the body says how many. What makes no sense counts as none."""
    assert (
        _file("03_truncated_max_alerts_2_of_5").truncated,
        len(_file("03_truncated_max_alerts_2_of_5").events),
    ) == (3, 2)
    for odd in (-1, "3", None, True, 1.5):
        assert _parse(_body(truncatedAlerts=odd)).truncated == 0


def test_unicode_markup_and_newlines_are_kept() -> None:
    """The text is stored as it was written; escaping is for those who show it."""
    (event,) = _file("14_firing_unicode_html_newline").events
    assert event.summary == '<b>ñandú & "quoted" 日本 🔥</b>\nline2'
    assert event.labels["service"] == "zürich"


def test_a_storm_is_one_event_per_alert() -> None:
    """Five hundred alerts are five hundred events with keys of their own, in one group."""
    body = _file("15_firing_group_of_500")
    assert len({event.dedup_key for event in body.events}) == 500
    assert len({event.group_key for event in body.events}) == 1
    assert {event.severity for event in body.events} == {None}


def test_an_empty_list_of_alerts_is_no_event() -> None:
    """`alerts: []` is fine and means nothing, also when the group is resolved."""
    assert _parse(_body(status="resolved")) == Body("alertmanager")


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (None, "must be an object"),
        ([], "must be an object"),
        ("x", "must be an object"),
        ({}, "alerts must be a list"),
        ({"alerts": None}, "alerts must be a list"),
        ({"alerts": {}}, "alerts must be a list"),
        (_body(_alert(), None), r"alerts\[1\] must be an object"),
        (_body(_alert(labels=[])), r"alerts\[0\].labels must be an object"),
        (_body(_alert(annotations="x")), r"alerts\[0\].annotations must be an object"),
        (_body(_alert(fingerprint={})), r"alerts\[0\].fingerprint must be text"),
        (_body(_alert(), groupKey=[]), "groupKey must be text"),
    ],
)
def test_wrong_types_are_refused_by_their_place(payload: Any, reason: str) -> None:
    """A body of another shape is refused, and the reason says where it is wrong."""
    with pytest.raises(BadPayload, match=reason):
        _parse(payload)


def test_the_summary_is_the_first_annotation_that_says_something() -> None:
    """Summary, description, message, the alert's name, and at last a sentence; never empty."""
    texts = {"summary": "S", "description": "D", "message": "M"}
    assert _one(annotations=texts).summary == "S"
    assert _one(annotations={**texts, "summary": " "}).summary == "D"
    assert _one(annotations={"message": "M"}).summary == "M"
    assert _one(annotations=None).summary == "Down"
    assert _one(annotations={}, labels={}).summary == "No summary provided"


def test_a_long_summary_is_kept_whole_and_an_endless_one_is_cut_on_a_code_point() -> None:
    """1,025 characters are nothing special, emoji neither (alertmanager#1700, PR#1701)."""
    for text in ("x" * 1025, "🔥" * 1025):
        assert _one(annotations={"summary": text}).summary == text
    endless = _one(annotations={"summary": "🔥" * 10_000}).summary
    assert endless.endswith("🔥…")
    assert len(endless.encode()) <= 16 * 1024


def test_too_many_and_too_long_labels_are_cut_with_a_mark() -> None:
    """Sixty-four labels of 4 KB each; the mark says that there was more."""
    assert len(_one(labels={f"l{n}": "v" for n in range(64)}).labels) == 64
    many = _one(labels={f"l{n}": "v" for n in range(100)}).labels
    assert len(many) == 64
    assert many["…"] == "37 more labels"
    long = _one(labels={"l": "é" * 4000}).labels["l"]
    assert long.endswith("é…")
    assert len(long.encode()) <= 4096
    assert _one(labels={"n": 1, "b": True, "x": None, "o": {"a": [1]}}).labels == {
        "n": "1",
        "b": "true",
        "x": "",
        "o": '{"a":[1]}',
    }


def test_huge_annotations_are_cut_and_the_alert_survives() -> None:
    """600 KB beside the summary do not cost the page (alertmanager#2178)."""
    event = _one(annotations={"summary": "S", "dump": "y" * 600_000, "last": "z"})
    assert event.summary == "S"
    kept = event.details["annotations"]
    assert kept["dump"].endswith("…")
    assert kept["last"] == "z"
    assert len(json.dumps(kept)) < 70_000


def test_the_same_instant_in_another_offset_is_the_same() -> None:
    """Fire in +08:00, resolve in UTC: one start (grafana/oncall#5091)."""
    there = _one(startsAt="2024-09-27T00:27:00+08:00").started_at
    assert (
        there == _one(startsAt="2024-09-26T16:27:00Z").started_at == datetime(2024, 9, 26, 16, 27, tzinfo=UTC)
    )
    nanoseconds = _one(startsAt="2024-09-26T16:27:00.123456789Z").started_at
    assert nanoseconds == datetime(2024, 9, 26, 16, 27, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    "odd",
    [
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00+14:00",
        "yesterday",
        "",
        "T" * 10_000,
        None,
        {},
        10**400,
        -(10**400),
        True,
    ],
)
def test_times_that_are_none_are_left_out(odd: object) -> None:
    """Year 1 is "not set" (alertmanager#1611), nonsense too, and none of it costs the alert."""
    event = _one(status="resolved", startsAt=odd, endsAt=odd)
    assert (event.started_at, event.ended_at) == (None, None)


def test_a_firing_alert_has_no_end() -> None:
    """Some imitations send an end in the future while the alert fires; it means nothing yet."""
    assert _one(endsAt="2026-11-30T10:00:00Z").ended_at is None


def test_an_unknown_severity_is_kept_as_it_is() -> None:
    """`page` is no severity of ours: none, with the word kept (alerta/prometheus-config#6)."""
    event = _one(labels={"severity": "page"})
    assert (event.severity, event.raw_severity) == (None, "page")


def test_without_a_fingerprint_the_labels_are_the_key() -> None:
    """Missing or empty: the same labels in any order give the same key, others another."""
    one = _one(fingerprint=None, labels={"a": "1", "b": "2"})
    assert one.dedup_key == _one(fingerprint="", labels={"b": "2", "a": "1"}).dedup_key
    assert one.dedup_key != _one(fingerprint=None, labels={"a": "1", "b": "3"}).dedup_key
    assert _one(fingerprint=None, labels=None).dedup_key


def test_a_group_key_too_long_for_an_index_is_shortened_the_same_way_each_time() -> None:
    """Fire and resolve find each other by the shortened key; different keys stay different."""
    long = "{}:{" + "é" * 5000
    fire = _parse(_body(_alert(), groupKey=long)).events[0].group_key
    over = _parse(_body(_alert(status="resolved"), groupKey=long, status="resolved"))
    assert fire == over.group_resolves[0].group_key
    assert fire is not None
    assert len(fire.encode()) <= 1024
    assert fire != _parse(_body(_alert(), groupKey=long + "x")).events[0].group_key


def test_without_a_group_key_there_is_no_group() -> None:
    """Imitations that send none: each alert by its own key, and no group to resolve."""
    body = _parse(_body(_alert(status="resolved"), groupKey=None, status="resolved"))
    assert (body.events[0].group_key, body.group_resolves) == (None, ())


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "ftp://x/y",
        "/graph",
        "http://",
        "https:///x",
        "http://x y",
        "h" * 9999,
        7,
        None,
        ["http://x"],
    ],
)
def test_only_web_addresses_become_links(url: object) -> None:
    """Anything but http and https is text at best, never a link (CVE-2023-40577)."""
    assert _one(generatorURL=url, annotations={"runbook_url": url, "dashboard_url": url}).links == ()


def test_a_link_cannot_break_out_of_its_markup() -> None:
    """What would end a link in Slack or HTML is percent-encoded."""
    (link,) = _one(generatorURL='http://x/a|b>c<d"e').links
    assert link == Link("http://x/a%7Cb%3Ec%3Cd%22e", "Source")


def test_a_missing_status_is_that_of_the_group_and_an_unknown_one_fires() -> None:
    """Only the word resolved ends anything."""
    alert = _alert()
    del alert["status"]
    assert _parse(_body(alert, status="resolved")).events[0].action is Action.RESOLVE
    assert _parse(_body(alert)).events[0].action is Action.TRIGGER
    assert _one(status="pending").action is Action.TRIGGER
