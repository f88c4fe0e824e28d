"""What a batch asks of one key, and which requests may share a commit."""

from __future__ import annotations

from typing import Any

import pytest

from engine.directory import Service
from engine.grouping import LONGEST_KEY
from engine.intake.fold import Plan, Request, fold, prepare, take_together
from engine.models import Action, Actor, Body, Event, GroupResolve, Severity, Urgency, Via

CHECKOUT = Service(1, "checkout", None, None)
SEARCH = Service(2, "search", None, None)
CRITICAL, WARNING = Severity.CRITICAL, Severity.WARNING


def event(action: str, key: str = "k", summary: str = "", **more: Any) -> Event:
    return Event(Action(action), key, summary, **more)


def request(*events: Event, service: Service = CHECKOUT, **body: Any) -> Request:
    return prepare(service, Body("test", events, **body))


def folded(*requests: Request) -> Plan:
    (plan,) = fold(enumerate(requests)).values()
    return plan


def together(*requests: Request) -> int:
    return take_together(requests, lambda _bodies, _events: True)


def places(plan: Plan) -> dict[str, list[Any]]:
    return {
        "resolve": [plan.resolve.place] if plan.resolve else [],
        "triggers": [item.place for item in plan.triggers],
        "acknowledge": [plan.acknowledge.place] if plan.acknowledge else [],
        "folded": [item.place for item, _ in plan.folded],
    }


@pytest.mark.parametrize(
    ("actions", "kept", "lost"),
    [
        (["trigger"], {"triggers": [0]}, []),
        (["trigger", "trigger"], {"triggers": [0, 1]}, []),
        (["trigger", "resolve"], {"resolve": [1]}, [0]),
        (["resolve", "trigger"], {"resolve": [0], "triggers": [1]}, []),
        (["trigger", "acknowledge"], {"triggers": [0], "acknowledge": [1]}, []),
        (["trigger", "acknowledge", "resolve"], {"resolve": [2]}, [0, 1]),
        (["resolve", "resolve"], {"resolve": [1]}, [0]),
        (["acknowledge", "acknowledge"], {"acknowledge": [1]}, [0]),
        (["trigger", "resolve", "trigger"], {"resolve": [1], "triggers": [2]}, [0]),
    ],
)
def test_a_key_folds_to_an_end_then_triggers_then_an_ack(
    actions: list[str], kept: dict[str, list[int]], lost: list[int]
) -> None:
    """Bodies that share a batch fold in the order in which they came; nothing is dropped unseen."""
    found = places(folded(*(request(event(action)) for action in actions)))
    wanted = {"resolve": [], "triggers": [], "acknowledge": [], "folded": lost} | kept
    assert found == {what: [(number, 0) for number in numbers] for what, numbers in wanted.items()}


def test_within_a_body_a_key_keeps_the_order_in_which_it_is_told() -> None:
    """Fired and resolved is over; resolved and fired fires: an alert is never dropped for standing last."""
    over = folded(request(event("trigger"), event("resolve")))
    assert over.resolve is not None
    assert (over.triggers, [reason for _, reason in over.folded]) == ([], ["resolved in the same batch"])
    again = folded(request(event("resolve"), event("trigger")))
    assert (again.resolve is not None, len(again.triggers), again.folded) == (True, 1, [])


def test_a_worse_trigger_does_not_fold_away_behind_a_milder_one() -> None:
    """The newest words count, and the loudest trigger is what people are paged by."""
    worse = event("trigger", summary="down", severity=CRITICAL, raw_severity="critical")
    milder = event("trigger", summary="slow", severity=WARNING, raw_severity="warning")
    plan = folded(request(worse), request(milder))
    assert (plan.newest.event.summary, plan.newest.urgency) == ("slow", Urgency.LOW)
    assert (plan.loudest.event.summary, plan.loudest.urgency) == ("down", Urgency.HIGH)


def test_the_same_key_on_two_services_is_two_plans() -> None:
    """A dedup key means something only on its service (B034)."""
    plans = fold(enumerate([request(event("trigger")), request(event("trigger"), service=SEARCH)]))
    assert sorted(plans) == [(1, "k"), (2, "k")]


def test_a_key_too_long_for_an_index_is_the_same_shorter_key_each_time() -> None:
    """Two events with one endless key meet in one plan, whose key fits the index."""
    key = "ü" * 5_000
    plan = folded(request(event("trigger", key)), request(event("trigger", key)))
    assert len(plan.dedup_key.encode()) <= LONGEST_KEY
    assert len(plan.triggers) == 2


def test_an_event_is_by_its_source_unless_a_person_says_it() -> None:
    """Who opened an incident is known of each event, however many share a batch."""
    ana = Actor("ana", Via.API, 7)
    by_hand = prepare(CHECKOUT, Body("api", (event("trigger"),)), ana)
    assert (by_hand.items[0].by, by_hand.items[0].source) == (ana, "api")
    assert request(event("trigger")).items[0].by == Actor("test", Via.SOURCE)


# --- who shares a commit -----------------------------------------------------------------------------------


def test_unrelated_requests_and_repeats_share_a_commit() -> None:
    """Nothing waits for the next commit without need."""
    assert together(*(request(event("trigger", f"k{n}")) for n in range(20))) == 20
    assert together(*(request(event("trigger")) for _ in range(20))) == 20
    assert together(request(event("trigger")), request(event("resolve"))) == 2
    assert together(request(event("resolve", "a")), request(event("trigger", "b"))) == 2


def test_what_touches_a_key_that_an_earlier_body_closes_waits() -> None:
    """A resolve and a later trigger are two commits: the second sees what the first has done."""
    assert together(request(event("resolve")), request(event("trigger"))) == 1
    assert (
        together(
            request(event("resolve", "a")), request(event("resolve", "b")), request(event("trigger", "a"))
        )
        == 2
    )


def test_what_touches_a_group_that_an_earlier_body_may_close_waits() -> None:
    """A new alert must not join an incident that the batch is about to close."""
    ends, joins = event("resolve", "a", group_key="g"), event("trigger", "b", group_key="g")
    assert together(request(ends), request(joins)) == 1
    swept = request(event("resolve", "a", group_key="g"), group_resolves=(GroupResolve("g", None),))
    regrouped = Service(1, "checkout", None, None, group_by=("cluster",))
    joins_elsewhere = request(
        event("trigger", "b", group_key="g", labels={"cluster": "x"}), service=regrouped
    )
    assert together(swept, joins_elsewhere) == 1


def test_a_resolve_of_a_group_waits_for_what_an_earlier_body_fires_in_it() -> None:
    """Else the alert would be opened by the very commit that should have closed it."""
    fires = request(event("trigger", "a", group_key="g"))
    sweeps = request(event("resolve", "b", group_key="g"), group_resolves=(GroupResolve("g", None),))
    assert together(fires, sweeps) == 1
    other = request(event("trigger", "a", group_key="h"))
    assert together(other, sweeps) == 2


def test_a_body_larger_than_any_batch_is_taken_alone() -> None:
    """A limit never leaves a body waiting for ever."""
    large = request(*(event("trigger", f"k{n}") for n in range(10)))
    assert take_together([large, large], lambda _bodies, events: events <= 5) == 1
    assert take_together([], lambda _bodies, _events: False) == 0
