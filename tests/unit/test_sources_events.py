"""Our own event, PagerDuty's, and any JSON at all."""

import json
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadPayload
from engine.models import Action, Body, Event, Link, Severity
from engine.sources import SOURCES, decode, parse_change, routing_key

PAYLOADS = Path(__file__).parent.parent / "cases" / "payloads"


def _new_key() -> str:
    return "generated"


def _parse(source: str, payload: Any) -> Body:
    return SOURCES[source](decode(json.dumps(payload).encode()), _new_key)


def _one(source: str, payload: Any) -> Event:
    (event,) = _parse(source, payload).events
    return event


def _requests(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((PAYLOADS / f"{name}.json").read_text(encoding="utf-8"))
    return found


# events


def test_an_event_says_all_of_it() -> None:
    """Every field of POST /v1/events arrives where it belongs."""
    event = _one(
        "events",
        {
            "action": "Trigger",
            "dedup_key": "db-1/down",
            "summary": "db-1 is down",
            "severity": "WARN",
            "group_key": "db",
            "labels": {"cluster": "eu", "n": 1},
            "links": ["https://a.example", {"url": "https://b.example", "text": "B"}, {"href": "no"}, 7],
            "details": {"free": "1%"},
            "started_at": "2026-11-30T10:00:00+01:00",
        },
    )
    assert event == Event(
        action=Action.TRIGGER,
        dedup_key="db-1/down",
        summary="db-1 is down",
        group_key="db",
        severity=Severity.WARNING,
        raw_severity="WARN",
        labels={"cluster": "eu", "n": "1"},
        links=(Link("https://a.example", "https://a.example"), Link("https://b.example", "B")),
        details={"free": "1%"},
        started_at=datetime(2026, 11, 30, 9, tzinfo=UTC),
    )


def test_a_trigger_without_a_key_gets_a_fresh_one() -> None:
    """Two triggers without a key are two problems; an empty or missing action is a trigger."""
    numbers = count(1)
    events = [
        SOURCES["events"](payload, lambda: f"k{next(numbers)}").events[0]
        for payload in ({}, {"dedup_key": ""})
    ]
    assert [event.dedup_key for event in events] == ["k1", "k2"]
    assert [event.summary for event in events] == ["No summary provided"] * 2
    assert {event.action for event in events} == {Action.TRIGGER}


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ([], "must be an object"),
        ("x", "must be an object"),
        ({"action": "fire"}, "action must be one of trigger, acknowledge, resolve"),
        ({"action": 1}, "action must be one of"),
        ({"action": "resolve"}, "say what by its dedup_key"),
        ({"action": "acknowledge", "dedup_key": ""}, "say what by its dedup_key"),
        ({"dedup_key": ["a"]}, "dedup_key must be text"),
        ({"group_key": {}}, "group_key must be text"),
        ({"labels": ["a"]}, "labels must be an object"),
    ],
)
def test_an_event_that_cannot_be_meant_is_refused(payload: Any, reason: str) -> None:
    """The reason names the field and what it must be."""
    with pytest.raises(BadPayload, match=reason):
        _parse("events", payload)


def test_numbers_are_taken_for_keys_and_times() -> None:
    """A key without quotes and an epoch time in seconds or milliseconds are understood."""
    event = _one("events", {"dedup_key": 42, "started_at": 1_796_029_200})
    assert event.dedup_key == "42"
    assert event.started_at == _one("events", {"started_at": 1_796_029_200_000}).started_at
    assert event.started_at == datetime(2026, 11, 30, 9, tzinfo=UTC)


def test_a_key_too_long_for_an_index_is_shortened_the_same_way_each_time() -> None:
    """Trigger and resolve of an endless key meet."""
    key = "k" * 100_000
    fire = _one("events", {"dedup_key": key}).dedup_key
    assert fire == _one("events", {"action": "resolve", "dedup_key": key}).dedup_key
    assert len(fire.encode()) <= 1024


def test_details_of_any_shape_and_size_are_taken() -> None:
    """Lists are wrapped, and what is too much is cut with a mark."""
    assert _one("events", {"details": [1, {"a": None}]}).details == {"details": [1, {"a": None}]}
    huge = _one("events", {"details": {f"k{n}": ["v" * 50] * 50 for n in range(1000)}}).details
    assert len(json.dumps(huge)) < 100_000
    assert "…" in huge


# pagerduty


