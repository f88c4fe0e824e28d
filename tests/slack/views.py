"""Incident views for the tests of the Slack face: one plain, and every hostile variation of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.models import Alert, Attempt, DeliveryStatus, IncidentStatus, IncidentView, Link, Method, Via
from tests.notify import values

NOW = datetime(2026, 3, 2, 2, 14, 3, tzinfo=UTC)


def an_alert(**changes: Any) -> Alert:
    at: dict[str, Any] = {"started_at": NOW, "first_seen_at": NOW, "last_seen_at": NOW, "event_count": 1}
    said: dict[str, Any] = {
        "summary": "Instance db-1 is down",
        "labels": {"alertname": "InstanceDown", "cluster": "eu"},
        "links": (Link("https://runbook.example/db", "Runbook"),),
    }
    return values.alert(**at | said | changes)


def an_attempt(**changes: Any) -> Attempt:
    return replace(Attempt("ana", Method.SLACK, DeliveryStatus.SENT, NOW, 0), **changes)


def a_view(**changes: Any) -> IncidentView:
    usual: dict[str, Any] = {
        "id": 11,
        "epoch": 3,
        "opened_at": NOW,
        "alerts": (an_alert(),),
        "event_count": 1,
        "next_step_at": NOW + timedelta(minutes=5),
        "receipts": (an_attempt(), an_attempt(method=Method.SMS, status=DeliveryStatus.QUEUED)),
    }
    return values.view(**usual | changes)


def acked(**changes: Any) -> IncidentView:
    view = a_view(
        status=IncidentStatus.ACKNOWLEDGED,
        acknowledged_at=NOW,
        acknowledged_by="ana",
        acknowledged_via=Via.SMS,
        next_step_at=None,
    )
    return replace(view, **changes)


def resolved(**changes: Any) -> IncidentView:
    view = acked(
        status=IncidentStatus.RESOLVED, resolved_at=NOW, resolved_by="ben", resolved_via=Via.SLACK_BUTTON
    )
    return replace(view, **changes)


HOSTILE = {
    "mentions": "<!channel> <!here> <@U1> <!subteam^S1|x> <http://evil|click>",
    "ampersands": "&" * 9000,
    "a hundred kilobytes": "annotation " * 10_000,
    "bidi": "\u202egnp.exe\u202c \u2066x\u2069 \u200bzero\u200dwidth",
    "controls": "a\x00b\x07c\ud800d\x9be",
    "backticks": "`*_~` ``` _x_",
    "empty": "",
    "blank": " \n\t ",
    "lines": "one\ntwo\r\nthree",
    "entities": "&lt;!channel&gt; &amp;",
    "pipes": "a|b>c<d",
}


def variations() -> dict[str, IncidentView]:
    """Every state, and every hostile text wherever an alert can put one."""
    views = {
        "firing": a_view(),
        "acked": acked(),
        "snoozed": acked(snoozed_until=NOW + timedelta(hours=1)),
        "unanswered": a_view(status=IncidentStatus.UNANSWERED, level=-2),
        "resolved": resolved(),
        "merged": resolved(merged_into=41),
        "held": a_view(held_until=NOW + timedelta(hours=1)),
        "resolved by its source": resolved(resolved_by="", resolved_via=Via.SOURCE),
        "no alerts": a_view(
            alerts=(), receipts=(), severity=None, raw_severity="", policy=None, channel=None
        ),
        "many": a_view(
            alerts=tuple(an_alert(id=at) for at in range(10)), alert_count=500, event_count=9999, truncated=3
        ),
        "2000 labels": a_view(alerts=(an_alert(labels={f"l{at}": "v" * 500 for at in range(2000)}),)),
        "100 links": a_view(
            alerts=(
                an_alert(links=tuple(Link(f"https://x.example/{'y' * 1900}", f"{at}") for at in range(100))),
            )
        ),
        "crowd": a_view(
            receipts=tuple(
                an_attempt(person=f"p{at}", status=status, reason="x" * 900)
                for at in range(40)
                for status in DeliveryStatus
            )
        ),
    }
    for name, text in HOSTILE.items():
        alert = an_alert(
            summary=text + "!",
            labels={text: text},
            raw_severity=text,
            links=(Link("javascript:alert(1)", text), Link("https://ok.example/a|b<c>", text)),
        )
        views[f"hostile {name}"] = a_view(
            title=text,
            service=text or "s",
            policy=text,
            raw_severity=text,
            severity=None,
            alerts=(alert,),
            receipts=(an_attempt(person=text, status=DeliveryStatus.DEAD, reason=text),),
        )
        views[f"hostile names {name}"] = resolved(acknowledged_by=text or "x", resolved_by=text)
    return views
