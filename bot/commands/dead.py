"""dead: what could not be delivered, from a terminal: listed, sent again, put aside.

Never sends: the running Midwatch does, and sees what is done here within a second.
"""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from bot.commands.opened import Opened, me, opened
from bot.commands.say import ago, say, say_json, say_table
from engine.errors import BadCommand
from engine.pager.dead_letters import DeadLetters, Dealt
from engine.store.dead_letters import Cause, DeadLetter

Json = Annotated[bool, Parameter("--json", negative=())]
Everything = Annotated[bool, Parameter("--all", negative=())]
Alike = Annotated[bool, Parameter("--alike", negative=())]

dead = App(name="dead", help="Messages that could not be delivered: list them, send them again.")


@dead.command(name="list")
async def list_(*, each: bool = False, limit: int = 50, as_json: Json = False) -> None:
    """What could not be delivered, by cause; the newest first.

    Parameters
    ----------
    each
        Every message by itself, in place of its cause.
    limit
        How many lines at most.
    """
    async with opened() as engine:
        letters = _letters(engine)
        if each or as_json:
            found = await letters.list(max(1, limit))
            if as_json:
                return say_json([_plain(one) for one in found])
            return say_table([_row(one, engine) for one in found], "No dead letters.")
        seen = await letters.overview(max(1, limit))
        say_table([_cause(one, engine) for one in seen.causes], "No dead letters.")
        if seen.count:
            say(f"{seen.count} in all. midwatch dead retry NUMBER [--alike] sends them again, clear ends it.")


@dead.command(name="retry")
async def retry(
    number: int | None = None,
    /,
    *,
    alike: Alike = False,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Send again what is still wanted, with all of its tries.

    Parameters
    ----------
    number
        Of the message, as the list shows it.
    alike
        All that died of the same.
    everything
        All there are.
    """
    _one_or_all(number, everything)
    async with opened() as engine:
        _say(await _letters(engine).retry(me(), number, alike=alike), "queued again", as_json)


@dead.command(name="clear")
async def clear(
    number: int | None = None,
    /,
    *,
    alike: Alike = False,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Take messages from the list without sending them.

    Parameters
    ----------
    number
        Of the message, as the list shows it.
    alike
        All that died of the same.
    everything
        All there are.
    """
    _one_or_all(number, everything)
    async with opened() as engine:
        _say(await _letters(engine).put_aside(me(), number, alike=alike), "put aside", as_json)


def _letters(engine: Opened) -> DeadLetters:
    return DeadLetters(engine.database, engine.clock, engine.roster.directory, _not_here)


def _not_here() -> None:
    """The running Midwatch looks by itself each second."""


def _one_or_all(number: int | None, everything: bool) -> None:
    if (number is None) is not everything:
        raise BadCommand("Say which: a number of `midwatch dead list`, or --all.")


def _say(dealt: Dealt, done: str, as_json: bool) -> None:
    if as_json:
        return say_json(dealt)
    return say(f"{dealt.done} {done}.", *(f"{count} not: {why}." for why, count in dealt.left.items()))


def _cause(one: Cause, engine: Opened) -> tuple[str, ...]:
    return (*_row(one.newest, engine), f"{one.count} of this cause")


def _row(one: DeadLetter, engine: Opened) -> tuple[str, ...]:
    letter = one.delivery
    return (
        str(letter.id),
        f"{letter.kind} by {letter.method}",
        one.whom,
        f"#{one.incident}" if one.incident else "",
        ago(letter.ended_at or letter.due_at, engine.clock.now()),
        letter.reason,
    )


def _plain(one: DeadLetter) -> dict[str, Any]:
    letter = one.delivery
    return {
        "id": letter.id,
        "kind": letter.kind,
        "method": letter.method,
        "to": one.whom,
        "incident": one.incident,
        "reason": letter.reason,
        "died_at": letter.ended_at,
    }
