"""A night without Slack on the sandbox page, as one who tries Midwatch lives it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import page
from tests.product import Product, product

pytestmark = pytest.mark.browser

PATIENT = 30_000


async def until_it_rings(opened: Any, phone: Any) -> None:
    """A minute after the other; a call that nobody takes ends by itself."""
    from playwright.async_api import TimeoutError as NotInTime

    for _ in range(5):
        await opened.get_by_test_id("advance-60").click()
        with suppress(NotInTime):
            return await phone.get_by_test_id("call").wait_for(timeout=PATIENT / 10)
    raise AssertionError("it never rang")


async def test_a_night_without_slack(chromium: str, tmp_path: Path) -> None:
    """Slack is switched off: an alert wakes whoever is on call by text and by call, their `4` stops it, and
    with Slack back the card says so, and `/oncall why` tells the whole story."""
    async with product(tmp_path) as midwatch:
        shift = await midwatch.get("/v1/schedules/payments-primary/oncall")
        await lives_it(chromium, midwatch, shift["people"][0]["name"])


async def lives_it(chromium: str, midwatch: Product, name: str) -> None:
    async with page(chromium, midwatch, f"#me={name}&in=C0PAYMENTS") as opened:
        slack = opened.get_by_test_id("fault-slack")
        await slack.click(timeout=PATIENT)
        await opened.locator("#notice").get_by_text("Slack").first.wait_for(timeout=PATIENT)
        await opened.get_by_test_id("send-alert").click()
        phone = opened.get_by_test_id(f"phone-{name}")
        await phone.get_by_text("Reply 4 to ack").first.wait_for(timeout=PATIENT)
        await until_it_rings(opened, phone)
        reply = phone.get_by_test_id("sms-reply")
        await reply.fill("4")
        await phone.get_by_test_id("sms-send").click()
        await phone.get_by_text("acknowledged").first.wait_for(timeout=PATIENT)
        await phone.get_by_test_id("call").wait_for(state="hidden", timeout=PATIENT)
        await slack.click()
        feed = opened.get_by_test_id("feed")
        await feed.get_by_text(f"ACKED by @{name}").first.wait_for(timeout=PATIENT)
        await opened.locator(".pill-good").wait_for(timeout=PATIENT)
        box = opened.locator("#composer textarea")
        await box.fill("/oncall why 1")
        await box.press("Enter")
        story = feed.get_by_test_id("message").filter(has_text=f"acknowledged by {name} (sms)")
        await story.first.wait_for(timeout=PATIENT)
        told = await story.first.inner_text()
        for line in ("Slack is down", *(f"page by {way} to {name}" for way in ("slack", "sms", "voice"))):
            assert line in told, told
