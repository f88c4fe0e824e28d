"""From SVG to PNG, with the font that is shipped: no font of the machine is needed.

Never draws anything itself. Takes some 50 ms of a processor, so callers on an event loop use a thread.
"""

from __future__ import annotations

from typing import Final

import resvg_py

from bot.picture import font

ZOOM: Final = 3.0  # a phone has about three pixels for each of the page's
LAST_SHIPPED: Final = 0x052F  # Latin, Greek, Cyrillic: what the shipped font has all of


def rendered(picture: str) -> bytes:
    """The picture as PNG."""
    # Why: names in other scripts need fonts of the machine, if it has any; looking for them takes longer.
    shipped = all(ord(letter) <= LAST_SHIPPED or font.regular().has(letter) for letter in picture)
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=picture,
            zoom=ZOOM,
            font_files=[str(font.path(name)) for name in font.FILES],
            font_family=font.FAMILY,
            sans_serif_family=font.FAMILY,
            skip_system_fonts=shipped,
        )
    )
