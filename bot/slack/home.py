"""The App Home tab: what is open, who is on call, and whether whoever looks can be reached.

Built when somebody opens it and after a click in it, never on a timer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bot.slack import answers, escape, words
from bot.slack.blocks import ACK, BLOCK_PREFIX, RESOLVE, headline
from bot.slack.client import SlackClient
from bot.slack.commands import OPEN, Engine
from bot.slack.contacts import showing
from bot.slack.contacts.overview import Overview, Overviews
from bot.slack.identity import Asker, Identity
from bot.slack.message import Block, Message, actions, button, context, plain_text, section
from engine.errors import Refused
from engine.models import IncidentView
from engine.rota.on_call import OnCallNow

SHOWN: Final = 15


class Home:
    def __init__(self, engine: Engine, identity: Identity, client: SlackClient, overviews: Overviews) -> None:
        self._engine = engine
        self._overviews = overviews
        self._identity = identity
        self._client = client

    async def show(self, asker: Asker) -> Message | None:
        """Show the tab as things are now; to an outsider why it is empty."""
        try:
            tab = await self._built(asker)
        except Refused as refused:
            tab = {"type": "home", "blocks": [section(escape.line(str(refused), 300))]}
        await self._client.call(self._client.web.views_publish(user_id=asker.user_id, view=tab))
        return None

    async def _built(self, asker: Asker) -> dict[str, Any]:
        person = await self._identity.reader(asker)
        seen = None if person is None else await self._overviews.of(person)
        rows = await self._engine.roster.who()
        return view(seen, rows, await self._engine.views.list(OPEN, SHOWN + 1))


def view(
    seen: Overview | None, rows: Sequence[OnCallNow], incidents: Sequence[IncidentView]
) -> dict[str, Any]:
    """The tab of one person; somebody unknown is told how to become one."""
    blocks: list[Block] = []
    if seen is None:
        blocks.append(section("👋 I don't know you yet. `/oncall me` makes you a person who can be paged."))
    elif said := [*showing.signed(seen.warnings, seen.person), *showing.silence_lines(seen)]:
        blocks.append(section(escape.cut("\n".join(said), 2900)))
    blocks.append({"type": "header", "text": plain_text("Open incidents")})
    for incident in incidents[:SHOWN]:
        blocks += _incident(incident)
    if not incidents:
        blocks.append(section("🟢 No incident is open."))
    if len(incidents) > SHOWN:
        blocks.append(context("There are more: `/oncall list`"))
    blocks.append({"type": "header", "text": plain_text("On call")})
    blocks += answers.on_call(rows).blocks
    if seen is not None:
        blocks += _reached(seen)
    return {"type": "home", "blocks": blocks[:100]}


def _reached(seen: Overview) -> list[Block]:
    """By what pages come; addresses are for the form."""
    lines = [showing.rules_line(seen.person, urgency) for urgency in showing.PAGED]
    return [
        {"type": "header", "text": plain_text("How you are reached")},
        section("\n".join(lines)),
        showing.bar(numbers=seen.numbers),
    ]


def _incident(incident: IncidentView) -> list[Block]:
    value = f"{incident.id}.{incident.epoch}"
    buttons = [button(RESOLVE, "Resolve", value, "danger")]
    if words.state_of(incident) in {words.State.FIRING, words.State.UNANSWERED}:
        buttons.insert(0, button(ACK, "Ack", value, "primary"))
    return [section(headline(incident)), actions(f"{BLOCK_PREFIX}{incident.id}", buttons)]
