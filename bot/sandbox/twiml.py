"""TwiML read into verbs: what a call says, asks and does, and what an SMS is answered with.

Reads only; refuses document types, which no TwiML has and which make XML dangerous.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree as ET

LONGEST = 64 * 1024


class BadTwiml(ValueError):
    """This is not TwiML."""


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Gather:
    prompts: tuple[Say, ...]
    action: str
    num_digits: int | None
    timeout_s: float
    finish_on_key: str
    action_on_empty: bool


@dataclass(frozen=True, slots=True)
class Redirect:
    url: str


@dataclass(frozen=True, slots=True)
class Hangup:
    """Hang up, or refuse the call, which comes to the same once it is answered."""


@dataclass(frozen=True, slots=True)
class Text:
    """An SMS as the answer to one."""

    body: str
    to: str | None


Verb = Say | Gather | Redirect | Hangup | Text


def parse(document: str) -> tuple[Verb, ...]:
    if len(document) > LONGEST or "<!" in document.replace("<!--", ""):
        raise BadTwiml("too long, or with a document type")
    try:
        root = ET.fromstring(document.encode())  # noqa: S314  # no document type, so no entities, gets here
    except ET.ParseError as error:
        raise BadTwiml(str(error)) from None
    if root.tag != "Response":
        raise BadTwiml(f"the root is {root.tag}, not Response")
    return tuple(verb for element in root for verb in _verbs(element))


def _verbs(element: ET.Element) -> tuple[Verb, ...]:
    if element.tag == "Say":
        return (_say(element),)
    if element.tag == "Gather":
        return (_gather(element),)
    if element.tag == "Redirect":
        return (Redirect(_text(element)),)
    if element.tag in ("Hangup", "Reject"):
        return (Hangup(),)
    if element.tag in ("Message", "Sms"):
        return (Text(_text(element), element.get("to")),)
    if element.tag == "Pause":
        return ()
    return (Say(f"[{element.tag} {_text(element)}]".replace(" ]", "]")),)


def _say(element: ET.Element) -> Say:
    times = int(element.get("loop", "1") or 1)
    return Say(" ".join([_text(element)] * max(1, min(times, 10))))


def _gather(element: ET.Element) -> Gather:
    prompts = tuple(verb for child in element for verb in _verbs(child) if isinstance(verb, Say))
    digits = element.get("numDigits")
    return Gather(
        prompts,
        element.get("action", ""),
        int(digits) if digits and digits.isdigit() else None,
        float(element.get("timeout") or 5),
        element.get("finishOnKey", "#"),
        element.get("actionOnEmptyResult") == "true",
    )


def _text(element: ET.Element) -> str:
    """All the text inside, as it is spoken: SSML tags and line breaks become spaces."""
    return " ".join(" ".join(element.itertext()).split())
