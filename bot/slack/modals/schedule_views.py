"""What the modal of a schedule shows: the whole, one layer, and what saving would change.

Never reads the directory and never saves. However many layers and people there are, a view stays within
Slack's hundred blocks: each layer has a screen of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

from bot.slack import escape
from bot.slack.message import Block, actions, button, context, option, overflow, plain_text, section
from bot.slack.modals.opening import View
from bot.slack.modals.schedule_draft import LAYERS_MOST, UNITS, LayerDraft, ScheduleDraft, is_date
from bot.slack.modals.schedule_holidays import FORM as HOLIDAYS
from bot.slack.modals.schedule_hours import FORM as HOURS
from engine.directory import Person

MAIN, REVIEW = "main", "review"
ENTRIES_SHOWN: Final = 75
SECTION_MAX: Final = 2800
SECTIONS_MOST: Final = 12

People = Mapping[int, Person]


def whole(draft: ScheduleDraft, people: People, about: Mapping[str, Any], banner: str = "") -> View:
    """The first screen."""
    edits = draft.schedule_id is not None
    blocks = _banner(banner)
    if edits:
        blocks.append(section(f"*{escape.line(draft.name, 80)}*"))
    else:
        blocks.append(_typed("name", "Name", draft.name, "payments-primary", most=80))
    blocks.append(
        _typed(
            "zone", "Time zone", draft.timezone, "Europe/Berlin", hint="All times of the schedule are in it."
        )
    )
    blocks.append({"type": "header", "text": plain_text("Layers")})
    blocks.append(context("Whoever is in the highest layer that has somebody is on call."))
    blocks += [_layer_row(layer, number, people) for number, layer in enumerate(draft.layers, start=1)]
    if len(draft.layers) < LAYERS_MOST:
        blocks.append(actions("layers", [button("add_layer", "Add a layer", "add")]))
    blocks += _around(draft, people)
    title = "Edit schedule" if edits else "New schedule"
    return View(title, blocks, {**about, "s": MAIN}, submit="Review")


def one_layer(
    draft: ScheduleDraft, layer: LayerDraft, people: People, about: Mapping[str, Any], banner: str = ""
) -> View:
    """The screen of one layer."""
    key = layer.key
    blocks = _banner(banner)
    blocks.append(_typed(f"name:{key}", "Name of the layer", layer.name, "weekly", most=80))
    blocks.append(section("*People*, in the order of their turns"))
    shown = list(enumerate(layer.entries))[:ENTRIES_SHOWN]
    blocks += [_entry_row(key, at, entry, people, len(layer.entries)) for at, entry in shown]
    if len(layer.entries) > ENTRIES_SHOWN:
        blocks.append(context(f"and {len(layer.entries) - ENTRIES_SHOWN} more turns, which stay as they are"))
    # Why the number: a new block id empties the field, so that the same person can be added again.
    blocks.append(actions(f"add:{key}:{len(layer.entries)}", [_users("add_person", "Add somebody…")]))
    blocks += [*_turns(layer), *_hours(layer)]
    blocks.append(actions(f"layer:{key}", _layer_buttons(draft, layer)))
    return View("Layer", blocks, {**about, "s": key}, submit="Done", close="Discard")


def review(draft: ScheduleDraft, lines: Sequence[str], about: Mapping[str, Any], banner: str = "") -> View:
    """The last screen: what saving changes; of a new schedule who will be on call."""
    name = f"*{escape.line(draft.name, 80)}*"
    lead = f"Saving {name} changes this in the next 4 weeks, times in {draft.timezone}:"
    if draft.schedule_id is None:
        lead = f"Saving makes {name}. On call in the next 4 weeks, times in {draft.timezone}:"
    elif not lines:
        lead = f"Saving {name} changes nobody's shift in the next 4 weeks."
    blocks = [*_banner(banner), section(lead), *map(section, _sections(lines))]
    blocks.append(actions("review", [button("back", "Back", "back")]))
    blocks.append(context("It is in force from the moment it is saved. The past stays as it was."))
    return View("Review changes", blocks, {**about, "s": REVIEW}, submit="Save", close="Discard")


# --- parts ------------------------------------------------------------------------------------------


def _around(draft: ScheduleDraft, people: People) -> list[Block]:
    known = _slack_id(draft.fallback, people)
    fallback = _users("who", "Nobody", many=True, chosen=known)
    return [
        {"type": "divider"},
        _input(
            "fallback", "Fallback", fallback, optional=True, hint="Is on call where no layer has anybody."
        ),
        _typed(
            "holidays",
            "Holidays",
            draft.holidays,
            "DE-BY",
            multiline=True,
            optional=True,
            hint=f"One a line; {HOLIDAYS}. Layers that skip holidays have nobody on them.",
        ),
        _typed(
            "channel",
            "Channel",
            draft.channel,
            "#payments",
            optional=True,
            hint="Where changes, handoffs and warnings are told.",
        ),
    ]


def _layer_row(layer: LayerDraft, number: int, people: People) -> Block:
    turns = [" + ".join(person(user, people) for user in entry) for entry in layer.entries]
    order = " → ".join(turns[:8]) + (f" and {len(turns) - 8} more" if len(turns) > 8 else "")
    facts = [every(layer), order or "⚠️ nobody yet"]
    if layer.hours.strip():
        facts.append("only " + escape.line(", ".join(layer.hours.split("\n")), 120))
    if layer.skip_holidays:
        facts.append("not on holidays")
    if layer.kept.get("until"):
        facts.append(f"until {layer.kept['until']}")
    text = f"*{number}. {escape.line(layer.name, 80) or 'unnamed'}*\n{' · '.join(facts)}"
    row = section(escape.cut(text, SECTION_MAX), block_id=f"row:{layer.key}")
    return {**row, "accessory": button(f"edit:{layer.key}", "Edit", layer.key)}


def every(layer: LayerDraft) -> str:
    """ "every 2 weeks, handoff Mon 09:00"."""
    units = f"{escape.line(layer.every, 4)} {layer.unit}s" if layer.every != "1" else layer.unit
    day, time = escape.line(layer.date, 10), escape.line(layer.time, 5)
    weekday = f"{date.fromisoformat(layer.date):%a}" if is_date(layer.date) else day
    on = {"week": f"{weekday} {time}", "day": time, "month": f"on day {day[8:]} at {time}"}
    return f"every {units}, handoff {on.get(layer.unit, f'from {day} {time}')}"


def _entry_row(key: str, at: int, entry: Sequence[str], people: People, total: int) -> Block:
    choices = []
    if at > 0:
        choices.append(option("Move up", f"up:{at}"))
    if at < total - 1:
        choices.append(option("Move down", f"down:{at}"))
    if at > 0:
        choices.append(option("Together with the one before", f"join:{at}"))
    if len(entry) > 1:
        choices.append(option("Each on their own", f"part:{at}"))
    choices.append(option("Remove", f"remove:{at}"))
    words = f"{at + 1}. {' and '.join(person(user, people) for user in entry)}"
    row = section(escape.cut(words, SECTION_MAX), block_id=f"entry:{key}:{at}")
    return {**row, "accessory": overflow(f"entry:{at}", choices)}


def _turns(layer: LayerDraft) -> list[Block]:
    key = layer.key
    units = [option(f"{unit}s", unit) for unit in UNITS]
    unit = _select("unit", units, layer.unit)
    day: Block = {"type": "datepicker", "action_id": "date"}
    if layer.date:
        day["initial_date"] = layer.date
    time: Block = {"type": "timepicker", "action_id": "time", "initial_time": layer.time or "09:00"}
    return [
        _typed(f"every:{key}", "A turn lasts", layer.every, "1", most=3),
        _input(f"unit:{key}", "Unit", unit),
        _input(
            f"date:{key}",
            "Handoff day",
            day,
            hint="The first turn begins here. Weekly turns hand over on this weekday, monthly on this day.",
        ),
        _input(f"time:{key}", "Handoff time", time),
    ]


def _hours(layer: LayerDraft) -> list[Block]:
    """When nobody is on the layer although it is somebody's turn."""
    key = layer.key
    skip = option("Nobody on holidays", "skip")
    boxes = {"type": "checkboxes", "action_id": "skip", "options": [skip]}
    if layer.skip_holidays:
        boxes["initial_options"] = [skip]
    return [
        _typed(
            f"hours:{key}",
            "Only at these hours",
            layer.hours,
            "mon-fri 09:00-17:00",
            multiline=True,
            optional=True,
            hint=f"Empty: always. One window a line; {HOURS}.",
        ),
        _input(f"skip:{key}", "Holidays", boxes, optional=True),
        _typed(
            f"own:{key}",
            "Holidays of this layer",
            layer.holidays,
            "DE-BY",
            multiline=True,
            optional=True,
            hint="In place of the schedule's. One a line, as there.",
        ),
    ]


