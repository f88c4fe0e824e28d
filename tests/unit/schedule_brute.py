"""Who is on call minute by minute, painted: slow, plain, and by no code of the resolver.

Reads a schedule's mapping; everything in it must lie on whole minutes.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
FAR = timedelta(days=3)  # further than any window lasts or any clock jumped

People = tuple[str, ...]


class Canvas:
    """The minutes from `origin` on, and what a layer or an override does to them."""

    def __init__(self, mapping: dict[str, Any], origin: datetime, minutes: int) -> None:
        self.mapping, self.origin, self.minutes = mapping, origin, minutes
        self.zone = ZoneInfo(mapping["timezone"])
        self.first = origin.astimezone(self.zone).replace(tzinfo=None) - FAR
        self.last = (origin + minutes * MINUTE).astimezone(self.zone).replace(tzinfo=None) + FAR

    def people(self) -> list[People]:
        layers = [self._layer(layer) for layer in self.mapping["layers"]]
        fallback = [self.mapping["fallback"]] if self.mapping.get("fallback") else []
        return [
            self._overridden(next((who[minute] for who in layers if who[minute]), fallback), minute)
            for minute in range(self.minutes)
        ]

    def _at(self, wall: datetime) -> int:
        instant = wall.replace(tzinfo=self.zone).astimezone(UTC)
        return (instant - self.origin) // MINUTE

    def _instant(self, text: str) -> int:
        return (datetime.fromisoformat(text) - self.origin) // MINUTE

    def _paint(self, row: list[Any], start: int, end: int, colour: Any) -> None:
        start, end = max(0, start), min(self.minutes, end)
        if start < end:
            row[start:end] = [colour] * (end - start)

    def _layer(self, layer: dict[str, Any]) -> list[list[str]]:
        who: list[list[str]] = [[] for _ in range(self.minutes)]
        start, users = datetime.fromisoformat(layer["start"]), layer["users"]
        turn = 0
        while users and (begins := self._begin(layer, start, turn)) <= self.last:
            entry = users[turn % len(users)]
            self._paint(who, self._at(begins), self.minutes, [entry] if isinstance(entry, str) else entry)
            turn += 1
        for row in self._closed(layer), self._holidays(layer):
            who = [[] if shut else people for people, shut in zip(who, row, strict=True)]
        self._paint(who, 0, self._at(start), [])
        if layer.get("until"):
            self._paint(who, self._at(datetime.fromisoformat(layer["until"])), self.minutes, [])
        return who

    @staticmethod
    def _begin(layer: dict[str, Any], start: datetime, turn: int) -> datetime:
        steps, unit = turn * layer["rotation"]["every"], layer["rotation"]["unit"]
        if unit != "month":
            return start + steps * {"hour": 60, "day": 1440, "week": 10080}[unit] * MINUTE
        months = start.year * 12 + start.month - 1 + steps
        year, month = months // 12, months % 12 + 1
        return start.replace(year=year, month=month, day=min(start.day, monthrange(year, month)[1]))

    def _closed(self, layer: dict[str, Any]) -> list[bool]:
        row = [bool(layer.get("restrictions"))] * self.minutes
        for window in layer.get("restrictions") or []:
            for midnight in self._days():
                if WEEKDAYS[midnight.weekday()] in window["days"]:
                    opens, closes = (self._clock(midnight, window[end]) for end in ("from", "to"))
                    if closes <= opens:
                        closes += 1440 * MINUTE
                    self._paint(row, self._at(opens), self._at(closes), False)
        return row

    def _holidays(self, layer: dict[str, Any]) -> list[bool]:
        row = [False] * self.minutes
        dates = {holiday["date"] for holiday in self.mapping.get("holidays") or []}
        for midnight in self._days():
            if layer.get("skip_holidays") and f"{midnight:%Y-%m-%d}" in dates:
                self._paint(row, self._at(midnight), self._at(midnight + 1440 * MINUTE), True)
        return row

    def _days(self) -> list[datetime]:
        count = (self.last - self.first).days + 1
        first = self.first.replace(hour=0, minute=0, second=0)
        return [first + timedelta(days=day) for day in range(count)]

    @staticmethod
    def _clock(midnight: datetime, text: str) -> datetime:
        return midnight.replace(hour=int(text[:2]), minute=int(text[3:]))

    def _overridden(self, base: list[str], minute: int) -> People:
        people = set(base)
        overrides = self.mapping.get("overrides") or []
        running = [o for o in overrides if self._instant(o["start"]) <= minute < self._instant(o["end"])]
        for number, override in enumerate(running):
            later = [o for o in running[number + 1 :] if o["kind"] == "cover"]
            if override["kind"] == "replace_all":
                people = {override["user"]}
            elif override["kind"] == "add":
                people.add(override["user"])
            elif override["covers"] in people and all(o["covers"] != override["covers"] for o in later):
                people = people - {override["covers"]} | {override["user"]}
        return tuple(sorted(people))
