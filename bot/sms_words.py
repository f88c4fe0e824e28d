"""What Midwatch answers by SMS, as lines of plain text.

Pure. Every word of an alert is foreign: one line, defanged, and short.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.clockwords import wall
from engine.models import IncidentView
from engine.notify.plain import defang, one_line, shorten
from engine.rota.on_call import OnCallNow

LISTED: Final = 5
LONGEST_TITLE: Final = 70
HELP: Final = (
    "Midwatch: reply 4 or ACK 42 to acknowledge, 6 to resolve, 8 to escalate, ACK ALL, "
    "LIST what is open, WHO is on call, STATUS."
)
NOT_APPLIED: Final = "NOT applied: Midwatch cannot store this right now. Try again in a minute."
NONE_OPEN: Final = "No open incident was texted to this number."
NO_SCHEDULE: Final = "There is no schedule yet."
NO_SUCH_SCHEDULE: Final = "There is no such schedule. Send WHO to see them."
NUMBERS: Final = 20  # of incidents: as many as stand in two parts


def listed(views: Sequence[IncidentView], hint: str) -> str:
    if not views:
        return NONE_OPEN
    lines = [f"#{view.number} {view.status}: {short(view.title)}" for view in views[:LISTED]]
    return "\n".join([*lines, *_more(len(views))]) + hint


def which(word: str, views: Sequence[IncidentView]) -> str:
    """Nothing is guessed of several: how to say which is meant."""
    if not views:
        return ""
    one = f"{word} {views[0].number}"
    return f"\n{len(views)} are open: reply {'ack all or ' if word == 'ack' else ''}{one}"


def all_done(word: str, done: Sequence[str], failed: Sequence[str]) -> str:
    """What became of several: numbers of incidents."""
    if not done and not failed:
        return NONE_OPEN
    said = [f"{word}: {_numbers(done)}."] if done else []
    return " ".join([*said, *([f"NOT applied: {_numbers(failed)}. Try again."] if failed else [])])


def _numbers(numbers: Sequence[str]) -> str:
    more = len(numbers) - NUMBERS
    return ", ".join(numbers[:NUMBERS]) + (f" and {more} more" if more > 0 else "")


def on_call(rows: Sequence[OnCallNow], timezone: str) -> str:
    """Who is on call on each, until when on the reader's clock, and who is next."""
    if not rows:
        return NO_SCHEDULE
    return "\n".join([*(_row(row, timezone) for row in rows[:LISTED]), *_more(len(rows))])


def _row(row: OnCallNow, timezone: str) -> str:
    names = " and ".join(person.name for person in row.people) or "NOBODY"
    if row.until is None:
        return f"{short(row.schedule)}: {names}"
    following = " and ".join(person.name for person in row.next_people) or "nobody"
    return f"{short(row.schedule)}: {names} until {wall(row.until, timezone)}, then {following}"


def _more(count: int) -> list[str]:
    return [f"and {count - LISTED} more"] if count > LISTED else []


def short(title: str) -> str:
    return shorten(defang(one_line(title)), LONGEST_TITLE)
