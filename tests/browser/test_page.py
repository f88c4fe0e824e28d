"""The sandbox page in a real browser: see the card, click Ack, see who acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import page
from tests.product import product

pytestmark = pytest.mark.browser

IN_PAYMENTS = "#me=ana&in=C0PAYMENTS"


async def test_ack_on_the_page_says_who_acknowledged(chromium: str, tmp_path: Path) -> None:
    """The card stands in #payments; Ack by its button changes it, there and in the DM."""
    async with product(tmp_path) as midwatch, page(chromium, midwatch, IN_PAYMENTS) as opened:
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


@pytest.mark.parametrize("width", [390, 1280])
async def test_the_page_opens_as_whoever_is_paged(chromium: str, tmp_path: Path, width: int) -> None:
    """On a telephone too: the first alert, the buttons that move time and the outages are there at once."""
    async with product(tmp_path) as midwatch, page(chromium, midwatch, "", width, 844) as opened:
        shift = (await midwatch.get("/v1/schedules/oncall"))["items"][0]
        await opened.get_by_test_id("welcome").wait_for(timeout=20_000)
        assert await opened.get_by_test_id("me").input_value() == shift["people"][0]["name"]
        wanted = [opened.get_by_test_id(f"advance-{seconds}") for seconds in (60, 300, 1800, 3600)]
        wanted += [opened.get_by_test_id("send-alert"), opened.get_by_text("Outage", exact=True)]
        for each in wanted:
            box = await each.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            assert box["y"] + box["height"] <= 844
        chips = await opened.locator("#composer .chip").all_inner_texts()
        assert chips == ["/oncall", f"/override @{shift['next_people'][0]['name']} 2h", "/oncall ack 1"]


async def test_a_quiet_channel_is_not_said_to_be_all(chromium: str, tmp_path: Path) -> None:
    """While incidents fire elsewhere, an empty channel speaks for itself, and offers to ack an open one."""
    async with product(tmp_path) as midwatch, page(chromium, midwatch, "#me=ana&in=C0GENERAL") as opened:
        for key in ("one", "two"):
            event = {"action": "trigger", "dedup_key": key, "summary": f"{key} broke", "severity": "critical"}
            assert (await midwatch.post("/v1/events", event))[0] == 202
        await opened.get_by_role("button", name="/oncall ack 2").wait_for(timeout=20_000)
        assert await opened.get_by_role("heading", name="#general is quiet so far").count() == 1
        assert await opened.get_by_text("Nothing is on fire").count() == 0
