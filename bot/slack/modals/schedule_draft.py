"""A schedule as it is being typed: its fields as text, its layers in order, people by the text of their id.

Never says who is on call, and keeps what it has no field for as it was. Every change is a new draft.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, Final, Self
from zoneinfo import ZoneInfo

from bot.slack.modals.schedule_holidays import read_holidays, show_holidays
from bot.slack.modals.schedule_hours import read_hours, show_hours
from engine.errors import BadInput
from engine.rota.schedules import Edited
from engine.schedule import Schedule, Unit, dump_schedule, parse_schedule
from engine.schedule.fields import Fields

LAYERS_MOST: Final = 30
LONGEST_NAME: Final = 80
UNITS: Final = tuple(unit.value for unit in Unit)

_OWN: Final = ("name", "users", "start", "rotation", "restrictions", "skip_holidays", "holidays")

Entries = tuple[tuple[str, ...], ...]


class Mistakes(BadInput):
    """What was typed cannot be a schedule yet."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("\n".join(errors.values()))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class LayerDraft:
    """`key` stays with the layer wherever it is moved; `start` is what it began with, to the second."""

    key: str
    name: str
    entries: Entries = ()
    every: str = "1"
    unit: str = "week"
    date: str = ""
    time: str = "09:00"
    hours: str = ""
    skip_holidays: bool = False
    holidays: str = ""
    start: str = ""
    kept: Mapping[str, Any] = field(default_factory=dict)

    def mapping(self) -> dict[str, Any]:
        """As a schedule's mapping has it, or Mistakes."""
        errors: dict[str, str] = {}
        if not self.name.strip():
            errors["name"] = "Give the layer a name, like weekly or nights."
        if not re.fullmatch(r"\d{1,3}", self.every) or int(self.every) < 1:
            errors["every"] = "Write a whole number from 1 to 999."
        try:
            windows = read_hours(self.hours)
        except BadInput as wrong:
            windows, errors["hours"] = (), str(wrong)
        try:
            holidays = read_holidays(self.holidays)
        except BadInput as wrong:
            holidays, errors["own"] = [], str(wrong)
        start = self._start(errors)
        if errors:
            raise Mistakes(errors)
        made = replace(_EMPTY, restrictions=windows)
        return {
            **self.kept,
            "name": self.name.strip(),
            "users": [entry[0] if len(entry) == 1 else list(entry) for entry in self.entries],
            "start": start,
            "rotation": {"every": int(self.every), "unit": self.unit},
            "restrictions": dump_schedule(Schedule("UTC", (made,)))["layers"][0]["restrictions"],
            "skip_holidays": self.skip_holidays,
            "holidays": holidays,
        }

    def _start(self, errors: dict[str, str]) -> str:
        wall = f"{self.date}T{self.time}"
        if self.start.startswith(wall):
            return self.start
        fields = Fields()
        fields.wall(wall, "start")
        if fields.mistakes:
            errors["date"] = "Choose the day and the time of the first handoff."
        return wall


_EMPTY: Final = parse_schedule(
    {
        "timezone": "UTC",
        "layers": [
            {"name": "-", "users": [], "start": "2000-01-01T00:00", "rotation": {"every": 1, "unit": "day"}}
        ],
    }
).layers[0]


