"""Half-open spans of time in order, none touching another: joined, cut, taken from each other.

Never knows what they stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

Span = tuple[datetime, datetime]


def join(spans: Iterable[Span]) -> list[Span]:
    """In order, those that overlap or touch made one; what does not end after it begins is none."""
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def clip(spans: Iterable[Span], a: datetime, b: datetime) -> list[Span]:
    """What of them lies between `a` and `b`."""
    return [(max(start, a), min(end, b)) for start, end in spans if start < b and end > a]


def without(spans: Sequence[Span], holes: Sequence[Span]) -> list[Span]:
    """What of the spans lies in none of the holes; both in order."""
    if not holes:
        return list(spans)
    left: list[Span] = []
    first = 0
    for start, end in spans:
        while first < len(holes) and holes[first][1] <= start:
            first += 1
        at, hole = start, first
        while hole < len(holes) and holes[hole][0] < end:
            if at < holes[hole][0]:
                left.append((at, holes[hole][0]))
            at = holes[hole][1]
            hole += 1
        if at < end:
            left.append((at, end))
    return left
