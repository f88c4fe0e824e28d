"""Cover as messages: who is asked, what was said, which requests are open.

Never looks anything up and never sends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.slack import escape, words
from bot.slack.answers import paragraphs
from bot.slack.grammar.cover_text import FORM
from bot.slack.message import Message, note
from engine import covering
from engine.rota.cover import Asked, CoverAnswer
from engine.rota.cover_words import Story


def said(answer: CoverAnswer) -> Message:
    return note(escape.text(answer.text if answer.changed else f"ℹ️ {answer.text}"))


def asked(done: Asked, guessed: Sequence[str] = ()) -> Message:
    whole, schedule = done.request.whole, escape.line(done.schedule, 80)
    people = [f"*{escape.line(one.name, 60)}*" for one in done.people]
    in_turn = done.gap and len(people) > 1
    order = ", then ".join(people[:10]) if in_turn else ", ".join(people[:10])
    more = f" and {len(people) - 10} more" if len(people) > 10 else ""
    pause = f", {words.duration(done.gap)} apart, the least loaded first" if in_turn else ""
    lines = [
        f"🙏 Asking for cover on *{schedule}* {escape.date(whole.start)} to {escape.date(whole.end)} "
        f"(number {done.request.id}): {order}{more}{pause}.",
        f"The first who accepts has it. If nobody has by {escape.date(done.until)}, you are told, "
        "and stay on call.",
        *(f"I took it that {escape.line(one, 200)}." for one in guessed),
        f"Take it back with `/oncall cover cancel {done.request.id}`.",
    ]
    return paragraphs(lines)


def listed(found: Sequence[tuple[Story, Mapping[int, str]]]) -> Message:
    if not found:
        return note(f"Nobody seeks cover. Ask for it with {FORM}.")
    first = found[0][0].request.id
    footer = f"`/oncall cover take {first}` · `/oncall cover cancel {first}`"
    return paragraphs((_row(*one) for one in found), footer=footer)


def _row(story: Story, answers: Mapping[int, str]) -> str:
    left = ", ".join(f"{escape.date(one.start)} to {escape.date(one.end)}" for one in story.left)
    waiting = sum(said == covering.ASKED for said in answers.values())
    declined = sum(said == covering.DECLINED for said in answers.values())
    taken = f" · {len(story.taken)} part(s) taken" if story.taken else ""
    return (
        f"`{story.request.id}` *{escape.line(story.asker.name, 60)}* on "
        f"*{escape.line(story.named.name, 80)}*: {left}{taken} · {waiting} asked, {declined} declined"
    )
