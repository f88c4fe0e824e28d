"""What people are told of their own contact methods: what others changed, and what they should verify.

Inside the caller's transaction; sends nothing. Goes by what is verified alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from engine.contacts.masking import masked
from engine.db import Tx
from engine.directory import ContactMethod, Directory, Person
from engine.models import ORG, Actor, DeliveryKind, Method, NewDelivery
from engine.rota import notice
from engine.store import notices

QUIETEST: Final = (Method.SLACK, Method.EMAIL, Method.PUSH, Method.SMS, Method.VOICE)


async def tell(
    tx: Tx, person: Person, actor: Actor, what: str, now: datetime, *, but: int | None = None
) -> None:
    """`what` somebody else did; nobody is told of what they did themselves. `but`: not by this method."""
    if actor.person_id == person.id:
        return
    usable = [one for one in person.methods if one.id != but]
    text = f"🔑 {actor.name} {what}. Was that right? `/oncall me` shows them."
    await notice.tell(tx, ORG, [addressed(person, usable, f"contact:{secrets.token_hex(8)}", text, now)], now)


async def ask(tx: Tx, directory: Directory, now: datetime) -> tuple[tuple[Person, ...], tuple[Person, ...]]:
    """Who is asked to verify what they did not, and whom nothing verified reaches. Once a day."""
    asking = [(one, open_) for one in directory.people.values() if (open_ := _unverified(one))]
    key = f"verify-ask:{now:%Y-%m-%d}"
    new = [(one, addressed(one, one.methods, key, _please(open_), now)) for one, open_ in asking]
    known = await notices.by_keys(tx, ORG, [made.idem_key for _, made in new if made is not None])
    before = {one.person_id for one in known}
    asked = [(one, made) for one, made in new if made is not None and one.id not in before]
    await notice.tell(tx, ORG, [made for _, made in asked], now)
    return tuple(one for one, _ in asked), tuple(one for one, made in new if made is None)


def _unverified(person: Person) -> list[ContactMethod]:
    if not person.active:
        return []
    return [one for one in person.methods if not one.verified and one.disabled_reason is None]


def _please(methods: Sequence[ContactMethod]) -> str:
    named = ", ".join(f"{one.kind} {masked(one)}" for one in methods)
    many = "one is" if len(methods) == 1 else "some are"
    return (
        f"🔑 Of your contact methods {many} not verified, and not used to page you: {named}. "
        "`/oncall me` sends a code there."
    )


def addressed(
    person: Person,
    methods: list[ContactMethod] | tuple[ContactMethod, ...],
    key: str,
    text: str,
    now: datetime,
) -> NewDelivery | None:
    """By the quietest of these methods that is usable; None: by none."""
    usable = {one.kind: one for one in reversed(methods) if one.usable}
    method = next((usable[kind] for kind in QUIETEST if kind in usable), None)
    if method is None:
        return None
    return NewDelivery(
        incident_id=None,
        kind=DeliveryKind.NOTICE,
        method=method.kind,
        idem_key=f"{key}:{person.id}",
        due_at=now,
        person_id=person.id,
        method_id=method.id,
        body={"text": text},
    )
