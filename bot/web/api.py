"""The REST API: incidents listed, shown, opened, acknowledged and resolved, and who is on call.

Never decides anything; one call of the engine per request, and its answer in the API's words.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from aiohttp import web

from bot.web import openapi, shapes
from bot.web.contacts import ContactsApi
from bot.web.dead_letters import DeadLettersApi
from bot.web.keys import Tokens
from bot.web.maintenance import MaintenanceApi
from bot.web.parts import WebParts
from bot.web.problems import Problem
from bot.web.routes import Reply, Route, mount
from bot.web.shapes import (
    Act,
    Acted,
    Incident,
    IncidentPath,
    Incidents,
    ListQuery,
    MergeInto,
    NewIncident,
    OnCall,
    OnCallQuery,
    OnCalls,
    SchedulePath,
    WholeIncident,
)
from bot.web.shifts import ShiftsApi
from engine.errors import NotFound, Refused
from engine.models import Actor, IncidentView, Via
from engine.pager.respond import Answer
from engine.store.directory import TokenRow


class Api:
    def __init__(self, parts: WebParts) -> None:
        self._parts = parts
        self._tokens = Tokens(parts.database)
        self.routes = (
            Route("GET", "/v1/incidents", self.list_incidents),
            Route(
                "POST",
                "/v1/incidents",
                self.open_incident,
                {201: "It was opened", 200: "It was open already"},
                problems=(404,),
            ),
            Route("GET", "/v1/incidents/{id}", self.get_incident, problems=(404,)),
            Route("POST", "/v1/incidents/{id}/acknowledge", self.acknowledge_incident, problems=(403, 404)),
            Route("POST", "/v1/incidents/{id}/resolve", self.resolve_incident, problems=(403, 404)),
            Route("POST", "/v1/incidents/{id}/merge", self.merge_incident, problems=(403, 404)),
            Route("POST", "/v1/incidents/{id}/unmerge", self.unmerge_incident, problems=(403, 404)),
            Route("GET", "/v1/schedules/oncall", self.list_on_call),
            Route("GET", "/v1/schedules/{name}/oncall", self.get_on_call, problems=(404,)),
            *ShiftsApi(parts).routes,
            *MaintenanceApi(parts, self._actor).routes,
            *DeadLettersApi(parts, self._actor).routes,
            *ContactsApi(parts, self._actor).routes,
        )

    @cached_property
    def document(self) -> dict[str, Any]:
        return openapi.document(self.routes, version=self._parts.version, server=self._parts.public_url)

    def mount(self, app: web.Application) -> None:
        mount(app, self.routes, self._tokens.bearer)
        app.router.add_get("/v1/openapi.json", self.describe)

    async def describe(self, request: web.Request) -> web.Response:
        return web.json_response(self.document)

    async def list_incidents(self, caller: TokenRow, *, query: ListQuery) -> Reply[Incidents]:
        """List incidents, newest first."""
        before = None if query.cursor is None else int(query.cursor)
        views = await self._parts.views.list(query.status or None, query.limit + 1, before)
        shown, more = views[: query.limit], len(views) > query.limit
        items = [shapes.incident(view) for view in shown if view.org_id == caller.org_id]
        return Reply(Incidents(items=items, next=str(shown[-1].id) if more else None))

    async def get_incident(self, caller: TokenRow, *, path: IncidentPath) -> Reply[WholeIncident]:
        """Show an incident with its timeline and who was told."""
        view = await self._view(caller, path.id)
        timeline = await self._parts.views.timeline(view.id)
        deliveries = await self._parts.views.deliveries(view.id)
        people = (await self._parts.roster.directory()).people
        whole = WholeIncident(
            **shapes.incident_fields(view),
            timeline=[shapes.entry(each) for each in timeline],
            deliveries=[shapes.sending(each, people) for each in deliveries],
        )
        return Reply(whole)

    async def open_incident(self, caller: TokenRow, *, body: NewIncident) -> Reply[Incident]:
        """Open an incident by hand, or be given the one that is open for the key."""
        services = (await self._parts.roster.directory()).services.values()
        service = next((each for each in services if each.name == body.service), None)
        if service is None:
            raise NotFound("There is no service of that name.")
        actor = await self._actor(caller, None)
        incident_id, created = await self._parts.receiver.open_by_hand(
            caller.org_id, service.id, body.title, body.dedup_key, actor
        )
        view = await self._view(caller, incident_id)
        return Reply(shapes.incident(view), 201 if created else 200)

    async def acknowledge_incident(
        self, caller: TokenRow, *, path: IncidentPath, body: Act | None = None
    ) -> Reply[Acted]:
        """Acknowledge an incident: nobody is paged for it any more."""
        one = await self._known(caller, path.id)
        return _acted(await self._parts.responder.acknowledge(one, await self._actor(caller, body)))

    async def resolve_incident(
        self, caller: TokenRow, *, path: IncidentPath, body: Act | None = None
    ) -> Reply[Acted]:
        """Resolve an incident."""
        one = await self._known(caller, path.id)
        return _acted(await self._parts.responder.resolve(one, await self._actor(caller, body)))

    async def merge_incident(self, caller: TokenRow, *, path: IncidentPath, body: MergeInto) -> Reply[Acted]:
        """Merge an incident into another: it is over, and its alerts go on there."""
        one, other = await self._known(caller, path.id), await self._known(caller, body.into)
        return _acted(await self._parts.responder.merge(one, await self._actor(caller, body), other))

    async def unmerge_incident(
        self, caller: TokenRow, *, path: IncidentPath, body: Act | None = None
    ) -> Reply[Acted]:
        """Take a merged incident out again: it is open, and people are paged for it anew."""
        one = await self._known(caller, path.id)
        return _acted(await self._parts.responder.unmerge(one, await self._actor(caller, body)))

    async def list_on_call(self, caller: TokenRow, *, query: OnCallQuery) -> Reply[OnCalls]:
        """Who is on call, on every schedule."""
        shifts = await self._parts.roster.who(query.at)
        return Reply(OnCalls(items=[shapes.on_call(each) for each in shifts]))

    async def get_on_call(self, caller: TokenRow, *, path: SchedulePath, query: OnCallQuery) -> Reply[OnCall]:
        """Who is on call on one schedule."""
        shifts = await self._parts.roster.who(query.at)
        found = next((each for each in shifts if each.schedule == path.name), None)
        if found is None:
            raise NotFound("There is no schedule of that name.")
        return Reply(shapes.on_call(found))

    async def _view(self, caller: TokenRow, incident_id: int) -> IncidentView:
        view = await self._parts.views.incident(incident_id)
        if view is None or view.org_id != caller.org_id:
            raise NotFound("There is no such incident.")
        return view

    async def _known(self, caller: TokenRow, incident_id: int) -> int:
        """The id of one that is there: what an answer needs of it before it is given."""
        if not await self._parts.views.is_there(caller.org_id, incident_id):
            raise NotFound("There is no such incident.")
        return incident_id

    async def _actor(self, caller: TokenRow, act: Act | None) -> Actor:
        """For whom this is done: a person's token acts for that person, others for whom they name."""
        wanted = None if act is None else act.user_id
        person_id = wanted if caller.person_id is None else caller.person_id
        if person_id is None:
            return Actor(f"API token {caller.token_id}", Via.API)
        if wanted not in {None, person_id}:
            raise Refused("This token acts for its own person only.")
        person = (await self._parts.roster.directory()).people.get(person_id)
        if person is None or not person.active:
            raise Problem(
                422, "There is no such person.", errors=[{"at": "body.user_id", "reason": "unknown"}]
            )
        return Actor(person.name, Via.API, person.id, person.slack_user_id)


def _acted(answer: Answer) -> Reply[Acted]:
    fields: dict[str, Any] = shapes.incident_fields(answer.incident)
    return Reply(Acted(**fields, changed=answer.changed, reason=answer.reason))
