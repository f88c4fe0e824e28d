"""How a person is reached in the REST API: contact methods, their codes, and contact rules.

Never decides anything. An address is in clear for its owner and for admins alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from bot.web.parts import WebParts
from bot.web.routes import Reply, Route
from bot.web.shapes import Act, Id, Word
from engine.contact import steps
from engine.contacts.contacts import Pending
from engine.contacts.masking import masked
from engine.contacts.rules import checked
from engine.contacts.warnings import RuleWarning
from engine.directory import ContactMethod, Person
from engine.errors import NotFound
from engine.models import Actor, DeliveryStatus, Method, Urgency
from engine.store.directory import TokenRow

METHODS = "/v1/people/{id}/contact_methods"
RULES = "/v1/people/{id}/contact_rules"
DAY_S = int(timedelta(days=1).total_seconds())


class PersonPath(BaseModel):
    id: Id


class MethodPath(PersonPath):
    method_id: Id


class NewMethod(Act):
    kind: Literal[Method.SMS, Method.VOICE, Method.EMAIL, Method.PUSH]
    address: Word = Field(description="a number like +12025550143, a mail address, or an Apprise URL")
    by_call: bool = Field(default=False, description="say the code in a call: for a landline")


class Readdress(Act):
    address: Word


class SendCode(Act):
    by_call: bool = Field(default=False, description="say it in a call: for a landline")


class Verify(Act):
    code: Annotated[str, StringConstraints(min_length=1, max_length=40)]


class Step(BaseModel):
    method_id: Id
    delay_s: int = Field(default=0, ge=0, le=DAY_S, description="from the start of the page")


class Rules(Act):
    high: list[Step] | None = Field(default=None, max_length=20, description="as they are, if not given")
    low: list[Step] | None = Field(
        default=None, max_length=20, description="empty: by the first of `high`; as they are, if not given"
    )


class ShownCode(BaseModel):
    sent_at: datetime
    expires_at: datetime
    tries_left: int
    by_call: bool
    status: DeliveryStatus = Field(description="of the message that brings it")
    reason: str


class ShownMethod(BaseModel):
    id: int
    kind: Method
    address: str = Field(description="masked, unless it is your own or you are an admin")
    verified: bool
    verified_by: str = Field(description="code, config or slack; import: by nobody yet")
    usable: bool = Field(description="verified, and not off")
    off: str | None = Field(description="why it is off")
    in_file: bool = Field(description="midwatch.yaml names it")
    code: ShownCode | None = Field(description="one that was sent and may still be used")


class ShownMethods(BaseModel):
    items: list[ShownMethod]


class Warned(BaseModel):
    text: str
    urgency: Urgency | None = None
    method_id: int | None = None


class Removed(BaseModel):
    warnings: list[str]


class ShownRules(BaseModel):
    by: str = Field(description="config or person; empty: nobody gave any, the usual order is in force")
    high: list[Step]
    low: list[Step]
    in_force: dict[Urgency, list[Step]] = Field(description="what a page of today does")
    warnings: list[Warned]


class ContactsApi:
    def __init__(self, parts: WebParts, actor: Callable[[TokenRow, Act | None], Awaitable[Actor]]) -> None:
        self._actor = actor
        self._contacts = parts.contacts
        one, refused = f"{METHODS}/{{method_id}}", (403, 404)
        self.routes = (
            Route("GET", METHODS, self.list_contact_methods, problems=(404,)),
            Route(
                "POST", METHODS, self.add_contact_method, {201: "A code was sent"}, problems=(*refused, 429)
            ),
            Route("PATCH", one, self.change_contact_method, problems=(*refused, 429)),
            Route("DELETE", one, self.remove_contact_method, problems=refused),
            Route("POST", f"{one}/send_code", self.send_contact_code, problems=(*refused, 429)),
            Route("POST", f"{one}/verify", self.verify_contact_method, problems=refused),
            Route("GET", RULES, self.get_contact_rules, problems=(404,)),
            Route("PUT", RULES, self.put_contact_rules, problems=refused),
            Route("DELETE", RULES, self.reset_contact_rules, problems=refused),
        )

    async def list_contact_methods(self, caller: TokenRow, *, path: PersonPath) -> Reply[ShownMethods]:
        """How a person is reached, and which contact methods wait for their code."""
        person = await self._contacts.person(path.id)
        pending = await self._contacts.pending(path.id)
        clear = await self._sees(caller, path.id)
        mine = pending if clear or caller.person_id is None else {}  # a colleague's codes are no news
        shown = [_shown(one, mine.get(one.id), clear=clear) for one in person.methods]
        return Reply(ShownMethods(items=shown))

    async def add_contact_method(
        self, caller: TokenRow, *, path: PersonPath, body: NewMethod
    ) -> Reply[ShownMethod]:
        """Add a number, a mail address or an app, and send the code that verifies it."""
        actor = await self._actor(caller, body)
        made = await self._contacts.add(path.id, body.kind, body.address, actor, by_call=body.by_call)
        return await self._reply(caller, made, 201)

    async def change_contact_method(
        self, caller: TokenRow, *, path: MethodPath, body: Readdress
    ) -> Reply[ShownMethod]:
        """Give it another address, which must be verified again."""
        actor = await self._actor(caller, body)
        await self._theirs(path)
        return await self._reply(caller, await self._contacts.change(path.method_id, body.address, actor))

    async def remove_contact_method(
        self, caller: TokenRow, *, path: MethodPath, body: Act | None = None
    ) -> Reply[Removed]:
        """Forget it, and the rules that use it."""
        actor = await self._actor(caller, body)
        await self._theirs(path)
        return Reply(Removed(warnings=[*await self._contacts.remove(path.method_id, actor)]))

    async def send_contact_code(
        self, caller: TokenRow, *, path: MethodPath, body: SendCode | None = None
    ) -> Reply[ShownCode]:
        """Send a new code; the one before is worth nothing."""
        actor = await self._actor(caller, body)
        await self._theirs(path)
        by_call = body is not None and body.by_call
        return Reply(_code(await self._contacts.send_code(path.method_id, actor, by_call=by_call)))

    async def verify_contact_method(
        self, caller: TokenRow, *, path: MethodPath, body: Verify
    ) -> Reply[ShownMethod]:
        """Verify it by the code that was sent there."""
        actor = await self._actor(caller, body)
        method = await self._contacts.verify(path.id, body.code, actor, path.method_id)
        return await self._reply(caller, method)

    async def get_contact_rules(self, caller: TokenRow, *, path: PersonPath) -> Reply[ShownRules]:
        """By which contact methods a person is paged, in which order, and what is wrong with that."""
        return await self._rules(path.id)

    async def put_contact_rules(
        self, caller: TokenRow, *, path: PersonPath, body: Rules
    ) -> Reply[ShownRules]:
        """Page a person by these contact methods after these delays."""
        actor = await self._actor(caller, body)
        person = await self._contacts.person(path.id)
        wanted = {
            urgency: [(one.method_id, timedelta(seconds=one.delay_s)) for one in given]
            for urgency, given in ((Urgency.HIGH, body.high), (Urgency.LOW, body.low))
            if given is not None
        }
        for urgency, each in wanted.items():
            checked(person, urgency, each)  # all of it before any of it
        for urgency, each in wanted.items():
            await self._contacts.set_rules(path.id, urgency, each, actor)
        return await self._rules(path.id)

    async def reset_contact_rules(
        self, caller: TokenRow, *, path: PersonPath, body: Act | None = None
    ) -> Reply[ShownRules]:
        """Back to the usual order."""
        await self._contacts.reset_rules(path.id, await self._actor(caller, body))
        return await self._rules(path.id)

    # --- inside

    async def _sees(self, caller: TokenRow, person_id: int) -> bool:
        """Is it their own token, or an admin's?"""
        if caller.person_id is None or caller.person_id == person_id:
            return caller.person_id is not None
        return (await self._contacts.person(caller.person_id)).admin

    async def _theirs(self, path: MethodPath) -> None:
        person = await self._contacts.person(path.id)
        if all(one.id != path.method_id for one in person.methods):
            raise NotFound("There is no such contact method.")

    async def _reply(self, caller: TokenRow, method: ContactMethod, status: int = 200) -> Reply[ShownMethod]:
        pending = await self._contacts.pending(method.person_id)
        clear = await self._sees(caller, method.person_id)
        return Reply(_shown(method, pending.get(method.id), clear=clear), status)

    async def _rules(self, person_id: int) -> Reply[ShownRules]:
        person = await self._contacts.person(person_id)
        warnings = await self._contacts.warnings(person_id)
        return Reply(_ruled(person, warnings))


