"""The card of an incident: a pure function of what it is.

Never sends, never reads the clock: times are shown as instants, so no card grows stale.
Everything of an alert goes through `escape`; buttons carry the incident's id and epoch and
nothing else, since whoever sees a card could forge a click.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Final

from bot.slack import escape, words
from bot.slack.message import Block, Message, actions, button, context, option, overflow, section
from bot.slack.words import State
from engine.models import Alert, Attempt, DeliveryStatus, IncidentStatus, IncidentView, Method, Via

TITLE_MAX: Final = 250
SECTION_MAX: Final = 2000  # the whole card stays near 8,000 characters
PLAIN_MAX: Final = 3000
LABELS_SHOWN: Final = 30
LINKS_SHOWN: Final = 8
PEOPLE_SHOWN: Final = 8
METHODS_SHOWN: Final = 6

ACK: Final = "incident_ack"
RESOLVE: Final = "incident_resolve"
UNACK: Final = "incident_unack"
REOPEN: Final = "incident_reopen"
UNMERGE: Final = "incident_unmerge"
MORE: Final = "incident_more"
BLOCK_PREFIX: Final = "incident:"

# Of a status that the card shows; a call has words of its own.
_SAID: Final = {
    DeliveryStatus.QUEUED: "queued for",
    DeliveryStatus.SENDING: "sending",
    DeliveryStatus.SENT: "sent",
    DeliveryStatus.DELIVERED: "delivered",
    DeliveryStatus.UNCONFIRMED: "unconfirmed",
    DeliveryStatus.DEAD: "dead",
}
_SAID_OF_CALLS: Final = {DeliveryStatus.SENT: "ringing since", DeliveryStatus.DELIVERED: "answered"}
# Slack says nothing of a message after it took it.
_SAID_OF_SLACK: Final = {DeliveryStatus.SENT: "✓", DeliveryStatus.DELIVERED: "✓"}
HUNG_UP: Final = "hung up"  # as the status of a call says it: it was sent, and somebody's answer ended it


def card(view: IncidentView, *, mention: str = "") -> Message:
    """The state and the title as text, all the rest behind a bar in the colour of the state.

    The text stays above the bar because colour exists on attachments only, and so that no
    notification and no screen reader needs the colour.
    """
    text = headline(view)
    if mention:
        text = f"{text} {mention}"
    bar = {"color": words.state_of(view).value, "fallback": text, "blocks": list(_body(view))}
    return Message(text, (), (bar,))


def headline(view: IncidentView) -> str:
    return f"{words.state_words(view)} · *#{view.number} {escape.line(view.title, TITLE_MAX) or 'untitled'}*"


def plain(view: IncidentView) -> Message:
    """What is sent when Slack refuses the card: a few lines, and the two buttons that matter."""
    lines = [headline(view), _facts(view), _counts(view), *_paging(view), footer(view)]
    text = escape.cut("\n".join(line for line in lines if line), PLAIN_MAX - 200)
    return Message(text, (section(text), _buttons(view, plainly=True)))


def _body(view: IncidentView) -> Iterator[Block]:
    yield section(_facts(view))
    alert = newest(view)
    if alert is not None:
        yield from _alert(alert, view)
    counts = _counts(view)
    if counts:
        yield context(counts)
    paging = list(_paging(view))
    if paging:
        yield context(escape.cut("\n".join(paging), 1000))
    receipts = list(_receipts(view))
    if receipts:
        yield context(_joined(receipts, "\n"))
    yield context(footer(view))
    yield _buttons(view)


def newest(view: IncidentView) -> Alert | None:
    return max(view.alerts, key=lambda alert: (alert.last_seen_at, alert.id), default=None)


def _facts(view: IncidentView) -> str:
    parts = [f"*{escape.line(view.service, 100)}*", words.severity(view), f"{view.urgency.value} urgency"]
    if view.policy:
        parts.append(f"policy {escape.line(view.policy, 100)}")
    return " · ".join(parts)


def _alert(alert: Alert, view: IncidentView) -> Iterator[Block]:
    summary = escape.line(alert.summary, TITLE_MAX)
    if summary and summary != escape.line(view.title, TITLE_MAX):
        yield section(summary)
    labels = _labels(alert)
    if labels:
        yield section(labels)
    links = [escape.link(link.url, link.text or link.url) for link in alert.links if escape.is_web(link.url)]
    if links:
        yield section(_joined(links[:LINKS_SHOWN], " · "))


def _labels(alert: Alert) -> str:
    spans = [escape.code(f"{name}={value}") for name, value in alert.labels.items()]
    shown = _joined(spans[:LABELS_SHOWN], " ")
    return f"{shown} and {len(spans) - LABELS_SHOWN} more labels" if len(spans) > LABELS_SHOWN else shown


def _joined(parts: list[str], separator: str) -> str:
    """As many whole parts as fit: a link or a code span is never cut in two."""
    text = ""
    for part in parts:
        longer = f"{text}{separator}{part}" if text else part
        if len(longer) > SECTION_MAX:
            return f"{text} … trimmed".lstrip()
        text = longer
    return text


def _counts(view: IncidentView) -> str:
    parts = []
    if view.event_count > 1:
        parts.append(f"×{view.event_count}")
    if view.alert_count > 1:
        parts.append(f"{view.firing_count} of {view.alert_count} alerts firing")
        parts.append(f"showing the last alert of {view.alert_count}")
    if view.truncated:
        parts.append(f"{view.truncated} more not shown by Alertmanager")
    return " · ".join(parts)


def _paging(view: IncidentView) -> Iterator[str]:
    """Who is being paged, and when the next step is."""
    if view.status not in {IncidentStatus.TRIGGERED, IncidentStatus.UNANSWERED}:
        return
    if view.status is IncidentStatus.UNANSWERED:
        yield f"📟 Nobody answered: {_tried(view)}"
    people = sorted({receipt.person for receipt in view.receipts if _is_paging(receipt, view)})
    rung = words.level(view.level)
    if people:
        yield f"📟 Paging {', '.join(escape.line(name, 60) for name in people[:PEOPLE_SHOWN])} ({rung})"
    elif view.status is IncidentStatus.UNANSWERED:
        yield "📟 Trying the fallback chain"
    if view.next_step_at and not view.held_until:
        yield f"Next: {_next_level(view)} at {escape.time_of_day(view.next_step_at)}"


def _tried(view: IncidentView) -> str:
    """ "tried 7 times, 3 people": since paging began or was begun anew."""
    begun = [one for one in view.receipts if one.tries]
    times, people = sum(one.tries for one in begun), len({one.person for one in begun})
    if not times:
        return "nobody could be tried"
    return f"tried {times} time{'' if times == 1 else 's'}, {people} {'person' if people == 1 else 'people'}"


def _is_paging(receipt: Attempt, view: IncidentView) -> bool:
    over = {DeliveryStatus.CANCELLED, DeliveryStatus.DEAD}
    return receipt.level == view.level and receipt.status not in over


def _next_level(view: IncidentView) -> str:
    """The rung that comes next, as far as the view can tell: the ladder may start over after it."""
    if view.status is IncidentStatus.UNANSWERED:
        return "fallback chain again"
    paged = any(receipt.level == view.level for receipt in view.receipts)
    return words.level(view.level + 1 if paged and view.level >= 0 else max(view.level, 0))


def _receipts(view: IncidentView) -> Iterator[str]:
    """ "ana: DM ✓ 02:14:03 · SMS delivered 02:15:04 · call ringing": each person on one line."""
    told = [receipt for receipt in view.receipts if receipt.status in _SAID or _hung_up(receipt)]
    told.sort(key=lambda receipt: (receipt.level, receipt.person, receipt.at))
    people = [list(group) for _, group in groupby(told, key=lambda receipt: (receipt.level, receipt.person))]
    for attempts in people[-PEOPLE_SHOWN:]:
        shown = [_receipt(attempt) for attempt in attempts[-METHODS_SHOWN:]]
        shown += [f"+{len(attempts) - METHODS_SHOWN}"] if len(attempts) > METHODS_SHOWN else []
        shown += [_skipped(*one) for one in dict.fromkeys(one for each in attempts for one in each.skipped)]
        yield f"{escape.line(attempts[0].person, 60)}: {' · '.join(shown)}"
    if len(people) > PEOPLE_SHOWN:
        yield f"+{len(people) - PEOPLE_SHOWN}: `/oncall why {view.number}`"


def _hung_up(attempt: Attempt) -> bool:
    return attempt.status is DeliveryStatus.CANCELLED and attempt.reason.startswith(HUNG_UP)


def _skipped(method: Method, why: str) -> str:
    return f"{words.METHOD[method]} skipped: {escape.line(why, 60)}"


def _receipt(attempt: Attempt) -> str:
    name, at = words.METHOD[attempt.method], escape.time_of_day(attempt.at)
    why = f" ({escape.line(attempt.reason, 80)})" if attempt.reason else ""
    if _hung_up(attempt):
        return f"{name} {HUNG_UP} {at}"
    match attempt.status:
        case DeliveryStatus.QUEUED if attempt.tries or attempt.reason:  # when again is its timer's to say
            return f"{name} queued again{why}"
        case DeliveryStatus.SENDING:
            return f"{name} sending"
        case DeliveryStatus.DEAD:
            tries = f" after {attempt.tries} tries" if attempt.tries > 1 else ""
            return f"{name} dead {at}{tries}{why}"
        case DeliveryStatus.UNCONFIRMED:
            return f"{name} unconfirmed {at}{why}"
    return f"{name} {_word(attempt)} {at}"


def _word(attempt: Attempt) -> str:
    own = {Method.VOICE: _SAID_OF_CALLS, Method.SLACK: _SAID_OF_SLACK, Method.CHANNEL: _SAID_OF_SLACK}
    return own.get(attempt.method, {}).get(attempt.status) or _SAID[attempt.status]


def footer(view: IncidentView) -> str:
    """Who, how and when: the firing values stay above, the end is said here."""
    parts = [f"Opened {escape.date(view.opened_at)}"]
    if view.acknowledged_at and view.acknowledged_by:
        parts.append(_deed("Acked", view.acknowledged_by, view.acknowledged_via, view.acknowledged_at))
    if view.snoozed_until and view.status is not IncidentStatus.RESOLVED:
        parts.append(f"Snoozed until {escape.date(view.snoozed_until)}")
    if view.held_until and view.status is not IncidentStatus.RESOLVED:
        parts.append(f"🔧 Held by maintenance until {escape.date(view.held_until)}")
    if view.resolved_at:
        verb = "Resolved" if view.merged_into is None else f"Merged into #{view.merged_into}"
        parts.append(_deed(verb, view.resolved_by or "", view.resolved_via, view.resolved_at))
    return "\n".join(parts)


def _deed(verb: str, name: str, via: Via | None, at: datetime) -> str:
    by = f" by {words.who(name, via)}" if name and via is not Via.SOURCE else ""
    return f"{verb}{by} {words.how(via)} · {escape.date(at)}".replace("  ", " ")


def _buttons(view: IncidentView, *, plainly: bool = False) -> Block:
    value = f"{view.id}.{view.epoch}"
    elements: list[Block]
    match words.state_of(view):
        case State.RESOLVED:
            merged = view.merged_into is not None
            elements = [button(UNMERGE, "Unmerge", value) if merged else button(REOPEN, "Reopen", value)]
        case State.ACKED | State.SNOOZED:
            elements = [button(UNACK, "Unack", value), button(RESOLVE, "Resolve", value, "danger")]
        case _:
            elements = [button(ACK, "Ack", value, "primary"), button(RESOLVE, "Resolve", value, "danger")]
    if not plainly and view.status is not IncidentStatus.RESOLVED:
        elements.append(overflow(MORE, _more(value)))
    return actions(f"{BLOCK_PREFIX}{view.id}", elements)


def _more(value: str) -> list[Block]:
    return [
        option("Escalate now", f"escalate:{value}"),
        option("Snooze 30 min", f"snooze30:{value}"),
        option("Snooze 1 h", f"snooze60:{value}"),
        option("Snooze 4 h", f"snooze240:{value}"),
    ]
