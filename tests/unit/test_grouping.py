"""What belongs together, and how loud it is."""

from collections.abc import Mapping

import pytest

from engine.directory import Service
from engine.grouping import bounded_key, group_key, parse_severity, severity_weight, urgency
from engine.models import Action, Event, Severity, Urgency


def _event(
    group: str | None = None, labels: Mapping[str, str] | None = None, severity: str = "", key: str = "k1"
) -> Event:
    return Event(
        Action.TRIGGER, key, "down", group, parse_severity(severity), severity, labels=dict(labels or {})
    )


def _service(group_by: tuple[str, ...] | None = None, **urgencies: Urgency) -> Service:
    return Service(1, "checkout", None, None, group_by=group_by, urgency=urgencies)


def test_by_default_the_sources_group_is_the_group() -> None:
    """Alertmanager's groupKey is taken as it is; without one each key is alone."""
    assert group_key(_event("{}:{a}"), _service()) == "{}:{a}"
    assert group_key(_event(), _service()) == group_key(_event(""), _service()) == "key:k1"


def test_grouping_by_nothing_keeps_each_key_alone() -> None:
    """With an empty group_by the source's group does not matter."""
    assert group_key(_event("{}:{a}"), _service(())) == "key:k1"


def test_grouping_by_labels_joins_what_agrees_on_them() -> None:
    """Same values, same group, in whatever order they are configured; other values, another group."""
    one = group_key(
        _event("g", {"cluster": "eu", "alertname": "Down", "pod": "1"}), _service(("cluster", "alertname"))
    )
    assert one == group_key(
        _event("h", {"cluster": "eu", "alertname": "Down", "pod": "2"}, key="k2"),
        _service(("alertname", "cluster")),
    )
    assert one != group_key(
        _event("g", {"cluster": "us", "alertname": "Down"}), _service(("cluster", "alertname"))
    )


def test_values_cannot_be_mistaken_for_each_other() -> None:
    """Values with separators in them, and values of other labels, make other groups."""
    by = _service(("a", "b"))
    keys = [
        group_key(_event(labels=labels), by)
        for labels in (
            {"a": "1,b=2"},
            {"a": "1", "b": "2"},
            {"a": "1"},
            {"b": "1"},
            {"a": '1","b":"2'},
            {"a": ""},
        )
    ]
    assert len(set(keys)) == len(keys)


def test_an_alert_without_any_of_the_labels_is_alone() -> None:
    """What the service cannot group is not thrown together."""
    by = _service(("cluster",))
    assert group_key(_event("g"), by) != group_key(_event("g", key="k2"), by)


def test_keys_fit_into_an_index() -> None:
    """Endless keys and label values are shortened, recognisably, and stay different."""
    long = "ü" * 3000
    assert bounded_key("k" * 1024) == "k" * 1024
    assert bounded_key(long) != bounded_key(long + "x")
    assert bounded_key(long).startswith("ü" * 200)
    for key in (
        group_key(_event(long), _service()),
        group_key(_event(key=long), _service()),
        group_key(_event(labels={"a": long}), _service(("a",))),
    ):
        assert len(key.encode()) <= 1024


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        ("critical", Severity.CRITICAL),
        (" Crit ", Severity.CRITICAL),
        ("DISASTER", Severity.CRITICAL),
        ("emerg", Severity.CRITICAL),
        ("error", Severity.ERROR),
        ("err", Severity.ERROR),
        ("warn", Severity.WARNING),
        ("Warning", Severity.WARNING),
        ("information", Severity.INFO),
        ("notice", Severity.INFO),
        ("page", None),
        ("P1", None),
        ("", None),
    ],
)
def test_the_words_of_other_tools_are_known_or_left_open(word: str, severity: Severity | None) -> None:
    """Common words have a meaning; what nobody can tell has none."""
    assert parse_severity(word) is severity


def test_severities_can_be_compared() -> None:
    """Critical, error, warning, info; an unknown one weighs as much as an error, since it pages."""
    known = [Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.CRITICAL]
    assert sorted(known, key=severity_weight) == known
    assert severity_weight(None) == severity_weight(Severity.ERROR)


@pytest.mark.parametrize(
    ("severity", "expected"),
    [
        ("critical", Urgency.HIGH),
        ("err", Urgency.HIGH),
        ("page", Urgency.HIGH),
        ("", Urgency.HIGH),
        ("warn", Urgency.LOW),
        ("info", Urgency.LOW),
    ],
)
def test_what_is_unknown_is_loud(severity: str, expected: Urgency) -> None:
    """Warning and info are low, everything else is high."""
    assert urgency(_event(severity=severity), _service()) is expected


def test_a_service_may_say_otherwise() -> None:
    """By the source's own word first, then by the severity, without regard to case."""
    service = _service(warning=Urgency.HIGH, Page=Urgency.LOW, info=Urgency.NONE, notice=Urgency.LOW)
    assert urgency(_event(severity="WARN"), service) is Urgency.HIGH
    assert urgency(_event(severity="page"), service) is Urgency.LOW
    assert urgency(_event(severity="info"), service) is Urgency.NONE
    assert urgency(_event(severity="Notice"), service) is Urgency.LOW
    assert urgency(_event(severity="critical"), service) is Urgency.HIGH
    assert urgency(_event(severity=""), service) is Urgency.HIGH