def _shown(one: ContactMethod, pending: Pending | None, *, clear: bool) -> ShownMethod:
    return ShownMethod(
        id=one.id,
        kind=one.kind,
        address=one.address if clear else masked(one),
        verified=one.verified,
        verified_by=one.verified_by,
        usable=one.usable,
        off=one.disabled_reason,
        in_file=one.in_file,
        code=None if pending is None else _code(pending),
    )


def _code(pending: Pending) -> ShownCode:
    return ShownCode(**{name: getattr(pending, name) for name in ShownCode.model_fields})


def _ruled(person: Person, warnings: Iterable[RuleWarning]) -> ShownRules:
    given: Mapping[Urgency, list[Step]] = {
        urgency: [_step(rule.method_id, rule.delay) for rule in rules]
        for urgency, rules in person.rules.items()
    }
    in_force = {
        urgency: [_step(step.method.id, step.delay) for step in steps(person, urgency)]
        for urgency in (Urgency.HIGH, Urgency.LOW)
    }
    return ShownRules(
        by=person.rules_by,
        high=given.get(Urgency.HIGH, []),
        low=given.get(Urgency.LOW, []),
        in_force=in_force,
        warnings=[Warned(text=w.text, urgency=w.urgency, method_id=w.method_id) for w in warnings],
    )


def _step(method_id: int, delay: timedelta) -> Step:
    return Step(method_id=method_id, delay_s=int(delay.total_seconds()))
