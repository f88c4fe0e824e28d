"""The alphabet of SMS (GSM 03.38): mapping text into it, counting septets, cutting to a length.

Pure; never knows what a message says. One character outside the alphabet would turn a message of
two parts into one of five, and each part is paid for and may arrive alone.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    "ÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
EXTENDED: Final = frozenset("^{}\\[~]|€")  # each takes two septets: an escape and itself
ALPHABET: Final = BASIC | EXTENDED

ONE_PART: Final = 160
EACH_PART: Final = 153  # of several: the rest is the header that joins them
TWO_PARTS: Final = 2 * EACH_PART - 1  # an escape pair is not split between parts: one septet may be lost

_MAPPED: Final = {
    **dict.fromkeys("‘’‚‛′`´ʼ", "'"),
    **dict.fromkeys("“”„‟″«»‹›", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **dict.fromkeys("•·●▪■", "*"),
    **{
        "…": "...",
        "→": "->",
        "←": "<-",
        "⇒": "=>",
        "≤": "<=",
        "≥": ">=",
        "≠": "!=",
        "×": "x",
        "÷": "/",
        "⁄": "/",
    },
    **{"\t": " ", "°": " deg ", "µ": "u", "μ": "u", "™": "(tm)", "©": "(c)", "®": "(r)"},
    **{"ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i"},
    **{"œ": "oe", "Œ": "OE", "ŋ": "n", "Ŋ": "N", "ħ": "h", "Ħ": "H", "ẞ": "SS"},
}


_FOREIGN: Final = "\ufffd"


def to_gsm(text: str) -> str:
    """The text in the alphabet: accents it lacks fall off, emoji go, a foreign word becomes `?`."""
    mapped = "".join(map(_map, unicodedata.normalize("NFC", text)))
    return re.sub(f"{_FOREIGN}+", "?", mapped)


def _map(char: str) -> str:
    if char in ALPHABET:
        return char
    if char in _MAPPED:
        return _MAPPED[char]
    plain = unicodedata.normalize("NFKD", char)
    if plain != char:
        return "".join(map(_map, plain))
    match unicodedata.category(char)[0]:
        case "L" | "N":
            return _FOREIGN
        case "Z":
            return " "
    return ""


def septets(text: str) -> int:
    """How many septets a text of the alphabet takes."""
    return len(text) + sum(char in EXTENDED for char in text)


def parts(text: str) -> int:
    """How many parts a text of the alphabet is sent in."""
    if septets(text) <= ONE_PART:
        return 1
    count, room = 1, EACH_PART
    for char in text:
        width = 2 if char in EXTENDED else 1
        if width > room:
            count, room = count + 1, EACH_PART
        room -= width
    return count


def cut(text: str, limit: int) -> str:
    """At most `limit` septets, ending in `...` when something was cut."""
    if septets(text) <= limit:
        return text
    room = limit - 3
    kept = 0
    for char in text:
        room -= 2 if char in EXTENDED else 1
        if room < 0:
            break
        kept += 1
    return text[:kept].rstrip() + "..." if limit >= 3 else ""
