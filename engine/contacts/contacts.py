"""A person's contact methods and contact rules, changed: one use case, one transaction.

Never sends a code itself: it is a delivery. Never logs or answers an address in clear.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

import structlog

from engine.clock import Clock
from engine.contacts import codes, issuing
from engine.contacts.address import ADDED_BY_PEOPLE, cleaned
from engine.contacts.codes import TooManyInAll
from engine.contacts.issuing import PHONES
from engine.contacts.masking import masked
from engine.contacts.rules import checked
from engine.contacts.telling import ask, tell
from engine.contacts.warnings import RuleWarning
from engine.contacts.warnings import warnings as warnings_of
from engine.db import Database, Tx, Writer
from engine.directory import (
    BY_CODE,
    BY_CONFIG,
    BY_PERSON,
    STOPPED,
    ContactMethod,
    ContactRule,
    Directory,
    Person,
)
from engine.errors import BadInput, NotFound, Refused, TooMany
from engine.models import ORG, Actor, DeliveryStatus, Method, Urgency, Via
from engine.nudge import Nudge
from engine.pager.alarm import raise_alarm
from engine.store import contacts, people, verifications
from engine.store import directory as store
from engine.vault import Vault

log = structlog.get_logger(__name__)

T = TypeVar("T")

MOST: Final = 20  # contact methods of a person
FLOOD: Final = (
    f"{codes.PER_INSTALL} codes to verify contact methods were asked for within an hour, and more are "
    "refused. Somebody may be making this install call numbers that cost money; the log says who added what."
)


OVERRULED: Final = "midwatch.yaml gives you contact rules: the next `midwatch apply` brings those back."


@dataclass(frozen=True, slots=True)
class Pending:
    """A code that was sent to a contact method and is not used yet; what became of its delivery so far."""

    method_id: int
    sent_at: datetime
    expires_at: datetime
    tries_left: int
    by_call: bool
    status: DeliveryStatus
    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked to verify their contact methods, and who could not be: nothing verified reaches them."""

    people: tuple[Person, ...]
    unreached: tuple[Person, ...]


