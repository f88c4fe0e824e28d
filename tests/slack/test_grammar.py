"""What people type is read as what they mean, or answered with the right form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack import grammar as g
from bot.slack import maintenance as m
from engine.errors import BadCommand

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
TWO_HOURS = g.Span(NOW, NOW + timedelta(hours=2))


def parse(text: str) -> g.Command:
    return g.parse(text, NOW, BERLIN)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("", g.Who()),
        ("who", g.Who()),
        ("who payments", g.Who("payments")),
        ("who is on call", g.Who()),
        ("<@U2|ben>", g.Who(slack_user_id="U2")),
        ("ack 42", g.Deed("ack", (42,))),
        ("ACK 42.", g.Deed("ack", (42,))),
        ("Ack\u00a0#42, #43 and 44", g.Deed("ack", (42, 43, 44))),
        ("ack 42 42", g.Deed("ack", (42,))),
        ("\u200back 42", g.Deed("ack", (42,))),
        ("acknowledge 7", g.Deed("ack", (7,))),
        ("close 7", g.Deed("resolve", (7,))),
        ("ack", g.Deed("ack", ())),
        ("escalate 42", g.Deed("escalate", (42,))),
        ("snooze 42 30m", g.Snooze((42,), g.Span(NOW, NOW + timedelta(minutes=30)))),
        ("snooze 42 30 min", g.Snooze((42,), g.Span(NOW, NOW + timedelta(minutes=30)))),
        ("snooze 42 43 for 2 hours", g.Snooze((42, 43), TWO_HOURS)),
        ("snooze 2h", g.Snooze((), TWO_HOURS)),
        ("merge 42 into 41", g.Merge((42,), 41)),
        ("merge #42, 43 into #41.", g.Merge((42, 43), 41)),
        ("merge 42 41", g.Merge((42,), 41)),
        ("merge into 41", g.Merge((), 41)),
        ("unmerge 42", g.Deed("unmerge", (42,))),
        ("maintenance", m.ListMaintenance()),
        ("maintenance list", m.ListMaintenance()),
        ("maintenance checkout 2h", m.StartMaintenance("checkout", TWO_HOURS)),
        (
            "Maintenance Checkout for 2 hours New switches.",
            m.StartMaintenance("checkout", TWO_HOURS, "New switches."),
        ),
        (
            "maintenance start “pay ments” until 12:00 a &lt;b&gt;",
            m.StartMaintenance("pay ments", TWO_HOURS, "a <b>"),
        ),
        ("maintenance all 2h 30 racks", m.StartMaintenance(None, TWO_HOURS, "30 racks")),
        ("maintenance end checkout", m.EndMaintenance("checkout")),
        ("maintenance end all", m.EndMaintenance(None)),
        ("list", g.ListIncidents()),
        ("show 42", g.Show((42,))),
        ("note 42 Rebooted “db-1” – fine now.", g.Note((42,), "Rebooted “db-1” – fine now.")),
        (
            "note 42 a &lt;b&gt; &amp;amp; <https://x.example/y|x>",
            g.Note((42,), "a <b> &amp; https://x.example/y"),
        ),
        ("note rebooted", g.Note((), "rebooted")),
        ("me", g.Me()),
        ("status", g.Status()),
        ("help override", g.Help("override")),
        ("?", g.Help(None)),
        ("page payments Disk Full", g.Open("payments Disk Full")),
        ("override list", g.ListOverrides()),
        ("payments", g.Unknown("payments", None)),
        ("akc 42", g.Unknown("akc 42", "ack")),
    ],
)
def test_a_command(text: str, command: g.Command) -> None:
    """Verbs, numbers and times, also as a telephone's keyboard sends them."""
    assert parse(text) == command


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("<@U2> 2h", g.SetOverride("U2", TWO_HOURS, None)),
        ("<@U2|ben> for 2 hours", g.SetOverride("U2", TWO_HOURS, None)),
        ("payments <@U2> 2h", g.SetOverride("U2", TWO_HOURS, "payments")),
        ("<@U2> 2h on “payments primary”", g.SetOverride("U2", TWO_HOURS, "payments primary")),
        ("<@u2> until 12:00 payments", g.SetOverride("U2", TWO_HOURS, "payments")),
        ("me 2h", g.SetOverride(None, TWO_HOURS, None)),
        ("@zoe 2h", g.Stranger("zoe")),
        ("payments @Zoe until 12:00", g.Stranger("zoe")),
        ("", g.ListOverrides()),
        ("list", g.ListOverrides()),
        ("cancel #7", g.CancelOverride(7)),
        ("remove 7", g.CancelOverride(7)),
    ],
)
def test_an_override(text: str, command: g.Command) -> None:
    """Person, time and schedule in any order."""
    assert g.parse_override(text, NOW, BERLIN) == command


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<@U2> yesterday", "I don't understand `yesterday` as a time"),
        ("user 2h", "Mention with @ who takes over"),
        ("<@U2>", "Say for how long"),
        ("<@U2> <@U3> 2h", "Mention one person only"),
        ("<@U2> until 2020-01-01", "That is over already"),
        ("cancel", "Name one override by its number"),
        ("cancel 1 2", "Name one override by its number"),
        ("<@U2> " + "x " * 100, "more than I can read"),
    ],
)
def test_a_wrong_override_is_answered_with_the_form(text: str, words: str) -> None:
    """A refusal says what was not understood, and most show the right form."""
    with pytest.raises(BadCommand, match=words):
        g.parse_override(text, NOW, BERLIN)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ack foo", "`foo` is no incident number"),
        ("ack 1 -2", "`-2` is no incident number"),
        ("snooze 42", "Say for how long"),
        ("snooze 42 yesterday", "Say for how long"),
        ("note 42", "Say what to note"),
        ("merge 42", "Say which incident goes on"),
        ("merge", "Say which incident goes on"),
        ("merge 42 into", "Say which incident goes on"),
        ("merge 42 into 41 40", "Say which incident goes on"),
        ("merge foo into 41", "`foo` is no incident number"),
        ("maintenance checkout", "Say of what, and for how long"),
        ("maintenance 2h", "Say of what, and for how long"),
        ("maintenance checkout yesterday", "Say of what, and for how long"),
        ("maintenance checkout until 2020-01-01", "That is over already"),
        ("maintenance end", "Say of what"),
        ("page", "Name the service"),
        ("ack " + "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21", "At most 20"),
    ],
)
def test_a_wrong_command_says_what_to_type(text: str, words: str) -> None:
    """An error names what was wrong."""
    with pytest.raises(BadCommand, match=words):
        parse(text)


def test_incident_bare_is_the_list() -> None:
    """/incident alone lists, and otherwise knows the same verbs."""
    assert g.parse_incident("  ", NOW, BERLIN) == g.ListIncidents()
    assert g.parse_incident("ack 42", NOW, BERLIN) == g.Deed("ack", (42,))


@given(st.text(max_size=200))
def test_any_text_is_a_command_or_refused(text: str) -> None:
    """No input makes the grammar fail in another way than by refusing, in words."""
    for read in (g.parse, g.parse_incident, g.parse_override):
        try:
            said: object = read(text, NOW, BERLIN)
        except BadCommand as refused:
            said = str(refused)
        assert said
