"""How Midwatch is, as lines of plain text: for an SMS, a terminal and the status in Slack.

Pure. Never shows a title that was not cleaned.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from engine.clockwords import length
from engine.notify.plain import defang, one_line, shorten
from engine.outage import Figures, Standing, State
from engine.pager.condition import Condition
from engine.pulse import SILENT

TITLE: Final = 40
NAMED: Final = 2  # incidents, in a text
SKEW_NOTED: Final = timedelta(seconds=60)
TICKED_WITHIN: Final = 2 * SILENT  # hosts' clocks may differ a little


def slack(standing: Standing, figures: Figures, now: datetime) -> str:
    """One line: the state, since when, why, and what was heard and tried."""
    why = f" ({standing.reason})" if standing.reason and standing.state is not State.UP else ""
    heard = f", last heard {length(now - standing.heard_at)} ago" if standing.heard_at else ""
    failed = f", {figures.failures} of {figures.calls} calls failed" if figures.failures else ""
    return f"Slack is {standing.state.value} for {length(now - standing.since)}{why}{heard}{failed}"


def slack_faults(figures: Figures) -> Iterator[str]:
    if figures.unexpected:
        yield (
            f"{figures.unexpected} more connected to our Slack app than there are processes of ours: "
            "events may go to a stranger. See who has SLACK_APP_TOKEN"
        )
    if abs(figures.skew) > SKEW_NOTED:
        yield f"The clock here is {length(abs(figures.skew))} off Slack's"


def by_sms(found: Condition) -> str:
    """In two parts of a text: what works, and what waits for somebody."""
    lines = [_slack_in_short(found), _open_in_short(found)]
    if not works(found):
        lines.append("NO WORKER ticks: nobody is paged!")
    if found.dead_letters:
        lines.append(f"{found.dead_letters} messages could not be delivered.")
    return "\n".join(lines)


def lines(found: Condition) -> Iterator[str]:
    """For a terminal."""
    yield "Slack: not in use" if found.slack is None else slack(found.slack, found.figures, found.now)
    yield from slack_faults(found.figures)
    yield "Workers: at work" if works(found) else f"Workers: NONE, {_ticked(found)}. Start one: midwatch run"
    yield f"Open incidents: {len(found.open)}, not acknowledged: {len(found.waiting)}"
    for view in found.waiting:
        yield f"  #{view.number} {view.status}: {shorten(one_line(view.title), 2 * TITLE)}"
    if found.dead_letters:
        yield f"Messages given up: {found.dead_letters}, see: midwatch dead"


def works(found: Condition) -> bool:
    return found.ticked_at is not None and found.now - found.ticked_at <= TICKED_WITHIN


def _ticked(found: Condition) -> str:
    return (
        "there never was one"
        if found.ticked_at is None
        else f"the last ticked at {found.ticked_at:%H:%M} UTC"
    )


def _slack_in_short(found: Condition) -> str:
    standing = found.slack
    if standing is None:
        return "No Slack."
    why = (
        f" ({shorten(standing.reason, TITLE)})" if standing.reason and standing.state is not State.UP else ""
    )
    way = ": pages go by SMS and call" if standing.down else ""
    return f"Slack is {standing.state.value} since {standing.since:%H:%M} UTC{why}{way}."


def _open_in_short(found: Condition) -> str:
    if not found.open:
        return "Nothing is open."
    named = "; ".join(
        f"#{view.number} {shorten(defang(one_line(view.title)), TITLE)}" for view in found.waiting[:NAMED]
    )
    return f"{len(found.open)} open, {len(found.waiting)} not acknowledged{f': {named}' if named else '.'}"
