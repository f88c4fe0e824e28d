"""Laws of the fate: whatever is asked of an incident, in whatever order, these hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.directory import OnExhaustion
from engine.escalation import Decision, Fate, Ladder, Rung, decide, settled
from engine.escalation import fate as f
from engine.models import IncidentStatus, TimerKind, Urgency
from tests.unit.escalations import ANA, BEN, FLAP, MIN, NOW, SOURCE, TO_BEN, fresh

FIRED: dict[TimerKind, f.Command] = {
    TimerKind.ESCALATE: f.Timeout(),
    TimerKind.EXHAUST: f.Exhaust(),
    TimerKind.UNSNOOZE: f.EndOfSnooze(),
    TimerKind.ACK_TIMEOUT: f.AckTimeout(),
}
URGENCIES = st.sampled_from(Urgency)
ACTORS = st.sampled_from((ANA, BEN, SOURCE))
RUNGS = st.builds(
    Rung,
    st.sets(st.integers(1, 3), max_size=2).map(lambda ids: tuple(sorted(ids))),
    st.sampled_from(((), ("#ops",))),
    st.integers(1, 15).map(lambda minutes: minutes * MIN),
)
LADDERS = st.builds(
    Ladder,
    st.lists(RUNGS, max_size=4).map(tuple),
    st.integers(0, 2),
    st.sampled_from(OnExhaustion),
    st.sampled_from((None, 20 * MIN)),
    RUNGS,
)


@dataclass
class World:
    """An incident with what its decisions left behind: live timers and queued pages."""

    fate: Fate
    ladder: Ladder
    now: datetime = NOW
    timers: dict[TimerKind, datetime] = field(default_factory=lambda: {TimerKind.ESCALATE: NOW})
    queued: list[str] = field(default_factory=list)

    def ask(self, command: f.Command) -> Decision:
        decision = decide(self.fate, command, self.now, self.ladder)
        self.follow(decision.effects)
        self.fate = decision.fate
        return decision

    def follow(self, effects: Sequence[f.Effect]) -> None:
        """As `pager/apply` does: what ends, ends first."""
        for effect in effects:
            if isinstance(effect, f.Disarm):
                self.timers.clear()
            elif isinstance(effect, f.CancelPages):
                kept = () if effect.responders else ("helper",)
                self.queued = [one for one in self.queued if one.startswith(kept)] if kept else []
            elif isinstance(effect, f.EndResponder):
                self.queued = [one for one in self.queued if one != f"helper {effect.person_id}"]
        for effect in effects:
            if isinstance(effect, f.Arm):
                self.timers[effect.kind] = effect.due_at
            elif isinstance(effect, f.PageResponder):
                self.queued.append(f"helper {effect.person_id}")
            elif isinstance(effect, (f.PageLevel, f.PageFallback, f.RevivePages)):
                self.queued.append(f"page {effect}")

    def fire(self) -> Decision | None:
        """The next timer, at the instant at which it is due."""
        if not self.timers:
            return None
        due_at, kind = min((due_at, kind) for kind, due_at in self.timers.items())
        del self.timers[kind]
        self.now = max(self.now, due_at)
        return self.ask(FIRED[kind])

    def live(self) -> f.Armed | None:
        due = min(((due_at, kind) for kind, due_at in self.timers.items()), default=None)
        return None if due is None else f.Armed(due[1], due[0])


def check(world: World) -> None:
    """What is armed fits the status, and the level lies on the ladder."""
    fate, armed = world.fate, set(world.timers)
    if fate.status is IncidentStatus.TRIGGERED:
        assert len(armed) == 1 or (fate.urgency is Urgency.NONE and not armed)
        assert armed <= {TimerKind.ESCALATE, TimerKind.EXHAUST}
    elif fate.status is IncidentStatus.UNANSWERED:
        assert armed == {TimerKind.EXHAUST} or (fate.urgency is not Urgency.HIGH and not armed)
    elif fate.status is IncidentStatus.RESOLVED:
        assert not armed
    elif fate.snoozed_until is not None:
        assert armed == {TimerKind.UNSNOOZE}
        assert world.timers[TimerKind.UNSNOOZE] == fate.snoozed_until
    else:
        assert armed == (set() if world.ladder.ack_timeout is None else {TimerKind.ACK_TIMEOUT})
    assert fate.level in {f.REASSIGNED, f.FALLBACK, *range(max(1, len(world.ladder.rungs)))}


class Ask:
    """A command that is made when it is asked, since some say what is true at that moment."""

    @staticmethod
    def resolve(world: World) -> f.Command:
        return f.Resolve(ANA, world.live())

    @staticmethod
    def resolve_by_source(world: World) -> f.Command:
        world.fate = replace(world.fate, open_alerts=0)
        return f.LastAlertResolved(SOURCE, world.live())

    @staticmethod
    def snooze(world: World) -> f.Command:
        return f.Snooze(BEN, world.now + 30 * MIN)


PLAIN = st.one_of(
    st.builds(f.Joiner, URGENCIES, st.integers(0, 4), st.just("another")),
    st.builds(f.Acknowledge, ACTORS),
    st.builds(f.AddResponder, ACTORS, st.just(2)),
    st.sampled_from(
        (
            f.Refire(FLAP),
            f.Unacknowledge(ANA),
            f.EscalateNow(ANA),
            f.Reassign(ANA, TO_BEN),
            f.RaiseUrgency(Urgency.HIGH),
            f.Reopen(ANA),
            f.Stuck(),
        )
    ),
)
MOMENTS = st.sampled_from((Ask.resolve, Ask.resolve_by_source, Ask.snooze))
STEPS = st.lists(
    st.one_of(
        st.just("fire"),
        st.integers(1, 90).map(lambda minutes: minutes * MIN),
        PLAIN,
        MOMENTS,
        st.just("fire"),
    ),
    max_size=25,
)


def play(world: World, step: object) -> Decision | None:
    if step == "fire":
        return world.fire()
    if isinstance(step, timedelta):  # time passes, with everything that falls due in it
        end = world.now + step
        while (live := world.live()) is not None and live.due_at <= end:
            world.fire()
        world.now = end
        return None
    command = step(world) if callable(step) else step
    return world.ask(command)  # type: ignore[arg-type]  # the strategy makes nothing else


@given(LADDERS, URGENCIES, STEPS)
def test_what_is_armed_always_fits_the_status(ladder: Ladder, urgency: Urgency, steps: list[object]) -> None:
    """Triggered: one timer of the ladder. Snoozed: its end. Resolved, or acknowledged for good: none."""
    world = World(fresh(urgency), ladder)
    check(world)
    for step in steps:
        play(world, step)
        check(world)


@given(LADDERS, URGENCIES, STEPS)
def test_the_epoch_grows_with_every_change_of_fate(
    ladder: Ladder, urgency: Urgency, steps: list[object]
) -> None:
    """A timer of an older epoch can never meet the fate that it was armed for; counts move no epoch."""
    world = World(fresh(urgency), ladder)
    for step in steps:
        before = world.fate
        play(world, step)
        counted = replace(
            before, severity=world.fate.severity, open_alerts=world.fate.open_alerts, epoch=world.fate.epoch
        )
        assert world.fate.epoch >= before.epoch
        if world.fate != counted:
            assert world.fate.epoch > before.epoch


@given(LADDERS, URGENCIES, STEPS)
def test_nothing_loops_within_one_instant(ladder: Ladder, urgency: Urgency, steps: list[object]) -> None:
    """However empty the ladder: what a decision arms for now ends in something that is armed for later."""
    world = World(fresh(urgency), ladder)
    for step in steps:
        play(world, step)
        for _ in range(3):
            if (live := world.live()) is None or live.due_at > world.now:
                break
            world.fire()
        else:
            raise AssertionError(f"still due at once: {world.timers}")


@given(LADDERS, st.integers(1, 12))
def test_unanswered_pages_one_link_more_each_time(ladder: Ladder, times: int) -> None:
    """Within a round the fallback chain only grows, and every half hour somebody is told."""
    world = World(fresh(), replace(ladder, on_exhaustion=OnExhaustion.NOTIFY_ADMINS))
    links: list[int] = []
    while len(links) < times:
        decision = world.fire()
        assert decision is not None
        links += [effect.links for effect in decision.effects if isinstance(effect, f.PageFallback)]
    assert links == list(range(1, times + 1))


@given(LADDERS, URGENCIES, STEPS, PLAIN)
def test_the_same_question_has_the_same_answer(
    ladder: Ladder, urgency: Urgency, steps: list[object], command: f.Command
) -> None:
    """Decisions depend on nothing but what they are given."""
    world = World(fresh(urgency), ladder)
    for step in steps:
        play(world, step)
    first = decide(world.fate, command, world.now, ladder)
    assert decide(world.fate, command, world.now, ladder) == first


TWICE = st.one_of(
    st.builds(f.Acknowledge, ACTORS),
    st.sampled_from(
        (
            f.Resolve(ANA),
            f.LastAlertResolved(SOURCE),
            f.Unacknowledge(ANA),
            f.Snooze(ANA, NOW + timedelta(days=9)),
            f.Reassign(ANA, TO_BEN),
            f.RaiseUrgency(Urgency.HIGH),
            f.Reopen(ANA),
            f.Refire(FLAP),
            f.EndOfSnooze(),
            f.AckTimeout(),
            f.Merge(ANA, 7),
            f.Unmerge(ANA),
        )
    ),
)


@given(LADDERS, URGENCIES, STEPS, TWICE)
def test_acting_twice_acts_once(
    ladder: Ladder, urgency: Urgency, steps: list[object], command: f.Command
) -> None:
    """The second of two equal answers changes nothing and says why."""
    world = World(fresh(urgency), ladder)
    for step in steps:
        play(world, step)
    world.ask(command)
    again = decide(world.fate, command, world.now, ladder)
    assert (again.fate, again.changed) == (world.fate, False)
    assert not [one for one in again.effects if not isinstance(one, f.EndResponder)]


@given(LADDERS, URGENCIES, STEPS, st.permutations([f.Acknowledge(ANA), f.Resolve(BEN), f.Timeout()]))
def test_resolve_wins_in_any_order(
    ladder: Ladder, urgency: Urgency, steps: list[object], order: list[f.Command]
) -> None:
    """Whatever an ack and a late timer do around it, an incident that was resolved is resolved."""
    world = World(fresh(urgency), ladder)
    for step in steps:
        play(world, step)
    for command in order:
        world.ask(command)
    assert world.fate.status is IncidentStatus.RESOLVED
    assert not world.timers
    assert not world.queued


@given(LADDERS, URGENCIES, STEPS, st.lists(PLAIN, min_size=1, max_size=4))
def test_a_batch_leaves_what_its_decisions_would_have_left_one_by_one(
    ladder: Ladder, urgency: Urgency, steps: list[object], batch: list[f.Command]
) -> None:
    """Settled effects, written once, arm and queue the same as each decision written by itself."""
    world = World(fresh(urgency), ladder)
    for step in steps:
        play(world, step)
    together = World(world.fate, ladder, world.now, dict(world.timers), list(world.queued))
    effects: list[f.Effect] = []
    for command in batch:
        effects += world.ask(command).effects
    together.follow(settled(effects))
    assert (together.timers, together.queued) == (world.timers, world.queued)
