"""What other processes mean for this one: a schema that is too new, and workers that are not there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bot import lookout, outcry
from bot.app import Role, build
from bot.lookout import Lookout
from bot.settings import Settings
from engine import metrics, migrate
from engine.db import Tx, Writer
from engine.errors import Unavailable
from engine.migrate import Standing
from engine.models import ORG, Method
from engine.store import marks
from tests.fakes import FakeClock
from tests.scenario.harness import Pager, fire

NOBODY = timedelta(seconds=31)


@pytest.fixture
def schema(monkeypatch: pytest.MonkeyPatch) -> dict[str, Standing]:
    """What the schema says of this version, in the test's hand: a template has no revision."""
    said = {"now": Standing(migrate.newest())}

    async def standing(_: Any) -> Standing:
        return said["now"]

    monkeypatch.setattr(lookout, "standing", standing)
    return said


@pytest.fixture
def front(pager: Pager, schema: dict[str, Standing]) -> Lookout:
    """The lookout of a process that only accepts."""
    app = pager.app
    return Lookout(app.database, app.clock, app.outcry, app.retire, None)


def age(watch: Lookout, by: timedelta) -> None:
    watch._moved_at -= by.total_seconds()


async def nothing(_: Tx) -> None:
    """A unit of work that only needs to be let through."""


async def unavailable() -> Any:
    raise Unavailable


def shouted(pager: Pager) -> list[tuple[str, str]]:
    """What went straight to people, without a row."""
    heard = [(page.method.value, page.text) for page in pager.pages()]
    pager._heard.clear()
    return heard


async def test_a_web_without_a_worker_says_so(pager: Pager, front: Lookout) -> None:
    """After half a minute without a tick whoever runs Midwatch hears of it, once, though no worker sends
    it; a worker that comes ends that (B062)."""
    await front.once()
    assert front.silent is None
    age(front, NOBODY)
    for _ in range(2):
        await front.once()
    heard = shouted(pager)
    assert {method for method, _ in heard} == {"channel", "url"}
    assert len(heard) == 2
    assert all("midwatch run --only worker" in text for _, text in heard)
    assert metrics.worker_silent_seconds._value.get() > 30
    pager.app.lookout._working = lambda: True
    await pager.app.lookout.once()
    await front.once()
    assert front.silent is None


async def test_a_tick_counts_whatever_time_it_names(pager: Pager, front: Lookout) -> None:
    """A worker whose clock is off by a day ticks all the same: that it changes is what counts (F-23)."""
    await front.once()
    age(front, NOBODY)
    yesterday = pager.clock.now() - timedelta(days=1)
    await pager.app.database.write(lambda tx: marks.tick(tx, ORG, yesterday))
    await front.once()
    assert front.silent is None
    assert shouted(pager) == []


async def test_a_worker_whose_loops_hang_leaves_no_tick(pager: Pager, schema: dict[str, Standing]) -> None:
    """A tick says that timers are worked, not that a process exists (F-40)."""
    pulse = pager.app.watch.pulse
    pulse.expect("fate", within=timedelta(seconds=-1))  # whatever it does, it has stopped
    await pager.app.lookout.once()
    async with pager.app.database.snapshot() as tx:
        assert await marks.last_tick(tx, ORG) is None
    pulse.expect("fate")
    await pager.app.lookout.once()
    async with pager.app.database.snapshot() as tx:
        assert await marks.last_tick(tx, ORG) == pager.clock.now()


async def test_a_process_that_became_too_old_retires(pager: Pager, schema: dict[str, Standing]) -> None:
    """When the mark rises above it, it claims and takes nothing more, is unready, and says so once (F-20)."""
    app = pager.app
    app._started = True  # as after `start`, without its loops
    await app.lookout.once()
    schema["now"] = replace(schema["now"], revision="9999", newer=True, allowed=False)
    await app.lookout.once()
    assert "Upgrade Midwatch here" in app.lookout.retired
    assert (await app.health())["retired"] == app.lookout.retired
    assert [method for method, _ in shouted(pager)] == ["channel", "url"]
    with pytest.raises(Unavailable):
        await pager.receive(fire())
    assert await app.worker.run_due() == 0
    await app.retire("again")  # changes nothing