def test_alertmanagers_pagerduty_event_is_understood() -> None:
    """Summary, severity, source fields, links, images and client of a real body arrive."""
    payload = decode((PAYLOADS / "20_pd_v2_trigger.json").read_bytes())
    (event,) = SOURCES["pagerduty"](payload, _new_key).events
    assert (event.action, event.severity, event.group_key) == (Action.TRIGGER, Severity.WARNING, None)
    assert event.dedup_key == "3e19f77303b48cc959d5fb468cf13af6100db1dd170e857db39aa0bd79a96aa2"
    assert event.summary == "[FIRING:2] PD (pd pay warning)"
    assert event.labels == {
        "source": "Alertmanager",
        "component": "postgres",
        "group": "prod",
        "class": "latency",
    }
    assert event.links == (
        Link("https://runbooks.example/x", "Runbook"),
        Link("http://alertmanager.example:9093/#/alerts?receiver=pd", "Alertmanager"),
        Link("https://graf.example", "graph"),
    )
    assert event.details["custom_details"]["num_firing"] == "2"
    assert routing_key(payload) == "0123456789abcdef0123456789abcdef"


def test_its_resolve_has_the_same_key() -> None:
    """The resolve names the trigger's key."""
    trigger, resolve = (
        SOURCES["pagerduty"](decode((PAYLOADS / name).read_bytes()), _new_key).events[0]
        for name in ("20_pd_v2_trigger.json", "23_pd_v2_resolve.json")
    )
    assert resolve.action is Action.RESOLVE
    assert resolve.dedup_key == trigger.dedup_key


def test_an_unknown_pagerduty_severity_is_kept() -> None:
    """`page` is no severity of the API, and is taken."""
    (event,) = SOURCES["pagerduty"](
        decode((PAYLOADS / "21_pd_v2_trigger_bad_severity.json").read_bytes()), _new_key
    ).events
    assert (event.severity, event.raw_severity) == (None, "page")


@pytest.mark.parametrize("name", ["30_pagerduty_py_client", "31_pdpyras_client"])
def test_every_request_of_pagerdutys_clients_is_understood(name: str) -> None:
    """Real requests of both clients parse, their keys are read, and change events wake nobody."""
    for request in _requests(name):
        payload = decode(request["body"].encode())
        assert routing_key(payload) == json.loads(request["body"])["routing_key"]
        if "/change/" in request["path"]:
            assert parse_change(payload, _new_key).events == ()
        else:
            (event,) = SOURCES["pagerduty"](payload, _new_key).events
            assert event.action.value == json.loads(request["body"])["event_action"]


def test_a_new_timestamp_is_no_new_problem() -> None:
    """Senders renew the timestamp with each repeat, so it is never taken for the start."""
    event = _one(
        "pagerduty",
        {"event_action": "trigger", "payload": {"summary": "s", "timestamp": "2026-11-30T09:00:00Z"}},
    )
    assert event.started_at is None
    assert event.details == {"timestamp": "2026-11-30T09:00:00Z"}
    assert event.dedup_key == "generated"


def test_custom_details_of_any_shape_are_taken() -> None:
    """Text, lists, nested objects and 600 KB (alertmanager#2178) do not cost the page."""
    for details in ("text", [1], {"a": {"b": 1}}, 7):
        event = _one("pagerduty", {"event_action": "trigger", "payload": {"custom_details": details}})
        assert event.details == {"custom_details": details}
    huge = {
        "event_action": "trigger",
        "payload": {"summary": "s", "custom_details": {"x": "y" * 600_000, "z": 1}},
    }
    kept = _one("pagerduty", huge).details["custom_details"]
    assert kept["x"].endswith("…")
    assert kept["z"] == 1


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({}, "event_action must be one of"),
        ([], "must be an object"),
        ({"event_action": "trigger", "payload": "x"}, "payload must be an object"),
        ({"event_action": "resolve"}, "say what by its dedup_key"),
    ],
)
def test_a_pagerduty_event_that_cannot_be_meant_is_refused(payload: Any, reason: str) -> None:
    """The reason names the field."""
    with pytest.raises(BadPayload, match=reason):
        _parse("pagerduty", payload)


@pytest.mark.parametrize("payload", [None, [], "x", {}, {"routing_key": 7}, {"routing_key": ""}])
def test_a_body_without_a_routing_key_has_none(payload: Any) -> None:
    """Whatever else the body is, asking for its key is safe."""
    assert routing_key(payload) is None


# generic


