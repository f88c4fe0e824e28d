"""What typing and pressing make of a draft. Pure: a draft and an input in, a draft out."""

from __future__ import annotations

from dataclasses import replace

from bot.slack.modals.schedule_draft import LayerDraft, ScheduleDraft, moved
from bot.slack.modals.values import Values, many, text
from engine.errors import BadCommand


def typed_whole(draft: ScheduleDraft, values: Values, fallback: str) -> ScheduleDraft:
    """With what the first screen holds; `fallback` is the id of whoever was chosen."""
    return replace(
        draft,
        name=draft.name if draft.schedule_id is not None else " ".join(text(values, "name").split()),
        timezone=text(values, "zone"),
        fallback=fallback,
        holidays=text(values, "holidays"),
        channel=text(values, "channel"),
    )


def typed_layer(layer: LayerDraft, values: Values) -> LayerDraft:
    """With what the screen of a layer holds."""
    key = layer.key
    return replace(
        layer,
        name=" ".join(text(values, f"name:{key}").split()),
        every=text(values, f"every:{key}"),
        unit=text(values, f"unit:{key}") or layer.unit,
        date=text(values, f"date:{key}"),
        time=text(values, f"time:{key}"),
        hours=text(values, f"hours:{key}"),
        skip_holidays=bool(many(values, f"skip:{key}")),
        holidays=text(values, f"own:{key}"),
    )


def with_person(layer: LayerDraft, person_id: int) -> LayerDraft:
    """One more turn, at the end."""
    return replace(layer, entries=(*layer.entries, (str(person_id),)))


def with_entry(layer: LayerDraft, chosen: str) -> LayerDraft:
    """After one of its turns was moved, joined, parted or removed: "up:3"."""
    verb, _, number = chosen.partition(":")
    at, entries = int(number), layer.entries
    if at >= len(entries):
        raise BadCommand("That turn is not there any more.")
    match verb:
        case "up" | "down":
            entries = moved(entries, at, -1 if verb == "up" else 1)
        case "join" if at > 0:
            together = tuple(dict.fromkeys((*entries[at - 1], *entries[at])))
            entries = (*entries[: at - 1], together, *entries[at + 1 :])
        case "part":
            entries = (*entries[:at], *((user,) for user in entries[at]), *entries[at + 1 :])
        case "remove":
            entries = (*entries[:at], *entries[at + 1 :])
    return replace(layer, entries=entries)
