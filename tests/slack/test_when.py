"""Times as people type them: what is read, what is refused, and what is said to have been guessed."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.grammar.times import read_interval, read_moment, read_span
from bot.slack.grammar.when import Span
from engine.clock import monotonic
from engine.errors import BadCommand
from engine.schedule.walltime import to_instant, to_wall

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)  # a Monday, 10:00 in Berlin
BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
ZONES = [
    ZoneInfo(name)
    for name in (
        "UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe",
        "Asia/Kolkata", "Pacific/Apia", "Africa/Cairo", "America/Sao_Paulo", "Asia/Kathmandu",
    )
]  # fmt: skip


def written(span: Span, zone: ZoneInfo) -> str:
    """In the grammar's own words, to the minute, with nothing left to guess."""
    return f"{to_wall(span.start, zone):%Y-%m-%d %H:%M} to {to_wall(span.end, zone):%Y-%m-%d %H:%M}"


def shown(span: Span) -> str:
    """Without the year, but for the turn of it."""
    return written(span, BERLIN).replace("2026-", "")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        # a length from now on
        ("2h", "03-02 10:00 to 03-02 12:00"),
        ("90m", "03-02 10:00 to 03-02 11:30"),
        ("1h30m", "03-02 10:00 to 03-02 11:30"),
        ("1 hour 30 minutes", "03-02 10:00 to 03-02 11:30"),
        ("1h, 30min", "03-02 10:00 to 03-02 11:30"),
        ("1.5h", "03-02 10:00 to 03-02 11:30"),
        ("half an hour", "03-02 10:00 to 03-02 10:30"),
        ("an hour", "03-02 10:00 to 03-02 11:00"),
        ("for 2 hours", "03-02 10:00 to 03-02 12:00"),
        ("2 days and 3 hours", "03-02 10:00 to 03-04 13:00"),
        ("1w", "03-02 10:00 to 03-09 10:00"),
        # an end
        ("until 18:00", "03-02 10:00 to 03-02 18:00"),
        ("till 6pm", "03-02 10:00 to 03-02 18:00"),
        ("to 18:00", "03-02 10:00 to 03-02 18:00"),
        ("until midnight", "03-02 10:00 to 03-03 00:00"),
        ("until noon", "03-02 10:00 to 03-02 12:00"),
        ("until monday 9am", "03-02 10:00 to 03-09 09:00"),
        ("until monday 11am", "03-02 10:00 to 03-02 11:00"),
        ("until fri", "03-02 10:00 to 03-07 00:00"),
        ("through friday", "03-02 10:00 to 03-07 00:00"),
        ("until 2026-03-05", "03-02 10:00 to 03-06 00:00"),
        ("until tomorrow", "03-02 10:00 to 03-04 00:00"),
        ("until monday", "03-02 10:00 to 03-10 00:00"),
        ("now to 18:00", "03-02 10:00 to 03-02 18:00"),
        # a start and an end
        ("from 9am until 5pm", "03-03 09:00 to 03-03 17:00"),
        ("from 11am until 5pm", "03-02 11:00 to 03-02 17:00"),
        ("10am - 5pm", "03-02 10:00 to 03-02 17:00"),
        ("10pm - 6am", "03-02 22:00 to 03-03 06:00"),
        ("10pm-6am", "03-02 22:00 to 03-03 06:00"),
        ("18:00-24:00", "03-02 18:00 to 03-03 00:00"),
        ("tomorrow 9am to 5pm", "03-03 09:00 to 03-03 17:00"),
        ("tomorrow at 9am to 5pm", "03-03 09:00 to 03-03 17:00"),
        ("9am to 5pm tomorrow", "03-03 09:00 to 03-03 17:00"),
        ("10pm to 6am tomorrow", "03-02 22:00 to 03-03 06:00"),
        ("9am to 5pm on friday", "03-06 09:00 to 03-06 17:00"),
        ("fri 6pm to mon 9am", "03-06 18:00 to 03-09 09:00"),
        ("fri 18:00 - mon 9:00", "03-06 18:00 to 03-09 09:00"),
        ("friday, 18:00 to 22:00", "03-06 18:00 to 03-06 22:00"),
        ("fri 18:00-22:00", "03-06 18:00 to 03-06 22:00"),
        ("6pm fri to 9am mon", "03-06 18:00 to 03-09 09:00"),
        ("mon 9:00 to 17:00", "03-09 09:00 to 03-09 17:00"),
        ("today 18:00 - 22:00", "03-02 18:00 to 03-02 22:00"),
        ("tonight 10pm to 6am", "03-02 22:00 to 03-03 06:00"),
        ("tonight 2am to 4am", "03-03 02:00 to 03-03 04:00"),
        ("2026-12-24 to 2026-12-27", "12-24 00:00 to 12-28 00:00"),
        ("2026-12-24 - 2026-12-24", "12-24 00:00 to 12-25 00:00"),
        ("2026-12-24 18:00 to 2026-12-25 12:00", "12-24 18:00 to 12-25 12:00"),
        ("2026-07-01t18:00 to 2026-07-02", "07-01 18:00 to 07-03 00:00"),
        ("dec 24 18:00 to dec 25 noon", "12-24 18:00 to 12-25 12:00"),
        ("24 dec - 26 dec", "12-24 00:00 to 12-27 00:00"),
        ("december 24th to 26th of december", "12-24 00:00 to 12-27 00:00"),
        ("dec 30 to jan 2", "12-30 00:00 to 2027-01-03 00:00"),
        ("feb 1 to feb 3", "2027-02-01 00:00 to 2027-02-04 00:00"),
        ("feb 29 2028", None),
        ("fri to sun", "03-06 00:00 to 03-09 00:00"),
        ("fri to fri", "03-06 00:00 to 03-14 00:00"),
        # a bare hour with am or pm at the other end
        ("tomorrow 9 to 5pm", "03-03 09:00 to 03-03 17:00"),
        ("tomorrow 3-5pm", "03-03 15:00 to 03-03 17:00"),
        ("tomorrow 9am to 5", "03-03 09:00 to 03-03 17:00"),
        # a start and a length
        ("tomorrow 9am for 8h", "03-03 09:00 to 03-03 17:00"),
        ("in 2h for 3h", "03-02 12:00 to 03-02 15:00"),
        ("in 2h until 18:00", "03-02 12:00 to 03-02 18:00"),
        ("18:00 2h", "03-02 18:00 to 03-02 20:00"),
        ("from 18:00 for 2h", "03-02 18:00 to 03-02 20:00"),
        ("starting tomorrow for 2 days", "03-03 00:00 to 03-05 00:00"),
        # a whole day
        ("tomorrow", "03-03 00:00 to 03-04 00:00"),
        ("fri", "03-06 00:00 to 03-07 00:00"),
        ("on 2026-12-24", "12-24 00:00 to 12-25 00:00"),
        ("today", "03-02 10:00 to 03-03 00:00"),
        # as keyboards send them
        ("  Tomorrow\u00a09AM  TO 5\u202fPM. ", "03-03 09:00 to 03-03 17:00"),
        ("FRI 18:00 – MON 9:00", "03-06 18:00 to 03-09 09:00"),
        ("10 p.m. — 6 a.m.", "03-02 22:00 to 03-03 06:00"),
        ("2H", "03-02 10:00 to 03-02 12:00"),
        # begun already
        ("2026-03-01 to 2026-03-03", "03-02 10:00 to 03-04 00:00"),
        ("today 8:00 to 17:00", "03-02 10:00 to 03-02 17:00"),
    ],
)  # fmt: skip
def test_an_interval(text: str, meant: str | None) -> None:
    """On the asker's wall clock: the next one coming, a bare day at the end included."""
    if meant is None:
        with pytest.raises(BadCommand, match="more than a year"):
            read_interval(text, NOW, BERLIN)
    else:
        assert shown(read_interval(text, NOW, BERLIN)) == meant


