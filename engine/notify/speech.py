"""What a telephone call says, as TwiML made by its builder.

Pure; never takes a digit itself. Foreign text is cleaned of what XML cannot hold (one such character
would make the call silent), escaped by the builder, and short: nobody listens for a minute at night.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from twilio.twiml.voice_response import Gather, VoiceResponse

from engine.models import IncidentStatus, IncidentView, Page
from engine.notify import bundle_words
from engine.notify.plain import one_line, shorten, without_urls
from engine.notify.render import ASKS_FOR_AN_ANSWER

SPOKEN: Final = 300
SERVICE_LENGTH: Final = 40
KEYS: Final = "Press 4 to acknowledge, 6 to resolve, 8 to escalate, star to repeat."
BY_SMS: Final = "Reply 4 by SMS to acknowledge."
KEYS_FOR_ALL: Final = "Press 4 to acknowledge all, 6 to resolve all, 8 to escalate all, star to repeat."
ALL_BY_SMS: Final = "Reply ack all by SMS to acknowledge all."
GATHER_SECONDS: Final = 8
STATE: Final = {
    IncidentStatus.TRIGGERED: "firing",
    IncidentStatus.ACKNOWLEDGED: "acknowledged",
    IncidentStatus.UNANSWERED: "unanswered",
    IncidentStatus.RESOLVED: "resolved",
}


def page_twiml(page: Page, action_url: str | None) -> str:
    """The call for any page: about an incident it asks for a key, else it says its text and ends."""
    if page.incident is not None and page.kind in ASKS_FOR_AN_ANSWER:
        return call_twiml(page.incidents, action_url)
    return answer_twiml(page.text or (page.incident.title if page.incident else ""))


def call_twiml(views: Sequence[IncidentView], action_url: str | None) -> str:
    """Says what is wrong, twice. With `action_url` a key is posted there; else SMS is the way."""
    keys, by_sms = (KEYS, BY_SMS) if len(views) == 1 else (KEYS_FOR_ALL, ALL_BY_SMS)
    spoken = said_of(views, keys if action_url else by_sms)
    response = VoiceResponse()
    for _ in range(2):
        if action_url:
            response.append(_gather(spoken, action_url))
        else:
            response.say(spoken)
            response.pause(length=1)
    response.hangup()
    return str(response)


def spoken(page: Page, ask: str) -> str:
    """What a call says where nothing can be pressed."""
    if page.incident is not None and page.kind in ASKS_FOR_AN_ANSWER:
        return said_of(page.incidents, ask).strip()
    return spoken_text(page.text or (page.incident.title if page.incident else ""), SPOKEN)


def answer_twiml(text: str, again_url: str | None = None) -> str:
    """Says one thing; with `again_url` another key may follow, else the call ends."""
    spoken = spoken_text(text, SPOKEN)
    response = VoiceResponse()
    if again_url:
        response.append(_gather(spoken, again_url))
    else:
        response.say(spoken)
    response.hangup()
    return str(response)


def said_of(views: Sequence[IncidentView], ask: str) -> str:
    return said(views[0], ask) if len(views) == 1 else bundle_words.spoken(views, SPOKEN, ask)


def said(view: IncidentView, ask: str) -> str:
    """The sentence of a call, at most `SPOKEN` characters; what must be cut is cut from the title."""
    service = spoken_text(view.service, SERVICE_LENGTH)
    head = f"Midwatch. Incident {view.number} {STATE[view.status]}, service {service}: "
    title = spoken_text(view.title, SPOKEN - len(head) - len(ask) - 2)
    return f"{head}{title.rstrip('. ')}. {ask}"


def spoken_text(text: str, limit: int) -> str:
    return shorten(without_urls(one_line(text)), limit)


def _gather(spoken: str, url: str) -> Gather:
    gather = Gather(num_digits=1, action=url, method="POST", timeout=GATHER_SECONDS, input="dtmf")
    gather.say(spoken)
    return gather
