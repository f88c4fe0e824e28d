"""What must be so after any run, whatever happened in it: I1 to I12, one function each.

Reads a history and says what it breaks; changes nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Final

from engine.escalation.by_timer import UNANSWERED_EVERY
from engine.escalation.fate import FALLBACK
from engine.models import IncidentStatus, Via
from engine.schedule import people_at, shifts
from engine.schema import EPOCH, MICROSECOND
from tests.crash.faults import LEASE, Kind
from tests.crash.history import History, Row

EPSILON: Final = timedelta(seconds=3)  # two seconds and the interval at which the worker looks
FLIGHT: Final = LEASE / 3  # the longest that a provider is waited for
QUIET: Final = frozenset({IncidentStatus.ACKNOWLEDGED.value, IncidentStatus.RESOLVED.value})
ENDED: Final = frozenset({"sent", "delivered", "unconfirmed", "dead", "cancelled"})
AMBIGUOUS: Final = "may have been sent"

# What a timer's work is called on the timeline.
BY_TIMER: Final = {
    "escalated": "escalate",
    "unanswered": "exhaust",
    "snooze_ended": "unsnooze",
    "ack_timed_out": "ack_timeout",
    "urgency_raised": "raise_urgency",
}
# How a delivery goes on. Nothing comes back from where it was sent or died; a re-fire revives.
GOES_ON: Final = {
    "queued": {"sending", "cancelled", "dead"},
    "sending": {"sent", "queued", "dead", "cancelled"},
    "sent": {"delivered", "unconfirmed"},
    "cancelled": {"queued"},
}

Broken = Iterator[str]


def accepted_is_kept(h: History) -> Broken:
    """I1: an alert that was answered with 2xx is in the database: on one incident, each time counted."""
    if not h.outside.accepted:
        return
    events = [row for row in h["events"] if row.action == "trigger"]
    if not events or any(row.incident_id is None and not row.reason for row in events):
        yield "an accepted alert has no event with an incident or a reason"
    heard = sum(row.event_count for row in h["alerts"])
    # Why one more: a commit of which nobody heard is made again, as if the source had sent it twice.
    again = h.outside.fault.kind is Kind.UNHEARD
    if not h.outside.accepted <= heard <= h.outside.posted + again:
        yield f"{h.outside.accepted} accepted of {h.outside.posted} posted, and {heard} are counted"


def one_open(h: History) -> Broken:
    """I2: one problem has one open incident, and no alert fires on a resolved one."""
    incidents = Counter((r.service_id, r.group_key) for r in h["incidents"] if r.status != "resolved")
    alerts = Counter((r.service_id, r.dedup_key) for r in h["alerts"] if r.status != "resolved")
    yield from (f"{count} are open for {key}" for key, count in (incidents + alerts).items() if count > 1)
    problems, made = h.outside.problems, len(h["incidents"])
    if problems is not None and made > problems:
        yield f"{problems} problem made {made} incidents"
    closed = {row.id for row in h["incidents"] if row.status == "resolved"}
    yield from (
        f"alert {row.id} fires on a resolved incident"
        for row in h["alerts"]
        if row.status == "firing" and row.incident_id in closed
    )


def paged_in_time(h: History) -> Broken:
    """I3: whoever the plan names was told by their time, and each page began when it was due."""
    for told in h.outside.plan:
        latest = h.outside.started_at + told.after + h.outside.fault.costs
        times = [
            one.at
            for one in h.ledger
            if (one.message.person, one.message.method) == (told.person, told.method)
            and one.message.kind == "page"
        ]
        if not times or min(times) > latest:
            yield f"{told.person} was told by {told.method} at {min(times, default=None)}"
    for page in h.pages.values():
        begun = [attempt.started_at for attempt in h.attempts_of(page.id)]
        if not begun and page.status != "cancelled":
            yield f"page {page.id} was never tried"
        if begun and min(begun) > page.due_at + EPSILON + h.outside.fault.costs:
            yield f"page {page.id}, due {page.due_at}, was first tried {min(begun)}"


def no_limbo(h: History) -> Broken:
    """I4: no attempt lasts longer than its lease, every delivery ends, and no timer is left behind."""
    for row in h["attempts"]:
        longest = LEASE + EPSILON + h.outside.fault.costs
        if row.ended_at is None or row.ended_at - row.started_at > longest:
            yield f"attempt {row.delivery_id}/{row.number} ({row.outcome}) ended {row.ended_at}"
        if row.reason.startswith("unexpected"):
            yield f"attempt {row.delivery_id}/{row.number}: {row.reason}"
    for row in h["deliveries"]:
        if row.status not in ENDED:
            yield f"delivery {row.id} is {row.status}"
    open_ = {row.id for row in h["incidents"] if row.status != "resolved"}
    for row in h["timers"]:
        if row.kind not in BY_TIMER.values() or row.subject_id not in open_:
            yield f"a {row.kind} timer of {row.subject_id} is left"
    yield from h.outside.findings


def ack_is_final(h: History) -> Broken:
    """I5: no attempt of a page begins after the ack; what was in flight may still arrive."""
    for page in h.pages.values():
        for attempt in h.attempts_of(page.id):
            if _is_quiet(h, page.incident_id, attempt.started_at):
                yield f"page {page.id} was begun {attempt.started_at}, after the ack"
        untried = page.status == "cancelled" and not h.attempts_of(page.id)
        if untried and _status_before(h, page.incident_id, page.ended_at) in QUIET:
            yield f"page {page.id} was still waiting for its turn after the ack"
    for taken in h.ledger:
        message = taken.message
        attempt = next((a for a in h.attempts_of(message.delivery) if a.number == message.attempt), None)
        if attempt is None:
            yield f"delivery {message.delivery} was sent, and attempt {message.attempt} is not stored"
        elif taken.at > attempt.started_at + FLIGHT + h.outside.fault.costs:
            yield f"attempt {message.delivery}/{message.attempt} arrived {taken.at}"


def _is_quiet(h: History, incident_id: int, at: object) -> bool:
    """Had somebody answered, whatever the order of what happened at this very instant?"""
    now = {
        row.after for row in h["timeline"] if row.incident_id == incident_id and row.after and row.at == at
    }
    return {_status_before(h, incident_id, at), *now} <= QUIET


def _status_before(h: History, incident_id: int, at: object) -> str | None:
    """The status after the last change that lies before this instant."""
    changes = [row for row in h["timeline"] if row.incident_id == incident_id and row.after]
    return next((row.after for row in reversed(changes) if row.at < at), None)


def bounded_duplicates(h: History) -> Broken:
    """I6: sent again only after a crash, a lost lease or an ambiguous timeout; rows and metrics count it."""
    counts = Counter(one.message.delivery for one in h.ledger)
    for row in h["deliveries"]:
        attempts = h.attempts_of(row.id)
        unknown = sum(attempt.outcome == "unknown" for attempt in attempts)
        ambiguous = sum(AMBIGUOUS in attempt.reason for attempt in attempts)
        sent = counts.pop(row.id, 0)
        if row.status == "sent" and not sent:
            yield f"delivery {row.id} is called sent, and no provider has it"
        if sent > 1 + min(unknown + ambiguous, h.outside.excused[row.id]):
            yield (
                f"delivery {row.id} was sent {sent} times: {unknown} unknown, {ambiguous} ambiguous, "
                f"{h.outside.excused[row.id]} excused"
            )
    yield from (f"delivery {one} was sent and has no row" for one in counts)
    keys = Counter(row.idem_key for row in h["deliveries"])
    yield from (f"{count} deliveries have the key {key}" for key, count in keys.items() if count > 1)
    yield from _metrics_agree(h)


def _metrics_agree(h: History) -> Broken:
    if h.outside.counted is None:
        return
    unknown = sum(row.outcome == "unknown" for row in h["attempts"])
    counted = h.outside.counted["attempts_unknown"]
    # Why one less: the fault may lie between the commit and the counting.
    if not unknown - (h.outside.fault.nth > 0) <= counted <= unknown:
        yield f"{unknown} attempts are unknown, and the metric counts {counted}"
    late = sum(_status_before(h, page.incident_id, page.sent_at) in QUIET for page in _sent(h))
    if not late - (h.outside.fault.nth > 0) <= h.outside.counted["sent_after_ack"] <= late + 1:
        yield f"{late} pages were recorded after the ack, and the metric counts otherwise"


def _sent(h: History) -> list[Row]:
    return [page for page in h.pages.values() if page.sent_at is not None]


def epoch_rules(h: History) -> Broken:
    """I7: an epoch never goes back, and what a timer did, it did in the epoch that it was armed in."""
    for incident in h["incidents"]:
        epochs = [one.epoch for one in h.of("fate") if one.subject == incident.id]
        if any(later < earlier for earlier, later in pairwise(epochs)):
            yield f"the epochs of {incident.id} go back: {epochs}"
        changes = [row for row in h["timeline"] if row.incident_id == incident.id and row.after]
        for before, row in pairwise(changes):
            if row.via == Via.TIMER and row.kind in BY_TIMER and not _armed(h, row, before.epoch):
                yield f"{row.kind} at {row.at} by a timer that was not armed for epoch {before.epoch}"


def _armed(h: History, row: Row, epoch: int) -> bool:
    at = (row.at - EPOCH) // MICROSECOND
    return any(
        one.subject == row.incident_id and one.name == BY_TIMER[row.kind] and one.epoch == epoch
        for one in h.of("armed")
        if one.due_at is not None and one.due_at <= at
    )


def fenced(h: History) -> Broken:
    """I8: an attempt ends once, and what has come to its end is not moved by a late result."""
    ends = Counter((one.subject, one.name) for one in h.of("attempt"))
    yield from (f"attempt {key} ended {count} times" for key, count in ends.items() if count > 1)
    for row in h["attempts"]:
        if row.outcome == "unknown" and row.ended_at < row.started_at + LEASE:
            yield f"attempt {row.delivery_id}/{row.number} was taken over at {row.ended_at}, under its lease"
    for one in h.of("delivery"):
        if one.after not in GOES_ON.get(one.before or "", ()):
            yield f"delivery {one.subject} went from {one.before} to {one.after}"


def covered(h: History) -> Broken:
    """I9: shifts lie end to end over the night, and give the same answer as asking for an instant."""
    start, end = h.outside.started_at - timedelta(days=8), h.outside.started_at + timedelta(days=8)
    for schedule in h.schedules:
        found = shifts(schedule, start, end)
        if (found[0].start, found[-1].end) != (start, end):
            yield "the shifts do not cover the window"
        if any(one.end != two.start for one, two in pairwise(found)):
            yield "two shifts overlap, or leave a gap"
        for shift in found:
            for instant in (shift.start, shift.end - MICROSECOND):
                if people_at(schedule, instant) != shift.people:
                    yield f"at {instant} the schedule gives another answer than its shift"


def dead_is_loud(h: History) -> Broken:
    """I10: each dead message has one alarm and is counted, and the ladder goes on past it."""
    dead = [row for row in h["deliveries"] if row.status == "dead" and row.kind != "ops"]
    alarms = [row for row in h["deliveries"] if row.kind == "ops"]
    for row in dead:
        if not any("could not be delivered" in alarm.body["text"] for alarm in alarms):
            yield f"delivery {row.id} is dead, and nobody was told"
    yield from _goes_on(h)
    if h.outside.counted is not None:
        every = sum(row.status == "dead" for row in h["deliveries"])
        if not every - (h.outside.fault.nth > 0) <= h.outside.dead_counted <= every + h.outside.kills + 1:
            yield f"{every} are dead, and the metric counts {h.outside.dead_counted}"


def _goes_on(h: History) -> Broken:
    """When every page of a level is dead, its time is over at once: the next is paged, or the pass ends.
    The fallback has its own interval, once there is no further link."""
    levels: dict[tuple[int, ...], list[Row]] = defaultdict(list)
    for page in h.pages.values():
        levels[page.incident_id, page.round, page._mapping["pass"], page.level].append(page)
    for level, pages in levels.items():
        if all(page.status == "dead" for page in pages):
            over = max(page.ended_at for page in pages)
            last = UNANSWERED_EVERY if level[3] == FALLBACK else timedelta()
            until = over + EPSILON + h.outside.fault.costs + last
            began = max(page.created_at for page in pages)
            changes = [row for row in h["timeline"] if row.incident_id == level[0] and row.after]
            if not any(
                over <= row.at <= until and (row.detail.get("level", level[3]) != level[3] or row.at > began)
                for row in changes
            ):
                yield f"every page of level {level} was dead at {over}, and nothing came of it"


def terminal_order(h: History) -> Broken:
    """I11: nothing makes a resolved incident acknowledged or triggered again, unless its source, which had
    said that it was over, says otherwise within the flap window."""
    flapped = {
        (row.incident_id, row.after)
        for row in h["timeline"]
        if row.kind == "refired" and row.before == "resolved"
    }
    for one in h.of("fate"):
        back = one.before == "resolved" and one.after != "resolved"
        if back and (one.subject, one.after) not in flapped:
            yield f"incident {one.subject} went from resolved to {one.after}"


def audited(h: History) -> Broken:
    """I12: each change of a fate has one row of the timeline, committed with it. An alert that joined
    quietly has its row too, and changed nothing."""
    lines = [one for one in h.of("told") if one.after]
    told: Counter[tuple[object, ...]] = Counter(
        (one.subject, one.before, one.after, one.epoch) for one in lines
    )
    quiet: Counter[tuple[object, ...]] = Counter(
        (one.subject, one.before, one.after, one.epoch)
        for one in lines
        if one.name == "joined" and one.before == one.after
    )
    fates: Counter[tuple[object, ...]] = Counter(
        (one.subject, one.before, one.after, one.epoch) for one in h.of("fate")
    )
    for change in {*told, *fates}:
        if not fates[change] <= told[change] <= fates[change] + quiet[change]:
            yield f"{change}: {fates[change]} changes, {told[change]} rows of the timeline"
    if any(one.tx is not None for one in h.seen):
        together = {(one.tx, one.subject, one.epoch) for one in h.of("told")}
        for one in h.of("fate"):
            if (one.tx, one.subject, one.epoch) not in together:
                yield f"the change of {one.subject} to {one.after} was told in another transaction"


INVARIANTS: Final[dict[str, Callable[[History], Broken]]] = {
    "I1": accepted_is_kept,
    "I2": one_open,
    "I3": paged_in_time,
    "I4": no_limbo,
    "I5": ack_is_final,
    "I6": bounded_duplicates,
    "I7": epoch_rules,
    "I8": fenced,
    "I9": covered,
    "I10": dead_is_loud,
    "I11": terminal_order,
    "I12": audited,
}


def check(history: History) -> list[str]:
    """Everything that is broken, each with the name of its invariant."""
    return [f"{name}: {words}" for name, rule in INVARIANTS.items() for words in rule(history)]
