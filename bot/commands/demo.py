"""demo: Midwatch and the sandbox in one command, with a team to try it on.

Never touches the settings of a real install: it has its own directory, ports and keys.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import aiohttp
from cyclopts import Parameter

from bot.app import App, build
from bot.commands.say import say
from bot.commands.stopping import stop_signal
from bot.logs import set_up_logs
from bot.secret_key import FILE, with_secret_key
from bot.settings import Settings
from engine.clock import MovableClock
from engine.config.parse import parse_config
from engine.errors import BadInput, MidwatchError
from engine.migrate import upgrade

DATABASE: Final = "midwatch.sqlite3"
LOG: Final = "midwatch.log"
SANDBOX_LOG: Final = "sandbox.log"
KEY: Final = "demo"  # the integration key and the API token, both
HOST: Final = "127.0.0.1"
READY_WITHIN_S: Final = 30.0
STOP_WITHIN_S: Final = 5.0


async def demo(
    *,
    port: int = 8080,
    data: Path = Path("data/demo"),
    fresh: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Try Midwatch without a Slack account: everything on this machine.

    Parameters
    ----------
    port
        Midwatch's port; the sandbox page has the one after it.
    data
        Where the demo keeps its database; it is used again the next time.
    fresh
        Start over with an empty one.
    """
    for each in (port, port + 1):
        _must_be_free(each, port)
    _prepare(data, fresh=fresh)
    set_up_logs(path=data / LOG)
    app = build(with_secret_key(settings(port, data), lambda _: None), MovableClock())
    with stop_signal() as stop:
        async with _sandbox(port, data) as ended, _midwatch(app):
            await _ready(port, ended)
            say(*_welcome(port, data))
            await _first(stop, ended)
            if not stop.is_set():
                raise MidwatchError(f"The sandbox stopped by itself; {data / SANDBOX_LOG} says why.")
            say("", "Stopping …")
    say("Stopped. What happened is kept; start over with FRESH=1 (or --fresh).")


def settings(port: int, data: Path) -> Settings:
    """What a real install sets in its environment."""
    sandbox = f"http://{HOST}:{port + 1}"
    return Settings.model_validate(
        {
            "demo": True,
            "database_url": f"sqlite:///{data / DATABASE}",
            "public_url": f"http://{HOST}:{port}",
            "bind": f"{HOST}:{port}",
            "ops_channel": "#ops",
            "slack_bot_token": "xoxb-demo",
            "slack_app_token": "xapp-demo",
            "slack_api_url": f"{sandbox}/api",
            "twilio_account_sid": "AC" + "0" * 32,
            "twilio_auth_token": "demo",
            "twilio_from": "+12025550100",
            "twilio_api_url": sandbox,
        }
    )


@asynccontextmanager
async def _sandbox(port: int, data: Path) -> AsyncIterator[asyncio.Task[int]]:
    """The sandbox as a process of its own; the task ends when it does."""
    midwatch = f"http://{HOST}:{port}"
    with (data / SANDBOX_LOG).open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot", "sandbox", "--port", str(port + 1), "--parent", "stdin"),
            *("--sms-url", f"{midwatch}/webhooks/twilio/sms", "--control", midwatch),
            stdin=asyncio.subprocess.PIPE,  # its end tells the sandbox that we are gone, also by kill -9
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is ours alone: Midwatch stops first, then the sandbox
        )
    ended = asyncio.create_task(process.wait())
    try:
        yield ended
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait({ended}, timeout=STOP_WITHIN_S)
        if not ended.done():
            process.kill()
            await ended


@asynccontextmanager
async def _midwatch(app: App) -> AsyncIterator[None]:
    try:
        await upgrade(app.database)
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


async def _ready(port: int, ended: asyncio.Task[int]) -> None:
    """Until both answer."""
    urls = (f"http://{HOST}:{port}/readyz", f"http://{HOST}:{port + 1}/")
    try:
        async with asyncio.timeout(READY_WITHIN_S), aiohttp.ClientSession() as session:
            for url in urls:
                while not await _answers(session, url):
                    if ended.done():
                        raise MidwatchError("The sandbox did not start; its log says why.")
                    await asyncio.sleep(0.05)
    except TimeoutError:
        raise MidwatchError("Midwatch did not get ready in time; its log says why.") from None


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url, timeout=aiohttp.ClientTimeout(total=2)) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


async def _first(stop: asyncio.Event, ended: asyncio.Task[int]) -> None:
    asked = asyncio.create_task(stop.wait())
    await asyncio.wait({asked, ended}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()


def _must_be_free(port: int, first: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError):
            raise BadInput(
                f"Port {port} cannot be used; something else has it. "
                f"Choose another: make demo PORT={first + 1000} (or --port {first + 1000})."
            ) from None


def _prepare(data: Path, *, fresh: bool) -> None:
    """The demo's directory. Only what looks like one is emptied: a wrong --data costs nobody their files."""
    if fresh and data.exists():
        if any(data.iterdir()) and not ((data / FILE).is_file() and (data / DATABASE).is_file()):
            raise BadInput(f"{data} does not look like a demo's directory; remove it yourself.")
        shutil.rmtree(data)
    data.mkdir(parents=True, exist_ok=True)


def _welcome(port: int, data: Path) -> list[str]:
    alert = '{"summary": "checkout is slow", "severity": "critical", "dedup_key": "checkout-slow"}'
    return [
        "Midwatch is running, with a Slack and phones of its own.",
        "",
        f"  Open   http://{HOST}:{port + 1}   Slack and the phones, as ana, ben or cho",
        f"  Also   http://{HOST}:{port}   alerts and the API; key and token are both: {KEY}",
        f"  Log    {data / LOG}",
        "",
        "Try",
        "  1. An alert pages whoever is on call:",
        f"     curl -H 'Authorization: Bearer {KEY}' -d '{alert}' http://{HOST}:{port}/v1/events",
        "  2. Who is on call? Type in Slack:       /oncall",
        "  3. Put ben on call for two hours:       /override @ben 2h",
        "",
        "Ctrl-C stops it.",
    ]
