"""From what monitoring sends to events: one module for each source, found by its name.

Never answers with anything but a Body or BadPayload, whatever the JSON is. A parser takes what
`decode` returns, and a function that makes a dedup key for a trigger without one.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from engine.models import Body
from engine.sources.alertmanager import parse_alertmanager
from engine.sources.decode import decode
from engine.sources.events_api import parse_events
from engine.sources.generic import parse_generic
from engine.sources.pagerduty import parse_change, parse_pagerduty, routing_key

Parser = Callable[[object, Callable[[], str]], Body]

SOURCES: Mapping[str, Parser] = MappingProxyType(
    {
        "alertmanager": parse_alertmanager,
        "events": parse_events,
        "pagerduty": parse_pagerduty,
        "generic": parse_generic,
    }
)

__all__ = ["SOURCES", "Parser", "decode", "parse_change", "routing_key"]
