"""What a page says in an SMS, in a mail, in a push message and in any other of plain text.

Pure: one page in, text out. Never Slack (its cards are drawn where Slack is) and never speech.
Everything of an alert is foreign text: cleaned, and escaped or defanged for its medium.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from typing import Final, TypeAlias

from engine.links import Links
from engine.models import Alert, AlertStatus, DeliveryKind, IncidentStatus, IncidentView, Link, Page
from engine.notify import bundle_words, gsm7
from engine.notify.plain import defang, one_line, shorten, web_address

NAME: Final = "Midwatch"
SERVICE_LENGTH: Final = 40
SUBJECT_LENGTH: Final = 150
LINE_LENGTH: Final = 500
TEXT_LINES: Final = 30
PUSH_LENGTH: Final = 300  # what a locked screen shows, and somewhat more

STATE: Final = {
    IncidentStatus.TRIGGERED: "FIRING",
    IncidentStatus.ACKNOWLEDGED: "ACKNOWLEDGED",
    IncidentStatus.UNANSWERED: "UNANSWERED",
    IncidentStatus.RESOLVED: "RESOLVED",
}
ASKS_FOR_AN_ANSWER: Final = frozenset({DeliveryKind.PAGE, DeliveryKind.RESPONDER})
REPLY: Final = "Reply 4 to ack, 6 to resolve"
SLACK_DOWN: Final = "slack_down"  # in a body: whoever reads it should not look for a card
LOUD: Final = "loud"  # in a body: no page, and to be heard like one
NOT_READ: Final = "Nobody reads replies to this mail."
BUTTON: Final = "display:inline-block;padding:12px 20px;background:#1a56a8;color:#fff;text-decoration:none"


LinkOf: TypeAlias = Callable[[Page], str | None]  # where this page is answered by a click on a web page


@dataclass(frozen=True, slots=True)
class Mail:
    subject: str
    text: str
    html: str


def no_link(_page: Page) -> None:
    """Where nobody's browser reaches us, pages carry no link."""


def answer_link(page: Page, links: Links, now: datetime) -> str | None:
    """Only for a page that one person gets: whoever clicks must have a name."""
    if page.person_id is None or page.incident is None or page.kind not in ASKS_FOR_AN_ANSWER:
        return None
    return links.url(page.id, page.incident.id, page.person_id, now)


def sms(page: Page, *, answer_to: str | None = None, replies: bool = True) -> str:
    """At most two parts in the SMS alphabet; what must be cut is cut from the foreign text.

    `replies`: a reply to this message reaches us. Else it names the number that does, if there is one.
    """
    view = page.incident
    if view is None:
        return _sms(f"{NAME}: ", _told(page))
    if is_bundle(page):
        how = _how_by_sms(page, view, answer_to, replies=replies)
        return bundle_words.sms(NAME, page.incidents, f".{how}")
    service = gsm7.cut(gsm7.to_gsm(_service(view)), SERVICE_LENGTH)
    if page.kind not in ASKS_FOR_AN_ANSWER:
        return _sms(f"{NAME} #{view.number} {service}: ", _told(page) or _title(view))
    head = f"{NAME} #{view.number} {STATE[view.status]} {service}: "
    said = " - ".join(filter(None, (_told(page), _title(view))))
    return _sms(head, said, f"{_others(view)}.{_how_by_sms(page, view, answer_to, replies=replies)}")


def is_bundle(page: Page) -> bool:
    """Does it ask for an answer about several incidents?"""
    return page.kind in ASKS_FOR_AN_ANSWER and len(page.incidents) > 1


def _how_by_sms(page: Page, view: IncidentView, answer_to: str | None, *, replies: bool) -> str:
    many = is_bundle(page)
    down = " Slack is down." if page.body.get(SLACK_DOWN) else ""
    if replies:
        return f"{down} Reply ACK ALL or ACK {view.number}" if many else f"{down} {REPLY}"
    words = "ACK ALL" if many else f"ACK {view.number}"
    return f"{down} Text {words} to {answer_to}" if answer_to else down


