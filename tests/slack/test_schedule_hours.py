"""Hours as people write them: read, shown, and refused."""

from __future__ import annotations

from datetime import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.modals.schedule_hours import read_hours, show_hours
from engine.errors import BadInput
from engine.schedule import Restriction, Weekday

WEEKDAYS = frozenset(Weekday) - {Weekday.SAT, Weekday.SUN}
NINE, FIVE, TEN_PM, SIX = time(9), time(17), time(22), time(6)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("mon-fri 09:00-17:00", [(WEEKDAYS, NINE, FIVE)]),
        ("Weekdays 9-17", [(WEEKDAYS, NINE, FIVE)]),
        ("MON – FRI 09:00 – 17:00", [(WEEKDAYS, NINE, FIVE)]),
        ("monday to-friday 9-17", None),
        ("daily 22:00-06:00", [(frozenset(Weekday), TEN_PM, SIX)]),
        ("sat,sun", [({Weekday.SAT, Weekday.SUN}, time(), time())]),
        ("sat and sun 00:00-24:00", [({Weekday.SAT, Weekday.SUN}, time(), time())]),
        ("fri-mon 17:00 to 09:00", [({Weekday.FRI, Weekday.SAT, Weekday.SUN, Weekday.MON}, FIVE, NINE)]),
        ("thurs 9-17\n\nweekends 9-17", [({Weekday.THU}, NINE, FIVE), (set(Weekday) - WEEKDAYS, NINE, FIVE)]),
        ("", []),
        (" \n ", []),
        ("mon-fri 09:00", None),
        ("mon-fri 25:00-26:00", None),
        ("mon-fri 09:60-10:00", None),
        ("someday 09:00-10:00", None),
        ("09:00-17:00", [(frozenset(Weekday), NINE, FIVE)]),
        ("9am-5pm", [(frozenset(Weekday), NINE, FIVE)]),
        ("weekdays 9 AM until 5 PM", [(WEEKDAYS, NINE, FIVE)]),
        ("sat 12am-12pm", [({Weekday.SAT}, time(), time(12))]),
        ("sat 13pm-14pm", None),
        ("09:00-17:00 mon", None),
        ("m 09:00-10:00", None),
        ("\n".join(["daily 09:00-10:00"] * 101), None),
    ],
)
def test_hours_are_read_or_refused(typed: str, wanted: list[tuple[set[Weekday], time, time]] | None) -> None:
    """A closed grammar: what is not of the form is never guessed."""
    if wanted is None:
        with pytest.raises(BadInput):
            read_hours(typed)
    else:
        assert read_hours(typed) == tuple(Restriction(frozenset(days), a, b) for days, a, b in wanted)


windows = st.builds(
    Restriction,
    st.frozensets(st.sampled_from(Weekday), min_size=1),
    st.times().map(lambda at: at.replace(second=0, microsecond=0, tzinfo=None)),
    st.times().map(lambda at: at.replace(second=0, microsecond=0, tzinfo=None)),
)


@given(st.lists(windows, max_size=5))
def test_what_is_shown_reads_as_the_same(hours: list[Restriction]) -> None:
    """The form shows hours so that saving them untouched changes nothing."""
    assert read_hours(show_hours(hours)) == tuple(hours)
