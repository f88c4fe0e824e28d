"""Dead letters in the REST API: list, send again, put aside.

Never decides anything; one call of the engine per request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from pydantic import BaseModel, Field

from bot.web.parts import WebParts
from bot.web.routes import Reply, Route
from bot.web.shapes import Act, Id
from engine.models import Actor, DeliveryKind, Method
from engine.pager.dead_letters import DeadLetters, Dealt
from engine.store.dead_letters import DeadLetter
from engine.store.directory import TokenRow


class LetterPath(BaseModel):
    id: Id


class LettersQuery(BaseModel):
    limit: int = Field(default=25, ge=1, le=100)
    cursor: Id | None = Field(default=None, description="`next` of the page before")


class Deal(Act):
    alike: bool = Field(default=False, description="all that died of the same, too")


class ShownLetter(BaseModel):
    id: int
    kind: DeliveryKind
    method: Method
    to: str = Field(description="a name or a channel; never an address of a person")
    incident: int | None = Field(description="the number of the incident it was about")
    reason: str
    died_at: datetime | None


class ShownLetters(BaseModel):
    count: int = Field(description="how many there are in all")
    items: list[ShownLetter]
    next: str | None


class Outcome(BaseModel):
    done: int
    left: dict[str, int] = Field(description="why the others were left alone, and how many")


class DeadLettersApi:
    def __init__(self, parts: WebParts, actor: Callable[[TokenRow, Act | None], Awaitable[Actor]]) -> None:
        self._actor = actor
        # Why no nudge: any worker looks by itself each second.
        self._letters = DeadLetters(parts.database, parts.clock, parts.roster.directory, lambda: None)
        self.routes = (
            Route("GET", "/v1/dead_letters", self.list_dead_letters),
            Route("POST", "/v1/dead_letters/retry", self.retry_dead_letters, problems=(403,)),
            Route("POST", "/v1/dead_letters/clear", self.clear_dead_letters, problems=(403,)),
            Route("POST", "/v1/dead_letters/{id}/retry", self.retry_dead_letter, problems=(403, 404)),
            Route("POST", "/v1/dead_letters/{id}/clear", self.clear_dead_letter, problems=(403, 404)),
        )

    async def list_dead_letters(self, caller: TokenRow, *, query: LettersQuery) -> Reply[ShownLetters]:
        """List what could not be delivered and nobody dealt with, newest first."""
        found = await self._letters.list(query.limit + 1, query.cursor)
        shown, more = found[: query.limit], len(found) > query.limit
        after = str(shown[-1].delivery.id) if more else None
        items = [_shown(one) for one in shown]
        return Reply(ShownLetters(count=await self._letters.count(), items=items, next=after))

    async def retry_dead_letters(self, caller: TokenRow, *, body: Act | None = None) -> Reply[Outcome]:
        """Send again all that is still wanted."""
        return _outcome(await self._letters.retry(await self._actor(caller, body)))

    async def clear_dead_letters(self, caller: TokenRow, *, body: Act | None = None) -> Reply[Outcome]:
        """Take all from the list without sending them."""
        return _outcome(await self._letters.put_aside(await self._actor(caller, body)))

    async def retry_dead_letter(
        self, caller: TokenRow, *, path: LetterPath, body: Deal | None = None
    ) -> Reply[Outcome]:
        """Send one again, or with `alike` all that died of the same."""
        actor = await self._actor(caller, body)
        return _outcome(await self._letters.retry(actor, path.id, alike=body is not None and body.alike))

    async def clear_dead_letter(
        self, caller: TokenRow, *, path: LetterPath, body: Deal | None = None
    ) -> Reply[Outcome]:
        """Take one from the list without sending it, or with `alike` all that died of the same."""
        actor = await self._actor(caller, body)
        return _outcome(await self._letters.put_aside(actor, path.id, alike=body is not None and body.alike))


def _outcome(dealt: Dealt) -> Reply[Outcome]:
    return Reply(Outcome(done=dealt.done, left=dict(dealt.left)))


def _shown(one: DeadLetter) -> ShownLetter:
    letter = one.delivery
    return ShownLetter(
        id=letter.id,
        kind=letter.kind,
        method=letter.method,
        to=one.whom,
        incident=one.incident,
        reason=letter.reason,
        died_at=letter.ended_at,
    )
