"""Dead letters as people type them: list, send again, put aside; one, all alike, or all.

Never looks anything up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bot.slack.grammar.typed import folded, tidy
from engine.errors import BadCommand

RETRY_FORM: Final = "`/oncall retry 17`, `/oncall retry like 17` or `/oncall retry all`"
CLEAR_FORM: Final = "`/oncall dead clear 17`, `/oncall dead clear like 17` or `/oncall dead clear all`"
_WHICH: Final = re.compile(r"(?:(?P<like>like|alike) )?#?(?P<number>\d{1,18})")


@dataclass(frozen=True, slots=True)
class ListDead:
    pass


@dataclass(frozen=True, slots=True)
class DealDead:
    """`number` None: all of them; `alike`: all that died of the same as this one."""

    retry: bool  # else they are put aside
    number: int | None
    alike: bool = False


Command = ListDead | DealDead


def parse(verb: str, typed: str) -> Command:
    """`verb` is dead or retry, `typed` what stands behind it."""
    words = folded(tidy(typed)).strip()
    first, _, rest = words.partition(" ")
    if verb == "retry":
        return _deal(words, RETRY_FORM, retry=True)
    if first in {"", "list", "ls", "letters"}:
        return ListDead()
    if first in {"retry", "resend"}:
        return _deal(rest, RETRY_FORM, retry=True)
    if first in {"clear", "dismiss", "forget"}:
        return _deal(rest, CLEAR_FORM, retry=False)
    raise BadCommand(f"`/oncall dead` shows what could not be delivered; then {RETRY_FORM}, or {CLEAR_FORM}.")


def _deal(words: str, form: str, *, retry: bool) -> DealDead:
    if words in {"all", "everything"}:
        return DealDead(retry, None)
    which = _WHICH.fullmatch(words)
    if which is None:
        raise BadCommand(f"Say which: {form}. `/oncall dead` shows the numbers.")
    return DealDead(retry, int(which["number"]), alike=which["like"] is not None)