@pytest.mark.parametrize(
    "text",
    [
        "", "9", "a", "2h ago", "01/02/2026", "9 to 5", "2", "h", "yesterday", "2x", "2hx", "-2h", "2h foo",
        "am", "25:00 for 2h", "18:60 for 2h", "13pm for 1h", "0am for 1h", "2026-02-30", "feb 30", "soon",
        "from 18:00", "fri 18:00", "until", "until whenever", "payments 2h", "2h 3h", "0m", "0h", "400 days",
        "999999w", "until 2020-01-01", "today 08:00-09:00", "2026-12-27 to 2026-12-24", "in 2h", "next fri",
        "tonight", "until tonight", "tomorrow 10 to 11", "1.1.2026", "2026/12/24", "9999-12-31", "0001-01-01",
        "12-24", "2h to 3h", "2h - 3h", "noon noon", "a m", "a d", "mon tue", "fri 18:00 to", "- 18:00 -",
        "18.00 to 19.00",
        "fri 17:00 to fri 18:00 to sat", "every monday", "weekend", "now", "to now", "2026-12-24 to", "٢h",
    ],
)  # fmt: skip
def test_no_interval(text: str) -> None:
    """What is none of the forms, is over, or could be several, is refused and never guessed."""
    with pytest.raises(BadCommand) as refused:
        read_interval(text, NOW, BERLIN)
    assert len(str(refused.value)) > 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2h ago", "I understand `2h`, but not `ago` after it. Times: `2h`"),
        ("9", "`9` is not a whole time. Times: `2h`"),
        ("soon", "I don't understand `soon` as a time. Times: `2h`"),
        ("", "Say for how long. Times: `2h`"),
        ("9 to 5", "`9` in the morning or in the evening? Type `9am`, `9pm` or `09:00`."),
        ("25:00 for 2h", "`25:00` is no time of day: write it like `18:00` or `6pm`."),
        ("feb 30", "There is no day `feb 30`."),
        ("tonight", "Say from when until when: `tonight 18:00 to 22:00`."),
        ("x" * 200, "That is more than I can read."),
    ],
)
def test_a_refusal_says_what_to_type(text: str, words: str) -> None:
    """What was understood, what was not, and the forms there are."""
    with pytest.raises(BadCommand) as refused:
        read_interval(text, NOW, BERLIN)
    assert str(refused.value).startswith(words)


