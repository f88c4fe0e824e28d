"""The bench's schedule as a calendar, for `icalendar` and `recurring-ical-events`.

Each person's turns are one recurring event and each override one event, as products do that keep
their schedules as calendars. Who wins where events overlap the libraries do not know: that is not measured.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import recurring_ical_events
from icalendar import Calendar, Event, vRecur

DAY = timedelta(days=1)
OF_A_WEEKDAY = ["MO", "TU", "WE", "TH", "FR"]


class Calendars:
    """Read from text once; what is found afterwards is found in what was read."""

    def __init__(self, text: bytes, fallback: str) -> None:
        self.fallback = fallback
        self.query = recurring_ical_events.of(Calendar.from_ical(text))

    def at(self, t: datetime) -> list[Any]:
        return list(self.query.at(t))

    def between(self, a: datetime, b: datetime) -> list[Any]:
        return list(self.query.between(a, b))

    def people_at(self, t: datetime) -> tuple[str, ...]:
        """To see that both answer the same question: the events at `t`, by precedence."""
        events = sorted(self.at(t), key=lambda event: int(event["X-ORDER"]))
        layers = [event for event in events if event["X-KIND"] == "layer"]
        overrides = [event for event in events if event["X-KIND"] != "layer"]
        people = {str(layers[0]["SUMMARY"])} if layers else {self.fallback}
        for number, event in enumerate(overrides):
            user, covers = str(event["SUMMARY"]), str(event.get("X-COVERS"))
            later = {str(other.get("X-COVERS")) for other in overrides[number + 1 :]}
            if event["X-KIND"] == "replace_all":
                people = {user}
            elif event["X-KIND"] == "add":
                people.add(user)
            elif covers in people and covers not in later:
                people = people - {covers} | {user}
        return tuple(sorted(people))


def written(mapping: dict[str, Any]) -> bytes:
    calendar = Calendar()
    calendar.add("prodid", "-//bench//")
    calendar.add("version", "2.0")
    zone = ZoneInfo(mapping["timezone"])
    for order, layer in enumerate(mapping["layers"]):
        for number, user in enumerate(layer["users"]):
            calendar.add_component(_turns(layer, zone, number, user, order))
    for number, override in enumerate(mapping["overrides"]):
        start, end = (datetime.fromisoformat(override[bound]).astimezone(UTC) for bound in ("start", "end"))
        event = _event(f"o{number}", override["user"], start, end, override["kind"], number)
        if "covers" in override:
            event.add("x-covers", override["covers"])
        calendar.add_component(event)
    return bytes(calendar.to_ical())


def _turns(layer: dict[str, Any], zone: ZoneInfo, number: int, user: str, order: int) -> Event:
    """The turns of one person as one recurring event."""
    daily = layer["rotation"]["unit"] == "day"
    start = datetime.fromisoformat(layer["start"]) + number * (DAY if daily else 7 * DAY)
    rule: dict[str, Any] = {"FREQ": "DAILY" if daily else "WEEKLY", "INTERVAL": len(layer["users"])}
    end = start + (DAY if daily else 7 * DAY)
    for window in layer["restrictions"]:
        rule["BYDAY"] = OF_A_WEEKDAY
        end = datetime.combine(start.date(), datetime.strptime(window["to"], "%H:%M").time())  # noqa: DTZ007  # local
        end += DAY if end <= start else timedelta()
    event = _event(f"{layer['name']}{number}", user, _local(start, zone), _local(end, zone), "layer", order)
    event.add("rrule", vRecur(rule))
    return event


def _local(wall: datetime, zone: ZoneInfo) -> datetime:
    return wall.replace(tzinfo=zone)


def _event(uid: str, user: str, start: datetime, end: datetime, kind: str, order: int) -> Event:
    event = Event()
    event.add("uid", uid)
    event.add("summary", user)
    event.add("dtstart", start)
    event.add("dtend", end)
    event.add("x-kind", kind)
    event.add("x-order", str(order))
    return event
