"""From a mapping (midwatch.yaml, JSON in the database) to a schedule.

Never stops at the first mistake: all of them are reported together, each with its place. Odd but
harmless input (no users, a window without days, an override of no length) is a schedule too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from engine.errors import BadConfig
from engine.schedule.fields import Fields
from engine.schedule.holidays import Holidays
from engine.schedule.model import (
    Layer,
    OverrideKind,
    Restriction,
    Rotation,
    Schedule,
    ScheduleOverride,
    Unit,
    Weekday,
)
from engine.schedule.parse_holidays import parse_holidays

_LONGEST_TURN = 1000  # units; longer turns are typing mistakes

_SCHEDULE_KEYS = ("name", "timezone", "layers", "overrides", "holidays", "fallback")
_LAYER_KEYS = ("name", "users", "start", "rotation", "until", "restrictions", "skip_holidays", "holidays")
_OVERRIDE_KEYS = ("kind", "user", "covers", "start", "end")


# For a layer that cannot be read.
_STAND_IN = Layer("", (), datetime.fromisoformat("1970-01-01T00:00"), Rotation(1, Unit.DAY))


def parse_schedule(mapping: Mapping[str, object], place: str = "schedule") -> Schedule:
    """Read a schedule, or raise BadConfig with every mistake. `place` is what sentences begin with."""
    fields = Fields()
    raw = fields.mapping(mapping, place, _SCHEDULE_KEYS)
    if raw is None:
        raise BadConfig(fields.mistakes)
    fallback = raw.get("fallback")
    schedule = Schedule(
        timezone=fields.zone(raw.get("timezone"), f"{place}.timezone"),
        layers=_layers(fields, raw.get("layers"), f"{place}.layers"),
        overrides=_overrides(fields, raw.get("overrides"), f"{place}.overrides"),
        holidays=parse_holidays(fields, raw.get("holidays"), f"{place}.holidays"),
        fallback=None if fallback is None else fields.text(fallback, f"{place}.fallback"),
    )
    if fields.mistakes:
        raise BadConfig(fields.mistakes)
    return schedule


def _layers(fields: Fields, raw: object, place: str) -> tuple[Layer, ...]:
    items = fields.items(raw, place)
    return tuple(_layer(fields, item, where, number) for number, (where, item) in enumerate(items, start=1))


def _layer(fields: Fields, raw: object, place: str, number: int) -> Layer:
    layer = fields.mapping(raw, place, _LAYER_KEYS)
    if layer is None:
        return _STAND_IN
    until = layer.get("until")
    return Layer(
        name=fields.text(layer.get("name", f"layer {number}"), f"{place}.name"),
        users=_users(fields, layer.get("users"), f"{place}.users"),
        start=fields.wall(layer.get("start"), f"{place}.start"),
        rotation=_rotation(fields, layer.get("rotation"), f"{place}.rotation"),
        until=None if until is None else fields.wall(until, f"{place}.until"),
        restrictions=_restrictions(fields, layer.get("restrictions"), f"{place}.restrictions"),
        skip_holidays=fields.flag(layer.get("skip_holidays", False), f"{place}.skip_holidays"),
        holidays=_own_holidays(fields, layer, f"{place}.holidays"),
    )


def _users(fields: Fields, raw: object, place: str) -> tuple[tuple[str, ...], ...]:
    """One entry per turn: a user, or a list of users who are on call together."""
    if raw is None:
        return fields.wrong(place, "is missing", ())
    entries: list[tuple[str, ...]] = []
    for where, entry in fields.items(raw, place):
        together = fields.items(entry, where) if isinstance(entry, list | tuple) else [(where, entry)]
        entries.append(tuple(fields.text(user, spot) for spot, user in together))
    return tuple(entries)


def _own_holidays(fields: Fields, layer: Mapping[str, object], place: str) -> Holidays | None:
    if not layer.get("holidays"):
        return None
    if layer.get("skip_holidays") is None:  # false says that it is meant so
        fields.wrong(place, "are of no effect without skip_holidays: true", None)
    return parse_holidays(fields, layer.get("holidays"), place)


def _rotation(fields: Fields, raw: object, place: str) -> Rotation:
    rotation = fields.mapping(raw, place, ("every", "unit"))
    if rotation is None:
        return _STAND_IN.rotation
    return Rotation(
        every=fields.count(rotation.get("every"), f"{place}.every", _LONGEST_TURN),
        unit=fields.choice(
            rotation.get("unit"), f"{place}.unit", {unit.value: unit for unit in Unit}, Unit.DAY
        ),
    )


def _restrictions(fields: Fields, raw: object, place: str) -> tuple[Restriction, ...]:
    weekdays = {day.word: day for day in Weekday}
    found = []
    for where, item in fields.items(raw, place):
        window = fields.mapping(item, where, ("days", "from", "to"))
        if window is None:
            continue
        if window.get("days") is None:
            fields.wrong(f"{where}.days", "is missing", None)
        days = fields.items(window.get("days"), f"{where}.days")
        found.append(
            Restriction(
                days=frozenset(fields.choice(day, spot, weekdays, Weekday.MON) for spot, day in days),
                opens=fields.clock(window.get("from"), f"{where}.from"),
                closes=fields.clock(window.get("to"), f"{where}.to"),
            )
        )
    return tuple(found)


def _overrides(fields: Fields, raw: object, place: str) -> tuple[ScheduleOverride, ...]:
    found = []
    for where, item in fields.items(raw, place):
        override = fields.mapping(item, where, _OVERRIDE_KEYS)
        if override is None:
            continue
        kinds = {kind.value: kind for kind in OverrideKind}
        kind = fields.choice(override.get("kind"), f"{where}.kind", kinds, OverrideKind.ADD)
        covers = override.get("covers")
        if kind is OverrideKind.COVER:
            covers = fields.text(covers, f"{where}.covers")
        elif covers is not None:
            fields.wrong(f"{where}.covers", f"a {kind.value} override covers nobody in particular", None)
        found.append(
            ScheduleOverride(
                kind=kind,
                user=fields.text(override.get("user"), f"{where}.user"),
                start=fields.instant(override.get("start"), f"{where}.start"),
                end=fields.instant(override.get("end"), f"{where}.end"),
                covers=covers,
            )
        )
    return tuple(found)
