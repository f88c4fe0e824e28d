"""Maintenance windows in the REST API: list, start, end early.

Never decides anything; one call of the engine per request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from bot.web.parts import WebParts
from bot.web.routes import Reply, Route
from bot.web.shapes import Act, Id, Instant, Word
from engine.directory import Service
from engine.errors import NotFound
from engine.models import Actor
from engine.pager.maintenance import REASON_MAX, Maintenance
from engine.store.directory import TokenRow
from engine.store.maintenance import Window


class WindowPath(BaseModel):
    id: Id


class NewWindow(Act):
    service: Word | None = Field(description="its name; null: all services")  # no default: all must be meant
    start_at: Instant | None = Field(default=None, description="now, if it is not given")
    end_at: Instant = Field(description="at most 24 hours after it begins")
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=REASON_MAX)] = ""

    @model_validator(mode="before")
    @classmethod
    def _all_by_null(cls, body: Any) -> Any:
        """Why before the fields: of one that is missing, pydantic says no more than that."""
        if isinstance(body, dict) and "service" not in body:
            raise PydanticCustomError("service_missing", "service: name it, or send null for all services")
        return body


class ShownWindow(BaseModel):
    id: int
    service: str | None
    start_at: datetime
    end_at: datetime
    reason: str
    created_by: str


class ShownWindows(BaseModel):
    items: list[ShownWindow]


class MaintenanceApi:
    def __init__(self, parts: WebParts, actor: Callable[[TokenRow, Act | None], Awaitable[Actor]]) -> None:
        self._parts = parts
        self._actor = actor
        self._windows = Maintenance(parts.database, parts.clock)
        self.routes = (
            Route("GET", "/v1/maintenance", self.list_maintenance),
            Route(
                "POST",
                "/v1/maintenance",
                self.start_maintenance,
                {201: "It is on, or planned"},
                problems=(400, 403, 404),
            ),
            Route("POST", "/v1/maintenance/{id}/end", self.end_maintenance, problems=(403, 404)),
        )

    async def list_maintenance(self, caller: TokenRow) -> Reply[ShownWindows]:
        """List the maintenance windows that are on or planned."""
        services = await self._services()
        return Reply(ShownWindows(items=[_shown(one, services) for one in await self._windows.list()]))

    async def start_maintenance(self, caller: TokenRow, *, body: NewWindow) -> Reply[ShownWindow]:
        """Hold back the pages of a service, or of all, for a while."""
        services = await self._services()
        meant = [one.id for one in services.values() if one.name == body.service]
        if body.service is not None and not meant:
            raise NotFound("There is no service of that name.")
        actor = await self._actor(caller, body)
        start_at = body.start_at or self._parts.clock.now()
        service_id = meant[0] if meant else None
        window = await self._windows.start(service_id, start_at, body.end_at, body.reason, actor)
        return Reply(_shown(window, services), 201)

    async def end_maintenance(
        self, caller: TokenRow, *, path: WindowPath, body: Act | None = None
    ) -> Reply[ShownWindow]:
        """End a maintenance window early: what it holds is paged within 5 minutes."""
        ended = await self._windows.end_one(path.id, await self._actor(caller, body))
        return Reply(_shown(ended, await self._services()))

    async def _services(self) -> Mapping[int, Service]:
        return (await self._parts.roster.directory()).services


def _shown(window: Window, services: Mapping[int, Service]) -> ShownWindow:
    service = services.get(window.service_id or 0)
    return ShownWindow(
        id=window.id,
        service=service.name if service is not None else None,
        start_at=window.start_at,
        end_at=window.end_at,
        reason=window.reason,
        created_by=window.created_by,
    )