async def test_told_to_stop_while_it_retires_it_stops_once_and_to_its_end(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is being recorded then is recorded: no write is refused before the worker has ended."""
    app, entered, go_on, stops = pager.app, asyncio.Event(), asyncio.Event(), []

    async def stop() -> None:
        stops.append(1)
        entered.set()
        await go_on.wait()

    app._started = True  # as after `start`, without its loops
    monkeypatch.setattr(app.worker, "stop", stop)
    retiring = asyncio.create_task(app.retire("too old"))
    await entered.wait()
    retiring.cancel()
    await asyncio.wait({retiring})
    await app.database.write(nothing, rank=Writer.OUTCOME)
    stopping = asyncio.create_task(app._stop_working())
    go_on.set()
    await stopping
    assert stops == [1]


async def test_while_it_retires_it_accepts_nothing(pager: Pager, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alert is refused from the first moment; how a send ended is still recorded, until all are (F-20)."""
    app, seen = pager.app, []

    async def stop() -> None:
        with pytest.raises(Unavailable):
            await pager.receive(fire())
        await app.database.write(nothing, rank=Writer.OUTCOME)
        seen.append("recorded")

    app._started = True  # as after `start`, without its loops
    monkeypatch.setattr(app.worker, "stop", stop)
    await app.retire("too old")
    assert seen == ["recorded"]
    with pytest.raises(Unavailable):
        await app.database.write(nothing, rank=Writer.OUTCOME)


async def test_a_step_that_fails_keeps_no_other_from_its_turn(
    make_app: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told to stop, the process ends whatever it can: held work is finished and connections are closed."""
    app, done = make_app(None), []

    def stop_of(name: str) -> Callable[[], Any]:
        async def stop() -> None:
            done.append(name)
            raise RuntimeError(name)

        return stop

    app._started = True  # as after `start`, without its loops
    for name in ("lookout", "worker", "watch", "receiver", "nudge"):
        monkeypatch.setattr(getattr(app, name), "stop", stop_of(name))
    monkeypatch.setattr(app.sweeps, "stop", lambda: 1 / 0)
    for name in ("transports", "database"):
        monkeypatch.setattr(getattr(app, name), "close", stop_of(name))
    await app.stop()
    assert done == ["lookout", "worker", "watch", "receiver", "transports", "nudge", "database"]
    monkeypatch.undo()
    await app.database.close()


async def test_time_in_which_nobody_could_look_is_no_silence(
    pager: Pager, front: Lookout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage of the database the wait begins anew: the worker was without it too (F-40)."""
    await front.once()
    with monkeypatch.context() as away:
        away.setattr(front, "_look", unavailable)
        with pytest.raises(Unavailable):
            await front.once()
        age(front, NOBODY)
        assert front.silent is None
        pager.app.lookout = front
        assert "unknown" in (await pager.app.health())["workers"]
    await front.once()
    assert front.silent is None
    assert (await pager.app.health())["workers"] == "working"
    assert shouted(pager) == []
    age(front, NOBODY)
    await front.once()
    assert len(shouted(pager)) == 2


async def test_an_outcry_that_nobody_heard_is_tried_again(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a minute, not after a quarter of an hour; one that somebody heard is said once."""
    passed = 0.0
    monkeypatch.setattr(outcry, "monotonic", lambda: passed)
    down = {method: RuntimeError("away") for method in (Method.CHANNEL, Method.URL)}
    for method, error in down.items():
        pager.transports[method].always = error
    assert await pager.app.outcry.say("test", "it burns") is True
    passed = 59.0
    assert await pager.app.outcry.say("test", "it burns") is False
    for method in down:
        pager.transports[method].always = None
    passed = 61.0
    assert await pager.app.outcry.say("test", "it burns") is True
    assert len(shouted(pager)) == 2
    passed = 600.0
    assert await pager.app.outcry.say("test", "it burns") is False


async def test_an_outcry_reaches_whom_it_can(pager: Pager) -> None:
    """A transport that fails or raises keeps the others from nothing, and the caller hears no error."""
    pager.transports[Method.CHANNEL].always = RuntimeError("no Slack")
    assert await pager.app.outcry.say("test", "it burns") is True
    assert await pager.app.outcry.say("test", "it burns") is False
    assert shouted(pager) == [("url", "it burns")]


def test_roles_tick_only_with_a_worker(make_app: Callable[..., Any]) -> None:
    """Web and Slack alone never claim that timers are worked."""
    ticking = {only: make_app(only).lookout._working is not None for only in (None, *Role)}
    assert ticking == {None: True, Role.WORKER: True, Role.WEB: False, Role.SLACK: False}


@pytest.mark.parametrize(("mode", "web"), [("slack_app_token", False), ("slack_signing_secret", True)])
def test_who_hears_slack_knows_the_workspace(make_app: Callable[..., Any], mode: str, web: bool) -> None:
    """In HTTP mode Slack comes in by the web's port: that process connects, and learns who we are."""
    more = {"slack_bot_token": "xoxb-test", mode: "xapp-test"}
    hears = {only: make_app(only, **more).hears_slack for only in (None, *Role)}
    assert hears == {None: True, Role.SLACK: True, Role.WEB: web, Role.WORKER: False}


@pytest.fixture
def make_app(sqlite_url: str) -> Callable[..., Any]:
    def make(only: Role | None, **more: Any) -> Any:
        plain = {"database_url": sqlite_url, "secret_key": "a secret for tests only"}
        return build(Settings.model_validate(plain | more), FakeClock(), [], only=only)

    return make
