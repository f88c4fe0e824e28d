"""`/oncall me test`: one person is told by each of their contact methods at once, and then what arrived.

No incident, and nobody else: deliveries of their own, through the pipeline that pages take. It says what
providers say: that a telephone took it, not that somebody woke up.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from engine.clock import Clock
from engine.contacts.masking import masked
from engine.contacts.telling import addressed
from engine.db import Database, Tx, Writer
from engine.directory import ContactMethod, Directory, Person
from engine.errors import BadInput, NotFound, Refused, TooMany
from engine.models import (
    ORG,
    Actor,
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    Method,
    NewDelivery,
    Via,
)
from engine.notify.begin import NOT_AFTER
from engine.notify.render import LOUD
from engine.nudge import Nudge
from engine.rota import notice
from engine.schedule.zones import zone_named
from engine.store import notices, people, rehearsals
from engine.store.rehearsals import Tested

LASTS: Final = timedelta(minutes=2)
AGAIN_AFTER: Final = timedelta(minutes=5)
TEXT: Final = "This is a test page that you asked for. Nothing is broken, and it needs no answer."
NO_MORE_TO_COME: Final = frozenset(
    {DeliveryStatus.DELIVERED, DeliveryStatus.DEAD, DeliveryStatus.CANCELLED, DeliveryStatus.UNCONFIRMED}
)
RECEIPTS: Final = frozenset({Method.SMS, Method.VOICE})  # of the others nobody says more than that it went


@dataclass(frozen=True, slots=True)
class Arrival:
    """What became of the test by one contact method so far."""

    method: ContactMethod
    status: DeliveryStatus
    at: datetime | None  # when it was sent, or was known to have arrived
    reason: str = ""

    @property
    def over(self) -> bool:
        """Is nothing more to come?"""
        sent = self.status is DeliveryStatus.SENT and self.method.kind not in RECEIPTS
        return sent or self.status in NO_MORE_TO_COME


class OwnTests:
    """Everybody tests their own contact methods, at most every five minutes."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        directory_now: Callable[[], Awaitable[Directory]],
        nudge: Nudge,
    ) -> None:
        self._database = database
        self._clock = clock
        self._directory_now = directory_now
        self._nudge = nudge

    async def start(self, person_id: int, actor: Actor) -> Sequence[ContactMethod]:
        """Tell this person by each usable contact method, at once; these are the methods."""
        person = (await self._directory_now()).people.get(person_id)
        if person is None or not person.active:
            raise NotFound("There is no such person.")
        if actor.person_id != person_id and not (actor.person_id is None and actor.via is Via.CLI):
            raise Refused("Everybody tests their own contact methods.")
        methods = [one for one in person.methods if one.usable]
        if not methods:
            raise BadInput("There is no contact method that is verified, so nothing to test with.")
        now = self._clock.now()
        test = Tested(f"own-{secrets.token_hex(16)}", person_id, now, now + LASTS)

        async def unit(tx: Tx) -> None:
            await people.lock(tx, ORG)
            last = await rehearsals.last_test(tx, ORG, person_id)
            if last is not None and now < last.begun_at + AGAIN_AFTER:
                minutes = int(AGAIN_AFTER.total_seconds() // 60)
                raise TooMany(f"The last test is less than {minutes} minutes old. It tells you what arrived.")
            await rehearsals.begin_test(tx, ORG, test)
            await notice.tell(tx, ORG, [_message(test, one) for one in methods], now)

        await self._database.write(unit, rank=Writer.RESPOND)
        self._nudge()
        return methods

    async def last(self, person_id: int) -> tuple[Arrival, ...]:
        """What became of this person's last test so far; empty if there was none."""
        directory = await self._directory_now()
        async with self._database.snapshot() as tx:
            test = await rehearsals.last_test(tx, ORG, person_id)
            return () if test is None else await _arrived(tx, test, directory)

    async def finish_due(self) -> int:
        """Tell whoever tests what arrived, when nothing more is to come; how many were told."""
        async with self._database.look() as tx:
            found = await rehearsals.unreported(tx, ORG)
        return sum([await self._finish(one) for one in found])

    async def _finish(self, test: Tested) -> bool:
        directory, now = await self._directory_now(), self._clock.now()
        person = directory.people.get(test.person_id)

        async def unit(tx: Tx) -> bool:
            arrived = await _arrived(tx, test, directory)
            if now < test.ends_at and not all(one.over for one in arrived):
                return False
            ours = await rehearsals.report(tx, ORG, test.key, now)
            if ours and person is not None:
                said = addressed(person, person.methods, f"{test.key}:report", report(arrived, person), now)
                await notice.tell(tx, ORG, [said], now)
            return ours

        told = await self._database.write(unit, rank=Writer.CARD)
        if told:
            self._nudge()
        return told


def _message(test: Tested, method: ContactMethod) -> NewDelivery:
    return NewDelivery(
        incident_id=None,
        kind=DeliveryKind.NOTICE,
        method=method.kind,
        idem_key=_key(test, method),
        due_at=test.begun_at,
        person_id=test.person_id,
        method_id=method.id,
        body={"text": TEXT, LOUD: True, NOT_AFTER: test.ends_at.isoformat()},
    )


def _key(test: Tested, method: ContactMethod) -> str:
    return f"{test.key}:{method.id}"


async def _arrived(tx: Tx, test: Tested, directory: Directory) -> tuple[Arrival, ...]:
    person = directory.people.get(test.person_id)
    methods = person.methods if person is not None else ()
    keys = {_key(test, one): one for one in methods}
    return tuple(_arrival(keys[one.idem_key], one) for one in await notices.by_keys(tx, ORG, sorted(keys)))


def _arrival(method: ContactMethod, one: Delivery) -> Arrival:
    at = one.ended_at if one.status is DeliveryStatus.DELIVERED else one.sent_at
    return Arrival(method, one.status, at, one.reason)


def report(arrived: Iterable[Arrival], person: Person) -> str:
    """A line for each contact method, on the clock of whoever reads it."""
    return "\n".join(["🔔 Your test page:", *(f"• {_line(one, person.timezone)}" for one in arrived)])


def _line(one: Arrival, timezone: str) -> str:
    named = f"{one.method.kind} {masked(one.method)}" if one.method.kind is not Method.SLACK else "slack"
    at = f" {one.at.astimezone(zone_named(timezone) or UTC):%H:%M:%S}" if one.at is not None else ""
    if one.status is DeliveryStatus.DELIVERED:
        return f"{named}: arrived{at}"
    if one.status is DeliveryStatus.SENT:
        more = "; whether it arrived was not said yet" if one.method.kind in RECEIPTS else ""
        return f"{named}: sent{at}{more}"
    why = f": {one.reason}" if one.reason else ""
    if one.status in NO_MORE_TO_COME:
        return f"{named}: did not arrive{why}"
    return f"{named}: not sent within {int(LASTS.total_seconds() // 60)} minutes{why}"
