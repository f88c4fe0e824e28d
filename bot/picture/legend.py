"""Below the weeks: which colour is whose, and what red and hatching say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from bot.picture import colors, font, svg
from bot.picture.sheet import MARGIN, NOBODY, SMALL, WIDTH, Sheet
from bot.picture.text import text
from bot.picture.week import HATCH

LINE: Final = 17.0
MOST: Final = 30  # people
LONGEST: Final = 150.0
SWATCH: Final = 11.0


@dataclass(frozen=True, slots=True)
class Entry:
    fill: str  # none: words alone
    words: str

    @property
    def width(self) -> float:
        return 26 + font.regular().width(self.words, SMALL)


def lines(sheet: Sheet) -> list[list[Entry]]:
    """The entries, as many side by side as fit."""
    found: list[list[Entry]] = [[]]
    for entry in _entries(sheet):
        taken = sum(one.width for one in found[-1])
        if found[-1] and taken + entry.width > WIDTH - MARGIN:
            found.append([])
        found[-1].append(entry)
    return found


def put_legend(tree: Element, found: list[list[Entry]], top: float) -> None:
    for number, line in enumerate(found):
        x, y = MARGIN, top + number * LINE
        for entry in line:
            if entry.fill.startswith("url"):
                _swatch(tree, x, y, colors.FAINT)
            if entry.fill:
                _swatch(tree, x, y, entry.fill)
            text(tree, x + (15 if entry.fill else 0), y + 9.5, entry.words, SMALL, LONGEST)
            x += entry.width


def _entries(sheet: Sheet) -> Iterator[Entry]:
    if any(not one.people for one in sheet.rows[-1].shifts):
        yield Entry(colors.GAP, f"{NOBODY} on call")
    if sheet.rows[-1].overridden:
        yield Entry(f"url(#{HATCH})", "override")
    for number, (user, shade) in enumerate(sheet.shades.items()):
        if number == MOST:
            yield Entry("", f"and {len(sheet.shades) - MOST} more")
            return
        yield Entry(shade, font.regular().fitted(sheet.called([user]), SMALL, LONGEST) or "?")


def _swatch(tree: Element, x: float, y: float, fill: str) -> None:
    svg.put(tree, "rect", x=x, y=y, width=SWATCH, height=SWATCH, rx=2, fill=fill)