def _layer_buttons(draft: ScheduleDraft, layer: LayerDraft) -> list[Block]:
    at = draft.layers.index(layer)
    found = []
    if at > 0:
        found.append(button("layer_up", "Move layer up", layer.key))
    if at < len(draft.layers) - 1:
        found.append(button("layer_down", "Move layer down", layer.key))
    return [*found, button("layer_remove", "Remove layer", layer.key, "danger")]


def person(user: str, people: People) -> str:
    known = people.get(int(user))
    if known is None:
        return "somebody who is gone"
    mentioned = escape.mention(known.slack_user_id) if known.slack_user_id else ""
    return mentioned or escape.line(known.name, 60)


def _slack_id(user: str, people: People) -> str | None:
    known = people.get(int(user)) if user else None
    return known.slack_user_id if known else None


def _banner(said: str) -> list[Block]:
    return [section(f"⚠️ {said}")] if said else []


def _sections(lines: Sequence[str]) -> list[str]:
    """Whole lines in as few sections as hold them."""
    found: list[str] = []
    for line in lines:
        if found and len(found[-1]) + len(line) < SECTION_MAX:
            found[-1] += f"\n{line}"
        else:
            found.append(escape.cut(line, SECTION_MAX))
    return found[:SECTIONS_MOST]


def _typed(
    block_id: str,
    label: str,
    value: str,
    example: str,
    *,
    most: int = 2900,
    multiline: bool = False,
    optional: bool = False,
    hint: str = "",
) -> Block:
    element: Block = {
        "type": "plain_text_input",
        "action_id": "typed",
        "placeholder": plain_text(example),
        "max_length": most,
    }
    if multiline:
        element["multiline"] = True
    if value:
        element["initial_value"] = value[:most]
    return _input(block_id, label, element, optional=optional, hint=hint)


def _input(block_id: str, label: str, element: Block, *, optional: bool = False, hint: str = "") -> Block:
    block: Block = {"type": "input", "block_id": block_id, "label": plain_text(label), "element": element}
    if optional:
        block["optional"] = True
    if hint:
        block["hint"] = plain_text(hint)
    return block


def _users(action_id: str, words: str, *, many: bool = False, chosen: str | None = None) -> Block:
    element: Block = {"type": "users_select", "action_id": action_id, "placeholder": plain_text(words)}
    if many:  # why: a choice among one can be taken back, and a single choice cannot
        element |= {"type": "multi_users_select", "max_selected_items": 1}
        if chosen:
            element["initial_users"] = [chosen]
    return element


def _select(action_id: str, options: Sequence[Block], chosen: str) -> Block:
    initial = next(one for one in options if one["value"] == chosen)
    return {
        "type": "static_select",
        "action_id": action_id,
        "options": list(options),
        "initial_option": initial,
    }
