"""What is said about a cover request: to those who are asked, to the asker, to the channel.

Pure: text and buttons out, times on the reader's own wall clock. Never sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Final

from engine import covering
from engine.clockwords import between, length
from engine.covering import Request
from engine.directory import NamedSchedule, Person
from engine.parts import Part, halves
from engine.schedule.zones import zone_named

ACCEPT: Final = "cover_accept"
FIRST_HALF: Final = "cover_accept_first"
SECOND_HALF: Final = "cover_accept_second"
DECLINE: Final = "cover_decline"
ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class Story:
    """A request as it stands, with the people it is about."""

    request: Request
    named: NamedSchedule
    asker: Person
    left: tuple[Part, ...]
    taken: tuple[tuple[str, int, Part], ...] = ()  # name, id, what

    @property
    def whose(self) -> str:
        return f"{self.asker.name} on {self.named.name}"


def spans(parts: Iterable[Part], timezone: str) -> str:
    return ", ".join(between(one.start, one.end, timezone) for one in parts)


def question(story: Story, person: Person, answer: str) -> dict[str, Any]:
    """The direct message of somebody who was asked, as it should read now."""
    own = [part for _, who, part in story.taken if who == person.id]
    whole = spans([story.request.whole], person.timezone)
    if own:
        return {"text": f"✅ You cover {story.whose}: {spans(own, person.timezone)}. Thank you."}
    if answer == covering.DECLINED:
        return {"text": f"You said no to covering {story.whose}: {whole}."}
    if story.request.status == covering.WITHDRAWN:
        return {"text": f"↩️ {story.asker.name} does not need cover any more: {whole}."}
    if story.request.status == covering.FILLED:
        return {"text": f"☑️ {_whom(story)} covers {story.whose}: {whole}. Nothing to do for you."}
    if story.request.status == covering.EXPIRED:
        return {"text": f"⌛ The request of {story.whose} is over: {whole}."}
    return _asking(story, person)


def _asking(story: Story, person: Person) -> dict[str, Any]:
    asked = f"🙏 {story.asker.name} asks for cover on {story.named.name}"
    text = f"{asked}: {spans(story.left, person.timezone)} ({_hours(story.left)})."
    if story.taken:
        text += f" {_whom(story)} took the rest."
    return {"text": text, "buttons": _buttons(story, person.timezone)}


def _buttons(story: Story, timezone: str) -> list[dict[str, str]]:
    longest = max(story.left, key=lambda part: part.length)
    two = halves(longest)
    number = story.request.id
    whole = "Accept" if two is None else "Accept all"
    buttons = [{"do": ACCEPT, "label": whole, "value": f"{number}:{ALL}", "style": "primary"}]
    for do, part in zip((FIRST_HALF, SECOND_HALF), two or (), strict=False):
        label = f"Only {_clocks(part, timezone)}"
        buttons.append({"do": do, "label": label, "value": f"{number}:{as_value(part)}"})
    return [*buttons, {"do": DECLINE, "label": "Decline", "value": f"{number}:{ALL}"}]


def as_value(part: Part) -> str:
    return f"{int(part.start.timestamp())}:{int(part.end.timestamp())}"


def _clocks(part: Part, timezone: str) -> str:
    """As short as a button."""
    zone = zone_named(timezone) or UTC
    start, end = part.start.astimezone(zone), part.end.astimezone(zone)
    return (
        f"{start:%a %H:%M}-{end:%H:%M}" if start.date() == end.date() else f"{start:%a %H:%M}-{end:%a %H:%M}"
    )


def _hours(parts: Sequence[Part]) -> str:
    return length(sum((part.length for part in parts[1:]), parts[0].length))


def _whom(story: Story) -> str:
    return " and ".join(dict.fromkeys(name for name, _, _ in story.taken)) or "Somebody"


def who_has_it(story: Story, timezone: str) -> str:
    """For a click that came late: who covers what."""
    return "; ".join(f"{name} covers {spans([part], timezone)}" for name, _, part in story.taken)


def accepted_for_asker(story: Story, by: Person, new: Sequence[Part], waiting: int) -> str:
    zone = story.asker.timezone
    text = f"✅ {by.name} covers you on {story.named.name}: {spans(new, zone)}."
    if not story.left:
        return text
    rest = f"{_people(waiting)} can still say yes" if waiting else "nobody else is left to be asked"
    return f"{text} Still open: {spans(story.left, zone)}; {rest}."


def accepted_for_channel(story: Story, by: Person, new: Sequence[Part]) -> str:
    return f"🔁 {by.name} covers {story.whose}: {spans(new, story.named.schedule.timezone)}."


def expired_for_asker(story: Story, why: str) -> str:
    where = f"on {story.named.name}: {spans(story.left, story.asker.timezone)}"
    return (
        f"⚠️ {why} You are on call {where}. "
        "Ask somebody yourself, then put them on call with `/override`, or tell your team."
    )


def expired_for_channel(story: Story, why: str) -> str:
    return (
        f"⚠️ {why} {story.asker.name} sought cover on {story.named.name} and stays on call: "
        f"{spans(story.left, story.named.schedule.timezone)}."
    )


def _people(count: int) -> str:
    return f"{count} {'person' if count == 1 else 'people'}"