class Contacts:
    """Everybody changes their own; an admin, the command line and a token of nobody change anybody's, who is
    told of it. A contact method is verified by its code alone, whoever types it.

    Refusals are errors with a sentence for the user: `BadInput` (the address, the code), `TooMany` (a limit),
    `Refused` (who may), `NotFound`. `countries` (MIDWATCH_SMS_COUNTRIES): the calling codes of numbers.
    `ways`: what this install can send by; None: not known here, and warned of nowhere.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        vault: Vault,
        nudge: Nudge,
        *,
        countries: Sequence[str] = (),
        ways: Collection[Method] | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault
        self._nudge = nudge
        self._countries = tuple(countries)
        self._ways = ways

    async def person(self, person_id: int) -> Person:
        """As they are now, with addresses in clear: whoever shows them masks them."""
        async with self._database.snapshot() as tx:
            person = (await self._read(tx, self._clock.now())).people.get(person_id)
        if person is None or not person.active:
            raise NotFound("There is no such person.")
        return person

    # --- contact methods

    async def add(
        self, person_id: int, kind: Method, address: str, actor: Actor, *, by_call: bool = False
    ) -> ContactMethod:
        """Write down an SMS, voice, email or push method and send its code at once; it is not used before it
        is verified. A number that the person has verified for the other of SMS and voice is verified."""
        wanted, now = cleaned(kind, address, self._countries), self._clock.now()

        async def unit(tx: Tx) -> ContactMethod:
            person = await self._person(tx, person_id, actor, now)
            _check_new(person, kind, wanted)
            new = await contacts.add_method(tx, ORG, person_id, kind, wanted, vault=self._vault, now=now)
            method = _there(await self._read(tx, now), new)
            await self._prove(tx, person, method, now, by_call=by_call)
            await tell(tx, person, actor, f"added {_said(method)} to your contact methods", now)
            return await self._written(tx, new, now)

        method = await self._write(unit)
        log.info("contact.added", method=method.id, kind=kind.value, by=actor.name, via=actor.via.value)
        return method

    async def change(self, method_id: int, address: str, actor: Actor) -> ContactMethod:
        """Another address for a contact method: its rules stay, it must be verified again, a code is sent."""
        now = self._clock.now()

        async def unit(tx: Tx) -> ContactMethod:
            person, method = await self._method(tx, method_id, actor, now)
            wanted = cleaned(method.kind, address, self._countries)
            if _alike(wanted, method.address):
                raise BadInput("That is its address already.")
            if (other := _check_new(person, method.kind, wanted)) is not None:
                await self._forget(tx, other, now)
            await issuing.take_back(tx, [method_id], now)
            await contacts.readdress(tx, ORG, method_id, wanted, self._vault)
            changed = _there(await self._read(tx, now), method_id)
            await self._prove(tx, person, changed, now)
            await tell(tx, person, actor, f"changed {_said(method)} to {masked(changed)}", now, but=method_id)
            return await self._written(tx, method_id, now)

        method = await self._write(unit)
        log.info("contact.changed", method=method_id, by=actor.name, via=actor.via.value)
        return method

    async def remove(self, method_id: int, actor: Actor) -> tuple[str, ...]:
        """Forget a contact method, its address and the rules that use it; what is to be said about it."""
        now = self._clock.now()

        async def unit(tx: Tx) -> tuple[str, ...]:
            person, method = await self._method(tx, method_id, actor, now)
            before = {one.text for one in self._warned(person.id, await self._read(tx, now))}
            await self._forget(tx, method, now)
            await tell(tx, person, actor, f"removed {_said(method)} from your contact methods", now)
            await store.bump(tx, ORG)
            after = self._warned(person.id, await self._read(tx, now))
            again = ("midwatch.yaml names it still: the next `midwatch apply` brings it back.",)
            said = tuple(one.text for one in after if one.text not in before)
            return (*said, *(again if method.in_file else ()))

        said = await self._write(unit)
        log.info("contact.removed", method=method_id, by=actor.name, via=actor.via.value)
        return said

    # --- codes

    async def send_code(self, method_id: int, actor: Actor, *, by_call: bool = False) -> Pending:
        """Send a new code; the one before is worth nothing from now on. `by_call`: spoken, for a landline."""
        now = self._clock.now()

        async def unit(tx: Tx) -> Pending:
            person, method = await self._method(tx, method_id, actor, now)
            if method.usable:
                raise BadInput("It is verified already.")
            if method.disabled_reason is not None:
                raise BadInput(f"It is off: {method.disabled_reason}.")
            await issuing.issue(tx, method, self._vault, now, by_call=by_call)
            return (await self._pending(tx, person.id, now))[method_id]

        return await self._write(unit)

    async def pending(self, person_id: int) -> dict[int, Pending]:
        """The codes of this person that may still be used, by contact method."""
        async with self._database.snapshot() as tx:
            return await self._pending(tx, person_id, self._clock.now())

    async def verify(
        self, person_id: int, code: str, actor: Actor, method_id: int | None = None
    ) -> ContactMethod:
        """Use a code; without `method_id` it may be of any of the person's methods. `BadInput` says how many
        tries are left."""
        typed, now = codes.read(code), self._clock.now()

        async def unit(tx: Tx) -> ContactMethod | str:
            # Why a refusal is a value: the try must be counted, and an error takes it back.
            person = await self._person(tx, person_id, actor, now)
            waiting = await verifications.live(tx, ORG, person_id)
            meant = [one for one in waiting if method_id is None or one.method_id == method_id]
            good = [one for one in meant if codes.left(one.tries, one.expires_at, now)]
            if not good:
                return _no_code(meant, now)
            right = next((one for one in good if self._is(one, typed)), None)
            if right is None:
                await verifications.count_try(tx, ORG, [one.id for one in good])
                return _wrong(max(codes.left(one.tries + 1, one.expires_at, now) for one in good))
            proved = _twins(person, _owned(person, right.method_id))
            await issuing.take_back(tx, [one.id for one in proved], now)
            await contacts.mark_verified(tx, ORG, [one.id for one in proved], BY_CODE, now)
            await tell(tx, person, actor, "verified a contact method of yours by its code", now)
            return await self._written(tx, right.method_id, now)

        done = await self._write(unit)
        if isinstance(done, str):
            log.info("contact.code_refused", person=person_id)
            raise BadInput(done)
        log.info("contact.verified", method=done.id, by=actor.name, via=actor.via.value)
        return done

    # --- contact rules

    async def set_rules(
        self, person_id: int, urgency: Urgency, steps: Sequence[tuple[int, timedelta]], actor: Actor
    ) -> tuple[RuleWarning, ...]:
        """Page by these methods after these delays. Empty for `low`: by the first one of `high`."""
        now = self._clock.now()

        async def unit(tx: Tx) -> tuple[RuleWarning, ...]:
            person = await self._person(tx, person_id, actor, now)
            rules = {**person.rules, urgency: checked(person, urgency, steps)}
            return await self._ruled(tx, person, rules, BY_PERSON, actor, now)

        return await self._write(unit)

    async def reset_rules(self, person_id: int, actor: Actor) -> tuple[RuleWarning, ...]:
        """Back to the usual order, which follows the methods that are verified."""
        now = self._clock.now()

        async def unit(tx: Tx) -> tuple[RuleWarning, ...]:
            person = await self._person(tx, person_id, actor, now)
            return await self._ruled(tx, person, {}, "", actor, now)

        return await self._write(unit)

    async def warnings(self, person_id: int) -> tuple[RuleWarning, ...]:
        """What of the person's rules can never run, or would leave them unreached."""
        async with self._database.snapshot() as tx:
            return self._warned(person_id, await self._read(tx, self._clock.now()))

    async def ask_everybody(self, actor: Actor) -> Asked:
        """Ask everybody with an unverified contact method to verify it, by a verified one; once a day."""
        now = self._clock.now()

        async def unit(tx: Tx) -> Asked:
            await people.lock(tx, ORG)
            directory = await self._read(tx, now)
            if not _may_all(actor, directory):
                raise Refused("Only an admin may ask everybody; `/oncall me` verifies your own.")
            return Asked(*await ask(tx, directory, now))

        asked = await self._write(unit)
        log.info("contact.asked", people=len(asked.people), unreached=len(asked.unreached), by=actor.name)
        return asked

    # --- inside

    async def _write(self, unit: Callable[[Tx], Awaitable[T]]) -> T:
        try:
            done = await self._database.write(unit, rank=Writer.RESPOND)
        except TooManyInAll:
            now = self._clock.now()
            await self._database.write(lambda tx: raise_alarm(tx, ORG, "codes", FLOOD, now))
            self._nudge()
            raise
        self._nudge()
        return done

    async def _read(self, tx: Tx, now: datetime) -> Directory:
        return await store.read(tx, ORG, now, self._vault)

    async def _person(self, tx: Tx, person_id: int, actor: Actor, now: datetime) -> Person:
        """Under the lock of people: what is read here stays so."""
        await people.lock(tx, ORG)
        directory = await self._read(tx, now)
        # Why first: who may not change them learns nothing of who is here.
        if actor.person_id != person_id and not _may_all(actor, directory):
            raise Refused("Only an admin changes the contact methods of others; nothing was changed.")
        person = directory.people.get(person_id)
        if person is None or not person.active:
            raise NotFound("There is no such person.")
        return person

    async def _method(
        self, tx: Tx, method_id: int, actor: Actor, now: datetime
    ) -> tuple[Person, ContactMethod]:
        """Theirs to change: a Slack id says who somebody is."""
        await people.lock(tx, ORG)
        directory = await self._read(tx, now)
        found = (one for person in directory.people.values() for one in person.methods if one.id == method_id)
        method = next(found, None)
        mine = method is not None and method.person_id == actor.person_id
        if method is None or not (mine or _may_all(actor, directory)):
            raise NotFound("There is no such contact method.")
        if method.kind not in ADDED_BY_PEOPLE:
            raise BadInput("Slack is how you are known here, and is neither changed nor removed.")
        person = directory.people[method.person_id]
        if not person.active:
            raise NotFound("There is no such person.")
        return person, method

    async def _prove(
        self, tx: Tx, person: Person, method: ContactMethod, now: datetime, *, by_call: bool = False
    ) -> None:
        """By what the person has proved of the same number, or by a code that goes there."""
        twin = next((one for one in _twins(person, method) if one.usable and one.id != method.id), None)
        if twin is None:
            return await issuing.issue(tx, method, self._vault, now, by_call=by_call)
        return await contacts.mark_verified(tx, ORG, [method.id], twin.verified_by, now)

    async def _forget(self, tx: Tx, method: ContactMethod, now: datetime) -> None:
        await issuing.take_back(tx, [method.id], now)
        await contacts.remove_method(tx, ORG, method.id, self._vault)

    async def _written(self, tx: Tx, method_id: int, now: datetime) -> ContactMethod:
        """As it is now, and everybody will see it so."""
        await store.bump(tx, ORG)  # counters last
        return _there(await self._read(tx, now), method_id)

    async def _pending(self, tx: Tx, person_id: int, now: datetime) -> dict[int, Pending]:
        return {
            one.method_id: Pending(
                method_id=one.method_id,
                sent_at=one.created_at,
                expires_at=one.expires_at,
                tries_left=left,
                by_call=one.method is Method.VOICE,
                status=one.status,
                reason=one.reason,
            )
            for one in await verifications.live(tx, ORG, person_id)
            if (left := codes.left(one.tries, one.expires_at, now))
        }

    def _is(self, one: verifications.Code, typed: str) -> bool:
        return hmac.compare_digest(one.code_hash, issuing.hashed(self._vault, one.method_id, typed))

    async def _ruled(
        self,
        tx: Tx,
        person: Person,
        rules: dict[Urgency, tuple[ContactRule, ...]],
        by: str,
        actor: Actor,
        now: datetime,
    ) -> tuple[RuleWarning, ...]:
        await contacts.replace_rules(tx, ORG, person.id, rules, by)
        await tell(tx, person, actor, "changed your contact rules", now)
        await store.bump(tx, ORG)  # counters last
        warned = self._warned(person.id, await self._read(tx, now))
        return (*warned, RuleWarning(OVERRULED)) if person.rules_by == BY_CONFIG else warned

    def _warned(self, person_id: int, directory: Directory) -> tuple[RuleWarning, ...]:
        person = directory.people.get(person_id)
        if person is None:
            raise NotFound("There is no such person.")
        return warnings_of(person, directory, self._ways)


