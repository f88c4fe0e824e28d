"""Addresses as people type them: one spelling for each, or a sentence that says what to type instead.

Pure; never asks whether anybody is there, and never repeats an address in an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from engine.errors import BadInput
from engine.models import Method

PHONE: Final = re.compile(r"\+[1-9]\d{6,14}", re.ASCII)
EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")
LONGEST: Final = 500
ADDED_BY_PEOPLE: Final = (Method.SMS, Method.VOICE, Method.EMAIL, Method.PUSH)

_BETWEEN_DIGITS: Final = re.compile(r"[\s().\-/\u00a0\u2010-\u2015\u2212\u200e\u202a-\u202c]+")
_TRUNK: Final = re.compile(r"(?<=\d)\s*\(0\)")  # +44 (0)20 …: the 0 is dialled inside the country only

# A code sent there costs this install's owner money: satellites, networks of no country, premium rates and
# personal numbers, by what national numbering plans set aside for them. No list of these is complete: the
# countries that are allowed, and the limits of codes, hold for the rest.
_SATELLITE: Final = ("+870", "+878", "+881", "+882", "+883")
_PREMIUM: Final = (
    *("+979", "+808", "+1900", "+449", "+4470", "+4487", "+49900", "+49137", "+3389", "+3989", "+3290"),
    *("+43900", "+43901", "+43930", "+43931", "+43939", "+41900", "+41901", "+41906", "+31900", "+31906"),
    *("+31909", "+34803", "+34806", "+34807", "+34905", "+4870", "+61190"),
)

# What runs on this machine's desktop or log, and what posts to any address at all.
_NOT_PUSH: Final = frozenset(
    {
        *("dbus", "qt", "glib", "kde", "gnome", "macosx", "windows", "syslog", "file", "exec"),
        *("json", "jsons", "xml", "xmls", "form", "forms", "apprise", "apprises", "mailto", "mailtos"),
        *("http", "https", "workflow", "workflows"),
    }
)


def cleaned(kind: Method, typed: str, countries: Sequence[str] = ()) -> str:
    """The address in its one spelling. `countries`: the calling codes that numbers may have; none: all."""
    text = typed.strip()
    if len(text) > LONGEST:
        raise BadInput("That is too long for an address.")
    if kind in {Method.SMS, Method.VOICE}:
        return _number(text, countries)  # what does not print is between the digits of many that are copied
    if any(not letter.isprintable() for letter in text):
        raise BadInput("That is no address that can be used: it has letters that do not print.")
    if kind is Method.EMAIL:
        return _mail(text)
    if kind is Method.PUSH:
        return _push(text)
    raise BadInput("Only SMS, voice, email and push are added here; Slack is by `/oncall me`.")


def _number(text: str, countries: Sequence[str]) -> str:
    number = _BETWEEN_DIGITS.sub("", _TRUNK.sub("", text.removeprefix("tel:")))
    if number.startswith("00"):
        number = f"+{number[2:]}"
    if not PHONE.fullmatch(number):
        raise BadInput("A number begins with + and its country code, like +12025550143.")
    if number.startswith((*_SATELLITE, *_PREMIUM)):
        raise BadInput(
            "Satellite and premium-rate numbers cannot be added. Take a mobile number or a landline."
        )
    if countries and not number.startswith(tuple(countries)):
        allowed = " or ".join(countries)
        raise BadInput(
            f"Numbers here begin with {allowed}. An admin may allow more (MIDWATCH_SMS_COUNTRIES)."
        )
    return number


def _mail(text: str) -> str:
    address = text.removeprefix("mailto:")
    plain = address.isascii() and EMAIL.fullmatch(address)  # what is not is sent by few mail servers
    if not plain or address.startswith("-") or set(address) & set('<>,;:"()[]\\'):
        raise BadInput("An email address is like ana@example.com, one alone.")
    return address


def _push(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        raise BadInput(_LIKE_A_PUSH) from None
    if not parts.scheme or "://" not in text or re.search(r"\s", text):
        raise BadInput(_LIKE_A_PUSH)
    if parts.scheme.lower() in _NOT_PUSH:
        raise BadInput(f"That kind of URL reaches no phone. {_LIKE_A_PUSH}")
    # Why: Apprise would read such files where Midwatch runs.
    if any(
        "file" in name.lower() or name.lower() in {"template", "attach"} for name, _ in parse_qsl(parts.query)
    ):
        raise BadInput("A push URL may not name files.")
    return text


_LIKE_A_PUSH: Final = (
    "A push URL is one that Apprise knows, like ntfy://topic, pover://user@token or gotify://host/token."
)
