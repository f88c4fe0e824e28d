"""The real Alertmanager, started here, fires, repeats and resolves through to a card."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.product import Product, free_port, product

pytestmark = pytest.mark.peers

PROGRAM = "prometheus-alertmanager"


@pytest.fixture(scope="module")
def alertmanager_program() -> str:
    found = shutil.which(PROGRAM)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"CI must test with the real Alertmanager: install {PROGRAM}")
        pytest.skip(f"NOT TESTED WITH ALERTMANAGER: {PROGRAM} is not installed")
    return found


@asynccontextmanager
async def alertmanager(program: str, midwatch: Product, directory: Path) -> AsyncIterator[str]:
    """One that posts to `midwatch` as README says; its URL."""
    port = free_port()
    (directory / "key").write_text("demo")
    config = directory / "alertmanager.yml"
    config.write_text(
        f"""
receivers:
  - name: midwatch
    webhook_configs:
      - url: {midwatch.url}/webhooks/alertmanager
        send_resolved: true
        http_config:
          authorization: {{type: Bearer, credentials_file: {directory / "key"}}}
route:
  receiver: midwatch
  group_by: [alertname, cluster]
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 1s
"""
    )
    process = await asyncio.create_subprocess_exec(
        program,
        f"--config.file={config}",
        f"--storage.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        await _ready(midwatch, url)
        yield url
    finally:
        process.terminate()
        await process.wait()


async def _ready(midwatch: Product, url: str) -> None:
    async def answers() -> bool:
        try:
            async with midwatch.http.get(f"{url}/-/ready") as answer:
                return answer.status == 200
        except OSError:
            return False

    await until(answers)


async def until(met: Callable[[], Any], within_s: float = 30) -> None:
    """Poll what another program does; it cannot tell us."""
    async with asyncio.timeout(within_s):
        while not await met():  # noqa: ASYNC110  # another program cannot set an event of ours
            await asyncio.sleep(0.05)


async def _alert(midwatch: Product, url: str, instance: str, *, ends: bool = False) -> None:
    now = datetime.now(UTC)
    alert = {
        "labels": {"alertname": "HighLatency", "instance": instance, "severity": "critical"},
        "annotations": {"summary": f"p99 > 2s on {instance}"},
        "startsAt": (now - timedelta(minutes=1)).isoformat(),
        "generatorURL": "http://prometheus.example:9090/graph",
    }
    if ends:
        alert["endsAt"] = now.isoformat()
    async with midwatch.http.post(f"{url}/api/v2/alerts", json=[alert]) as answer:
        assert answer.status == 200


async def test_alertmanager_fires_repeats_and_resolves_through_to_a_card(
    alertmanager_program: str, tmp_path: Path
) -> None:
    """One incident, one card, a count that grows with the repeats, and a green card at the end."""
    async with (
        product(tmp_path) as midwatch,
        alertmanager(alertmanager_program, midwatch, tmp_path) as url,
    ):
        await _alert(midwatch, url, "web-1")

        async def card_says(word: str) -> bool:
            seen = await midwatch.seen("messages?channel=%23payments")
            return any(word in message["text"] for message in seen["messages"])

        async def counted() -> bool:
            (incident,) = (await midwatch.get("/v1/incidents"))["items"]
            return bool(incident["event_count"] >= 3)

        await until(lambda: card_says("FIRING"))
        await until(counted)
        await _alert(midwatch, url, "web-1", ends=True)
        await until(lambda: card_says("RESOLVED"))
        (incident,) = (await midwatch.get("/v1/incidents"))["items"]
        assert (incident["status"], incident["number"], incident["alert_count"]) == ("resolved", 1, 1)
        cards = (await midwatch.seen("messages?channel=%23payments"))["messages"]
        assert len([card for card in cards if card["bot"]]) == 1
