"""How a person is paged."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.contact import steps
from engine.directory import ContactMethod, ContactRule, Person
from engine.models import Method, Urgency

SLACK, SMS, VOICE, EMAIL = 1, 2, 3, 4
KINDS = {SLACK: Method.SLACK, SMS: Method.SMS, VOICE: Method.VOICE, EMAIL: Method.EMAIL}
RULES = {
    Urgency.HIGH: (
        ContactRule(SLACK, timedelta(0)),
        ContactRule(SMS, timedelta(minutes=1)),
        ContactRule(VOICE, timedelta(minutes=3)),
    ),
    Urgency.LOW: (ContactRule(EMAIL, timedelta(0)),),
}


def _person(
    usable: set[int], rules: Mapping[Urgency, tuple[ContactRule, ...]] | None = None, unverified: bool = True
) -> Person:
    methods = tuple(
        ContactMethod(
            id,
            1,
            kind,
            "address",
            verified=id in usable or not unverified,
            disabled_reason=None if id in usable else "STOP",
        )
        for id, kind in KINDS.items()
    )
    return Person(1, "ana", "U1", "UTC", admin=False, active=True, methods=methods, rules=rules or {})


def _shown(person: Person, urgency: Urgency = Urgency.HIGH) -> list[tuple[int, int]]:
    """The methods and their delays in minutes."""
    return [(step.method.id, step.delay // timedelta(minutes=1)) for step in steps(person, urgency)]


def test_a_page_follows_the_persons_rules() -> None:
    """High by the high rules, low by the low ones, soonest first and numbered in that order."""
    person = _person(set(KINDS), RULES)
    assert _shown(person) == [(SLACK, 0), (SMS, 1), (VOICE, 3)]
    assert _shown(person, Urgency.LOW) == [(EMAIL, 0)]
    backwards = _person(set(KINDS), {Urgency.HIGH: RULES[Urgency.HIGH][::-1]})
    assert _shown(backwards) == _shown(person)
    assert [step.index for step in steps(backwards, Urgency.HIGH)] == [0, 1, 2]


def test_a_first_delay_that_the_person_wants_is_kept() -> None:
    """Somebody who asks for two minutes before the first message gets them."""
    rules = {Urgency.HIGH: (ContactRule(SMS, timedelta(minutes=2)), ContactRule(VOICE, timedelta(minutes=3)))}
    assert _shown(_person(set(KINDS), rules)) == [(SMS, 2), (VOICE, 3)]


def test_unusable_methods_are_left_out_and_the_others_move_up() -> None:
    """Without Slack the text goes out at once, and the call two minutes later."""
    assert _shown(_person({SMS, VOICE}, RULES)) == [(SMS, 0), (VOICE, 2)]
    assert _shown(_person({SLACK, VOICE}, RULES)) == [(SLACK, 0), (VOICE, 3)]
    assert _shown(_person({SLACK, VOICE}, RULES, unverified=False)) == [(SLACK, 0), (VOICE, 3)]


def test_without_a_usable_rule_the_usual_order_takes_its_place() -> None:
    """No rules, or rules that name nothing usable: Slack, then a text, then a call; mail as a last resort."""
    assert _shown(_person(set(KINDS))) == [(SLACK, 0), (SMS, 1), (VOICE, 3)]
    assert _shown(_person({SMS, VOICE})) == [(SMS, 0), (VOICE, 2)]
    assert _shown(_person({EMAIL}, RULES)) == [(EMAIL, 0)]
    deleted = {Urgency.HIGH: (ContactRule(99, timedelta(minutes=5)),)}
    assert _shown(_person({VOICE}, deleted)) == [(VOICE, 0)]


def test_low_urgency_uses_one_quiet_method() -> None:
    """Without low rules: the first of the high ones that works, at once; without any, the quietest."""
    high_only = {Urgency.HIGH: RULES[Urgency.HIGH]}
    assert _shown(_person(set(KINDS), high_only), Urgency.LOW) == [(SLACK, 0)]
    assert _shown(_person({VOICE}, high_only), Urgency.LOW) == [(VOICE, 0)]
    assert _shown(_person({SMS, VOICE, EMAIL}), Urgency.LOW) == [(EMAIL, 0)]
    assert _shown(_person({SMS, VOICE}, RULES), Urgency.LOW) == [(SMS, 0)]


@pytest.mark.parametrize("kind", list(Method))
def test_any_usable_method_is_better_than_none(kind: Method) -> None:
    """Whatever the one usable method is, it is used at once."""
    method = ContactMethod(7, 1, kind, "address", verified=True)
    person = Person(1, "ana", None, "UTC", admin=False, active=True, methods=(method,))
    for urgency in Urgency:
        assert [(step.method.id, step.delay) for step in steps(person, urgency)] == [(7, timedelta(0))]


rules = st.lists(
    st.builds(ContactRule, st.integers(1, 6), st.timedeltas(timedelta(0), timedelta(minutes=9))), max_size=5
)


@given(st.sets(st.sampled_from(list(KINDS))), rules, rules, st.sampled_from(list(Urgency)))
def test_a_person_is_reached_exactly_if_a_method_is_usable(
    usable: set[int], high: list[ContactRule], low: list[ContactRule], urgency: Urgency
) -> None:
    """There are steps when and only when a method is usable; delays never go down or below zero."""
    person = _person(usable, {Urgency.HIGH: tuple(high), Urgency.LOW: tuple(low)})
    found = steps(person, urgency)
    assert bool(found) == bool(usable)
    assert {step.method.id for step in found} <= usable
    assert [step.index for step in found] == list(range(len(found)))
    delays = [timedelta(0), *(step.delay for step in found)]
    assert delays == sorted(delays)
