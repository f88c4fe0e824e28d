"""An override on the sandbox page, on a telephone: from the command to the echo and back, and by the form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import page
from tests.product import product

pytestmark = pytest.mark.browser

WIDTH, HEIGHT = 390, 844
PATIENT = 20_000


async def types(opened: Any, text: str) -> None:
    box = opened.locator("#composer textarea")
    await box.fill(text)
    await box.press("Enter")


async def fits(element: Any) -> None:
    box = await element.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= WIDTH
    assert box["y"] + box["height"] <= HEIGHT


async def test_an_override_from_the_command_to_the_echo_and_back(chromium: str, tmp_path: Path) -> None:
    """A question which schedule, saved by one press, taken back by another; every button can be reached."""
    async with (
        product(tmp_path) as midwatch,
        page(chromium, midwatch, "#me=ana&in=C0GENERAL", WIDTH, HEIGHT) as opened,
    ):
        await types(opened, "/override payments @ben fri 18:00 - mon 9:00")
        await opened.get_by_text("Nothing is saved yet.").wait_for(timeout=PATIENT)
        pick = opened.get_by_role("button", name="payments-secondary")
        await fits(pick)
        await pick.click()
        await opened.get_by_text("Take it back with").wait_for(timeout=PATIENT)
        assert await opened.get_by_text("Nothing is saved yet.").count() == 0
        assert len(await midwatch.app.roster.overrides.listed()) == 1
        undo = opened.get_by_role("button", name="Undo")
        await fits(undo)
        await undo.click()
        await opened.get_by_text("is cancelled").first.wait_for(timeout=PATIENT)
        assert await midwatch.app.roster.overrides.listed() == []


async def test_an_override_by_the_form(chromium: str, tmp_path: Path) -> None:
    """What is wrong is said at its input, what was guessed is shown, and Confirm saves it."""
    async with (
        product(tmp_path) as midwatch,
        page(chromium, midwatch, "#me=ana&in=C0GENERAL", WIDTH, HEIGHT) as opened,
    ):
        await types(opened, "/override")
        form = opened.get_by_test_id("modal")
        await form.get_by_label("Schedule").select_option(label="payments-primary", timeout=PATIENT)
        await form.get_by_label("Who takes over").select_option(label="@ben")
        await form.get_by_label("When").fill("yesterday")
        send = opened.get_by_test_id("modal-submit")
        await fits(send)
        await send.click()
        await form.get_by_text("I don't understand").wait_for(timeout=PATIENT)
        await form.get_by_label("When").fill("fri 18:00 - mon 9:00")
        await send.click()
        await form.get_by_text("Nothing is saved yet.").wait_for(timeout=PATIENT)
        assert await midwatch.app.roster.overrides.listed() == []
        await fits(opened.get_by_role("button", name="Confirm"))
        await send.click()
        await opened.get_by_text("Take it back with").wait_for(timeout=PATIENT)
        assert len(await midwatch.app.roster.overrides.listed()) == 1
