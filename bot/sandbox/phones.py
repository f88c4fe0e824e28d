"""The phones of the sandbox: their numbers, SMS and calls.

Holds what happened; what happens next is decided by `texting` and `calls`.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.sandbox.agenda import Appointment
from bot.sandbox.changes import Changes
from bot.sandbox.twiml import Gather, Verb

ENDED = frozenset({"completed", "busy", "no-answer", "canceled", "failed"})


class Mode(StrEnum):
    """What a phone does by itself, whoever has it."""

    NORMAL = "normal"  # rings until somebody does something
    VOICEMAIL = "voicemail"  # a machine takes each call after a while
    BUSY = "busy"
    OFF = "off"  # calls come to nothing, texts do not arrive
    LANDLINE = "landline"  # takes calls and no texts
    QUIET = "dnd"  # Do Not Disturb: rings, and nobody hears it
    LET_THROUGH = "dnd_contact"  # the same, and Midwatch is a contact that may ring


def new_sid(prefix: str) -> str:
    return prefix + secrets.token_hex(16)


@dataclass(eq=False, slots=True)
class Sms:
    sid: str
    account: str
    direction: str  # Twilio's: outbound-api, outbound-reply, inbound
    from_: str
    to: str
    body: str
    at: datetime
    status: str
    callback: str | None = None
    error_code: int | None = None
    posting: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class Mail:
    """One that arrived; it is read on the phone."""

    sid: str
    to: str
    subject: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Listening:
    """A call that waits for keys, and what follows if none come."""

    gather: Gather
    rest: tuple[Verb, ...]
    base: str
    typed: str = ""


@dataclass(eq=False, slots=True)
class Call:
    sid: str
    account: str
    from_: str
    to: str
    at: datetime
    twiml: str | None
    url: str | None
    callback: str | None
    callback_events: frozenset[str]
    timeout_s: float
    machine_detection: bool
    status: str = "queued"
    said: list[str] = field(default_factory=list)
    digits: list[str] = field(default_factory=list)
    listening: Listening | None = None
    answered_at: datetime | None = None
    ended_at: datetime | None = None
    answered_by: str | None = None
    posted: int = 0  # status callbacks so far
    timer: Appointment | None = None
    posting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def live(self) -> bool:
        return self.status not in ENDED

    @property
    def shown_status(self) -> str:
        return "voicemail" if self.answered_by == "machine_start" and not self.live else self.status


@dataclass(slots=True)
class Phone:
    number: str
    owner: str | None = None
    name: str | None = None
    opted_out: bool = False
    mode: Mode = Mode.NORMAL
    sms: list[Sms] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    mails: list[Mail] = field(default_factory=list)

    def call(self, *statuses: str) -> Call | None:
        """The call in one of these states, the oldest first."""
        return next((call for call in self.calls if call.status in statuses), None)

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "owner": self.owner,
            "name": self.name,
            "mode": self.mode.value,
            "sms": [
                {
                    "sid": sms.sid,
                    "direction": "in" if sms.to == self.number else "out",
                    "from": sms.from_,
                    "to": sms.to,
                    "body": sms.body,
                    "at": sms.at.isoformat(),
                    "status": sms.status,
                }
                for sms in self.sms
            ],
            "calls": [
                {
                    "sid": call.sid,
                    "status": call.shown_status,
                    "said": list(call.said),
                    "gathering": call.listening is not None,
                    "digits": list(call.digits),
                    "at": call.at.isoformat(),
                }
                for call in self.calls
            ],
            "mails": [
                {
                    "sid": mail.sid,
                    "to": mail.to,
                    "subject": mail.subject,
                    "text": mail.text,
                    "at": mail.at.isoformat(),
                }
                for mail in self.mails
            ],
        }


class Exchange:
    def __init__(self, our_number: str, changes: Changes) -> None:
        self.our_number = our_number
        self.phones: dict[str, Phone] = {}
        self.messages: dict[str, Sms] = {}
        self.calls: dict[str, Call] = {}
        self._changes = changes

    def phone(self, number: str) -> Phone:
        """The phone with this number; a number that nobody knew is one from now on."""
        return self.phones.setdefault(number, Phone(number))

    def find(self, name: str) -> Phone | None:
        """By number or by the name of its owner."""
        named = (p for p in self.phones.values() if name in (p.number, p.owner, p.name))
        return next(named, None)

    def add_sms(self, sms: Sms) -> None:
        self.messages[sms.sid] = sms
        self.phone(sms.from_ if sms.direction == "inbound" else sms.to).sms.append(sms)
        self.changed()

    def add_mail(self, mail: Mail) -> None:
        """On the phone of whoever has that name; of a stranger there is none."""
        if (phone := self.find(mail.to.partition("@")[0])) is not None:
            phone.mails.append(mail)
        self.changed()

    def add_call(self, call: Call) -> None:
        self.calls[call.sid] = call
        self.phone(call.to).calls.append(call)
        self.changed()

    def changed(self) -> None:
        self._changes.mark("phones")
