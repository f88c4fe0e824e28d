"""The demo's clock over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from bot.web.demo import DemoClock
from bot.web.parts import Demo
from bot.web.problems import Problem
from tests.fakes import START, FakeClock
from tests.web.conftest import Client, World
from tests.web.test_ingest import is_a_problem

PAGE = "http://127.0.0.1:8081"


@pytest.fixture
async def demo(world: World, clock: FakeClock, serve: Callable[..., Any]) -> Client:
    """One timer is due in five minutes; what is due is worked when the clock gets there."""
    due = [START + timedelta(minutes=5)]

    async def next_due() -> datetime | None:
        return due[0] if due else None

    async def advance(to: datetime) -> int:
        clock.move_to(to)
        worked = [when for when in due if when <= to]
        due[:] = [when for when in due if when > to]
        return len(worked)

    made: Client = await serve(world.parts, demo=Demo(next_due, advance, PAGE))
    return made


async def test_time_moves_to_the_next_timer(demo: Client) -> None:
    """The sandbox asks what is due next, moves there, and hears how much was worked."""
    due_at = (await demo.get("/demo/next")).json["due_at"]
    assert due_at == "2026-03-02T09:05:00+00:00"
    moved = await demo.post("/demo/advance", json={"to": due_at})
    assert moved.json == {"now": due_at, "worked": 1}
    assert (await demo.get("/demo/next")).json == {"due_at": None}


@pytest.mark.parametrize("body", [{}, {"to": "soon"}, {"to": "2026-03-02T09:05:00"}, [], {"to": None}])
async def test_an_instant_without_a_zone_moves_nothing(demo: Client, body: object) -> None:
    """422 with the place."""
    assert is_a_problem(await demo.post("/demo/advance", json=body), 422)


async def test_a_browser_is_taken_to_the_page(demo: Client) -> None:
    """Whoever opens Midwatch's own port in the demo sees the page; a script reads where it is."""
    answer = await demo.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (answer.status, answer.headers["Location"]) == (302, PAGE)
    answer = await demo.get("/")
    assert answer.status == 200
    assert PAGE in answer.text


class Peer:
    def __init__(self, host: str | None) -> None:
        self._host = host

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self._host, 1) if name == "peername" and self._host else default

    def is_closing(self) -> bool:
        return False


@pytest.mark.parametrize("host", ["192.0.2.7", "2001:db8::1", "fe80::1%eth0", None])
async def test_only_this_machine_moves_the_clock(world: World, host: str | None) -> None:
    """The peer of the connection decides, whatever its headers say."""

    async def refuse(*_: Any) -> Any:
        raise AssertionError("somebody else moved the clock")

    routes = DemoClock(replace(world.parts), Demo(refuse, refuse, PAGE))
    headers = {"X-Forwarded-For": "127.0.0.1", "Host": "localhost"}
    request = make_mocked_request("GET", "/demo/next", headers=headers, transport=Peer(host))
    with pytest.raises(Problem, match="this machine only"):
        await routes.next(request)
