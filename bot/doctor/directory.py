"""Would a page reach somebody right now? Fallback chain, policies, people and keys.

Never works out who is paged by itself: it asks the pager's own resolver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from asyncpg import PostgresError
from sqlalchemy.exc import DBAPIError

from bot.doctor.finding import Finding, ok, problem, warning
from bot.reach import sends_by
from bot.settings import Settings
from engine.clock import Clock
from engine.contact import reachable
from engine.db import Database
from engine.directory import Directory, Person
from engine.errors import Unavailable
from engine.models import ORG, Method, Urgency
from engine.pager.ladder import Resolver, reaches_somebody
from engine.store import directory as store
from engine.store import keys
from engine.store.contacts import UNREADABLE
from engine.vault import Vault

FALLBACK: Final = "fallback"
PHONES: Final = frozenset({Method.SMS, Method.VOICE})


async def examine(settings: Settings, database: Database, clock: Clock, vault: Vault) -> Sequence[Finding]:
    now = clock.now()
    try:
        async with database.snapshot() as tx:
            directory = await store.read(tx, ORG, now, vault)
            opened = {key.name for key in await keys.read_keys(tx, ORG) if key.revoked_at is None}
    except (Unavailable, DBAPIError, PostgresError, OSError):
        return []  # the database's own check has said it
    directory = replace(directory, fallback_urls=settings.fallback_urls)
    if not directory.people:
        return [problem("people", "there is nobody yet", "Write midwatch.yaml and run: midwatch apply FILE")]
    key, ways = list(_secret_key(directory)), _ways(settings)
    found = [*key, *_whole(_as_if_readable(directory), opened, ways, now)]
    # Why: with another key, or without a way to send anything, that all is well would be no help.
    if not ways or any(finding.advice for finding in key):
        return [finding for finding in found if finding.advice]
    if not any(finding.advice for finding in found):
        found.append(ok("policies", "every level reaches somebody now"))
    return found


def _whole(
    directory: Directory, opened: set[str], ways: frozenset[Method], now: datetime
) -> Iterator[Finding]:
    yield from _fallback(directory, now)
    yield from _services(directory, opened)
    yield from _levels(directory, now)
    yield from _people(directory, ways)
    yield from _email(directory, ways)


def _ways(settings: Settings) -> frozenset[Method]:
    """What this install is set up to send by, besides URLs."""
    return sends_by(settings) - {Method.PUSH}


def _as_if_readable(directory: Directory) -> Directory:
    """The wrong key is one problem; that nobody can be reached with it is not another one."""

    def read(person: Person) -> Person:
        methods = (
            replace(method, disabled_reason=None) if method.disabled_reason == UNREADABLE else method
            for method in person.methods
        )
        return replace(person, methods=tuple(methods))

    return replace(directory, people={key: read(person) for key, person in directory.people.items()})


def _secret_key(directory: Directory) -> Iterator[Finding]:
    methods = [method for person in directory.people.values() for method in person.methods]
    lost = [method for method in methods if method.disabled_reason == UNREADABLE]
    if lost:
        text = f"{len(lost)} of {len(methods)} addresses were written with another key"
        yield problem("secret key", text, "Set the old MIDWATCH_SECRET_KEY, or apply midwatch.yaml again.")
    else:
        yield ok("secret key", "every address can be read")


def _fallback(directory: Directory, now: datetime) -> Iterator[Finding]:
    if reaches_somebody(Resolver(directory, Urgency.HIGH, now).chain(None)):
        yield ok(FALLBACK, "when nobody can be found, somebody is paged")
    else:
        text = "the chain is empty: when nobody can be found, nobody is paged"
        yield problem(
            FALLBACK, text, "Write `fallback: [{person: NAME}]` into midwatch.yaml, or make an admin."
        )


def _services(directory: Directory, opened: set[str]) -> Iterator[Finding]:
    if not directory.services:
        yield problem("services", "there is none: no alert can arrive", "Write one into midwatch.yaml.")
    for service in directory.services.values():
        about = f"service {service.name}"
        if service.policy_id is None:
            yield problem(about, "has no policy: its alerts page the fallback", "Give it a `policy`.")
        if service.name not in opened:
            yield warning(
                about, "has no key: nobody can send to it", f"Run: midwatch key create {service.name}"
            )


def _levels(directory: Directory, now: datetime) -> Iterator[Finding]:
    used = {service.policy_id for service in directory.services.values()}
    for policy in [policy for policy in directory.policies.values() if policy.id in used]:
        for number, level in enumerate(policy.levels, start=1):
            resolver = Resolver(directory, Urgency.HIGH, now)
            (rung,) = resolver.ladder(replace(policy, levels=(level,)), None).rungs
            if not rung.people:
                why = "; ".join(resolver.remarks) or "it has channels only"
                about = f"policy {policy.name}"
                report = warning if rung.channels else problem
                yield report(
                    about, f"level {number} reaches nobody now: {why}", "Add a person or a fallback."
                )


def _people(directory: Directory, ways: frozenset[Method]) -> Iterator[Finding]:
    for person in [person for person in directory.people.values() if person.active]:
        usable = {method.kind for method in person.methods if method.usable}
        about = f"person {person.name}"
        if not usable and reachable(person.methods):
            text = "is paged by what was imported and nobody verified"
            yield warning(about, text, "Ask them to verify it: midwatch contacts ask")
        elif not usable:
            yield problem(
                about, "cannot be reached by anything", "Give them `slack` or `contact` in midwatch.yaml."
            )
        elif ways and not usable & ways:
            text = f"cannot be reached: {', '.join(sorted(usable))} is not set up here"
            yield problem(about, text, "Set it up, or give them another `contact` in midwatch.yaml.")
        elif not usable & PHONES:
            yield warning(about, "has no phone: not reached while Slack is down", "Add `contact: {sms: …}`.")


def _email(directory: Directory, ways: frozenset[Method]) -> Iterator[Finding]:
    people = [person for person in directory.people.values() if person.active]
    named = [p.name for p in people if any(m.kind is Method.EMAIL and m.usable for m in p.methods)]
    if named and Method.EMAIL not in ways:
        text = f"not set up: {', '.join(named)} would be sent email, and is not"
        yield warning("email", text, "Set SMTP_URL, like smtps://user:password@mail.example.com")
