"""One week of the picture: its days, a bar for each shift, hatching, handoffs, and where now is.

Never decides who is on call, and never leaves a meaning to colour alone: a bar carries its name if that
fits, and a gap says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Final
from xml.etree.ElementTree import Element

from bot.picture import colors, font, svg
from bot.picture.rows import Row
from bot.picture.sheet import (
    BETWEEN,
    DAY,
    FINAL,
    GAP,
    GRID,
    HEADING,
    LABELS,
    LAYER,
    MARGIN,
    NORMAL,
    SMALL,
    WEEK,
    WIDTH,
    Sheet,
    column,
)
from bot.picture.text import text
from engine.schedule import Shift

HATCH: Final = "override"
NARROW: Final = 0.6  # what is thinner would not be seen
PADDING: Final = 2.0
NAMELESS: Final = 14.0  # not even two letters and an ellipsis fit
TIGHT: Final = 9.0  # the size of a name that does not fit otherwise

Place = tuple[Row, float, float]  # a row, its top and its height


def put_week(tree: Element, sheet: Sheet, week: int, top: float) -> None:
    _headings(tree, sheet, week, top)
    places = list(_places(sheet, top + HEADING))
    for row, y, height in places:
        size = NORMAL if row.final else SMALL
        baseline = y + height / 2 + size * 0.36
        text(tree, MARGIN, baseline, row.name, size, LABELS - 5, strong=row.final, middle=True)
        svg.put(tree, "rect", x=column(0), y=y, width=GRID, height=height, fill=colors.EMPTY)
        _bars(tree, sheet, week, (row, y, height))
    _, y, height = places[-1]
    _now(tree, sheet, week, top + HEADING, y + height)
    for place in places:
        _labels(tree, sheet, week, place)
    _handoffs(tree, sheet, week, y + height)


def _places(sheet: Sheet, y: float) -> Iterator[Place]:
    for row in sheet.rows:
        height = FINAL if row.final else LAYER
        yield row, y, height - 2
        y += height


def _headings(tree: Element, sheet: Sheet, week: int, top: float) -> None:
    for day in range(WEEK):
        number = week * WEEK + day
        date, x = sheet.days.dates[number], column(day)
        weekend, holiday = date.weekday() >= 5, date in sheet.schedule.holidays
        fill = colors.GAP if holiday else colors.FAINT if weekend else colors.INK
        hours = sheet.days.length(number) / timedelta(hours=1)
        words = f"{date:%a} {date.day}" if hours == 24 else f"{date.day}: {hours:g}h"
        text(tree, x + 2, top + 13, words, SMALL, DAY - 2, strong=not weekend, fill=fill)
        height = sheet.week_height - BETWEEN - 4
        svg.put(tree, "rect", x=x, y=top + 4, width=0.7, height=height, fill=colors.RULE)


def _shown(sheet: Sheet, row: Row, week: int) -> Iterator[tuple[Shift, float, float]]:
    """The shifts that get a bar, each with its place and width; a layer that has nobody stays empty."""
    for one in row.within(*sheet.bounds(week)):
        x = sheet.x(one.start, week)
        width = sheet.x(one.end, week) - x
        if width >= NARROW and (one.people or row.final):
            yield one, x, width


def _bars(tree: Element, sheet: Sheet, week: int, place: Place) -> None:
    row, y, height = place
    group = svg.put(tree, "g", data_row="final" if row.final else "layer")
    for one, x, width in _shown(sheet, row, week):
        svg.put(
            group,
            "rect",
            x=x,
            y=y,
            width=max(width - 0.8, NARROW),
            height=height,
            rx=min(2.5, width / 3),
            fill=sheet.shade(row, one),
            data_is="shift" if one.people else "gap",
            data_people=svg.plain(" ".join(one.people)),
        )
    for start, end in row.hatched(*sheet.bounds(week)):
        x = sheet.x(start, week)
        width = sheet.x(end, week) - x
        svg.put(group, "rect", x=x, y=y, width=width, height=height, fill=f"url(#{HATCH})", data_is=HATCH)


def _labels(tree: Element, sheet: Sheet, week: int, place: Place) -> None:
    row, y, height = place
    for one, x, width in _shown(sheet, row, week):
        if width < NAMELESS:
            continue
        room = width - 2 * PADDING
        words, size, strong = _fitting(sheet.called(one.people), room, row, one)
        fill = sheet.shade(row, one)
        # Why an outline: the name must be read on hatching too.
        outline: dict[str, str] = (
            {"stroke": fill, "stroke_width": "2.4", "paint_order": "stroke"} if row.final else {}
        )
        ink, baseline = colors.ink_on(fill), y + height / 2 + size * 0.36
        text(tree, x + PADDING, baseline, words, size, room, strong=strong, middle=True, fill=ink, **outline)


def _fitting(words: str, room: float, row: Row, one: Shift) -> tuple[str, float, bool]:
    """Smaller and thinner letters before a name is cut, and a shorter word before "nobody" is."""
    if row.final:
        for size in (NORMAL, TIGHT):
            if font.bold().width(words, size) <= room:
                return words, size, True
    elif font.regular().width(words, SMALL) <= room:
        return words, SMALL, False
    if one.people or font.regular().width(words, TIGHT) <= room:
        return words, TIGHT, False
    return GAP, TIGHT, True


def _handoffs(tree: Element, sheet: Sheet, week: int, y: float) -> None:
    """The time of each change below it; the hour alone where the next is near, and as many as have room."""
    found = [(sheet.x(at, week), at) for at in sheet.rows[-1].handoffs(*sheet.bounds(week))]
    right = WIDTH - MARGIN
    taken = 0.0
    for (x, at), (following, _) in pairwise([*found, (right + 99, None)]):
        local = at.astimezone(sheet.zone) if at else sheet.now
        words = f"{local:%H:%M}"
        if x + font.regular().width(words, SMALL) + 2 > following and not local.minute:
            words = f"{local.hour}h"
        width = font.regular().width(words, SMALL)
        begins = min(x, right - width)
        if begins >= taken + 2:
            svg.put(tree, "rect", x=x - 0.4, y=y - 1, width=1.2, height=4, fill=colors.INK)
            text(tree, begins, y + 11.5, words, SMALL, DAY)
            taken = begins + width


def _now(tree: Element, sheet: Sheet, week: int, top: float, bottom: float) -> None:
    a, b = sheet.bounds(week)
    if not a <= sheet.now < b:
        return
    x = sheet.x(sheet.now, week)
    svg.put(tree, "path", d=f"M{x - 4:.2f} {top - 4:.2f} h8 l-4 5 z", fill=colors.INK)
    height = bottom - top + 2
    svg.put(tree, "rect", x=x - 0.6, y=top - 2, width=1.4, height=height, fill=colors.INK, data_is="now")
