"""What a reply by SMS does, and what it is answered, however it reached us.

Never says anything to a number that nobody here has, and never sends: the answer is returned. A caller
id can be forged, so nothing is possible here but to respond to what was texted to that number.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from bot import condition_words, sms_words
from bot.web.replies import Reply, Verb, parse_reply
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Person
from engine.errors import MidwatchError, Unavailable
from engine.models import ORG, Actor, Delivery, DeliveryStatus, IncidentStatus, IncidentView, Method, Via
from engine.notify.plain import one_line
from engine.pager.condition import condition
from engine.pager.consent import Consent
from engine.pager.respond import Answer, Responder
from engine.pager.views import Views
from engine.rota.meant import meant
from engine.rota.roster import Roster
from engine.store import directory
from engine.store.journal import first_time
from engine.vault import Vault

log = structlog.get_logger(__name__)
Respond = Callable[[int, Actor], Awaitable[Answer]]

# Why so few: two machines that answer each other would never end. Twilio warns of it, too.
HELPED: Final = 5  # times within HELPED_IN, then a number that we do not understand hears nothing
HELPED_IN: Final = timedelta(hours=1)
HELPING: Final = frozenset({sms_words.HELP, sms_words.NO_SUCH_SCHEDULE})
DONE: Final = {Verb.ACKNOWLEDGE: "Acknowledged", Verb.RESOLVE: "Resolved", Verb.ESCALATE: "Escalated"}
WORDS: Final = {Verb.ACKNOWLEDGE: "ack", Verb.RESOLVE: "resolve", Verb.ESCALATE: "escalate"}


class Inbox:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        vault: Vault,
        roster: Roster,
        responder: Responder,
        views: Views,
    ) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault
        self._roster = roster
        self._responder = responder
        self._views = views
        self._consent = Consent(database, clock, vault)

    async def answer(self, from_number: str, text: str) -> str | None:
        """Do what the text asks for; None when there is nothing to say to that number."""
        reply = parse_reply(text)
        address_hash = self._vault.fingerprint(from_number)
        if reply.verb in {Verb.STOP, Verb.START}:
            return await self._turn(reply.verb, address_hash)
        people = await self._people(address_hash)
        if not people:
            log.info("sms.from_nobody")
            return None
        said = await _in_words(self._answered(reply, address_hash, people))
        if said in HELPING and not await self._may_help(address_hash):
            log.info("sms.helped_enough")
            return None
        return "\n".join(one_line(line) for line in said.splitlines())

    async def act(self, verb: Verb, views: Sequence[IncidentView], person: Person, via: Via) -> str:
        """Acknowledge, resolve or escalate for somebody; what became of it, in words."""
        if len(views) == 1:
            return await _in_words(self._acted(verb, views[0], person, via))
        return await self._acted_on_all(verb, [(view, person) for view in views], via)

    async def _acted_on_all(self, verb: Verb, each: Sequence[tuple[IncidentView, Person]], via: Via) -> str:
        """One that fails keeps no other from it."""
        done, failed = [], []
        for view, person in each:
            try:
                await self._acted(verb, view, person, via)
                done.append(f"#{view.number}")
            except Unavailable:
                failed.append(f"#{view.number}")
        return sms_words.all_done(DONE[verb], done, failed)

    async def _acted(self, verb: Verb, view: IncidentView, person: Person, via: Via) -> str:
        respond: dict[Verb, Respond] = {
            Verb.ACKNOWLEDGE: self._responder.acknowledge,
            Verb.RESOLVE: self._responder.resolve,
            Verb.ESCALATE: self._responder.escalate,
        }
        answer = await respond[verb](view.id, Actor(person.name, via, person.id, person.slack_user_id))
        title = sms_words.short(answer.incident.title)
        return f"#{answer.incident.number} {answer.reason.rstrip('.')}: {title}"

    async def _turn(self, verb: Verb, address_hash: str) -> str | None:
        """The carrier answers these words itself; ours says only that it was in vain."""
        try:
            await (self._consent.stop if verb is Verb.STOP else self._consent.start)(address_hash)
        except Unavailable:
            log.warning("sms.consent_not_stored")
            # Of a STOP we learn when the provider refuses the next text; of a START by nobody else.
            return sms_words.NOT_APPLIED if verb is Verb.START else None
        return None

    async def _may_help(self, address_hash: str) -> bool:
        """In the database, so that it holds over all processes."""
        now = self._clock.now()

        async def unit(tx: Tx) -> bool:
            for place in range(HELPED):
                if await first_time(tx, ORG, "sms_help", f"{address_hash}:{_hour(now)}:{place}", now):
                    return True
            return False

        try:
            return await self._database.write(unit, rank=Writer.RESPOND)
        except Unavailable:
            return False

    async def _people(self, address_hash: str) -> list[Person]:
        async with self._database.look() as tx:
            ids = await directory.persons_by_address(tx, ORG, address_hash)
        known = (await self._roster.directory()).people if ids else {}
        return [known[person_id] for person_id in ids if person_id in known]

    async def _answered(self, reply: Reply, address_hash: str, people: list[Person]) -> str:
        match reply.verb:
            case Verb.ACKNOWLEDGE | Verb.RESOLVE | Verb.ESCALATE:
                return await self._applied(reply, address_hash, people)
            case Verb.ACKNOWLEDGE_ALL:
                return await self._acknowledge_all(address_hash, people)
            case Verb.WHO:
                return await self._who(reply.name, people[0])
            case Verb.STATUS:
                return condition_words.by_sms(await condition(self._database, self._clock.now()))
            case Verb.LIST:
                return sms_words.listed(await self._views.open_texted_to(address_hash), "")
            case _:
                return sms_words.HELP

    async def _applied(self, reply: Reply, address_hash: str, people: list[Person]) -> str:
        if reply.number is None:
            texted = await self._views.open_texted_to(address_hash)
            if len(texted) != 1:
                return sms_words.listed(texted, sms_words.which(WORDS[reply.verb], texted))
            view: IncidentView | None = texted[0]
        else:
            view = await self._views.by_number(reply.number)
        person = None if view is None else await self._texted(view, people)
        if view is None or person is None:
            number = reply.number if view is None else view.number
            return f"#{number} was not texted to this number. Send LIST to see what was."
        return await self._acted(reply.verb, view, person, Via.SMS)

    async def _acknowledge_all(self, address_hash: str, people: list[Person]) -> str:
        """All that still page; one that fails keeps no other from being acknowledged."""
        texted = await self._views.open_texted_to(address_hash)
        waiting = [view for view in texted if view.status is not IncidentStatus.ACKNOWLEDGED]
        if not waiting:
            return sms_words.listed(texted, "")
        whose = [(view, await self._texted(view, people)) for view in waiting]
        theirs = [(view, person) for view, person in whose if person is not None]
        return await self._acted_on_all(Verb.ACKNOWLEDGE, theirs, Via.SMS)

    async def _who(self, name: str | None, person: Person) -> str:
        rows = await self._roster.who()
        if name is not None:
            known = await self._roster.directory()
            ids = {one.id for one in meant(name, known)}
            rows = [row for row in rows if row.schedule_id in ids]
            if not rows:
                return sms_words.NO_SUCH_SCHEDULE
        return sms_words.on_call(rows, person.timezone)

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
        return sms_words.NOT_APPLIED
    except MidwatchError as error:
        return str(error)


def _left(delivery: Delivery) -> bool:
    """Has it been sent, as far as we know? The answer may come before the record of the sending."""
    return delivery.sent_at is not None or delivery.status is DeliveryStatus.SENDING


def _hour(now: datetime) -> int:
    return int(now.timestamp() // HELPED_IN.total_seconds())
