"""What a reply by SMS does, and what it is answered, however it reached us.

Never says anything to a number that nobody here has, and never sends: the answer is returned.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from bot.web.replies import Reply, Verb, parse_reply
from engine.db import Database
from engine.directory import Person
from engine.errors import MidwatchError, Unavailable
from engine.models import ORG, Actor, Delivery, DeliveryStatus, IncidentView, Method, Via
from engine.notify.plain import defang, one_line, shorten
from engine.pager.respond import Answer, Responder
from engine.pager.views import Views
from engine.rota.roster import Roster
from engine.store import directory
from engine.vault import Vault

log = structlog.get_logger(__name__)
Respond = Callable[[int, Actor], Awaitable[Answer]]

LISTED: Final = 5
LONGEST_TITLE: Final = 70
HELP: Final = (
    "Midwatch: reply 4 or ACK 42 to acknowledge, 6 or RESOLVE 42 to resolve, LIST to see what is open."
)
NOT_APPLIED: Final = "NOT applied: Midwatch cannot store this right now. Try again in a minute."
NONE_OPEN: Final = "No open incident was texted to this number."


class Inbox:
    def __init__(
        self, database: Database, vault: Vault, roster: Roster, responder: Responder, views: Views
    ) -> None:
        self._database = database
        self._vault = vault
        self._roster = roster
        self._responder = responder
        self._views = views

    async def answer(self, from_number: str, text: str) -> str | None:
        """Do what the text asks for; None when there is nothing to say to that number."""
        reply = parse_reply(text)
        if reply.verb is Verb.CARRIER:
            return None
        address_hash = self._vault.fingerprint(from_number)
        people = await self._people(address_hash)
        if not people:
            log.info("sms.from_nobody")
            return None
        said = await _in_words(self._answered(reply, address_hash, people))
        return "\n".join(one_line(line) for line in said.splitlines())

    async def act(self, verb: Verb, view: IncidentView, person: Person, via: Via) -> str:
        """Acknowledge or resolve for somebody; what became of it, in words."""
        return await _in_words(self._acted(verb, view, person, via))

    async def _acted(self, verb: Verb, view: IncidentView, person: Person, via: Via) -> str:
        respond: Respond = (
            self._responder.acknowledge if verb is Verb.ACKNOWLEDGE else self._responder.resolve
        )
        answer = await respond(view.id, Actor(person.name, via, person.id, person.slack_user_id))
        return f"#{answer.incident.number} {answer.reason.rstrip('.')}: {_short(answer.incident.title)}"

    async def _people(self, address_hash: str) -> list[Person]:
        async with self._database.look() as tx:
            ids = await directory.persons_by_address(tx, ORG, address_hash)
        known = (await self._roster.directory()).people if ids else {}
        return [known[person_id] for person_id in ids if person_id in known]

    async def _answered(self, reply: Reply, address_hash: str, people: list[Person]) -> str:
        match reply.verb:
            case Verb.ACKNOWLEDGE | Verb.RESOLVE:
                return await self._applied(reply, address_hash, people)
            case Verb.LIST:
                return _listed(await self._views.open_texted_to(address_hash), "")
            case _:
                return HELP

    async def _applied(self, reply: Reply, address_hash: str, people: list[Person]) -> str:
        if reply.number is None:
            texted = await self._views.open_texted_to(address_hash)
            if len(texted) != 1:
                word = "ack" if reply.verb is Verb.ACKNOWLEDGE else "resolve"
                return _listed(texted, f"\nReply {word} and the number.")
            view: IncidentView | None = texted[0]
        else:
            view = await self._views.by_number(reply.number)
        person = None if view is None else await self._texted(view, people)
        if view is None or person is None:
            return f"#{reply.number} was not texted to this number. Send LIST to see what was."
        return await self._acted(reply.verb, view, person, Via.SMS)

    async def _texted(self, view: IncidentView, people: list[Person]) -> Person | None:
        """Who of those who share the phone was sent this incident by SMS."""
        sent = await self._views.deliveries(view.id)
        texted = {each.person_id for each in sent if each.method is Method.SMS and _left(each)}
        return next((person for person in people if person.id in texted), None)


async def _in_words(doing: Awaitable[str]) -> str:
    """A refusal is an answer, too: on a phone nobody would see a 503."""
    try:
        return await doing
    except Unavailable:
        return NOT_APPLIED
    except MidwatchError as error:
        return str(error)


def _left(delivery: Delivery) -> bool:
    """Has it been sent, as far as we know? The answer may come before the record of the sending."""
    return delivery.sent_at is not None or delivery.status is DeliveryStatus.SENDING


def _listed(views: Sequence[IncidentView], hint: str) -> str:
    if not views:
        return NONE_OPEN
    lines = [f"#{view.number} {view.status}: {_short(view.title)}" for view in views[:LISTED]]
    if len(views) > LISTED:
        lines.append(f"and {len(views) - LISTED} more")
    return "\n".join(lines) + hint


def _short(title: str) -> str:
    return shorten(defang(one_line(title)), LONGEST_TITLE)
