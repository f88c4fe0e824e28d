"""What is said of contact rules that can never run, and of people whom nothing would wake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from engine.contact import steps
from engine.contacts.warnings import RuleWarning, warnings
from engine.directory import (
    BY_CODE,
    BY_CONFIG,
    IMPORTED,
    STOPPED,
    ContactMethod,
    ContactRule,
    Directory,
    Level,
    NamedSchedule,
    Person,
    Policy,
    Target,
    TargetKind,
)
from engine.models import ORG, Method, Urgency
from engine.schedule import Schedule

ANA = 7
MINUTE = timedelta(minutes=1)


def method(
    kind: Method, *, verified: bool = True, off: str | None = None, by: str = BY_CODE, one: int | None = None
) -> ContactMethod:
    place = [*Method].index(kind) + 1 if one is None else one
    return ContactMethod(place, ANA, kind, "address", verified, off, by if verified or by == IMPORTED else "")


SLACK = method(Method.SLACK, by="slack")
SMS, VOICE, EMAIL, PUSH = map(method, (Method.SMS, Method.VOICE, Method.EMAIL, Method.PUSH))


def rule(of: ContactMethod, minutes: float = 0) -> ContactRule:
    return ContactRule(of.id, minutes * MINUTE)


def person(
    methods: Sequence[ContactMethod], rules: Mapping[Urgency, tuple[ContactRule, ...]] | None = None
) -> Person:
    return Person(
        ANA, "ana", "U1", "UTC", admin=False, active=True, methods=tuple(methods), rules=rules or {}
    )


def directory(*timeouts: float, of: Target | None = None, people: tuple[int, ...] = (ANA,)) -> Directory:
    target = of or Target(TargetKind.SCHEDULE, 3)
    levels = tuple(Level((target,), minutes * MINUTE) for minutes in timeouts)
    named = NamedSchedule(3, "primary", Schedule("UTC", ()), people)
    return Directory(ORG, 1, {}, {}, {1: Policy(1, 1, "payments", levels)}, {3: named})


def texts(found: Sequence[RuleWarning]) -> list[str]:
    return [one.text for one in found]


def test_whoever_has_slack_a_number_and_the_usual_order_is_told_nothing() -> None:
    """Nothing is wrong with what most people have."""
    assert warnings(person([SLACK, SMS, VOICE]), directory(5, 10)) == ()
    rules = {Urgency.HIGH: (rule(SLACK), rule(SMS, 1), rule(VOICE, 3)), Urgency.LOW: (rule(SLACK),)}
    assert warnings(person([SLACK, SMS, VOICE], rules), directory(5, 10)) == ()


def test_nobody_is_woken_by_slack_and_mail_alone() -> None:
    """It is said, with what to do."""
    (found,) = warnings(person([SLACK, EMAIL], {Urgency.HIGH: (rule(SLACK), rule(EMAIL, 1))}), directory(5))
    assert found.text.startswith("Nothing wakes you: high urgency goes by Slack and email alone")
    assert "`/oncall me`" in found.text
    assert found.urgency is Urgency.HIGH
    (only_slack,) = warnings(person([SLACK]), directory(5))
    assert only_slack.text.startswith("Nothing wakes you: high urgency goes by Slack alone")
    (no_number,) = warnings(person([SLACK, PUSH]), directory(5))
    assert no_number.text.startswith("No telephone number")


def test_nobody_is_reached_without_any_method() -> None:
    """No method, none that is verified, and none that this install can send by, are the same."""
    nothing = "Nothing reaches you: add a number or an app with `/oncall me`, and verify it."
    unverified = method(Method.SMS, verified=False)
    assert texts(warnings(person([]), directory(5))) == [nothing]
    assert texts(warnings(person([unverified]), directory(5)))[0] == nothing
    assert texts(warnings(person([SMS]), directory(5), ways={Method.EMAIL}))[0] == nothing


def test_a_call_without_a_number_that_can_be_called_is_left_out_and_told() -> None:
    """The next method takes its place, and the warning says so (B111)."""
    unverified = method(Method.VOICE, verified=False)
    ana = person([SLACK, SMS, unverified], {Urgency.HIGH: (rule(unverified), rule(SMS, 3))})
    assert [(step.method.kind, step.delay) for step in steps(ana, Urgency.HIGH)] == [
        (Method.SMS, timedelta())
    ]
    assert warnings(ana, directory(5)) == (
        RuleWarning(
            "Call at once never runs for high urgency, and pages go by the others: it is not verified. Have "
            "a code sent with `/oncall me`.",
            Urgency.HIGH,
            unverified.id,
        ),
    )


def test_a_step_by_what_is_off_or_gone_or_cannot_be_sent_never_runs() -> None:
    """Each with its reason, and for the urgency that it is of."""
    off, stopped = method(Method.EMAIL, off="not in midwatch.yaml"), method(Method.SMS, off=STOPPED)
    rules = {
        Urgency.HIGH: (rule(VOICE), rule(stopped, 1), ContactRule(99, MINUTE)),
        Urgency.LOW: (rule(off),),
    }
    never = "never runs for high urgency, and pages go by the others"
    assert texts(warnings(person([SLACK, VOICE, off, stopped], rules), directory(5))) == [
        f"SMS after 1 min {never}: its number replied STOP. Text START from it to have texts again.",
        f"A step {never}: its contact method was removed.",
        "Email at once never runs for low urgency, and pages go by the others: it is off (not in "
        "midwatch.yaml).",
    ]
    ways = {Method.SLACK, Method.SMS}
    unset = "this install has nothing to send it by. `midwatch doctor` tells whoever runs it how."
    ruled = person([SLACK, SMS, VOICE], {Urgency.HIGH: (rule(SMS), rule(VOICE, 1))})
    assert texts(warnings(ruled, directory(5), ways)) == [f"Call after 1 min {never}: {unset}"]
    usual = texts(warnings(person([SLACK, SMS, VOICE]), directory(5), ways))
    assert usual == [f"No page goes by your call: {unset}"]


def test_a_method_that_waits_for_its_code_is_told_without_any_rule() -> None:
    """What is off because the file names it no more is not: somebody wanted that."""
    unverified, off = method(Method.EMAIL, verified=False), method(Method.PUSH, off="not in midwatch.yaml")
    assert warnings(person([SLACK, SMS, unverified, off]), directory(5)) == (
        RuleWarning(
            "No page goes by your email: it is not verified. Have a code sent with `/oncall me`.",
            method_id=unverified.id,
        ),
    )


def test_a_method_that_somebody_verified_and_no_rule_uses_is_told() -> None:
    """They added it to be reached by it; what a file gives and does not use is meant so."""
    rules = {Urgency.HIGH: (rule(SLACK), rule(SMS, 1))}
    assert texts(warnings(person([SLACK, SMS, VOICE], rules), directory(5))) == [
        "No page goes by your call: none of your contact rules uses it. Add a step, or go back to the usual "
        "order."
    ]
    by_file = method(Method.VOICE, by=BY_CONFIG)
    assert warnings(person([SLACK, SMS, by_file], rules), directory(5)) == ()


def test_what_was_imported_is_used_while_nothing_is_verified_and_that_is_said() -> None:
    """With a verified method beside it, it is used no more."""
    imported = method(Method.SMS, verified=False, by=IMPORTED)
    alone = person([imported])
    assert [step.method for step in steps(alone, Urgency.HIGH)] == [imported]
    (grave,) = warnings(alone, directory(5))
    assert grave.text.startswith("Nothing of yours is verified: pages go to what was imported")
    assert [step.method for step in steps(person([imported, VOICE]), Urgency.HIGH)] == [VOICE]
    assert [step.method for step in steps(person([imported, SLACK]), Urgency.LOW)] == [SLACK]


def test_what_people_typed_themselves_is_never_a_last_resort() -> None:
    """It may be anybody's telephone."""
    typed = method(Method.SMS, verified=False)
    assert steps(person([typed]), Urgency.HIGH) == ()