@pytest.mark.parametrize(
    ("text", "zone", "neighbours"),
    [
        ("2026-03-29 02:30 for 2h", "Europe/Berlin", ("2026-03-29 01:59", "2026-03-29 03:00")),
        ("2026-03-29 01:00 to 02:00", "Europe/Berlin", ("2026-03-29 01:59", "2026-03-29 03:00")),
        ("mar 8 2:30am for 2h", "America/New_York", ("2026-03-08 01:59", "2026-03-08 03:00")),
        ("2026-10-04 02:15 for 1h", "Australia/Lord_Howe", ("2026-10-04 01:59", "2026-10-04 02:30")),
        ("until 2026-04-24 00:30", "Africa/Cairo", ("2026-04-23 23:59", "2026-04-24 01:00")),
        ("2026-04-24 00:00 for 1h", "Africa/Cairo", ("2026-04-23 23:59", "2026-04-24 01:00")),
    ],
)
def test_a_time_that_does_not_exist_names_its_neighbours(
    text: str, zone: str, neighbours: tuple[str, str]
) -> None:
    """The clock jumps over it: the last minute before and the first after are both said (B086, B087)."""
    with pytest.raises(BadCommand) as refused:
        read_interval(text, NOW, ZoneInfo(zone))
    assert f"Name `{neighbours[0]}` or `{neighbours[1]}`." in str(refused.value)
    for other in neighbours:
        assert read_interval(f"{other} for 3h", NOW, ZoneInfo(zone))


def test_a_day_that_begins_in_a_jump_begins_when_it_begins() -> None:
    """In Cairo the clock jumps at midnight; the day that was named is still that day."""
    span = read_interval("2026-04-24 to 2026-04-24", NOW, ZoneInfo("Africa/Cairo"))
    assert span.end - span.start == timedelta(hours=23)


@pytest.mark.parametrize(
    ("text", "guesses"),
    [
        ("2h", []),
        ("until 18:00", []),
        ("tomorrow 9am to 5pm", []),
        ("2026-12-24 18:00 to 2026-12-25 12:00", []),
        ("18:00-24:00", []),
        ("in 2h for 3h", []),
        ("fri 18:00-22:00", ["`fri` means the coming one"]),
        ("2026-12-24 to 2026-12-27", ["Sun 27 Dec 2026 is included"]),
        ("10pm - 6am", ["it ends on the next day, Tue 3 Mar 2026"]),
        ("until 9:00", ["it ends on the next day, Tue 3 Mar 2026"]),
        ("from 9am until 5pm", ["`9am` is over for today, so it is tomorrow's"]),
        ("tomorrow 9 to 5pm", ["`9` is 9am"]),
        ("until midnight", []),
        ("tomorrow midnight for 2h", ["`tomorrow midnight` is when that day begins"]),
        ("tomorrow 9:00 to 5pm", ["`9:00` is 09:00 of 24 hours"]),
        ("9am to 5pm tomorrow", ["`9am` is on Tue 3 Mar 2026"]),
        ("tomorrow", ["`tomorrow` is the whole of Tue 3 Mar 2026"]),
        ("today 8:00 to 17:00", ["it has begun already, so it holds from now on"]),
        ("2026-10-25 02:30 for 3h", ["02:30 comes twice on Sun 25 Oct 2026, and the first is meant"]),
        ("dec 24 18:00 to 2026-12-24 20:00", ["`dec 24` means the coming one"]),
    ],
)  # fmt: skip
def test_what_was_guessed_is_said(text: str, guesses: list[str]) -> None:
    """A weekday, no end date, am or pm, what comes twice; nothing where all was said."""
    assert list(read_interval(text, NOW, BERLIN).guessed) == guesses


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("18:00", "2026-03-02 18:00"),
        ("9:30", "2026-03-03 09:30"),
        ("10:00", "2026-03-02 10:00"),
        ("6pm", "2026-03-02 18:00"),
        ("12am", "2026-03-03 00:00"),
        ("6:30 pm", "2026-03-02 18:30"),
        ("noon", "2026-03-02 12:00"),
        ("tomorrow at 09:00", "2026-03-03 09:00"),
        ("fri 6pm", "2026-03-06 18:00"),
        ("9am tomorrow", "2026-03-03 09:00"),
        ("2026-02-02 18:00", "2026-02-02 18:00"),
        ("in 2h", "2026-03-02 12:00"),
        ("now", "2026-03-02 10:00"),
        ("dec 24", "2026-12-24 00:00"),
    ],
)
def test_a_moment(text: str, local: str) -> None:
    """A question may be about any time, also one that is over."""
    assert f"{to_wall(read_moment(text, NOW, BERLIN), BERLIN):%Y-%m-%d %H:%M}" == local


