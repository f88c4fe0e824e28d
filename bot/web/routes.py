"""Typed routes on aiohttp: what a handler takes and answers is declared once, in its signature.

A handler is `async def name(caller, *, path: P, query: Q, body: B) -> Reply[R]` with pydantic
models, each of the three optional. From that come validation, the answer and the OpenAPI document.
Never decides anything, and never echoes what was sent.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints

from aiohttp import web
from multidict import MultiMapping
from pydantic import BaseModel, ValidationError

from bot.web import bodies
from bot.web.problems import Problem, invalid
from engine.store.directory import TokenRow

R = TypeVar("R", bound=BaseModel)
Authenticate = Callable[[web.Request], Awaitable[TokenRow]]
PARTS: Final = ("path", "query", "body")


@dataclass(frozen=True, slots=True)
class Reply(Generic[R]):
    content: R
    status: int = 200


@dataclass(frozen=True, slots=True)
class Route:
    """One method and path. `statuses` are the successes and what each means."""

    method: str
    path: str
    handler: Callable[..., Awaitable[Reply[Any]]]
    statuses: Mapping[int, str] = field(default_factory=lambda: {200: "OK"})
    problems: tuple[int, ...] = ()
    models: Mapping[str, type[BaseModel]] = field(init=False)
    body_required: bool = field(init=False, default=False)
    answer: type[BaseModel] = field(init=False)

    def __post_init__(self) -> None:
        hints = get_type_hints(self.handler)
        answer = hints["return"]
        if get_origin(answer) is not Reply:
            raise TypeError(f"{self.name} must answer Reply[Model]")
        parameters = inspect.signature(self.handler).parameters
        needed = "body" in parameters and parameters["body"].default is inspect.Parameter.empty
        object.__setattr__(self, "models", {part: _model(hints[part]) for part in PARTS if part in hints})
        object.__setattr__(self, "body_required", needed)
        object.__setattr__(self, "answer", get_args(answer)[0])

    @property
    def name(self) -> str:
        return getattr(self.handler, "__name__", type(self.handler).__name__)

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.handler) or self.name).partition("\n")[0]


def _model(hint: Any) -> type[BaseModel]:
    """Of `Model` or `Model | None`: the model."""
    model: type[BaseModel] = next((each for each in get_args(hint) if each is not type(None)), hint)
    return model


def mount(app: web.Application, routes: tuple[Route, ...], authenticate: Authenticate) -> None:
    for route in routes:
        app.router.add_route(route.method, route.path, _adapted(route, authenticate))


def _adapted(
    route: Route, authenticate: Authenticate
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await authenticate(request)
        arguments = await _arguments(route, request)
        reply = await route.handler(caller, **arguments)
        text = reply.content.model_dump_json(by_alias=True)
        return web.Response(status=reply.status, text=text, content_type="application/json")

    return handle


async def _arguments(route: Route, request: web.Request) -> dict[str, BaseModel]:
    arguments: dict[str, BaseModel] = {}
    for part, model in route.models.items():
        value = await _value(route, part, model, request)
        if value is None:
            continue
        try:
            arguments[part] = model.model_validate(value)
        except ValidationError as error:
            raise invalid(part, error) from None
    return arguments


async def _value(route: Route, part: str, model: type[BaseModel], request: web.Request) -> Any:
    if part == "path":
        return dict(request.match_info)
    if part == "query":
        return _query(model, request.query)
    if not request.can_read_body:
        if route.body_required:
            raise Problem(400, "This needs a JSON body.")
        return None
    return await bodies.read_json(request, bodies.LIMIT)


def _query(model: type[BaseModel], query: MultiMapping[str]) -> dict[str, Any]:
    """Lists for what the model holds as a list (`?status=a&status=b` or `?status=a,b`)."""
    values: dict[str, Any] = {}
    for name in query:
        known = model.model_fields.get(name)
        if known is not None and get_origin(known.annotation) in {list, tuple}:
            values[name] = [word for text in query.getall(name) for word in text.split(",") if word]
        else:
            values[name] = query[name]
    return values
