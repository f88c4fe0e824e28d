"""The sandbox page in a real browser: see the card, click Ack, see who acknowledged."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.product import Product, product

pytestmark = pytest.mark.browser

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def chromium() -> str:
    try:
        import playwright.async_api  # noqa: F401  # only whether it is there
    except ImportError:
        return _missing("playwright is not installed (it is in the `check` extra)")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    return found or _missing("Chromium is not installed")


def _missing(reason: str) -> str:
    if os.environ.get("CI"):
        pytest.fail(f"CI must test in a browser: {reason}")
    pytest.skip(f"NOT TESTED IN A BROWSER: {reason}")


@asynccontextmanager
async def page(chromium: str, midwatch: Product, me: str) -> AsyncIterator[Any]:
    """The sandbox page as `me`, in #payments."""
    from playwright.async_api import async_playwright

    async with async_playwright() as browsers:
        browser = await browsers.chromium.launch(executable_path=chromium, args=list(FLAGS))
        try:
            opened = await browser.new_page(viewport={"width": 1440, "height": 900})
            await opened.goto(f"{midwatch.sandbox.url}/#me={me}&in=C0PAYMENTS")
            yield opened
        finally:
            await browser.close()


async def test_ack_on_the_page_says_who_acknowledged(chromium: str, tmp_path: Path) -> None:
    """The card stands in #payments; Ack by its button changes it, there and in the DM."""
    async with product(tmp_path) as midwatch, page(chromium, midwatch, "ana") as opened:
        status, _ = await midwatch.post(
            "/v1/events",
            {"action": "trigger", "dedup_key": "d", "summary": "Disk full on db-1", "severity": "critical"},
        )
        assert status == 202
        feed = opened.get_by_test_id("feed")
        card = feed.get_by_test_id("message").filter(has_text="Disk full on db-1")
        await card.get_by_text("FIRING").wait_for(timeout=20_000)
        await card.locator('[data-action-id="incident_ack"]').click(timeout=20_000)
        await card.get_by_text("ACKED by @ana").first.wait_for(timeout=20_000)
        assert await card.locator('[data-action-id="incident_ack"]').count() == 0
