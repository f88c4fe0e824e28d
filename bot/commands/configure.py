"""apply, export, key, token: who and what there is.

Never prints a key but the one it has just made.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from bot.commands.opened import Opened, not_there, opened
from bot.commands.say import local, note, say, say_json, say_table
from bot.settings import load
from engine.config.apply import plan_for
from engine.config.form import Config, Known
from engine.config.parse import SECTIONS, parse_config
from engine.config.plan import Plan
from engine.config.reading import load_yaml
from engine.directory import Directory
from engine.errors import BadConfig, BadInput
from engine.models import ORG
from engine.store.keys import Listed

USUAL_FILE: Final = "midwatch.yaml"  # what the parser calls the file as a whole

Json = Annotated[bool, Parameter("--json", negative=())]
# Why: "-" is standard input, not an option without a name.
Source = Annotated[Path, Parameter(allow_leading_hyphen=True)]
Value = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
DryRun = Annotated[bool, Parameter("--dry-run", negative=())]

key = App(name="key", help="Integration keys: what lets a sender in.")
token = App(name="token", help="API tokens: what lets a script in.")


async def apply(file: Source, /, *, dry_run: DryRun = False, as_json: Json = False) -> None:
    """Make the directory what midwatch.yaml says; shows what changes.

    Parameters
    ----------
    file
        midwatch.yaml, or - for standard input.
    dry_run
        Only show it.
    """
    text = _read(file)
    if dry_run and (missing := await not_there()):
        note(f"{missing}, and a dry run makes none: this is what would be in it.")
        return _show(_first_plan(_parsed(text, file)), dry_run, as_json)
    async with opened(look_only=dry_run) as engine:
        config = _parsed(text, file, await engine.setup.known())
        plan = await (engine.setup.plan(config) if dry_run else engine.setup.apply(config))
        return _show(plan, dry_run, as_json)


def _parsed(text: str, file: Path, known: Known | None = None) -> Config:
    """Every mistake with the name of the file that was given."""
    name = "standard input" if str(file) == "-" else str(file)
    try:
        if load_yaml(text) is None:
            raise BadConfig([f"is empty: write {', '.join(SECTIONS)} into it"])
        return parse_config(text, known)
    except BadConfig as error:
        usual = f"{USUAL_FILE}: "
        raise BadConfig([f"{name}: {each.removeprefix(usual)}" for each in error.mistakes]) from None


def _first_plan(config: Config) -> Plan:
    empty = Directory(ORG, rev=0, people={}, services={}, policies={}, schedules={})
    plan, _ = plan_for(empty, config, load(os.environ).admins)
    return plan


def _show(plan: Plan, dry_run: bool, as_json: bool) -> None:
    if as_json:
        return say_json({"applied": not dry_run, "changes": plan.changes, "left": plan.left})
    say(str(plan))
    if plan.changes:
        say("Nothing was changed: this was a dry run." if dry_run else f"{len(plan.changes)} applied.")


async def export() -> None:
    """Write the midwatch.yaml that would make this directory."""
    async with opened() as engine:
        sys.stdout.write(await engine.setup.export())


@key.command(name="create")
async def create_key(service: str, /, *, value: Value = None, as_json: Json = False) -> None:
    """Make an integration key of a service; it is shown once.

    Parameters
    ----------
    value
        Take over this existing key; - reads it from standard input.
    """
    async with opened() as engine:
        made = await engine.setup.create_key(service, _value(value))
        if as_json:
            return say_json({"service": service, "key": made})
        say(made)
        note(f"Shown once. Senders use it as `Authorization: Bearer …` at {_url(engine)}/webhooks/…")


@key.command(name="list")
async def list_keys(*, as_json: Json = False) -> None:
    """The integration keys, by their first characters."""
    async with opened() as engine:
        _list(await engine.setup.list_keys(), "No keys yet. Make one: midwatch key create SERVICE", as_json)


@key.command(name="revoke")
async def revoke_key(key_id: int, /) -> None:
    """Take a key's power: whoever still uses it is refused."""
    async with opened() as engine:
        await engine.setup.revoke_key(key_id)
        say(f"Key {key_id} is revoked.")


@token.command(name="create")
async def create_token(
    name: str, /, *, person: str | None = None, value: Value = None, as_json: Json = False
) -> None:
    """Make an API token; it is shown once.

    Parameters
    ----------
    name
        What it is for.
    person
        For whom it acts.
    value
        Take over this existing token; - reads it from standard input.
    """
    async with opened() as engine:
        made = await engine.setup.create_token(name, person, _value(value))
        if as_json:
            return say_json({"name": name, "person": person, "token": made})
        say(made)
        note("Shown once. Scripts use it as `Authorization: Bearer …`.")


@token.command(name="list")
async def list_tokens(*, as_json: Json = False) -> None:
    """The API tokens, by their first characters."""
    async with opened() as engine:
        _list(
            await engine.setup.list_tokens(), "No tokens yet. Make one: midwatch token create NAME", as_json
        )


@token.command(name="revoke")
async def revoke_token(token_id: int, /) -> None:
    """Take a token's power."""
    async with opened() as engine:
        await engine.setup.revoke_token(token_id)
        say(f"Token {token_id} is revoked.")


def _list(listed: Sequence[Listed], nothing: str, as_json: bool) -> None:
    if as_json:
        return say_json(list(listed))
    rows = [
        (
            str(each.id),
            each.name,
            each.person or "",
            each.hint,
            f"made {local(each.created_at)}",
            f"revoked {local(each.revoked_at)}" if each.revoked_at else "",
        )
        for each in listed
    ]
    return say_table(rows, nothing)


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"There is no file {file}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read: {error}.") from None


def _value(typed: str | None) -> str | None:
    return sys.stdin.readline().strip() if typed == "-" else typed


def _url(engine: Opened) -> str:
    return engine.settings.public_url or f"http://localhost:{engine.settings.port}"
