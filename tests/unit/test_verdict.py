"""What an outcome means for a delivery."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backoff import MOST_ATTEMPTS
from engine.models import (
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    Method,
    Outcome,
    Rejected,
    Retry,
    Sent,
    Throttled,
    Urgency,
)
from engine.notify.verdict import LONG_WAIT, PAGES, judge
from tests.fakes import START


def delivery(kind: DeliveryKind = DeliveryKind.PAGE, attempts: int = 0) -> Delivery:
    return Delivery(
        id=1,
        org_id=1,
        incident_id=1,
        kind=kind,
        method=Method.SMS,
        person_id=1,
        method_id=1,
        address=None,
        round=1,
        pass_=0,
        level=0,
        step=0,
        status=DeliveryStatus.SENDING,
        idem_key="k",
        due_at=START,
        created_at=START,
        attempts=attempts,
    )


OUTCOMES = st.one_of(
    st.builds(Sent, st.text()),
    st.builds(Retry, st.text(), st.one_of(st.none(), st.timedeltas(timedelta(), timedelta(hours=1)))),
    st.builds(Rejected, st.text(), st.booleans()),
    st.builds(Throttled, st.timedeltas(timedelta(hours=-1), timedelta(hours=1)).map(lambda d: START + d)),
)


@given(
    OUTCOMES,
    st.sampled_from(DeliveryKind),
    st.integers(0, 6),
    st.sampled_from(Urgency),
    st.floats(-1, 1, allow_nan=False),
)
def test_a_delivery_lives_on_exactly_while_it_is_queued(
    outcome: Outcome, kind: DeliveryKind, attempts: int, urgency: Urgency, jitter: float
) -> None:
    """It is due again at or after now if and only if it is queued; only pages pull a next rule."""
    verdict = judge(delivery(kind, attempts), outcome, urgency, START, jitter)
    assert (verdict.again_at is not None) == (verdict.status is DeliveryStatus.QUEUED)
    assert verdict.again_at is None or verdict.again_at >= START
    assert not verdict.next_rule or kind in PAGES
    assert verdict.counts != isinstance(outcome, Throttled)
    if verdict.status is DeliveryStatus.DEAD:
        assert verdict.next_rule == (kind in PAGES)


@pytest.mark.parametrize("kind", list(PAGES))
def test_only_the_first_failure_of_a_high_page_pulls_the_next_rule(kind: DeliveryKind) -> None:
    """One failure is enough to wake by the next rule; further ones have woken already."""
    pulled = [judge(delivery(kind, n), Retry(""), Urgency.HIGH, START, 0).next_rule for n in range(3)]
    assert pulled == [True, False, False]
    assert not judge(delivery(kind), Retry(""), Urgency.LOW, START, 0).next_rule


def test_the_fourth_failure_is_the_last() -> None:
    """After three more tries it is dead, with the reason of the last."""
    alive = judge(delivery(attempts=MOST_ATTEMPTS - 2), Retry("no"), Urgency.HIGH, START, 0)
    dead = judge(delivery(attempts=MOST_ATTEMPTS - 1), Retry("no"), Urgency.HIGH, START, 0)
    assert alive.status is DeliveryStatus.QUEUED
    assert (dead.status, dead.reason, dead.again_at) == (DeliveryStatus.DEAD, "no", None)


def test_what_is_as_configured_is_cancelled_and_no_alarm() -> None:
    """A place that is not set up is no failure of anything."""
    verdict = judge(delivery(), Rejected("no ops channel is set", quiet=True), Urgency.HIGH, START, 0)
    assert (verdict.status, verdict.next_rule) == (DeliveryStatus.CANCELLED, False)


@pytest.mark.parametrize(("wait", "pulled"), [(LONG_WAIT, False), (LONG_WAIT + timedelta(seconds=1), True)])
def test_a_long_throttle_of_a_page_pulls_the_next_rule(wait: timedelta, pulled: bool) -> None:
    """Half a minute may pass; more is too long for a page, and nothing to a status line."""
    assert judge(delivery(), Throttled(START + wait), Urgency.LOW, START, 0).next_rule is pulled
    line = judge(delivery(DeliveryKind.STATUS), Throttled(START + wait), Urgency.HIGH, START, 0)
    assert (line.next_rule, line.again_at) == (False, START + wait)
