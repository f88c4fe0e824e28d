"""The rows of the table of the fate, one claim each."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.directory import OnExhaustion
from engine.escalation import Fate, Ladder, Rung, decide, still_wanted
from engine.escalation import fate as f
from engine.models import IncidentStatus, TimerKind, Urgency, Via
from tests.unit.escalations import (
    ANA,
    BEN,
    FLAP,
    LADDER,
    MIN,
    NOW,
    REPEATING,
    SOURCE,
    TO_BEN,
    after,
    armed,
    exhausted,
    fresh,
)

NOBODY = Rung()
CHANNEL = Rung((), ("#payments",), 3 * MIN)


def paged(decision: f.Decision) -> list[int]:
    return [effect.level for effect in decision.effects if isinstance(effect, f.PageLevel)]


def links(decision: f.Decision) -> list[int]:
    return [effect.links for effect in decision.effects if isinstance(effect, f.PageFallback)]


# --- the ladder ----------------------------------------------------------------------------------------


def test_a_level_that_holds_nobody_is_skipped_at_once() -> None:
    """The first level that holds somebody is paged in the same decision, and waits its own time."""
    ladder = Ladder((NOBODY, NOBODY, Rung((3,), timeout=7 * MIN)))
    decision = decide(fresh(), f.Timeout(), NOW, ladder)
    assert (paged(decision), armed(decision)) == ([2], {TimerKind.ESCALATE: NOW + 7 * MIN})


def test_a_level_of_channels_only_waits_its_time_and_reaches_nobody() -> None:
    """The channel is told; at the end of such a pass the fallback is paged at once."""
    first = decide(fresh(), f.Timeout(), NOW, Ladder((CHANNEL,)))
    assert (paged(first), armed(first)) == ([0], {TimerKind.ESCALATE: NOW + 3 * MIN})
    second = decide(first.fate, f.Timeout(), NOW + 3 * MIN, Ladder((CHANNEL,), repeat=5))
    assert (links(second), set(armed(second))) == ([1], {TimerKind.EXHAUST})


@pytest.mark.parametrize("exhaustion", OnExhaustion)
def test_a_pass_that_reached_no_person_pages_the_fallback_whatever_the_policy_says(
    exhaustion: OnExhaustion,
) -> None:
    """Neither extra passes nor `on_exhaustion: repeat` make an empty ladder go round."""
    decision = decide(fresh(), f.Timeout(), NOW, Ladder((NOBODY,), 3, exhaustion))
    assert (decision.fate.level, links(decision)) == (f.FALLBACK, [1])
    assert armed(decision) == {TimerKind.EXHAUST: NOW + 5 * MIN}


def test_extra_passes_come_before_the_end_of_the_ladder() -> None:
    """`repeat: 1` walks the ladder twice; then `exhaust` is five minutes away."""
    ladder, fate, seen = replace(LADDER, repeat=1), fresh(), []
    for _ in range(5):
        decision = decide(fate, f.Timeout(), NOW, ladder)
        seen.append((fate.pass_, paged(decision)))
        fate = decision.fate
    assert [levels for _, levels in seen] == [[0], [1], [0], [1], []]
    assert (fate.pass_, armed(decision)) == (1, {TimerKind.EXHAUST: NOW + 5 * MIN})


def test_on_exhaustion_repeat_never_ends() -> None:
    """The ladder goes round, each time as a pass of its own, so that everything is sent again."""
    fate = fresh()
    for _ in range(40):
        fate = decide(fate, f.Timeout(), NOW, REPEATING).fate
    assert (fate.status, fate.pass_, fate.level) == (IncidentStatus.TRIGGERED, 19, 1)


def test_urgency_none_climbs_nothing() -> None:
    """Its first timer is its last."""
    decision = decide(fresh(Urgency.NONE), f.Timeout(), NOW, LADDER)
    assert (decision.changed, decision.effects) == (False, ())


# --- nobody answered -----------------------------------------------------------------------------------


def test_unanswered_pages_one_more_link_every_half_hour() -> None:
    """Each time is a pass of its own, so that those who were told are told again."""
    first = decide(after(f.Timeout(), f.Timeout()), f.Exhaust(), NOW, LADDER)
    again = decide(first.fate, f.Exhaust(), NOW, LADDER)
    assert (links(first), links(again)) == ([1], [2])
    assert again.fate.pass_ == first.fate.pass_ + 1
    assert armed(again) == {TimerKind.EXHAUST: NOW + 30 * MIN}


def test_low_urgency_ends_with_a_line_and_nothing_armed() -> None:
    """Nobody is woken for it at the end either."""
    decision = decide(after(f.Timeout(), f.Timeout(), of=fresh(Urgency.LOW)), f.Exhaust(), NOW, LADDER)
    assert decision.fate.status is IncidentStatus.UNANSWERED
    assert [type(effect) for effect in decision.effects] == [f.Say]


def test_a_timer_that_cannot_be_worked_wakes_an_acknowledged_incident() -> None:
    """A snooze that cannot end by itself would last for ever: the fallback is paged."""
    snoozed = after(f.Snooze(ANA, NOW + 60 * MIN))
    decision = decide(snoozed, f.Stuck(), NOW, LADDER)
    assert (decision.fate.status, links(decision)) == (IncidentStatus.TRIGGERED, [1])
    assert (decision.fate.round, set(armed(decision))) == (snoozed.round + 1, {TimerKind.EXHAUST})


# --- joiners -------------------------------------------------------------------------------------------

ALIKE = f.Joiner(Urgency.HIGH, 3, "db-2 is down")


def test_a_joiner_of_an_acknowledged_incident_is_told_quietly_and_once() -> None:
    """The keys are the same until the next answer, so a storm is one line and one message."""
    fate = after(f.Timeout(), f.Acknowledge(ANA))
    first, second = (decide(fate, ALIKE, NOW, LADDER) for _ in range(2))
    assert [type(effect) for effect in first.effects] == [f.Say, f.Tell]
    assert (first.changed, first.effects) == (False, second.effects)


@pytest.mark.parametrize(
    ("fate", "joiner", "age"),
    [
        (after(f.Acknowledge(ANA)), f.Joiner(Urgency.HIGH, 4), timedelta()),
        (after(f.Acknowledge(ANA), of=fresh(Urgency.LOW)), f.Joiner(Urgency.HIGH, 0), timedelta()),
        (after(f.Acknowledge(ANA)), ALIKE, timedelta(minutes=60, microseconds=1)),
        (exhausted(), f.Joiner(Urgency.LOW, 0), timedelta()),
        (fresh(Urgency.LOW), f.Joiner(Urgency.HIGH, 0), timedelta()),
        (fresh(Urgency.NONE), f.Joiner(Urgency.LOW, 0), timedelta()),
    ],
)
def test_a_joiner_starts_over_when_the_answer_does_not_speak_for_it(
    fate: Fate, joiner: f.Joiner, age: timedelta
) -> None:
    """Worse, after more than an hour, while nobody had answered, or with a higher urgency."""
    decision = decide(fate, joiner, NOW + age, LADDER)
    assert (decision.fate.status, decision.fate.round) == (IncidentStatus.TRIGGERED, fate.round + 1)
    assert armed(decision) == {TimerKind.ESCALATE: NOW + age}


def test_an_ack_of_an_hour_speaks_for_a_new_alert_still() -> None:
    """Sixty minutes to the microsecond is not more than sixty minutes."""
    assert not decide(after(f.Acknowledge(ANA)), ALIKE, NOW + 60 * MIN, LADDER).changed


# --- answers -------------------------------------------------------------------------------------------


def test_an_ack_ends_the_pages_and_arms_the_ack_timeout() -> None:
    """Without an `ack_timeout` nothing is armed."""
    for ladder, timers in (
        (LADDER, {}),
        (replace(LADDER, ack_timeout=20 * MIN), {TimerKind.ACK_TIMEOUT: NOW + 20 * MIN}),
    ):
        decision = decide(after(f.Timeout()), f.Acknowledge(ANA), NOW, ladder)
        assert (decision.fate.acknowledged_by, armed(decision)) == (ANA, timers)
        assert [effect for effect in decision.effects if isinstance(effect, f.CancelPages)]


def test_the_second_ack_hears_who_was_first() -> None:
    """With name and age; the first one stays."""
    decision = decide(after(f.Acknowledge(ANA)), f.Acknowledge(BEN), NOW + 12 * MIN / 60, LADDER)
    assert (decision.changed, decision.reason) == (False, "already acknowledged by ana 12 s ago")
    assert decision.fate.acknowledged_by == ANA
    assert decision.effects == (f.EndResponder(2),)


@pytest.mark.parametrize(
    ("age", "words"),
    [(59 * MIN / 60, "59 s ago"), (MIN, "1 min ago"), (59 * MIN, "59 min ago"), (90 * MIN, "1 h ago")],
)
def test_a_late_ack_hears_that_it_is_resolved(age: timedelta, words: str) -> None:
    """And by whom, and how long ago."""
    decision = decide(after(f.Resolve(BEN)), f.Acknowledge(ANA), NOW + age, LADDER)
    assert decision.reason == f"already resolved by ben {words}"


def test_a_snooze_keeps_who_acknowledged() -> None:
    """Ben may snooze what Ana took; it stays hers."""
    fate = after(f.Acknowledge(ANA), f.Snooze(BEN, NOW + MIN))
    assert (fate.acknowledged_by, fate.snoozed_until) == (ANA, NOW + MIN)
    assert after(f.Snooze(BEN, NOW + MIN)).acknowledged_by == BEN


def test_escalate_now_goes_past_the_end_and_past_repeat() -> None:
    """A person asks for more: the next pass, though the policy has no more."""
    decision = decide(after(f.Timeout(), f.Timeout()), f.EscalateNow(ANA), NOW, LADDER)
    assert (paged(decision), decision.fate.pass_) == ([0], 1)


def test_escalate_now_tries_the_ladder_again_once_the_fallback_was_paged() -> None:
    """Somebody may be on call by now."""
    fallen = after(f.Timeout(), ladder=Ladder((NOBODY,)))
    assert paged(decide(fallen, f.EscalateNow(ANA), NOW, Ladder((Rung((1,)),)))) == [0]
    assert links(decide(fallen, f.EscalateNow(ANA), NOW, Ladder((NOBODY,)))) == [2]


@pytest.mark.parametrize(("reached", "level"), [(1, 1), (2, 0)])
def test_escalate_now_after_an_ack_goes_to_the_level_after_it(reached: int, level: int) -> None:
    """And to the first one past the last."""
    fate = after(*[f.Timeout()] * reached, f.Acknowledge(ANA))
    decision = decide(fate, f.EscalateNow(BEN), NOW, LADDER)
    assert (decision.fate.status, decision.fate.level) == (IncidentStatus.TRIGGERED, level)
    assert paged(decide(decision.fate, f.Timeout(), NOW, LADDER)) == [level]


def test_an_assigned_incident_waits_as_level_0_would_and_then_climbs() -> None:
    """Level −1 for the target, then the policy from level 0."""
    fate, levels = after(f.Timeout(), f.Acknowledge(ANA), f.Reassign(ANA, TO_BEN)), []
    for _ in range(3):
        decision = decide(fate, f.Timeout(), NOW, LADDER)
        levels += paged(decision)
        fate = decision.fate
    assert levels == [f.REASSIGNED, 0, 1]


def test_an_assigned_target_that_cannot_be_reached_is_skipped_at_once() -> None:
    """The policy begins in the same decision."""
    fate = after(f.Reassign(ANA, TO_BEN))
    assert paged(decide(fate, f.Timeout(), NOW, replace(LADDER, reassigned=NOBODY))) == [0]


@pytest.mark.parametrize("command", [f.EscalateNow(ANA), f.Reassign(ANA, TO_BEN)])
def test_who_asks_by_hand_is_heard(command: f.Command) -> None:
    """Urgency none becomes low, and somebody is paged."""
    fate = decide(fresh(Urgency.NONE), command, NOW, LADDER).fate
    assert fate.urgency is Urgency.LOW
    assert fate.level_started_at == NOW or paged(decide(fate, f.Timeout(), NOW, LADDER))


def test_a_helper_is_asked_again_only_when_they_are_not_being_told() -> None:
    """Each ask has a number of its own, so that it is sent again."""
    decision = decide(fresh(), f.AddResponder(ANA, 2, sequence=3), NOW, LADDER)
    assert (decision.changed, decision.effects) == (True, (f.PageResponder(2, 3),))
    assert not decide(fresh(), f.AddResponder(ANA, 2, 3, pending=True), NOW, LADDER).changed


# --- over, and not over ----------------------------------------------------------------------------------


def test_a_re_fire_takes_up_what_the_resolve_put_away() -> None:
    """Status, timer and the time that was left; the pages that this resolve cancelled."""
    timer = f.Armed(TimerKind.ESCALATE, NOW + 3 * MIN)
    resolved = after(f.Timeout(), f.Resolve(SOURCE, timer))
    decision = decide(resolved, f.Refire(FLAP), NOW + FLAP, LADDER)
    assert (decision.fate.status, decision.fate.round) == (IncidentStatus.TRIGGERED, 1)
    assert decision.effects == (
        f.RevivePages(resolved.epoch),
        f.Arm(TimerKind.ESCALATE, NOW + FLAP + 3 * MIN),
    )


@pytest.mark.parametrize(
    ("by", "late", "held_by"), [(ANA, 0 * MIN, None), (SOURCE, FLAP + MIN / 60, None), (SOURCE, MIN, 7)]
)
def test_anything_else_is_a_new_occurrence(by: f.Actor, late: timedelta, held_by: int | None) -> None:
    """A person resolved it, the window is over, or another incident holds the key."""
    decision = decide(after(f.Resolve(by)), f.Refire(FLAP, held_by), NOW + late, LADDER)
    assert (decision.changed, decision.effects) == (False, ())


def test_a_re_fire_of_a_snoozed_incident_moves_the_end_of_the_snooze() -> None:
    """What people see as its end is when the timer fires."""
    end = NOW + 30 * MIN
    resolved = after(f.Snooze(ANA, end), f.Resolve(SOURCE, f.Armed(TimerKind.UNSNOOZE, end)))
    fate = decide(resolved, f.Refire(FLAP), NOW + MIN, LADDER).fate
    assert fate.snoozed_until == end + MIN


def test_a_reopen_is_refused_naming_who_holds_the_problem() -> None:
    """Two open incidents for one problem are one too many."""
    decision = decide(after(f.Resolve(ANA)), f.Reopen(BEN, held_by=7), NOW, LADDER)
    assert (decision.changed, decision.reason) == (False, "#7 is already open for the same problem")


def test_a_reopened_incident_starts_over_with_nothing_of_before() -> None:
    """No ack, no snooze, no resolve; a round of its own."""
    fate = after(f.Timeout(), f.Snooze(ANA, NOW + MIN), f.Resolve(ANA), f.Reopen(BEN))
    assert replace(fate, epoch=0, round=0) == replace(fresh(), epoch=0, round=0, open_alerts=0)


@pytest.mark.parametrize(
    ("kind", "round_", "fate", "wanted"),
    [
        ("page", 1, fresh(), True),
        ("page", 1, exhausted(), True),
        ("page", 1, after(f.Acknowledge(ANA)), False),
        ("page", 1, after(f.Acknowledge(ANA), f.Unacknowledge(ANA)), False),
        ("responder", 1, after(f.Acknowledge(ANA)), True),
        ("responder", 1, after(f.Resolve(ANA)), False),
        ("status", 1, after(f.Resolve(ANA)), True),
    ],
)
def test_a_page_is_wanted_in_its_round_while_nobody_has_answered(
    kind: str, round_: int, fate: Fate, wanted: bool
) -> None:
    """A call for help until it is resolved; a line always."""
    assert (still_wanted(kind, round_, fate) is None) is wanted


def test_a_held_timer_looks_again_within_five_minutes_and_then_starts_over() -> None:
    """A window may be cancelled; what fires after it is a new round."""
    held = decide(after(f.Timeout()), f.Hold(TimerKind.ESCALATE, NOW + 90 * MIN), NOW, LADDER)
    assert (held.changed, armed(held)) == (False, {TimerKind.ESCALATE: NOW + 5 * MIN})
    decision = decide(held.fate, f.Timeout(), NOW + 90 * MIN, LADDER)
    assert (decision.fate.round, decision.fate.held_until) == (2, None)


def test_an_actor_without_a_person_ends_no_call_for_help() -> None:
    """A source or a token that acknowledges speaks for nobody."""
    assert SOURCE.via is Via.SOURCE
    assert not [
        e for e in decide(fresh(), f.Acknowledge(SOURCE), NOW).effects if isinstance(e, f.EndResponder)
    ]