@dataclass(frozen=True, slots=True)
class ScheduleDraft:
    """`schedule_id` and `version_id` are of what is edited; a new schedule has none."""

    name: str
    timezone: str
    layers: tuple[LayerDraft, ...] = ()
    holidays: str = ""
    fallback: str = ""
    channel: str = ""
    schedule_id: int | None = None
    version_id: int | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def new(cls, name: str, timezone: str, person: str, now: datetime) -> Self:
        """One weekly layer that began last Monday, with the person who makes it."""
        return cls(name, timezone).with_layer(timezone, now, ((person,),))

    @classmethod
    def of(cls, current: Edited) -> Self:
        mapping = dump_schedule(current.plain)
        shown = ("timezone", "layers", "holidays", "fallback", "overrides")
        layers = zip(mapping["layers"], current.plain.layers, strict=True)
        return cls(
            name=current.named.name,
            timezone=mapping["timezone"],
            layers=tuple(
                _layer(f"l{at}", raw, show_hours(layer.restrictions))
                for at, (raw, layer) in enumerate(layers)
            ),
            holidays=show_holidays(mapping["holidays"]),
            fallback=current.plain.fallback or "",
            channel=current.named.channel or "",
            schedule_id=current.named.id,
            version_id=current.version_id,
            kept={key: value for key, value in mapping.items() if key not in shown},
        )

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        layers = tuple(
            LayerDraft(**{**layer, "entries": tuple(tuple(entry) for entry in layer["entries"])})
            for layer in body["layers"]
        )
        return cls(**{**body, "layers": layers})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    # --- layers

    def layer(self, key: str) -> LayerDraft | None:
        return next((layer for layer in self.layers if layer.key == key), None)

    def with_layer(self, timezone: str, now: datetime, entries: Entries = ()) -> Self:
        """One more at the bottom."""
        taken = {layer.key for layer in self.layers}
        key = next(f"l{at}" for at in range(len(taken) + 1) if f"l{at}" not in taken)
        today = now.astimezone(ZoneInfo(timezone)).date()
        monday = today - timedelta(days=today.weekday())
        name = "weekly" if not self.layers else f"layer {len(self.layers) + 1}"
        return replace(self, layers=(*self.layers, LayerDraft(key, name, entries, date=monday.isoformat())))

    def changed(self, layer: LayerDraft) -> Self:
        layers = tuple(layer if one.key == layer.key else one for one in self.layers)
        return replace(self, layers=layers)

    def without(self, key: str) -> Self:
        return replace(self, layers=tuple(layer for layer in self.layers if layer.key != key))

    def moved(self, key: str, by: int) -> Self:
        at = next((at for at, layer in enumerate(self.layers) if layer.key == key), None)
        return self if at is None else replace(self, layers=moved(self.layers, at, by))

    # --- what it says

    def schedule(self) -> Schedule:
        """The schedule that this is, or Mistakes by the block of the first form."""
        errors: dict[str, str] = {}
        if not self.name.strip() or len(self.name) > LONGEST_NAME:
            errors["name"] = f"Give the schedule a name of at most {LONGEST_NAME} letters."
        fields = Fields()
        fields.zone(self.timezone, "zone")
        if fields.mistakes:
            errors["zone"] = fields.mistakes[0].removeprefix("zone: ").capitalize()
        holidays = self._holidays(errors)
        layers = self._layers(errors)
        if errors:
            raise Mistakes(errors)
        mapping = {"timezone": self.timezone, "layers": layers, "holidays": holidays}
        return parse_schedule({**self.kept, **mapping, "fallback": self.fallback or None})

    def _layers(self, errors: dict[str, str]) -> list[dict[str, Any]]:
        found = []
        for layer in self.layers:
            if not layer.entries:
                errors["layers"] = f"Nobody is in layer {layer.name}: add somebody, or remove the layer."
            try:
                found.append(layer.mapping())
            except Mistakes as wrong:
                errors["layers"] = f"Layer {layer.name}: {next(iter(wrong.errors.values()))}"
        if not self.layers:
            errors["layers"] = "A schedule needs a layer."
        return found

    def _holidays(self, errors: dict[str, str]) -> list[dict[str, str]]:
        try:
            return read_holidays(self.holidays)
        except BadInput as wrong:
            errors["holidays"] = str(wrong)
            return []


def moved(things: Sequence[Any], at: int, by: int) -> tuple[Any, ...]:
    """With one of them a place up or down; where there is no such place, as they were."""
    to = at + by
    if not (0 <= at < len(things) and 0 <= to < len(things)):
        return tuple(things)
    rest = [*things[:at], *things[at + 1 :]]
    return (*rest[:to], things[at], *rest[to:])


def _layer(key: str, raw: Mapping[str, Any], hours: str) -> LayerDraft:
    users = [entry if isinstance(entry, list) else [entry] for entry in raw["users"]]
    day, _, time = raw["start"].partition("T")
    return LayerDraft(
        key=key,
        name=raw["name"],
        entries=tuple(map(tuple, users)),
        every=str(raw["rotation"]["every"]),
        unit=raw["rotation"]["unit"],
        date=day,
        time=time[:5],
        hours=hours,
        skip_holidays=raw["skip_holidays"],
        holidays=show_holidays(raw.get("holidays") or ()),
        start=raw["start"],
        kept={name: value for name, value in raw.items() if name not in _OWN},
    )


def is_date(typed: str) -> bool:
    try:
        date.fromisoformat(typed)
    except ValueError:
        return False
    return True
