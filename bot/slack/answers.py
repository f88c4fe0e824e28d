"""What commands answer, as messages: who is on call, what was done, lists, one incident.

Never looks anything up and never sends. Every answer fits Slack's limits however long the list is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from bot.slack import escape, words
from bot.slack.blocks import headline
from bot.slack.message import Block, Message, context, note, section
from engine.directory import Person
from engine.errors import BadCommand, MidwatchError
from engine.models import IncidentView, TimelineEntry
from engine.pager.respond import Answer
from engine.pager.story import Line
from engine.rota.on_call import OnCallNow

SECTION_MAX: Final = 2800
TOTAL_MAX: Final = 8500
TEXT_MAX: Final = 3000
STORY_SHOWN: Final = 60
STORY_MAX: Final = 7500  # with its first lines it fits one answer
TIMELINE_SHOWN: Final = 25
PAGED_SHOWN: Final = 20  # people


def paragraphs(lines: Iterable[str], *, footer: str = "") -> Message:
    """Whole lines in as few sections as hold them; what does not fit is counted."""
    kept, total, left = [], 0, 0
    for line in lines:
        if left or total + len(line) > TOTAL_MAX or len(line) > SECTION_MAX:
            left += 1
            continue
        kept.append(line)
        total += len(line) + 1
    blocks: list[Block] = [section(text) for text in _sections(kept)]
    notes = [text for text in (f"and {left} more" if left else "", footer) if text]
    blocks += [context(text) for text in notes]
    return Message(next(_sections([*kept, *notes], TEXT_MAX), "Nothing to show."), tuple(blocks))


def _sections(lines: Sequence[str], limit: int = SECTION_MAX) -> Iterator[str]:
    text = ""
    for line in lines:
        if text and len(text) + 1 + len(line) > limit:
            yield text
            text = ""
        text = f"{text}\n{line}" if text else line
    if text:
        yield text


def names(people: Sequence[Person]) -> str:
    return " and ".join(f"*{escape.line(person.name, 60)}*" for person in people) or "*nobody*"


def on_call(rows: Sequence[OnCallNow], at: datetime | None = None) -> Message:
    """Who is on call now, or at the moment that was asked for, which is said as it was understood."""
    if not rows:
        return note(
            "No schedule is configured yet. `/oncall me` makes you a person who can be on one, and "
            "`/oncall schedule new` makes one; or write it into `midwatch.yaml` and run `midwatch apply`."
        )
    lines = [*_moment(at), *(_row(row) for row in rows)]
    if len(rows) == 1:
        lines.append(f"Why: {escape.line(rows[0].reason, 300)}")
    return paragraphs(lines, footer="`/override @user 2h` puts somebody else on call")


def _row(row: OnCallNow) -> str:
    sign, gap = ("📟", "") if row.people else ("⚠️", " (a gap)")
    parts = [f"{sign} *{escape.line(row.schedule, 80)}*: {names(row.people)}{gap}"]
    parts.append(f"since {escape.day(row.since)}" if row.since else "for more than a year")
    if row.until:
        parts.append(f"until {escape.day(row.until)}")
        following = names(row.next_people) if row.next_people else "nobody"
        parts.append(f"next: {following}")
    return " · ".join(parts)


def on_call_of(person: Person, rows: Sequence[OnCallNow], at: datetime | None = None) -> Message:
    """The schedules on which one person is on call now or next."""
    lines = [_row(row) for row in rows if person in row.people or person in row.next_people]
    if lines:
        return paragraphs([*_moment(at), *lines])
    when = "now" if at is None else "then"
    said = f"*{escape.line(person.name, 60)}* is neither on call {when} nor next on any schedule."
    return note(" ".join([*_moment(at), said]))


def _moment(at: datetime | None) -> list[str]:
    return [] if at is None else [f"At {escape.day(at)}:"]


def done(results: Sequence[Answer | str]) -> Message:
    """One line for each incident that was named."""
    return paragraphs(result if isinstance(result, str) else _done(result) for result in results)


def _done(answer: Answer) -> str:
    sign = words.EMOJI[words.state_of(answer.incident)] if answer.changed else "ℹ️"
    title = escape.line(answer.incident.title, 150)
    return f"{sign} *#{answer.incident.number}* {title}: {escape.line(answer.reason, 300)}"


def opened(
    view: IncidentView, *, created: bool, pages: Sequence[Person] = (), held_until: datetime | None = None
) -> Message:
    """`pages`: whoever is paged of it first."""
    lead = "✅ Opened" if created else "ℹ️ Already open, nobody is paged again:"
    said = f"{lead} {headline(view)} on *{escape.line(view.service, 80)}*."
    if held_until is not None:
        said += (
            f" 🔧 Maintenance holds its pages until {escape.date(held_until)}; "
            f"`/oncall escalate {view.number}` pages now."
        )
    elif created and pages:
        said += f" 📟 It pages {names(pages[:PAGED_SHOWN])}."
    return note(said)


def incidents(views: Sequence[IncidentView]) -> Message:
    if not views:
        return note("🟢 No incident is open.")
    lines = (
        f"{headline(view)} · {escape.line(view.service, 80)} · {escape.date(view.opened_at)}"
        + (f" · ×{view.event_count}" if view.event_count > 1 else "")
        for view in views
    )
    return paragraphs(lines, footer="`/oncall show 42` · `/oncall ack 42` · `/oncall resolve 42`")


def timeline(entries: Sequence[TimelineEntry]) -> Message:
    shown = entries[-TIMELINE_SHOWN:]
    lines = [_entry(entry) for entry in shown]
    if len(shown) < len(entries):
        lines.insert(0, f"… {len(entries) - len(shown)} earlier entries")
    return paragraphs(lines)


def _entry(entry: TimelineEntry) -> str:
    who = f" by {escape.line(entry.actor, 60)}" if entry.actor else ""
    text = f": {escape.line(entry.text, 300)}" if entry.text else ""
    return f"{escape.time_of_day(entry.at)} *{escape.line(entry.kind.replace('_', ' '), 40)}*{who}{text}"


def shown(card: Message, entries: Sequence[TimelineEntry]) -> Message:
    """The card, and below it what happened."""
    history = timeline(entries)
    return Message(card.text, (), (*card.attachments, {"color": "#d0d5dd", "blocks": list(history.blocks)}))


def story(view: IncidentView, lines: Sequence[Line]) -> Message:
    """Each step to the second; of a long story the newest, since who asks is awake now."""
    told = [
        f"{'⏭ ' if one.ahead else ''}{escape.time_of_day(one.at)} {escape.line(one.text, 300)}"
        for one in lines
    ]
    shown = _last(told)
    said = [f"{headline(view)} on *{escape.line(view.service, 80)}*"]
    if len(shown) < len(lines):
        said.append(f"… {len(lines) - len(shown)} earlier lines: `midwatch why {view.number}`")
    return paragraphs([*said, *shown])


def _last(lines: Sequence[str]) -> Sequence[str]:
    """As many as fit."""
    total, first = 0, len(lines)
    while first > 0 and len(lines) - first < STORY_SHOWN:
        total += len(lines[first - 1]) + 1
        if total > STORY_MAX:
            break
        first -= 1
    return lines[first:]


def refusal(error: MidwatchError) -> Message:
    """A sentence for people. The grammar writes markup and escapes what it quotes, the engine neither."""
    said = str(error)
    return note(f"⚠️ {escape.cut(said, 2500) if isinstance(error, BadCommand) else escape.text(said, 2500)}")


def not_applied(ref: str) -> Message:
    return note(
        f"❌ Your action was NOT applied. Ref {ref}. Try again; if it happens again, tell an admin the ref."
    )


def working() -> Message:
    return note("⏳ Working… the result follows here.")