def _sms(head: str, foreign: str, tail: str = "") -> str:
    room = gsm7.TWO_PARTS - gsm7.septets(head) - gsm7.septets(tail)
    body = " ".join(gsm7.to_gsm(foreign).split()) or "(no summary)"
    # Defanged after the mapping: that may make a dot of something that was none.
    return head + gsm7.cut(defang(body), room) + tail


def subject(page: Page) -> str:
    """One subject for all messages of an incident: mail programs group by it."""
    view = page.incident
    if view is None:
        return shorten(f"[{NAME}] {_told(page)}", SUBJECT_LENGTH)
    if is_bundle(page):
        return shorten(f"[{NAME}] {bundle_words.headline(page.incidents)}", SUBJECT_LENGTH)
    return shorten(f"[{NAME} #{view.number}] {_service(view)}: {_title(view)}", SUBJECT_LENGTH)


def text(page: Page, link: str | None = None) -> str:
    """Plain text of any length: what a fallback URL is given. `link` is where this page is answered."""
    return "\n".join(_lines(page, link))


def push(page: Page, link: str | None = None) -> str:
    """A few words below the subject, which has the title, and the link whole."""
    view = page.incident
    if view is None:
        return text(page)
    if is_bundle(page):
        return bundle_words.in_short(page.incidents, PUSH_LENGTH)
    state = f"{STATE[view.status]}{_others(view)}" if page.kind in ASKS_FOR_AN_ANSWER else ""
    said = shorten(": ".join(filter(None, (state, _told(page)))) or _title(view), PUSH_LENGTH)
    return f"{said}\n{link}" if link else said


def mail(page: Page, link: str | None = None) -> Mail:
    return Mail(subject(page), f"{text(page, link)}\n\n{NOT_READ}", _html(page, link))


def bundled_mail(page: Page, link_of: LinkOf) -> Mail:
    """Each incident in a line, with the link that answers it."""
    views, links = page.incidents, {one.incident.id: link_of(one) for one in _each(page) if one.incident}
    title, left = bundle_words.headline(views), bundle_words.more(len(views) - bundle_words.LISTED)
    lines, items = [title, ""], []
    for view in views[: bundle_words.LISTED]:
        link = links[view.id]
        line = bundle_words.line(view, STATE[view.status])
        lines += [f"- {line}", *([f"  {link}"] if link else [])]
        items.append(f"<li>{_html_line(line, link)}</li>")
    how = _how_to_answer(views[0], None)
    plain = "\n".join([*lines, *filter(None, [left]), "", *how, "", NOT_READ])
    parts = [f"<h2>{escape(title)}</h2>", f"<ul>{''.join(items)}</ul>", f"<p>{escape(left)}</p>"]
    parts.append(f"<p>{'<br>'.join(map(escape, how))}</p><p><small>{NOT_READ}</small></p>")
    return Mail(subject(page), plain, _document("".join(parts)))


def _each(page: Page) -> list[Page]:
    """A page for each delivery that it carries, and itself."""
    alone = replace(page, carried=())
    return [alone, *(replace(alone, id=one.id, incident=one.incident) for one in page.carried)]


def _html_line(line: str, link: str | None) -> str:
    return escape(line) if link is None else f'{escape(line)} <a href="{escape(link)}">Answer</a>'


def _document(body: str) -> str:
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{body}</body></html>'


def _lines(page: Page, link: str | None) -> list[str]:
    view = page.incident
    lines = _paragraph(page)
    if view is None:
        return lines
    lines += [""] if lines else []
    lines += [headline(view), *facts(view), ""]
    for alert in view.alerts:
        lines.append(f"- {alert_line(alert)}")
        lines += [f"  {one_line(link.text)}: {one_line(link.url)}" for link in alert.links]
    if page.kind in ASKS_FOR_AN_ANSWER:
        lines += ["", *_how_to_answer(view, link)]
    return lines


