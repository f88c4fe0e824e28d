"""A person's contact methods and contact rules, changed: one use case, one transaction.

Never sends a code itself: it is a delivery. Never logs or answers an address in clear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.clock import Clock
from engine.contacts.warnings import RuleWarning
from engine.db import Database
from engine.directory import ContactMethod, Person
from engine.models import Actor, DeliveryStatus, Method, Urgency
from engine.nudge import Nudge
from engine.vault import Vault


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
    told of it. Only the person verifies, by the code.

    Refusals are errors with a sentence for the user: `BadInput` (the address, the code), `TooMany` (a limit),
    `Refused` (who may), `NotFound`. `countries` (MIDWATCH_SMS_COUNTRIES): the calling codes of numbers.
    """

    def __init__(
        self, database: Database, clock: Clock, vault: Vault, nudge: Nudge, *, countries: Sequence[str] = ()
    ) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault
        self._nudge = nudge
        self._countries = tuple(countries)

    async def add(
        self, person_id: int, kind: Method, address: str, actor: Actor, *, by_call: bool = False
    ) -> ContactMethod:
        """Write down an SMS, voice, email or push method and send its code at once; it is not used before it
        is verified. A number that the person has verified for the other of SMS and voice is verified."""
        raise NotImplementedError

    async def change(self, method_id: int, address: str, actor: Actor) -> ContactMethod:
        """Another address for a contact method: its rules stay, it must be verified again, a code is sent."""
        raise NotImplementedError

    async def send_code(self, method_id: int, actor: Actor, *, by_call: bool = False) -> Pending:
        """Send a new code; the one before is worth nothing from now on. `by_call`: spoken, for a landline."""
        raise NotImplementedError

    async def pending(self, person_id: int) -> dict[int, Pending]:
        """The codes of this person that may still be used, by contact method."""
        raise NotImplementedError

    async def verify(
        self, person_id: int, code: str, actor: Actor, method_id: int | None = None
    ) -> ContactMethod:
        """Use a code; without `method_id` it may be of any of the person's methods. `BadInput` says how many
        tries are left."""
        raise NotImplementedError

    async def remove(self, method_id: int, actor: Actor) -> tuple[str, ...]:
        """Forget a contact method, its address and the rules that use it; what is to be said about it."""
        raise NotImplementedError

    async def set_rules(
        self, person_id: int, urgency: Urgency, steps: Sequence[tuple[int, timedelta]], actor: Actor
    ) -> tuple[RuleWarning, ...]:
        """Page by these methods after these delays. Empty for `low`: by the first one of `high`."""
        raise NotImplementedError

    async def reset_rules(self, person_id: int, actor: Actor) -> tuple[RuleWarning, ...]:
        """Back to the usual order, which follows the methods that are verified."""
        raise NotImplementedError

    async def warnings(self, person_id: int) -> tuple[RuleWarning, ...]:
        """What of the person's rules can never run, or would leave them unreached."""
        raise NotImplementedError

    async def ask_everybody(self, actor: Actor) -> Asked:
        """Ask everybody with an unverified contact method to verify it, by a verified one; once a day."""
        raise NotImplementedError
