"""Every error of the engine, as one tree. The docstring is the default message.

MidwatchError
├── BadInput                what was sent cannot be used; say why, in the sender's words
│   ├── BadPayload          a source could not read the body
│   ├── BadConfig           midwatch.yaml or a setting, every mistake listed
│   ├── BadCalendar         a calendar that cannot be read or fetched, and why
│   └── BadCommand          what a person typed, with the right form
├── NotFound                no such incident, person, service …
├── Refused                 understood, and not allowed for this person
│   ├── Overtaken           somebody else changed the same thing meanwhile; nothing was written
│   └── TooMany             a limit; later it may be asked for again
├── Unavailable             transient: the sender should try again (HTTP 503)
│   └── Overloaded
├── Unsound                 this install would break a promise; it does not start
└── LeaseLost               another worker took it; drop the result
"""

from __future__ import annotations

from collections.abc import Sequence


class MidwatchError(Exception):
    """Something went wrong in Midwatch."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__class__.__doc__)


class BadInput(MidwatchError):
    """This input cannot be used."""


class BadPayload(BadInput):
    """The body is not one that this source sends."""


class BadConfig(BadInput):
    """The configuration has mistakes."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))


class BadCalendar(BadInput):
    """What is there is no calendar."""


class BadCommand(BadInput):
    """That command is not understood."""


class NotFound(MidwatchError):
    """There is no such thing here."""


class Refused(MidwatchError):
    """You may not do this."""


class Overtaken(Refused):
    """Somebody else changed this meanwhile."""


class TooMany(Refused):
    """That was asked for too often; try again later."""


class Unavailable(MidwatchError):
    """Midwatch cannot store this right now; try again."""


class Overloaded(Unavailable):
    """Too much is waiting; try again in a few seconds."""


class Unsound(MidwatchError):
    """This install cannot keep what Midwatch promises."""


class LeaseLost(MidwatchError):
    """Another worker holds this by now; the result is dropped."""
