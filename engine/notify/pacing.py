"""When the next message may start: a minimum interval per channel or number.

Never sleeps and never reads a clock. It holds for this process only; what two processes send too
fast together, the provider throttles, and `hold` learns of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

MAX_LINES: Final = 10_000
MAX_PLACES: Final = 1_000  # in one line; who comes later is given an instant, but keeps no place
CLOCK_SLACK: Final = timedelta(seconds=1)


@dataclass(slots=True)
class _Line:
    ready: datetime  # nobody starts before
    tail: datetime  # the first place not given away
    places: dict[int, datetime] = field(default_factory=dict)


class Pace:
    """One line per key. Who cannot start gets a place, and keeps it until it comes back for it."""

    def __init__(self, interval: timedelta) -> None:
        self.interval = interval
        self._lines: dict[str, _Line] = {}
        self._seen: datetime | None = None

    def admit(self, key: str, now: datetime, holder: int) -> datetime:
        """The instant when `holder` (a delivery) may start: `now` means it starts and is counted.

        A later instant is its place in the line; come back then.
        """
        self._watch(now)
        line = self._lines.setdefault(key, _Line(now, now))
        ready = max(now, line.ready)
        place = line.places.pop(holder, None)
        at = max(ready, line.tail if place is None else place)
        if at == now:
            line.ready = now + self.interval
        elif len(line.places) < MAX_PLACES:
            line.places[holder] = at
        if place is None or at == now:
            line.tail = max(line.tail, at + self.interval)
        return at

    def hold(self, key: str, until: datetime) -> None:
        """The provider said not before `until`: the whole line moves behind it, in its order."""
        line = self._lines.setdefault(key, _Line(until, until))
        # Why: whoever did not come back for its place was cancelled; measured from there, the line
        # would move by all the time since.
        present = self._seen or until
        line.places = {holder: place for holder, place in line.places.items() if place >= present}
        line.tail = max(line.tail, present)
        late = until - min(line.places.values(), default=until)
        if late > timedelta():
            line.places = {holder: place + late for holder, place in line.places.items()}
            line.tail += late
        line.ready = max(line.ready, until)
        line.tail = max(line.tail, until)

    def _watch(self, now: datetime) -> None:
        # Why: after the clock is set back an hour, every place would lie an hour ahead, and pages
        # would wait for it. Sending a little too fast once is the lesser harm.
        if self._seen is not None and now < self._seen - CLOCK_SLACK:
            self._lines.clear()
        self._seen = now
        if len(self._lines) > MAX_LINES:
            self._lines = {key: line for key, line in self._lines.items() if line.tail > now}
