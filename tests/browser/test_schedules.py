"""From an empty install: a schedule of two layers, an override and the picture, without leaving Slack."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import page
from tests.product import product

pytestmark = pytest.mark.browser

IN_GENERAL = "#me=ana&in=C0GENERAL"
PATIENT_MS = 20_000

Look = Callable[[str], Awaitable[object]]


async def _nothing(_name: str) -> None:
    """Nobody looks."""


async def types(opened: Any, text: str) -> None:
    line = opened.get_by_test_id("composer")
    await line.fill(text)
    await opened.get_by_test_id("composer-send").click()


async def reads(opened: Any, words: str) -> None:
    await opened.get_by_test_id("feed").get_by_text(words).last.wait_for(timeout=PATIENT_MS)


async def titled(opened: Any, title: str) -> None:
    await opened.locator("#modal-title", has_text=title).wait_for(timeout=PATIENT_MS)


async def fill(opened: Any, block: str, value: str) -> None:
    await opened.locator(f'.b-input[data-block-id="{block}"] .field').fill(value)


async def press(opened: Any, action: str) -> None:
    await opened.locator(f'.modal [data-action-id="{action}"]').click(timeout=PATIENT_MS)


async def add(opened: Any, user_id: str, shown: str) -> None:
    await opened.locator('.modal select[data-action-id="add_person"]').select_option(user_id)
    await opened.locator(".modal .b-section").filter(has_text=re.compile(shown)).wait_for(timeout=PATIENT_MS)


async def submit(opened: Any) -> None:
    await opened.get_by_test_id("modal-submit").click()


async def make_schedule(opened: Any, look: Look = _nothing) -> None:
    """Type, choose and press as somebody would who has never seen it."""
    await types(opened, "/oncall me")
    await reads(opened, "You are")
    await types(opened, "/oncall schedule new search")
    await titled(opened, "New schedule")
    await look("new")
    await press(opened, "edit:l0")
    await titled(opened, "Layer")
    await add(opened, "U0BEN", "2. .*ben")
    await fill(opened, "name:l0", "days")
    await fill(opened, "hours:l0", "daily 08:00-20:00")
    await look("layer")
    await submit(opened)
    await titled(opened, "New schedule")
    await press(opened, "add_layer")
    await titled(opened, "Layer")
    await add(opened, "U0CHO", "1. .*cho")
    await fill(opened, "name:l1", "nights")
    await submit(opened)
    await titled(opened, "New schedule")
    await look("two-layers")
    await submit(opened)
    await titled(opened, "Review changes")
    await look("review")
    await submit(opened)
    await reads(opened, "search is made")
    await types(opened, "/override search @cho 30h")
    await look("override")


async def show_picture(opened: Any) -> Any:
    await types(opened, "/oncall schedule show search")
    picture = opened.get_by_test_id("feed").get_by_test_id("file").last
    await picture.wait_for(timeout=PATIENT_MS)
    return picture


@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.slow)])
async def test_from_nothing_to_a_picture(chromium: str, tmp_path: Path, width: int) -> None:
    """On a telephone too: the form fits, the diff is shown, the picture is there and says what it shows."""
    async with (
        product(tmp_path, team=False) as midwatch,
        page(chromium, midwatch, IN_GENERAL, width, 844) as opened,
    ):
        await opened.get_by_test_id("composer").wait_for(timeout=PATIENT_MS)

        async def fits(_name: str) -> None:
            if await opened.locator("dialog.modal[open]").count():
                box = await opened.locator("dialog.modal[open]").bounding_box()
                assert box is not None
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= width

        await make_schedule(opened, fits)
        picture = await show_picture(opened)
        assert "search" in await picture.get_attribute("alt")
        assert await picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1170
        box = await picture.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width