def _html(page: Page, link: str | None) -> str:
    view = page.incident
    parts = [f"<p>{'<br>'.join(map(escape, paragraph))}</p>" for paragraph in [_paragraph(page)] if paragraph]
    if view is not None:
        parts.append(f"<h2>{escape(headline(view))}</h2>")
        if page.kind in ASKS_FOR_AN_ANSWER:
            parts.append(f"<p>{_html_answer(view, link)}</p>")
        parts.append(f"<p>{'<br>'.join(map(escape, facts(view)))}</p>")
        parts.append(f"<ul>{''.join(map(_html_alert, view.alerts))}</ul>")
    parts.append(f"<p><small>{NOT_READ}</small></p>")
    return _document("".join(parts))


def _html_answer(view: IncidentView, link: str | None) -> str:
    if link is None:
        return "<br>".join(map(escape, _how_to_answer(view, None)))
    # Why no more than a link: what a mail program fetches by itself must answer nothing.
    return f'<a href="{escape(link)}" style="{BUTTON}">Acknowledge, resolve or escalate</a>'


def _html_alert(alert: Alert) -> str:
    links = "".join(f"<br>{_html_link(link)}" for link in alert.links)
    return f"<li>{escape(alert_line(alert))}{links}</li>"


def _html_link(link: Link) -> str:
    host = web_address(link.url)
    if host is None:
        return escape(f"{one_line(link.text)}: {one_line(link.url)}")
    # The host is shown beside the words: an alert may say "status page" and lead elsewhere.
    return f'<a href="{escape(one_line(link.url))}">{escape(one_line(link.text))}</a> ({escape(host)})'


def _told(page: Page) -> str:
    return one_line(page.text)


def _paragraph(page: Page) -> list[str]:
    lines = [shorten(one_line(line), LINE_LENGTH) for line in page.text.splitlines()[:TEXT_LINES]]
    return lines if any(lines) else []


def _service(view: IncidentView) -> str:
    return shorten(one_line(view.service), SERVICE_LENGTH)


def _title(view: IncidentView) -> str:
    return shorten(one_line(view.title), LINE_LENGTH) or "(no summary)"


def _others(view: IncidentView) -> str:
    others = view.firing_count - 1
    return "" if others < 1 else f" (+{others} alert{'s' if others > 1 else ''})"


def headline(view: IncidentView) -> str:
    return f"#{view.number} {STATE[view.status]}: {_title(view)}"


def facts(view: IncidentView) -> list[str]:
    """What is known of it, a line each; foreign text, cleaned and not escaped."""
    found = [f"Service: {_service(view)}", f"Since: {_when(view.opened_at)}"]
    if view.severity or view.raw_severity:
        found.append(f"Severity: {view.severity or one_line(view.raw_severity)}")
    if view.acknowledged_by and view.status is IncidentStatus.ACKNOWLEDGED:
        found.append(f"Acknowledged by: {one_line(view.acknowledged_by)}")
    if view.resolved_by and view.status is IncidentStatus.RESOLVED:
        found.append(f"Resolved by: {one_line(view.resolved_by)}")
    if view.alert_count > len(view.alerts):
        found.append(f"Alerts: {view.alert_count}, the newest {len(view.alerts)} are below")
    return found


def alert_line(alert: Alert) -> str:
    state = "firing" if alert.status is AlertStatus.FIRING else "resolved"
    summary = shorten(one_line(alert.summary), LINE_LENGTH)
    return f"{summary} ({state}, seen {alert.event_count} times since {_when(alert.first_seen_at)})"


def _how_to_answer(view: IncidentView, link: str | None) -> list[str]:
    by_link = [f"Acknowledge, resolve or escalate: {link}"] if link else []
    return [*by_link, f"To acknowledge: /oncall ack {view.number} in Slack, or press Ack on its card."]


def _when(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
