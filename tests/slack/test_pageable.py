"""Of what the words of `/page` are about: of whole words the longest name, in any case."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.slack.pageable import service_and_title
from engine.directory import Directory, Level, NamedSchedule, Policy, Service, Target, TargetKind
from engine.errors import BadCommand
from engine.models import ORG
from engine.schedule import parse_schedule

NIGHT = NamedSchedule(7, "payments primary", parse_schedule({"timezone": "UTC", "layers": []}))
FIRST = Level((Target(TargetKind.SCHEDULE, NIGHT.id),), timedelta(minutes=5))
KNOWN = Directory(
    ORG,
    1,
    {},
    {
        1: Service(1, "payments", None, None),
        2: Service(2, "core", 3, None),
        4: Service(4, "Straße", None, None),
    },
    {3: Policy(3, 1, "core", (FIRST,), created_at=datetime(2026, 3, 2, tzinfo=UTC))},
    {NIGHT.id: NIGHT},
)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("payments db-1 is down", (1, "db-1 is down")),
        ("payments primary db-1 is down", (2, "db-1 is down")),
        ('"Payments  Primary" db-1 is down', (2, "db-1 is down")),
        ("payments-primary db-1 is down", None),
        ("STRASSE Disk full", (4, "Disk full")),
        ("payments", None),
        ('""', None),
    ],
)
def test_the_longest_name_is_meant(said: str, found: tuple[int, str] | None) -> None:
    """A service whose name begins a schedule's does not hide it, and no word is cut."""
    if found is None:
        with pytest.raises(BadCommand):
            service_and_title(said, KNOWN)
    else:
        assert service_and_title(said, KNOWN) == found
