"""demo: Midwatch and the sandbox in one command, with a team to try it on.

Never touches the settings of a real install: it has its own directory, ports and keys.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import aiohttp
from cyclopts import Parameter

from bot.app import App, build
from bot.commands.child import answering, sandbox_process
from bot.commands.say import say
from bot.commands.stopping import stop_signal
from bot.logs import set_up_logs
from bot.secret_key import FILE, with_secret_key
from bot.settings import Settings
from bot.sole import sole_process
from engine.clock import MovableClock, SystemClock
from engine.config.parse import parse_config
from engine.errors import BadInput, MidwatchError
from engine.migrate import upgrade

DATABASE: Final = "midwatch.sqlite3"
KEY: Final = "demo"  # the integration key and the API token, both
HOST: Final = "127.0.0.1"
AHEAD: Final = "clock_ahead"  # seconds: the demo's time may have been moved forward
SMS: Final = "/webhooks/twilio/sms"
HIGHEST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a demo is: its ports and its directory."""

    port: int
    data: Path
    empty: bool = False

    @property
    def midwatch(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def page(self) -> str:
        return f"http://{HOST}:{self.port + 1}"

    @property
    def smtp_port(self) -> int:
        return self.port + 2

    @property
    def sandbox_log(self) -> Path:
        return self.data / "sandbox.log"

    @property
    def log(self) -> Path:
        return self.data / "midwatch.log"


async def demo(
    *,
    port: int = 8080,
    data: Path = Path("data/demo"),
    fresh: Annotated[bool, Parameter(negative=())] = False,
    empty: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Try Midwatch without a Slack account: everything on this machine.

    Parameters
    ----------
    port
        Midwatch's port; the sandbox page has the one after it.
    data
        Where the demo keeps its database; it is used again the next time.
    fresh
        Start over with a new one.
    empty
        Without the team: what a new install looks like. It is kept in a directory of its own, DATA-empty.
    """
    data = Path(f"{data}-empty") if empty else data
    ground = Ground(port, data, empty=empty)
    for each in (port, port + 1):
        _must_be_free(each, port)
    _prepare(data, fresh=fresh)
    set_up_logs(path=ground.log)
    with stop_signal() as stop:
        serving = asyncio.create_task(_serve(ground))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not serving.done():
            say("", "Stopping …")
            serving.cancel()
            await asyncio.wait({serving})
        if not serving.cancelled():
            serving.result()
    say("Stopped. What happened is kept; start over with FRESH=1 (or --fresh).")


def settings(ground: Ground) -> Settings:
    """What a real install sets in its environment."""
    second = f"json{ground.page.removeprefix('http')}/second"
    return Settings.model_validate(
        {
            "demo": True,
            "database_url": f"sqlite:///{ground.data / DATABASE}",
            "public_url": ground.midwatch,
            "bind": f"{HOST}:{ground.port}",
            "ops_channel": "#ops",
            "slack_bot_token": "xoxb-demo",
            "slack_app_token": "xapp-demo",
            "slack_api_url": f"{ground.page}/api",
            "twilio_account_sid": "AC" + "0" * 32,
            "twilio_auth_token": "demo",
            "twilio_from": "+12025550100",
            "twilio_api_url": ground.page,
            "smtp_url": f"smtp://{HOST}:{ground.smtp_port}?from=midwatch@example.com",
            "sms_fallback_url": f"{second}/sms/{{to}}",
            "voice_fallback_url": f"{second}/voice/{{to}}",
        }
    )


async def _serve(ground: Ground) -> None:
    """Until cancelled. The sandbox is there first, so that Slack answers when Midwatch asks."""
    clock, ahead = MovableClock(), _time_moved(ground)
    clock.move_to(clock.now() + ahead)
    sms = ("--sms-url", f"{ground.midwatch}{SMS}")
    arguments = ("--port", str(ground.port + 1), *sms, "--smtp-port", str(ground.smtp_port))
    log = ground.sandbox_log
    async with sandbox_process([*arguments, "--control", ground.midwatch], log) as ended:
        await answering(f"{ground.page}/", ended, log)
        app = build(with_secret_key(settings(ground), lambda _: None), clock)
        async with _midwatch(app, ground):
            await answering(f"{ground.midwatch}/readyz", ended, log)
            await _catch_up(ground, ahead)
            say(*_welcome(ground, _new_steps() if ground.empty else _steps(ground, await _next_on_call(app))))
            try:
                await asyncio.wait({ended})
            finally:
                _keep_time(ground, clock)
        raise MidwatchError(f"The sandbox stopped by itself; {log} says why.")


@asynccontextmanager
async def _midwatch(app: App, ground: Ground) -> AsyncIterator[None]:
    with sole_process(app.database):
        try:
            await upgrade(app.database)
            if not ground.empty:
                await _populate(app)
            await app.start()
            yield
        finally:
            await app.stop()


async def _populate(app: App) -> None:
    """The demo's team, once: what was changed since is kept."""
    if (await app.roster.directory()).people:
        return
    text = (files("bot") / "demo.yaml").read_text(encoding="utf-8")
    await app.setup.apply(parse_config(text))
    await app.setup.create_key("checkout", KEY)
    await app.setup.create_token("demo", value=KEY)


async def _catch_up(ground: Ground, ahead: timedelta) -> None:
    """Bring the sandbox to the time that the last run had been moved to."""
    if ahead < timedelta(seconds=1):
        return
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{ground.page}/sandbox/advance", json={"seconds": ahead.total_seconds()}) as response,
    ):
        if response.status != 200:
            say("The sandbox could not be moved to the time of the last run; it shows the real one.")


def _time_moved(ground: Ground) -> timedelta:
    """How far ahead the clock of the last run was: timers were armed by it."""
    try:
        return timedelta(seconds=max(0.0, float((ground.data / AHEAD).read_text(encoding="ascii"))))
    except (FileNotFoundError, ValueError):
        return timedelta()


def _keep_time(ground: Ground, clock: MovableClock) -> None:
    ahead = clock.now() - SystemClock().now()
    (ground.data / AHEAD).write_text(f"{ahead.total_seconds():.3f}\n", encoding="ascii")


def _must_be_free(port: int, first: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError):
            need = "" if port == first else f" The page with Slack and the phones needs it, beside {first}."
            other = first + 1000 if first < HIGHEST_PORT - 1000 else 8080
            raise BadInput(
                f"Port {port} cannot be used; something else has it.{need} "
                f"Choose another: make demo PORT={other} (or --port {other})."
            ) from None


def _prepare(data: Path, *, fresh: bool) -> None:
    """The demo's directory. Only what looks like one is emptied: a wrong --data costs nobody their files."""
    if fresh and data.exists():
        if any(data.iterdir()) and not ((data / FILE).is_file() and (data / DATABASE).is_file()):
            raise BadInput(f"{data} does not look like a demo's directory; remove it yourself.")
        shutil.rmtree(data)
    data.mkdir(parents=True, exist_ok=True)


async def _next_on_call(app: App) -> str | None:
    """Somebody whom an override would really put on call: the next one, else anybody else."""
    rows = await app.roster.who()
    on_call = {person.id for row in rows[:1] for person in row.people}
    people = (await app.roster.directory()).people.values()
    candidates = [*(person for row in rows[:1] for person in row.next_people), *people]
    return next((person.name for person in candidates if person.active and person.id not in on_call), None)


def _welcome(ground: Ground, steps: list[str]) -> list[str]:
    keys = "" if ground.empty else f"; key and token are both: {KEY}"
    return [
        "Midwatch is running, with a Slack and phones of its own.",
        "",
        f"  Open   {ground.page}   Slack and the phones, as ana, ben or cho",
        f"  Also   {ground.midwatch}   alerts and the API{keys}",
        f"  Log    {ground.log}",
        "",
        "Try",
        *steps,
        "",
        "Ctrl-C stops it.",
    ]


def _steps(ground: Ground, next_on_call: str | None) -> list[str]:
    override = [f"  3. Put {next_on_call} on call for two hours:       /override @{next_on_call} 2h"]
    return [
        "  1. An alert pages whoever is on call (the button “Send a test alert” does the same):",
        *(f"     {line}" for line in first_alert(ground.midwatch)),
        "  2. Who is on call? Type in Slack:       /oncall",
        *(override if next_on_call else ()),
    ]


def _new_steps() -> list[str]:
    """There is nobody yet: this is how a team begins."""
    return [
        "  1. Be somebody who can be paged:        /oncall me",
        "  2. Make a schedule:                     /oncall schedule new",
        "  3. Look at its coming weeks:            /oncall schedule show NAME",
        "  4. Put yourself on call for an hour:    /override me 1h",
    ]


def first_alert(url: str) -> list[str]:
    """The alert that README and the page show, too."""
    alert = json.dumps(
        {
            "action": "trigger",
            "dedup_key": "disk-db1",
            "summary": "Disk full on db-1",
            "severity": "critical",
        }
    )
    return [
        f"curl -X POST {url}/v1/events -H 'Authorization: Bearer {KEY}' "
        "-H 'Content-Type: application/json' \\",
        f"  -d '{alert}'",
    ]
