"""status: how Slack, the workers and the incidents are, from a terminal.

Never asks Slack: what the running processes know of it stands in the database.
"""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from bot import condition_words
from bot.commands.opened import opened
from bot.commands.say import say, say_json
from engine.outage import State
from engine.pager.condition import Condition, condition


async def status(*, as_json: Annotated[bool, Parameter("--json", negative=())] = False) -> int:
    """Is everything that should page able to? Exits with 1 when Slack is down or no worker ticks."""
    async with opened(look_only=True) as engine:
        found = await condition(engine.database, engine.clock.now())
    if as_json:
        say_json(_plain(found))
    else:
        say(*condition_words.lines(found))
    down = found.slack is not None and found.slack.state is State.DOWN
    return 1 if down or not condition_words.works(found) else 0


def _plain(found: Condition) -> dict[str, Any]:
    standing, figures = found.slack, found.figures
    slack = None
    if standing is not None:
        slack = {
            "state": standing.state.value,
            "reason": standing.reason,
            "since": standing.since,
            "last_heard_at": standing.heard_at,
            "last_ok_at": standing.ok_at,
            "missed_echoes": standing.probe.missed,
            "calls": figures.calls,
            "failures": figures.failures,
            "connections": figures.connections,
            "unexpected_connections": figures.unexpected,
            "clock_skew_seconds": figures.skew.total_seconds(),
        }
    return {
        "slack": slack,
        "workers": {"working": condition_words.works(found), "ticked_at": found.ticked_at},
        "open": [{"number": one.number, "status": one.status, "title": one.title} for one in found.open],
        "dead_letters": found.dead_letters,
    }
