"""A real browser on the sandbox's page."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.product import Product

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
async def page(
    chromium: str, midwatch: Product, place: str, width: int = 1440, height: int = 900
) -> AsyncIterator[Any]:
    """The sandbox page at `place`: who looks, and at which channel."""
    from playwright.async_api import async_playwright

    async with async_playwright() as browsers:
        browser = await browsers.chromium.launch(executable_path=chromium, args=list(FLAGS))
        try:
            opened = await browser.new_page(viewport={"width": width, "height": height})
            await opened.goto(f"{midwatch.sandbox.url}/{place}")
            yield opened
        finally:
            await browser.close()
