"""GET and POST /answer/{token}: answers a page by the link that stood in it.

Never changes anything on GET or HEAD: mail programs and their scanners fetch every link. Never says of a
link that does not work why it does not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from aiohttp import web

from bot.web import answer_page, bodies
from bot.web.answer_page import Shown
from bot.web.parts import WebParts
from bot.web.signatures import form_of
from engine import links
from engine.directory import Person
from engine.errors import MidwatchError, Unavailable
from engine.links import Links
from engine.models import Actor, IncidentView, Via
from engine.pager.respond import Answer
from engine.store import deliveries

# Why no token against forged forms (CSRF): whoever cannot read the address cannot post to it, and who can
# may press the buttons. No cookie is involved.
HEADERS: Final = {
    "Content-Security-Policy": answer_page.POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
}
BODY_LIMIT: Final = 4096

Respond = Callable[[int, Actor], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Opened:
    """What a good link opens: one incident, for one person."""

    view: IncidentView
    person: Person


class AnswerPage:
    def __init__(self, parts: WebParts, signed: Links) -> None:
        self._parts = parts
        self._links = signed

    def mount(self, app: web.Application) -> None:
        app.router.add_get(f"{links.PATH}{{token}}", self.show)
        app.router.add_post(f"{links.PATH}{{token}}", self.answer)

    async def show(self, request: web.Request) -> web.Response:
        try:
            opened = await self._open(request.match_info["token"])
        except Unavailable:
            return _away()
        return _gone() if opened is None else _page(Shown(opened.view, opened.person.name))

    async def answer(self, request: web.Request) -> web.Response:
        form: Mapping[str, str] = form_of(await bodies.read(request, BODY_LIMIT)) or {}
        try:
            opened = await self._open(request.match_info["token"])
        except Unavailable:
            return _away()
        if opened is None:
            return _gone()
        try:
            shown = await self._act(opened, form)
        except Unavailable:
            return _page(Shown(opened.view, opened.person.name, answer_page.AWAY), status=503)
        except MidwatchError as error:
            shown = Shown(opened.view, opened.person.name, str(error))
        return _page(shown)

    async def _act(self, opened: Opened, form: Mapping[str, str]) -> Shown:
        person = opened.person
        respond = self._verbs(form.get("seen", "")).get(form.get("do", ""))
        if respond is None:
            return Shown(opened.view, person.name)
        actor = Actor(person.name, Via.WEB, person.id, person.slack_user_id)
        answer = await respond(opened.view.id, actor)
        said = answer.reason.rstrip(".")
        return Shown(answer.incident, person.name, f"{said[:1].upper()}{said[1:]}.")

    def _verbs(self, seen: str) -> Mapping[str, Respond]:
        """By the button's value. What does something else each time it is done is bound to the incident as
        the page showed it: a second press of the same button, or a reload, does nothing."""
        responder = self._parts.responder
        epoch = int(seen) if seen.isascii() and seen.isdecimal() and len(seen) < 10 else -1
        return {
            "acknowledge": responder.acknowledge,
            "resolve": responder.resolve,
            "escalate": partial(responder.escalate, seen=epoch),
            "unacknowledge": partial(responder.unacknowledge, seen=epoch),
            "reopen": partial(responder.reopen, seen=epoch),
        }

    async def _open(self, token: str) -> Opened | None:
        """None for a link that was never made here, is over, or is that of somebody who left."""
        claim = links.read(token)
        if claim is None:
            return None
        async with self._parts.database.look() as tx:
            found = await deliveries.read(tx, [claim.delivery_id])
        delivery = found.get(claim.delivery_id)
        if delivery is None or delivery.incident_id is None or delivery.person_id is None:
            return None
        now = self._parts.clock.now()
        if not self._links.holds(claim, delivery.incident_id, delivery.person_id, now):
            return None
        person = (await self._parts.roster.directory()).people.get(delivery.person_id)
        view = await self._parts.views.incident(delivery.incident_id)
        return None if view is None or person is None or not person.active else Opened(view, person)


def _page(shown: Shown, *, status: int = 200) -> web.Response:
    return _html(answer_page.incident_page(shown), status)


def _gone() -> web.Response:
    return _html(answer_page.message_page(*answer_page.GONE), 404)


def _away() -> web.Response:
    return _html(answer_page.message_page(answer_page.AWAY_TITLE, "Try again in a minute."), 503)


def _html(document: str, status: int) -> web.Response:
    return web.Response(
        status=status,
        body=document.encode(errors="replace"),
        content_type="text/html",
        charset="utf-8",
        headers=HEADERS,
    )