def _may_all(actor: Actor, directory: Directory) -> bool:
    nobody = actor.person_id is None and actor.via in {Via.CLI, Via.API}
    return nobody or actor.person_id in directory.admins


def _check_new(person: Person, kind: Method, address: str) -> ContactMethod | None:
    """May this be a new contact method of theirs? A former one of the same address, that is off."""
    same = next((one for one in person.methods if one.kind is kind and _alike(one.address, address)), None)
    if same is None:
        if len(person.methods) >= MOST:
            raise TooMany(f"That is more than {MOST} contact methods: remove one first.")
        return None
    if same.disabled_reason == STOPPED:
        raise BadInput("This number replied STOP. Text START from it, and it is used again.")
    if same.disabled_reason is not None:
        return same
    state = "and it is verified" if same.verified else "and waits for its code"
    raise BadInput(f"That is among your contact methods already, {state}.")


def _alike(one: str, other: str) -> bool:
    """As the keyed hash has it, which there is once of each kind for a person."""
    return one.casefold() == other.casefold()


def _there(directory: Directory, method_id: int) -> ContactMethod:
    every = (one for person in directory.people.values() for one in person.methods)
    return next(one for one in every if one.id == method_id)


def _owned(person: Person, method_id: int) -> ContactMethod:
    return next(one for one in person.methods if one.id == method_id)


def _twins(person: Person, method: ContactMethod) -> list[ContactMethod]:
    """It, and what rings the same telephone."""
    return [
        one
        for one in person.methods
        if one.id == method.id
        or (one.address == method.address and {one.kind, method.kind} <= PHONES and not one.disabled_reason)
    ]


def _said(method: ContactMethod) -> str:
    return f"{method.kind} {masked(method)}"


def _no_code(meant: Sequence[verifications.Code], now: datetime) -> str:
    if any(one.expires_at > now for one in meant):
        return f"That was wrong {codes.TRIES} times, so this code is locked. Have a new one sent."
    return "There is no code that could be used: it may be too old. Have a new one sent."


def _wrong(left: int) -> str:
    if not left:
        return f"That is not the code, for the {codes.TRIES}th time: it is locked. Have a new one sent."
    return f"That is not the code. {left} {'try is' if left == 1 else 'tries are'} left."