def test_a_step_after_the_next_level_is_told_by_the_longest_level_that_pages_them() -> None:
    """By a schedule or by name; whoever no policy pages is told nothing of it."""
    ana = person([SLACK, SMS, VOICE], {Urgency.HIGH: (rule(SMS), rule(VOICE, 10))})
    (late,) = warnings(ana, directory(5, 10))
    assert late.text == (
        "Call after 10 min comes after the next level is paged: no policy gives you more than 10 min. "
        "Give it a shorter delay."
    )
    assert late.method_id == VOICE.id
    by_name = directory(5, of=Target(TargetKind.PERSON, ANA))
    assert "more than 5 min" in warnings(ana, by_name)[0].text
    assert warnings(ana, directory(5, 15)) == ()
    assert warnings(ana, directory(5, people=(1,))) == ()


def test_a_first_message_that_comes_late_is_told() -> None:
    """Somebody who gives themselves six minutes is warned; five are theirs."""
    late = person([SMS], {Urgency.HIGH: (rule(SMS, 6.5),)})
    (found,) = warnings(late, directory(30))
    assert found.text == (
        "The first message about something urgent comes 6 min 30 s late: let the first step begin at once."
    )
    assert warnings(person([SMS], {Urgency.HIGH: (rule(SMS, 5),)}), directory(30)) == ()
