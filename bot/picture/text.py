"""Words in the picture: never wider than their room, never anything but words."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from bot.picture import colors, font, svg


def text(
    parent: Element,
    x: float,
    y: float,
    words: str,
    size: float,
    room: float,
    *,
    strong: bool = False,
    middle: bool = False,
    fill: str = colors.INK,
    **more: svg.Value,
) -> None:
    """Put words, cut to their room: at their end, or in the `middle` where ends tell them apart."""
    measured = font.bold() if strong else font.regular()
    whole = svg.plain(words)
    shown = measured.shortened(whole, size, room) if middle else measured.fitted(whole, size, room)
    if shown:
        weight = {"font_weight": "bold"} if strong else {}
        svg.put(parent, "text", shown, x=x, y=y, font_size=size, fill=fill, **weight, **more)
