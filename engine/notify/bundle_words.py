"""What one message about several incidents says: how many, where, and each by its number.

Pure; never decides which travel together. Every title is foreign text, cleaned here for its medium.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.models import IncidentView
from engine.notify import gsm7
from engine.notify.plain import defang, one_line, shorten, without_urls

SERVICE_LENGTH: Final = 40
TITLES: Final = (60, 40, 25, 15)  # septets of each, the longest that let all stand in two parts
LISTED: Final = 50  # in a mail; the rest is counted
LINE_LENGTH: Final = 200


def headline(views: Sequence[IncidentView]) -> str:
    """How many, and on which service. "New" until somebody had their time to answer one of them."""
    paged_before = any(view.round > 1 or view.pass_ > 0 or view.level > 0 for view in views)
    services = list(dict.fromkeys(one_line(view.service) for view in views))
    where = shorten(services[0], SERVICE_LENGTH) if len(services) == 1 else f"{len(services)} services"
    return f"{len(views)} {'open' if paged_before else 'new'} incidents on {where}"


def sms(name: str, views: Sequence[IncidentView], tail: str) -> str:
    """At most two parts: the numbers of as many as fit, with what can be said of them."""
    head = f"{name}: {gsm7.to_gsm(headline(views))}: "
    room = gsm7.TWO_PARTS - gsm7.septets(head) - gsm7.septets(tail)
    for width in TITLES:
        said = ", ".join(f"#{view.number} {_title(view, width)}" for view in views)
        if gsm7.septets(said) <= room:
            return f"{head}{said}{tail}"
    return f"{head}{_numbers(views, room)}{tail}"


def _title(view: IncidentView, width: int) -> str:
    # Defanged after the mapping: that may make a dot of something that was none.
    return gsm7.cut(defang(" ".join(gsm7.to_gsm(one_line(view.title)).split())), width) or "(no summary)"


def _numbers(views: Sequence[IncidentView], room: int) -> str:
    named = [f"#{view.number}" for view in views]
    for kept in range(len(named), 0, -1):
        said = ", ".join(named[:kept]) + more(len(named) - kept)
        if len(said) <= room:
            return said
    return ""


def more(count: int) -> str:
    return f" +{count} more" if count > 0 else ""


def spoken(views: Sequence[IncidentView], limit: int, ask: str) -> str:
    """The sentence of a call, at most `limit` characters; what must be cut is cut from the first's title."""
    head = f"Midwatch. {without_urls(headline(views))}. The first: incident {views[0].number}, "
    title = shorten(without_urls(one_line(views[0].title)), limit - len(head) - len(ask) - 2)
    return f"{head}{title.rstrip('. ')}. {ask}"


def in_short(views: Sequence[IncidentView], limit: int) -> str:
    """Below a headline that is shown already."""
    said = ", ".join(f"#{view.number} {shorten(one_line(view.title), 60)}" for view in views[:LISTED])
    return shorten(said + more(len(views) - LISTED), limit)


def line(view: IncidentView, state: str) -> str:
    title = shorten(one_line(view.title), LINE_LENGTH) or "(no summary)"
    return f"#{view.number} {state} {shorten(one_line(view.service), SERVICE_LENGTH)}: {title}"
