"""How wide a text is in the font that is shipped: read from the font's own tables.

Never draws. A character that the font lacks is measured as a wide one.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

FAMILY: Final = "DejaVu Sans"
FILES: Final = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")
ELLIPSIS: Final = "…"


class Font:
    def __init__(self, data: bytes) -> None:
        tables = _tables(data)
        self._per_em = int(struct.unpack_from(">H", data, tables["head"] + 18)[0])
        (metrics,) = struct.unpack_from(">H", data, tables["hhea"] + 34)
        longest = struct.unpack_from(f">{metrics * 2}H", data, tables["hmtx"])
        self._advances = longest[::2]
        self._groups = _groups(data, tables["cmap"])
        self._firsts = [first for first, _, _ in self._groups]

    def has(self, letter: str) -> bool:
        return self._glyph(letter) is not None

    def width(self, text: str, size: float) -> float:
        return sum(map(self._advance, text)) * size / self._per_em

    def fitted(self, text: str, size: float, room: float) -> str:
        """The text, cut with an ellipsis if need be; nothing when not even two letters fit."""
        if self.width(text, size) <= room:
            return text
        room -= self.width(ELLIPSIS, size)
        kept = ""
        for letter in text:
            room -= self.width(letter, size)
            if room < 0:
                break
            kept += letter
        return f"{kept.rstrip()}{ELLIPSIS}" if len(kept) > 1 else ""

    def shortened(self, text: str, size: float, room: float) -> str:
        """The text, cut in its middle if need be: names of layers often differ at their end."""
        if self.width(text, size) <= room:
            return text
        for kept in range(len(text) - 1, 1, -1):
            head = (kept + 1) // 2
            shown = f"{text[:head].rstrip()}{ELLIPSIS}{text[head - kept :].lstrip()}"
            if self.width(shown, size) <= room:
                return shown
        return ""

    def _advance(self, letter: str) -> int:
        glyph = self._glyph(letter)
        if glyph is None:
            return int(self._per_em * 1.3)
        return int(self._advances[min(glyph, len(self._advances) - 1)])

    def _glyph(self, letter: str) -> int | None:
        code = ord(letter)
        at = bisect_right(self._firsts, code) - 1
        if at < 0:
            return None
        first, last, glyph = self._groups[at]
        return glyph + code - first if code <= last else None


@cache
def regular() -> Font:
    return Font(path(FILES[0]).read_bytes())


@cache
def bold() -> Font:
    return Font(path(FILES[1]).read_bytes())


def path(name: str) -> Path:
    return Path(str(files("bot.picture") / name))


def _tables(data: bytes) -> dict[str, int]:
    (count,) = struct.unpack_from(">H", data, 4)
    entries = [struct.unpack_from(">4sIII", data, 12 + 16 * number) for number in range(count)]
    return {tag.decode("ascii"): offset for tag, _, offset, _ in entries}


def _groups(data: bytes, cmap: int) -> list[tuple[int, int, int]]:
    """First and last character and first glyph of each run, from the table of whole Unicode (format 12)."""
    (count,) = struct.unpack_from(">H", data, cmap + 2)
    for number in range(count):
        (offset,) = struct.unpack_from(">I", data, cmap + 4 + 8 * number + 4)
        (form,) = struct.unpack_from(">H", data, cmap + offset)
        if form == 12:
            (groups,) = struct.unpack_from(">I", data, cmap + offset + 12)
            return [struct.unpack_from(">III", data, cmap + offset + 16 + 12 * at) for at in range(groups)]
    raise ValueError("the font has no table of whole Unicode")
