"""The page behind an answer link: what is wrong, and a button for each answer.

Only draws; never decides and never asks the database. Built as a tree, which escapes every text that is put
into it: an alert can add no tag. It needs no script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from engine.models import IncidentStatus, IncidentView, Link
from engine.notify import render
from engine.notify.plain import one_line, web_address

STYLE: Final = """
:root { color-scheme: light dark;
  --page: #fff; --ink: #1b1f24; --soft: #59636e; --line: #d0d7de; --tell: #eef4fb }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181d; --ink: #e6e9ed; --soft: #9aa4af; --line: #363d46; --tell: #1d2a3a }
}
body { background: var(--page); color: var(--ink); font: 17px/1.45 system-ui, sans-serif;
  max-width: 36em; margin: 0 auto; padding: 16px; overflow-wrap: anywhere }
h1 { font-size: 1.25em; margin: .4em 0 }
p, li { color: var(--soft) } ul { padding-left: 1.2em }
.tell { color: var(--ink); background: var(--tell); border-radius: 8px; padding: 12px }
form { display: grid; gap: 12px; margin: 20px 0 }
button { font: inherit; font-weight: 600; min-height: 52px; border-radius: 10px; cursor: pointer;
  border: 1px solid var(--line); background: transparent; color: var(--ink) }
button.first { background: #1a56a8; border-color: #1a56a8; color: #fff }
"""
# Why a hash: nothing but this one sheet may style the page, whatever gets into it.
STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)

ACKNOWLEDGE: Final = ("acknowledge", "Acknowledge")
TOO: Final = ("acknowledge", "Acknowledge too")
RESOLVE: Final = ("resolve", "Resolve")
ESCALATE: Final = ("escalate", "Escalate: page the next one")
UNDO: Final = ("unacknowledge", "Undo: page again")
REOPEN: Final = ("reopen", "Undo: open it again")

GONE: Final = (
    "This link does not work, or not any more",
    "A link answers one page, for 24 hours. To answer now, use the card in Slack or /oncall list there, "
    "or reply to the SMS.",
)
AWAY: Final = "NOT applied: Midwatch cannot store this right now. Try again in a minute."
AWAY_TITLE: Final = "Midwatch cannot look this up right now"


@dataclass(frozen=True, slots=True)
class Shown:
    """An incident as one person sees it. `told` is what became of their click."""

    view: IncidentView
    person: str
    told: str = ""


def incident_page(shown: Shown) -> str:
    view = shown.view
    html, body = _page(f"#{view.number}")
    _text(body, "h1", render.headline(view))
    if shown.told:
        _text(body, "p", shown.told, {"class": "tell", "role": "status"})
    buttons = buttons_for(view, shown.person)
    if buttons:
        _form(body, buttons, view.epoch)
    facts = SubElement(body, "ul")
    for fact in render.facts(view):
        _text(facts, "li", fact)
    _alerts(body, view)
    _text(body, "p", f"You answer as {one_line(shown.person)}.")
    return _document(html)


def message_page(title: str, text: str) -> str:
    """A page about no incident."""
    html, body = _page("Midwatch")
    _text(body, "h1", title)
    _text(body, "p", text)
    return _document(html)


def buttons_for(view: IncidentView, person: str) -> Sequence[tuple[str, str]]:
    """What can be done now: verb and label, what one most likely came for first."""
    match view.status:
        case IncidentStatus.RESOLVED:
            # Only one's own mistake is taken back here: a button beside the right one is soon touched.
            return (REOPEN,) if view.resolved_by == person and view.merged_into is None else ()
        case IncidentStatus.ACKNOWLEDGED:
            too = () if view.acknowledged_by == person else (TOO,)
            return (*too, RESOLVE, ESCALATE, UNDO)
        case _:
            return (ACKNOWLEDGE, RESOLVE, ESCALATE)


def _form(body: Element, buttons: Sequence[tuple[str, str]], epoch: int) -> None:
    form = SubElement(body, "form", {"method": "post"})
    SubElement(form, "input", {"type": "hidden", "name": "seen", "value": str(epoch)})
    for place, (verb, label) in enumerate(buttons):
        attributes = {"name": "do", "value": verb, "class": "first" if place == 0 else "other"}
        _text(form, "button", label, attributes)


def _alerts(body: Element, view: IncidentView) -> None:
    alerts = SubElement(body, "ul")
    for alert in view.alerts:
        item = _text(alerts, "li", render.alert_line(alert))
        for link in alert.links:
            SubElement(item, "br")
            _link(item, link)


def _link(item: Element, link: Link) -> None:
    """A link where it leads to the web; any other address is text. Its host is shown beside the words."""
    host, words = web_address(link.url), one_line(link.text)
    if host is None:
        _text(item, "span", f"{words}: {one_line(link.url)}")
        return
    _text(item, "a", words, {"href": one_line(link.url), "rel": "noopener noreferrer"}).tail = f" ({host})"


def _page(title: str) -> tuple[Element, Element]:
    html = Element("html", {"lang": "en"})
    head = SubElement(html, "head")
    SubElement(head, "meta", {"charset": "utf-8"})
    SubElement(head, "meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    SubElement(head, "meta", {"name": "robots", "content": "noindex, nofollow"})
    _text(head, "title", f"Midwatch {title}")
    _text(head, "style", STYLE)
    return html, SubElement(html, "body")


def _text(parent: Element, tag: str, text: str, attributes: dict[str, str] | None = None) -> Element:
    element = SubElement(parent, tag, attributes or {})
    element.text = text
    return element


def _document(html: Element) -> str:
    return "<!doctype html>\n" + tostring(html, encoding="unicode", method="html")
