"""Who and what there is: people, keys, tokens and midwatch.yaml. One transaction each.

Never shows a key twice: it is handed out when it is made, and stored as a hash.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

import structlog

from engine.clock import Clock
from engine.config.apply import apply_config, plan_for
from engine.config.current import config_of, known_in
from engine.config.dump import dump_config
from engine.config.form import Config, Known
from engine.config.plan import Plan
from engine.db import Database, Tx, Writer
from engine.directory import Directory, Person
from engine.errors import BadInput, NotFound, Refused
from engine.models import ORG, Method
from engine.rota.places import Places
from engine.rota.schedules import Schedules
from engine.schedule.zones import zone_named
from engine.store import contacts, keys, people
from engine.store import directory as store
from engine.store.keys import Listed
from engine.store.people import PersonRow
from engine.vault import Vault, hash_key, hint, new_key

log = structlog.get_logger(__name__)

KEY_PREFIX: Final = "mwk"
TOKEN_PREFIX: Final = "mwt"  # noqa: S105  # the prefix of tokens, not one
USABLE_KEY: Final = re.compile(r"[A-Za-z0-9._~+=:@!$'()*,;-]{1,200}", re.ASCII)  # in a header and in a path


class Setup:
    """`admins` are Slack ids (MIDWATCH_ADMINS): whoever has one is an admin, whatever the file says.

    `schedules` makes and edits one schedule at a time, where a file does all at once.
    """

    def __init__(
        self, database: Database, clock: Clock, vault: Vault, *, admins: Collection[str] = ()
    ) -> None:
        self._database = database
        self._clock = clock
        self._vault = self.vault = vault
        self._admins = frozenset(admins)
        self.schedules = Schedules(database, clock, vault)
        self.places = Places(database, clock, vault)

    # --- midwatch.yaml

    async def known(self) -> Known:
        """The names that a file may use without defining them."""
        return known_in(await self._read())

    async def export(self) -> str:
        """The midwatch.yaml that would make this directory."""
        return dump_config(config_of(await self._read()))

    async def plan(self, config: Config) -> Plan:
        plan, _ = plan_for(await self._read(), config, self._admins)
        return plan

    async def apply(self, config: Config) -> Plan:
        """Make the directory what `config` says, all of it or nothing, and say what changed."""
        now = self._clock.now()

        async def unit(tx: Tx) -> Plan:
            await people.lock(tx, ORG)
            await store.lock(tx, ORG)
            directory = await store.read(tx, ORG, now, self._vault)
            plan, wanted = plan_for(directory, config, self._admins)
            if plan.changes:
                await apply_config(tx, directory, wanted, plan, self._vault, now)
            return plan

        plan = await self._database.write(unit, rank=Writer.RESPOND)
        log.info("config.applied", changes=len(plan.changes))
        return plan

    # --- people

    async def enrol(self, slack_user_id: str, name: str, timezone: str) -> Person:
        """Make a Slack user a person who is paged in Slack; whoever is one already stays as they are."""
        now = self._clock.now()
        zone = timezone if zone_named(timezone) is not None else "UTC"

        async def unit(tx: Tx) -> Person:
            await store.lock(tx, ORG)
            person_id = await people.person_by_slack(tx, ORG, slack_user_id)
            if person_id is None:
                free = _free_name(name, await people.names(tx, ORG))
                row = PersonRow(free, slack_user_id, zone, admin=slack_user_id in self._admins)
                person_id = await people.insert_person(tx, ORG, row, now)
                await self._page_in_slack(tx, person_id, slack_user_id)
                await store.bump(tx, ORG)
            return (await people.read_people(tx, ORG, self._vault))[person_id]

        person = await self._database.write(unit, rank=Writer.RESPOND)
        if not person.active:
            raise Refused(
                f"{person.name} was deactivated; an admin can take that back with `midwatch apply`."
            )
        return person

    async def deactivate(self, person_id: int) -> bool:
        """Nobody is paged who was deactivated; False if they were already."""

        async def unit(tx: Tx) -> bool:
            done = await people.deactivate_person(tx, ORG, person_id, self._clock.now())
            if done:
                await store.bump(tx, ORG)
            return done

        return await self._database.write(unit, rank=Writer.RESPOND)

    async def mark_admins(self) -> int:
        """Make those named in MIDWATCH_ADMINS admins; how many were not yet."""

        async def unit(tx: Tx) -> int:
            marked = await people.mark_admins(tx, ORG, sorted(self._admins))
            if marked:
                await store.bump(tx, ORG)
            return marked

        return await self._database.write(unit)

    # --- keys and tokens

    async def create_key(self, service: str, value: str | None = None) -> str:
        """A new integration key of a service, or `value` taken over from elsewhere."""
        key = _checked(value) or new_key(KEY_PREFIX)
        directory = await self._read()
        names = {each.name: each.id for each in directory.services.values()}
        service_id = _named(service, names, "service")

        async def unit(tx: Tx) -> None:
            taken = await keys.service_by_key_hash(tx, hash_key(key))
            if taken is None:
                await keys.insert_key(tx, ORG, service_id, hash_key(key), hint(key), self._clock.now())
            elif taken.revoked or taken.service_id != service_id:
                state = "revoked" if taken.revoked else "in use by another service"
                raise BadInput(f"This key is {state}. Choose another one.")

        await self._database.write(unit)
        return key

    async def create_token(self, name: str, person: str | None = None, value: str | None = None) -> str:
        """A new API token; with `person` it acts for them."""
        token = _checked(value) or new_key(TOKEN_PREFIX)
        directory = await self._read()
        active = {each.name: each.id for each in directory.people.values() if each.active}
        person_id = None if person is None else _named(person, active, "person")

        async def unit(tx: Tx) -> None:
            taken = await keys.token_by_hash(tx, hash_key(token))
            if taken is None:
                now = self._clock.now()
                await keys.insert_token(tx, ORG, name, hash_key(token), hint(token), person_id, now)
            elif taken.revoked or taken.person_id != person_id:
                state = "revoked" if taken.revoked else "in use for somebody else"
                raise BadInput(f"This token is {state}. Choose another one.")

        await self._database.write(unit)
        return token

    async def list_keys(self) -> Sequence[Listed]:
        async with self._database.snapshot() as tx:
            return await keys.read_keys(tx, ORG)

    async def list_tokens(self) -> Sequence[Listed]:
        async with self._database.snapshot() as tx:
            return await keys.read_tokens(tx, ORG)

    async def revoke_key(self, key_id: int) -> None:
        now = self._clock.now()
        if not await self._database.write(lambda tx: keys.revoke_key(tx, ORG, key_id, now)):
            raise NotFound(f"There is no key {key_id} that could be revoked; see `midwatch key list`.")

    async def revoke_token(self, token_id: int) -> None:
        now = self._clock.now()
        if not await self._database.write(lambda tx: keys.revoke_token(tx, ORG, token_id, now)):
            raise NotFound(f"There is no token {token_id} that could be revoked; see `midwatch token list`.")

    # --- inside

    async def _read(self) -> Directory:
        async with self._database.snapshot() as tx:
            return await store.read(tx, ORG, self._clock.now(), self._vault)

    async def _page_in_slack(self, tx: Tx, person_id: int, slack_user_id: str) -> None:
        await contacts.save_method(
            tx,
            ORG,
            person_id,
            Method.SLACK,
            slack_user_id,
            vault=self._vault,
            verified_by="slack",
            now=self._clock.now(),
        )


def _checked(value: str | None) -> str | None:
    if value is not None and not USABLE_KEY.fullmatch(value):
        raise BadInput("A key may have letters, digits and -._~+=:@ only, 200 at most, and no spaces.")
    return value


def _named(name: str, known: dict[str, int], noun: str) -> int:
    if name not in known:
        raise NotFound(f"There is no {noun} {name!r}. There are: {', '.join(sorted(known)) or 'none yet'}.")
    return known[name]


def _free_name(wanted: str, taken: Collection[str]) -> str:
    """The name itself, else the first of name-2, name-3 … that nobody has."""
    plain = "".join(letter for letter in wanted if letter.isprintable()).strip().lstrip("@#").strip()[:70]
    plain = plain or "somebody"
    number = 1
    while (free := plain if number == 1 else f"{plain}-{number}") in taken:
        number += 1
    return free
