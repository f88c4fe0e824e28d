"""Draws a schedule's coming weeks as SVG, to be read on a phone.

Never decides who is on call. One week stands below the other, so that a day is wide enough for a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final
from xml.etree.ElementTree import Element

from bot.picture import colors, font, svg
from bot.picture.legend import LINE, lines, put_legend
from bot.picture.sheet import MARGIN, NOBODY, NORMAL, WIDTH, Sheet, sheet_of
from bot.picture.text import text
from bot.picture.week import HATCH, put_week
from engine.schedule import Schedule

HEAD: Final = 62.0


def draw(title: str, schedule: Schedule, names: Mapping[str, str], now: datetime) -> str:
    """The picture. `names` says what people are called; who is not in it is called as in the schedule."""
    sheet = sheet_of(title, schedule, names, now)
    legend = lines(sheet)
    bottom = HEAD + sheet.weeks * sheet.week_height
    # Why paper of its own: on Slack's dark background dark letters would not be seen.
    tree = svg.root(WIDTH, bottom + LINE * len(legend) + 2 * MARGIN, font.FAMILY)
    _hatching(tree)
    svg.put(tree, "rect", width="100%", height="100%", fill=colors.PAPER)
    _head(tree, sheet)
    for week in range(sheet.weeks):
        put_week(tree, sheet, week, HEAD + week * sheet.week_height)
    put_legend(tree, legend, bottom + MARGIN)
    return svg.written(tree)


def _hatching(tree: Element) -> None:
    pattern = svg.put(
        svg.put(tree, "defs"),
        "pattern",
        id=HATCH,
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    )
    svg.put(pattern, "rect", width=2, height=6, fill=colors.PAPER, fill_opacity=0.6)


def _head(tree: Element, sheet: Sheet) -> None:
    room = WIDTH - 2 * MARGIN
    first, last = sheet.days.dates[0], sheet.days.dates[-1]
    text(tree, MARGIN, 21, sheet.title, 16, room, strong=True)
    span = f"{first.day} {first:%b} to {last.day} {last:%b %Y} · {sheet.schedule.timezone}"
    text(tree, MARGIN, 37, span, NORMAL, room, fill=colors.FAINT)
    words = _now(sheet)
    fill = colors.GAP if words.startswith(f"Now: {NOBODY}") else colors.INK
    text(tree, MARGIN, 54, words, 12.5, room, strong=True, fill=fill)


def _now(sheet: Sheet) -> str:
    """Who is on call now, until when, and who then, as far as the picture reaches."""
    coming = [one for one in sheet.rows[-1].shifts if one.end > sheet.now]
    words = f"Now: {sheet.called(coming[0].people)}"
    if len(coming) == 1:
        return words
    until = coming[0].end.astimezone(sheet.zone)
    return f"{words} until {until:%a} {until.day} {until:%b %H:%M}, then {sheet.called(coming[1].people)}"