@pytest.mark.parametrize("text", ["", "9", "soon", "2h", "18:00 to 19:00", "tonight", "2026-03-29 02:30"])
def test_no_moment(text: str) -> None:
    """What is no moment, or one that there is not, is refused."""
    with pytest.raises(BadCommand):
        read_moment(text, NOW, BERLIN)


@pytest.mark.parametrize(
    ("words", "end"),
    [
        ("until monday", "03-09 00:00"),
        ("until 2026-07-02", "07-02 00:00"),
        ("until tomorrow", "03-03 00:00"),
        ("until 2026-03-29 02:30", "03-29 03:30"),
        ("until 18:00", "03-02 18:00"),
        ("2h", "03-02 12:00"),
    ],
)
def test_what_one_waits_for_is_read_leniently(words: str, end: str) -> None:
    """A snooze until Monday ends when Monday begins, and a jump of the clock refuses nobody."""
    span = read_span(words, NOW, BERLIN)
    assert span is not None
    assert shown(span).endswith(f"to {end}")


@pytest.mark.parametrize(
    "words", ["", "yesterday", "until", "from 18:00", "payments 2h", "tomorrow", "x" * 200]
)
def test_no_span(words: str) -> None:
    """Words around a time are not swallowed, and a day alone is no end."""
    assert read_span(words, NOW, BERLIN) is None


minutes = st.integers(0, 364 * 24 * 60 - 1)
TYPED = (
    "2h 90m 1h30m for until to from - fri mon tomorrow tonight today now in at on 9am 5pm 18:00 9 24:00 "
    "noon dec 24 2026-12-24 2026-03-29 02:30 feb 29 , . ago next half an hour @ me midnight through 25:00"
)
WORDS = st.sampled_from(TYPED.split())


@given(minutes, minutes, st.sampled_from(ZONES))
def test_dates_in_full_mean_just_that(a: int, b: int, zone: ZoneInfo) -> None:
    """Two dates with their times are read as they stand, in every zone, and nothing in them is guessed."""
    start, end = (NOW + timedelta(minutes=each) for each in sorted((a, b)))
    instants = [instant for instant in (start, end) if to_instant(to_wall(instant, zone), zone) == instant]
    if start == end or len(instants) < 2:  # a time that comes twice cannot be written down the second time
        return
    span = read_interval(written(Span(start, end), zone), NOW, zone)
    assert (span.start, span.end) == (start, end)
    assert all("comes twice" in guess for guess in span.guessed)


@given(st.one_of(st.text(max_size=300), st.lists(WORDS, max_size=14).map(" ".join)), st.sampled_from(ZONES))
def test_any_text_is_read_or_refused_in_no_time(text: str, zone: ZoneInfo) -> None:
    """Garbage raises nothing but a refusal, whatever it is made of, and is never slow."""
    began = monotonic()
    for read in (read_interval, read_moment, read_span):
        found: object = None
        with contextlib.suppress(BadCommand):
            found = read(text, NOW, zone)
        if isinstance(found, Span):
            assert NOW <= found.start < found.end
    assert monotonic() - began < 1
