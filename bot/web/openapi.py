"""The OpenAPI 3.1 document, made from the declared routes.

Never written by hand: what is not declared on a route cannot be said here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel, Field
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from bot.web.problems import CONTENT_TYPE
from bot.web.routes import Route

REF: Final = "#/components/schemas/{model}"
ALWAYS: Final = (401, 500, 503)


class ProblemError(BaseModel):
    at: str = Field(description="where: body, query or path, then the field")
    reason: str


class ProblemDocument(BaseModel):
    """RFC 9457"""

    type: str
    title: str
    status: int
    detail: str
    errors: list[ProblemError] = []


Names = Mapping[tuple[Any, JsonSchemaMode], Any]  # of a model and its mode: the reference to its schema


def document(routes: Iterable[Route], *, version: str, server: str | None) -> dict[str, Any]:
    routes = tuple(routes)
    names, schemas = _schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, names)
    openapi: dict[str, Any] = {
        "openapi": "3.1.1",
        "info": {"title": "Midwatch", "version": version, "description": "The on-call pager's REST API."},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }
    if server is not None:
        openapi["servers"] = [{"url": server}]
    return openapi


def _schemas(routes: tuple[Route, ...]) -> tuple[Names, dict[str, Any]]:
    wanted: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {(ProblemDocument, "serialization"): None}
    for route in routes:
        wanted[(route.answer, "serialization")] = None
        if "body" in route.models:
            wanted[(route.models["body"], "validation")] = None
    names, definitions = models_json_schema(list(wanted), ref_template=REF)
    return names, definitions["$defs"]


def _operation(route: Route, names: Names) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "responses": _responses(route, names),
    }
    if parameters := [*_parameters(route, "path"), *_parameters(route, "query")]:
        operation["parameters"] = parameters
    if "body" in route.models:
        schema = names[(route.models["body"], "validation")]
        operation["requestBody"] = {
            "required": route.body_required,
            "content": {"application/json": {"schema": schema}},
        }
    return operation


def _parameters(route: Route, part: str) -> list[dict[str, Any]]:
    if part not in route.models:
        return []
    schema = route.models[part].model_json_schema(mode="validation")
    required = set(schema.get("required", ()))
    in_path = set(re.findall(r"\{(\w+)\}", route.path))
    return [
        {
            "name": name,
            "in": part,
            "required": name in required or name in in_path,
            "schema": _inlined(field, schema.get("$defs", {})),
        }
        for name, field in schema["properties"].items()
    ]


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """A parameter's schema on its own: a reference into its model becomes what it refers to."""
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {key: _inlined(value, definitions) for key, value in schema.items()}


def _responses(route: Route, names: Names) -> dict[str, Any]:
    answer = names[(route.answer, "serialization")]
    responses: dict[str, Any] = {
        str(status): {"description": text, "content": {"application/json": {"schema": answer}}}
        for status, text in route.statuses.items()
    }
    invalid = (400, 413, 415, 422) if "body" in route.models else (422,) if route.models else ()
    problem = {CONTENT_TYPE: {"schema": names[(ProblemDocument, "serialization")]}}
    for status in sorted({*ALWAYS, *invalid, *route.problems}):
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
    return responses
