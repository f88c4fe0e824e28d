"""sandbox: a local Slack and a local phone company with a web page.

Never reads Midwatch's settings: the two know each other only by URLs.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from cyclopts import Parameter

from bot.commands.say import say
from bot.commands.stopping import parent_gone, stop_signal
from bot.sandbox.server import run_sandbox
from engine.errors import BadInput


async def sandbox(
    *,
    port: int = 8081,
    host: str = "127.0.0.1",
    events: str = "none",
    sms_url: str | None = None,
    control: str | None = None,
    midwatch: str | None = None,
    smtp_port: int | None = None,
    parent: Annotated[Literal["stdin"] | None, Parameter(show=False)] = None,
) -> None:
    """Start a local Slack and phone company to try Midwatch with.

    Parameters
    ----------
    port
        Where its page, Slack's Web API (/api/) and Twilio's API (/2010-04-01/) are.
    host
        The address to listen on; there is no password, so keep it on this machine.
    events
        The URL that gets Slack's requests in HTTP mode; none for Socket Mode.
    sms_url
        Where text messages to Midwatch's number are posted.
    control
        Midwatch in demo mode, whose clock follows the one here.
    midwatch
        Where the page's button posts a test alert; like --control if not given.
    smtp_port
        Where mail is taken, for SMTP_URL=smtp://127.0.0.1:PORT; nowhere if not given.
    """
    serve = run_sandbox(
        host=host,
        port=port,
        events_url=None if events == "none" else events,
        sms_url=sms_url,
        control_url=control,
        midwatch_url=midwatch or control,
        smtp_port=smtp_port,
        status=say,
    )
    with stop_signal() as stop:
        ends = [asyncio.ensure_future(serve), asyncio.ensure_future(stop.wait())]
        if parent is not None:
            ends.append(asyncio.ensure_future(parent_gone()))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        outcome, *_ = await asyncio.gather(*ends, return_exceptions=True)
    if isinstance(outcome, OSError):
        raise BadInput(f"Port {port} cannot be used: {outcome.strerror}. Choose another with --port.")
    if isinstance(outcome, Exception):
        raise outcome
