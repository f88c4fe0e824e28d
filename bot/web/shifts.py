"""The shifts of one schedule over the REST API: who was, is and will be on call, gaps among them.

Never works out who is on call; the roster does.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from pydantic import BaseModel, Field

from bot.web.parts import WebParts
from bot.web.problems import Problem
from bot.web.routes import Reply, Route
from bot.web.shapes import Instant, OnCallPerson, SchedulePath
from engine.errors import NotFound
from engine.rota.on_call import ShiftOf
from engine.store.directory import TokenRow

USUAL: Final = timedelta(days=14)
LONGEST: Final = timedelta(days=366)


class ShiftsQuery(BaseModel):
    start: Instant | None = Field(default=None, alias="from", description="now, if it is not given")
    end: Instant | None = Field(default=None, alias="to", description="two weeks later, if it is not given")


class ShiftItem(BaseModel):
    start: datetime
    end: datetime
    people: list[OnCallPerson] = Field(description="empty: a gap, nobody is on call")


class ShiftItems(BaseModel):
    schedule_id: int
    schedule: str
    items: list[ShiftItem] = Field(description="as long as can be, one after the other without a break")


class ShiftsApi:
    def __init__(self, parts: WebParts) -> None:
        self._parts = parts
        path = "/v1/schedules/{name}/shifts"
        self.routes = (Route("GET", path, self.list_shifts, problems=(404,)),)

    async def list_shifts(
        self, caller: TokenRow, *, path: SchedulePath, query: ShiftsQuery
    ) -> Reply[ShiftItems]:
        """The shifts of a schedule from one instant up to another."""
        start = query.start or self._parts.clock.now()
        end = query.end or start + USUAL
        if not start < end <= start + LONGEST:
            reason = "after `from`, and at most 366 days"
            raise Problem(422, "That is no stretch of time.", errors=[{"at": "query.to", "reason": reason}])
        directory = await self._parts.roster.directory()
        named = next((one for one in directory.schedules.values() if one.name == path.name), None)
        if named is None:
            raise NotFound("There is no schedule of that name.")
        found = await self._parts.roster.shifts(start, end, named.id)
        items = [_item(shift) for one in found for shift in one.shifts]
        return Reply(ShiftItems(schedule_id=named.id, schedule=named.name, items=items))


def _item(shift: ShiftOf) -> ShiftItem:
    people = [OnCallPerson(id=person.id, name=person.name) for person in shift.people]
    return ShiftItem(start=shift.start, end=shift.end, people=people)
