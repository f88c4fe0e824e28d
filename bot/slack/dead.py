"""`/oncall dead` and `/oncall retry`: what could not be delivered, and what becomes of it.

Never acks and never sends; the engine decides what is still wanted.
"""

from __future__ import annotations

from typing import Final

from bot.slack import escape, words
from bot.slack.answers import paragraphs
from bot.slack.grammar import dead_text
from bot.slack.grammar.dead_text import ListDead
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message, note
from engine.pager.dead_letters import DeadLetters, Dealt, Overview
from engine.store.dead_letters import Cause

CAUSES_SHOWN: Final = 20


class DeadCommand:
    """Does what was typed behind one of the two verbs."""

    def __init__(self, letters: DeadLetters, identity: Identity, verb: str) -> None:
        self._letters = letters
        self._identity = identity
        self._verb = verb

    async def __call__(self, typed: str, asker: Asker) -> Message:
        command = dead_text.parse(self._verb, typed)
        if isinstance(command, ListDead):
            return listed(await self._letters.overview(CAUSES_SHOWN))
        actor = actor_of(await self._identity.person(asker), asker)
        deed = self._letters.retry if command.retry else self._letters.put_aside
        return dealt(await deed(actor, command.number, alike=command.alike), retry=command.retry)


def listed(seen: Overview) -> Message:
    if not seen.count:
        return note("✅ No dead letters: nothing was given up that nobody has dealt with.")
    lines = [f"🪦 *{seen.count}* could not be delivered; newest first, by cause:"]
    lines += [_cause(one) for one in seen.causes]
    if len(seen.causes) == CAUSES_SHOWN:
        lines.append("There may be more causes: `midwatch dead list`")
    return paragraphs(
        lines,
        footer="Admins: `/oncall retry 17` sends one again, `retry like 17` all of its cause, `retry all` · "
        "`/oncall dead clear 17` puts it aside",
    )


def _cause(one: Cause) -> str:
    letter = one.newest
    about = f" for #{letter.incident}" if letter.incident else ""
    died_at = letter.delivery.ended_at or letter.delivery.due_at
    return (
        f"`{letter.delivery.id}` {words.METHOD[one.method]} to *{escape.line(letter.whom, 80)}*{about}, "
        f"{escape.date(died_at)}: {escape.line(one.reason or 'no reason is known', 200)}"
        + (f" · {one.count} of this cause" if one.count > 1 else "")
    )


def dealt(what: Dealt, *, retry: bool) -> Message:
    done = "queued again" if retry else "put aside"
    lines = [f"{'🔁' if retry else '🗑️'} {what.done} {done}."]
    lines += [f"ℹ️ {count} not: {escape.line(why, 200)}." for why, count in what.left.items()]
    if retry and what.left:
        lines.append("`/oncall dead clear 17` puts aside what nobody needs any more.")
    return paragraphs(lines)
