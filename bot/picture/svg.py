"""SVG as a tree that an XML builder writes: whatever a name holds, it stays text.

Never glues markup together from strings.
"""

from __future__ import annotations

from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

NAMESPACE: Final = "http://www.w3.org/2000/svg"

Value = str | float


def root(width: float, height: float, family: str) -> Element:
    return Element(
        "svg",
        {
            "xmlns": NAMESPACE,
            "width": _said(width),
            "height": _said(height),
            "viewBox": f"0 0 {_said(width)} {_said(height)}",
            "font-family": family,
        },
    )


def put(parent: Element, tag: str, words: str | None = None, /, **attributes: Value) -> Element:
    """Add an element; `font_size` is written `font-size`."""
    named = {key.replace("_", "-"): _said(value) for key, value in attributes.items()}
    element = SubElement(parent, tag, named)
    if words is not None:
        element.text = plain(words)
    return element


def written(tree: Element) -> str:
    return tostring(tree, encoding="unicode")


def plain(words: str) -> str:
    """One line of what can be seen: no controls, which XML cannot hold, and nothing that reorders text."""
    return "".join(letter for letter in " ".join(words.split()) if letter.isprintable())


def _said(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
