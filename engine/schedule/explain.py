"""Why somebody is on call, in plain words: the override and its end, or the layer and its turn.

Never decides who is: the resolver has, and this puts it into a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from engine.schedule.layers import Silence, Stretch, silence_at
from engine.schedule.model import Layer, OverrideKind, Schedule, ScheduleOverride
from engine.schedule.walltime import to_instant
from engine.schedule.windows import holiday_at


def explain(schedule: Schedule, stretch: Stretch, t: datetime, names: Mapping[str, str]) -> str:
    """One line about `t`, which lies in the stretch. Who is not in `names` is called as in the schedule."""
    if not stretch.overrides:
        return _base_words(schedule, stretch, t, names)
    sentences = [_override_words(override, schedule.zone, names) for override in stretch.overrides]
    if stretch.overrides[0].kind is not OverrideKind.REPLACE_ALL:
        sentences.insert(0, _base_words(schedule, stretch, t, names))
    return "; ".join(sentences)


def _base_words(schedule: Schedule, stretch: Stretch, t: datetime, names: Mapping[str, str]) -> str:
    if stretch.layer is not None:
        whose = _and_words([names.get(user, user) for user in stretch.turn])
        return f"layer {stretch.layer.name}: the turn of {whose}"
    why = [_silence_words(schedule, layer, t) for layer in schedule.layers]
    missing = ", ".join(why or ["the schedule has no layers"])
    if stretch.turn:
        return f"fallback: {missing}"
    return f"nobody: {missing}, and there is no fallback"


def _silence_words(schedule: Schedule, layer: Layer, t: datetime) -> str:
    zone = schedule.zone
    answer = silence_at(schedule, layer, t)
    if answer is Silence.EMPTY:
        return f"layer {layer.name} has nobody in it"
    if answer is Silence.NOT_STARTED:
        return f"layer {layer.name} starts {_when(to_instant(layer.start, zone), zone)}"
    if answer is Silence.ENDED and layer.until is not None:
        return f"layer {layer.name} ended {_when(to_instant(layer.until, zone), zone)}"
    if answer is Silence.OUTSIDE_WINDOWS:
        return f"layer {layer.name} is outside its hours"
    if answer is Silence.HOLIDAY:
        return f"layer {layer.name} skips {holiday_at(schedule, layer, t) or 'the holiday'}"
    return f"layer {layer.name} has an empty turn"


def _override_words(override: ScheduleOverride, zone: ZoneInfo, names: Mapping[str, str]) -> str:
    user = names.get(override.user, override.user)
    end = _when(override.end, zone)
    if override.calendar:
        return f"calendar: {user} until {end}"
    if override.kind is OverrideKind.REPLACE_ALL:
        return f"override: {user} alone until {end}"
    if override.kind is OverrideKind.ADD:
        return f"override: {user} in addition until {end}"
    covered = override.covers or ""
    return f"override: {user} covers {names.get(covered, covered)} until {end}"


def _when(instant: datetime, zone: ZoneInfo) -> str:
    try:
        return f"{instant.astimezone(zone):%Y-%m-%d %H:%M %Z}"
    except OverflowError:  # an override "for ever" ends where the calendar does
        return f"{instant:%Y-%m-%d %H:%M %Z}"


def _and_words(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
