"""The description of the API is valid, complete, and made from the routes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import BaseModel

from bot.web.openapi import document
from bot.web.routes import Reply, Route
from tests.web.conftest import PUBLIC_URL, Client


async def test_the_document_is_valid_openapi_3_1(client: Client) -> None:
    """It needs no token, and a validator has nothing to say about it."""
    answer = await client.get("/v1/openapi.json")
    assert answer.json["openapi"].startswith("3.1")
    assert answer.json["servers"] == [{"url": PUBLIC_URL}]
    OpenAPIV31SpecValidator(answer.json).validate()


async def test_every_operation_says_its_answers_and_problems(client: Client) -> None:
    """Names are unique, paths' parameters declared, and every operation may answer 401."""
    document = (await client.get("/v1/openapi.json")).json
    names = []
    for path, operations in document["paths"].items():
        for operation in operations.values():
            names.append(operation["operationId"])
            declared = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
            assert declared == set(re.findall(r"\{(\w+)\}", path))
            assert {"401", "503"} < set(operation["responses"])
            assert "application/problem+json" in operation["responses"]["401"]["content"]
            assert operation["summary"]
    assert len(names) == len(set(names)) == 27
    assert set(document["paths"]["/v1/incidents"]["post"]["responses"]) >= {"200", "201", "404", "413", "422"}


class Thing(BaseModel):
    name: str


async def test_a_handler_without_a_declared_answer_is_a_mistake_at_start() -> None:
    """What is not declared cannot be described, so it cannot be mounted."""

    async def show(caller: object) -> Thing:
        return Thing(name="x")

    with pytest.raises(TypeError, match="show must answer Reply"):
        Route("GET", "/things", show)  # type: ignore[arg-type]  # the mistake


async def test_routes_need_no_server_to_be_described() -> None:
    """Without a public address the document names none."""

    async def show(caller: object, *, path: Thing) -> Reply[Thing]:
        """Show it."""
        return Reply(path)

    made: dict[str, Any] = document([Route("GET", "/things/{name}", show)], version="1", server=None)
    OpenAPIV31SpecValidator(made).validate()
    assert "servers" not in made