@pytest.mark.parametrize(
    ("payload", "action", "summary", "severity"),
    [
        (
            {"title": "disk full", "state": "alerting", "severity": "crit"},
            Action.TRIGGER,
            "disk full",
            Severity.CRITICAL,
        ),
        ({"message": "up again", "status": "OK"}, Action.RESOLVE, "up again", None),
        (
            {"Name": "job", "event_type": "acknowledged", "Level": "warn"},
            Action.ACKNOWLEDGE,
            "job",
            Severity.WARNING,
        ),
        ({"alert_name": "x", "status": "ok", "alert_state": "firing"}, Action.TRIGGER, "x", None),
        ({"title": "x", "action": "resolve", "status": "critical"}, Action.RESOLVE, "x", None),
        ({"title": "x", "action": "email", "status": "recovered"}, Action.RESOLVE, "x", None),
        ({"whatever": 1}, Action.TRIGGER, "No summary provided", None),
        ({"title": {"a": 1}, "text": "t", "status": ["resolved"]}, Action.TRIGGER, "t", None),
        ({}, Action.TRIGGER, "No summary provided", None),
    ],
)
def test_usual_names_are_guessed(
    payload: Any, action: Action, summary: str, severity: Severity | None
) -> None:
    """Title, state and severity are found by the names tools use; what is not understood fires."""
    event = _one("generic", payload)
    assert (event.action, event.summary, event.severity) == (action, summary, severity)


def test_a_generic_key_is_what_the_tool_calls_it_else_its_title_and_place() -> None:
    """Fire and resolve meet by a key of the tool, or by title and host; other hosts are other problems."""
    assert _one("generic", {"title": "x", "incident_key": 7}).dedup_key == "7"
    fire = _one("generic", {"title": "disk", "host": "a", "status": "down", "value": 91}).dedup_key
    assert fire == _one("generic", {"title": "disk", "host": "a", "status": "up", "value": 12}).dedup_key
    assert fire != _one("generic", {"title": "disk", "host": "b"}).dedup_key
    rule = {"rule_id": 3, "title": "[down] a", "host": "a"}
    assert _one("generic", rule).dedup_key == _one("generic", {**rule, "title": "[up] a"}).dedup_key
    assert _one("generic", rule).dedup_key != _one("generic", {**rule, "host": "b"}).dedup_key
    assert _one("generic", {"a": 1, "b": 2}).dedup_key == _one("generic", {"b": 2, "a": 1}).dedup_key
    assert _one("generic", {"a": 1}).dedup_key != _one("generic", {"a": 2}).dedup_key


def test_generic_labels_links_and_times_are_found() -> None:
    """Labels are the labels, or the short fields; links and times come by their names."""
    event = _one(
        "generic",
        {
            "title": "x",
            "labels": {"a": "b"},
            "link": "https://l.example",
            "started_at": "2026-11-30T09:00:00Z",
        },
    )
    assert (event.labels, event.links) == ({"a": "b"}, (Link("https://l.example", "Link"),))
    assert event.started_at == datetime(2026, 11, 30, 9, tzinfo=UTC)
    assert _one("generic", {"title": "x", "n": 1, "deep": {}}).labels == {"title": "x", "n": "1"}


def test_a_list_of_objects_is_an_event_each() -> None:
    """Several alerts at once are taken; a list of anything else is refused."""
    assert [event.summary for event in _parse("generic", [{"title": "a"}, {"title": "b"}]).events] == [
        "a",
        "b",
    ]
    assert _parse("generic", []).events == ()
    for payload in ([1], [{}, None], "x", 1, None, True):
        with pytest.raises(BadPayload, match="JSON object"):
            _parse("generic", payload)


# all


KEYS = [
    "action", "alerts", "annotations", "client_url", "custom_details", "dedup_key", "details", "endsAt",
    "event_action", "fingerprint", "groupKey", "group_key", "href", "id", "images", "labels", "links",
    "payload", "severity", "startsAt", "started_at", "status", "summary", "title", "truncatedAlerts", "url",
]  # fmt: skip
WORDS = [
    "trigger",
    "resolve",
    "resolved",
    "firing",
    "acknowledge",
    "critical",
    "http://x",
    "2026-11-30T09:00:00Z",
]
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(WORDS)
json_values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=25,
)


objects = st.dictionaries(st.sampled_from(KEYS), json_values, max_size=8)
bodies = (
    json_values
    | objects
    | st.fixed_dictionaries({"alerts": st.lists(objects, max_size=3), "groupKey": leaves, "status": leaves})
    | st.fixed_dictionaries({"event_action": st.just("trigger"), "payload": objects, "links": json_values})
)


@given(st.sampled_from(sorted(SOURCES)), bodies)
@settings(max_examples=150, deadline=None)
def test_any_json_gives_a_body_or_a_reason(source: str, value: Any) -> None:
    """No JSON raises anything but BadPayload, and every event can be stored and shown."""
    try:
        body = _parse(source, value)
    except BadPayload:
        return
    assert body.source == source
    for event in body.events:
        assert 0 < len(event.dedup_key.encode()) <= 1024
        assert event.summary.strip()
        json.dumps([dict(event.labels), dict(event.details)], allow_nan=False)
        assert all(isinstance(value, str) for value in event.labels.values())
        assert all(instant is None or instant.tzinfo is UTC for instant in (event.started_at, event.ended_at))
