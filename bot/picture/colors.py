"""A colour for everybody, told apart from their neighbours' and from the red of a gap.

Never the only sign of anything: whoever has a colour is named in it or in the legend.
"""

from __future__ import annotations

from colorsys import hls_to_rgb
from typing import Final

GAP: Final = "#c4231a"
INK: Final = "#1c2430"
PAPER: Final = "#ffffff"
FAINT: Final = "#5d6878"  # 5:1 on paper
RULE: Final = "#d7dce3"
EMPTY: Final = "#eef1f4"

READABLE: Final = 4.5  # contrast of small text, as WCAG wants it

# Why: steps of the golden ratio come close to an earlier hue after 5, 8, 13 … of them, and then the lightness
# is another one; 25 to 335 degrees leave red to the gaps.
_STEP: Final = 0.6180339887
_FIRST_HUE, _HUES = 25, 310
_LIGHTNESS: Final = (0.42, 0.62, 0.33)


def color(number: int) -> str:
    """Of the person with this number in the schedule."""
    hue = (_FIRST_HUE + (((number + 1) * _STEP) % 1) * _HUES) / 360
    lightness = _LIGHTNESS[number % len(_LIGHTNESS)]
    while True:
        shade = _hex(hls_to_rgb(hue, lightness, 0.55))
        ink = ink_on(shade)
        if contrast(ink, shade) >= READABLE:
            return shade
        lightness += 0.02 if ink == INK else -0.02


def pale(shade: str) -> str:
    """The same hue on layers that lie below the answer."""
    return _hex(tuple(1 - (1 - part) * 0.3 for part in _parts(shade)))


def ink_on(shade: str) -> str:
    """Dark or white, whichever is read better there."""
    return max((INK, PAPER), key=lambda ink: contrast(ink, shade))


def contrast(one: str, other: str) -> float:
    """As WCAG reckons it, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(shade: str) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in _parts(shade)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _parts(shade: str) -> tuple[float, ...]:
    return tuple(int(shade[at : at + 2], 16) / 255 for at in (1, 3, 5))


def _hex(parts: tuple[float, ...]) -> str:
    return "#" + "".join(f"{round(part * 255):02x}" for part in parts)
