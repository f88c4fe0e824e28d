"""Holidays: days that somebody wrote down, and those of countries by the library `holidays`.

Never asks the network or the machine: the days of a country are a function of its code and the year,
and their names are English whatever the machine speaks.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache, lru_cache

_LANGUAGE = "en_US"  # the library would take the machine's otherwise, and reasons differ by process
_YEARS_KEPT = 4096  # of all countries together


@dataclass(frozen=True, slots=True)
class National:
    """The public holidays of a country, or of a part of it."""

    country: str  # two letters, as DE
    subdivision: str | None = None  # as BY


@dataclass(frozen=True, slots=True)
class Holidays:
    """A name of one's own goes before a country's."""

    days: Mapping[date, str] = field(default_factory=dict)
    national: tuple[National, ...] = ()

    def __contains__(self, day: object) -> bool:
        return isinstance(day, date) and self.name(day) is not None

    def name(self, day: date) -> str | None:
        """What holiday it is; None if it is none."""
        if day in self.days:
            return self.days[day]
        names = (national_holidays(of, day.year).get(day) for of in self.national)
        return next(filter(None, names), None)

    def between(self, first: date, last: date) -> list[date]:
        """Every holiday from the first day to the last."""
        found = [day for day in self.days if first <= day <= last]
        for of in self.national:
            for year in range(first.year, last.year + 1):
                found += [day for day in national_holidays(of, year) if first <= day <= last]
        return found


@lru_cache(maxsize=_YEARS_KEPT)
def national_holidays(national: National, year: int) -> Mapping[date, str]:
    """Those of one year by day, with the days on which one is made up for."""
    from holidays import country_holidays  # a fifth of a second, and most installs ask for none

    with warnings.catch_warnings():
        # Why: it says of some countries that it knows their movable feasts for some years only.
        warnings.simplefilter("ignore")
        found = country_holidays(
            national.country, subdiv=national.subdivision, years=year, language=_LANGUAGE
        )
    return {day: found[day] for day in sorted(found) if day.year == year}


@cache
def subdivisions() -> Mapping[str, Sequence[str]]:
    """Every country that the library knows, with the codes of its parts."""
    from holidays import list_supported_countries  # as above

    return list_supported_countries(include_aliases=False)
