"""The work split over three processes: one accepts, one pages, one hears Slack."""

from __future__ import annotations

import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bot.sandbox.server import SandboxServer
from tests.e2e.test_processes import SECRET, accepted, acknowledged, configured
from tests.processes import WITHIN_S, midwatch
from tests.product import free_port

pytestmark = pytest.mark.slow


async def test_an_alert_goes_through_three_processes_and_its_ack_comes_back(
    postgresql_url_empty: str, tmp_path: Path
) -> None:
    """The web takes it, the worker posts it, Slack's process takes the click, and the worker shows it."""
    await configured(postgresql_url_empty)
    port = free_port()
    async with SandboxServer() as sandbox, AsyncExitStack() as stack:
        env = {
            "MIDWATCH_DATABASE_URL": postgresql_url_empty,
            "MIDWATCH_SECRET_KEY": SECRET,
            "MIDWATCH_BIND": f"127.0.0.1:{port}",
            "SLACK_BOT_TOKEN": "xoxb-demo",
            "SLACK_APP_TOKEN": "xapp-demo",
            "SLACK_API_URL": sandbox.api_url,
        }
        running = []
        for role in ("web", "worker", "slack"):
            command = midwatch("run", "--only", role, cwd=tmp_path, env=env)
            running.append(await stack.enter_async_context(command))
        for each in running:
            await each.until("Midwatch ")
        await sandbox.until(lambda: sandbox.world.wire.connected, WITHIN_S)
        await accepted(port)
        channel = sandbox.state.channels["C0PAYMENTS"]
        await sandbox.until(lambda: bool(channel.messages), WITHIN_S)
        await acknowledged(sandbox)
        for each in running:
            assert await each.end(signal.SIGTERM) == 0
            assert "Traceback" not in each.written
