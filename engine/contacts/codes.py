"""Codes that verify a contact method: how one is made, said and read, and how many there may be.

Never keeps a code: what is stored is a keyed hash, and for its delivery a cipher.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine.errors import BadInput, TooMany
from engine.models import Method

DIGITS: Final = 6
GOOD_FOR: Final = timedelta(minutes=15)
TRIES: Final = 5
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
PER_PERSON: Final = 3  # in an hour
PER_ADDRESS: Final = 3  # in a day, whoever asks for them
PER_INSTALL: Final = 30  # in an hour

SEALED: Final = "code"  # in the body of its delivery, encrypted
_CODE: Final = re.compile(rf"[0-9]{{{DIGITS}}}", re.ASCII)
_BETWEEN: Final = re.compile(r"[\s\-–.,]+")


@dataclass(frozen=True, slots=True)
class Asked:
    """How many codes were asked for: by this person in an hour, for this address in a day, by all in an
    hour."""

    person: int
    address: int
    install: int


class TooManyInAll(TooMany):
    """Too many codes were asked for in this hour, by everybody together; try again in an hour."""


def new_code() -> str:
    return "".join(secrets.choice("0123456789") for _ in range(DIGITS))


def read(typed: str) -> str:
    """The digits that were typed. What can be no code is no try."""
    code = _BETWEEN.sub("", typed)
    if not _CODE.fullmatch(code):
        raise BadInput(f"A code has {DIGITS} digits, like 123456.")
    return code


def check(asked: Asked) -> None:
    """Raises the same for a person as for an address: whose an address is besides is nobody's business."""
    if asked.install >= PER_INSTALL:
        raise TooManyInAll
    if asked.person >= PER_PERSON or asked.address >= PER_ADDRESS:
        raise TooMany(
            f"Too many codes: there are {PER_PERSON} an hour for a person, and {PER_ADDRESS} a day for an "
            "address. Try again later; the last one that came may still be good."
        )


def words(code: str, method: Method) -> str:
    """What is sent. A call says it digit by digit, three times: it is written down meanwhile."""
    if method is Method.VOICE:
        spoken = ", ".join(code)
        return f"Midwatch. Your code is: {spoken}. Once more: {spoken}. And again: {spoken}."
    minutes = int(GOOD_FOR.total_seconds() // 60)
    return f"Your code is {code}. It is good for {minutes} minutes, and nobody will ask you for it."


def left(tries: int, expires_at: datetime, now: datetime) -> int:
    """How often a code may still be tried."""
    return 0 if expires_at <= now else max(0, TRIES - tries)
