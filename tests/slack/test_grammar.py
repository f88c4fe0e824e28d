"""What people type is read as what they mean, or answered with the right form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.grammar import contact_text as me
from bot.slack.grammar import maintenance_text as m
from bot.slack.grammar import oncall as g
from bot.slack.grammar import override_text as o
from bot.slack.grammar import who_text as w
from bot.slack.grammar.times import Span
from engine.errors import BadCommand
from engine.models import Method, Urgency

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
HALF = timedelta(minutes=30)
TOMORROW = Span(datetime(2026, 3, 3, 8, 0, tzinfo=UTC), datetime(2026, 3, 3, 16, 0, tzinfo=UTC))
FRIDAY = datetime(2026, 3, 6, 17, 0, tzinfo=UTC)
FEBRUARY = Span(datetime(2026, 1, 31, 23, 0, tzinfo=UTC), datetime(2026, 2, 3, 23, 0, tzinfo=UTC))
TWO_HOURS = Span(NOW, NOW + timedelta(hours=2))


def parse(text: str) -> g.Command:
    return g.parse(text, NOW, BERLIN)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("", w.Who()),
        ("who", w.Who()),
        ("who payments", w.Who("payments")),
        ("who is on call", w.Who()),
        ("who's on call?", w.Who()),
        ("Who’s on-call for payments?", w.Who("payments")),
        ("whos oncall on “payments primary”", w.Who("payments primary")),
        ("who is on call for payments right now?", w.Who("payments")),
        ("who is on call now", w.Who()),
        ("who on-call-team", w.Who("on-call-team")),
        ("who payments next 5", w.Who("payments", following=5)),
        ("who is on call next", w.Who(following=5)),
        ("who payments at fri 18:00", w.Who("payments", at=FRIDAY)),
        ("who payments fri 18:00", w.Who("payments", at=FRIDAY)),
        ("who is on call for payments at 6pm on friday?", w.Who("payments", at=FRIDAY)),
        ("who at fri 18:00", w.Who(at=FRIDAY)),
        ("who <@U2|ben> at fri 18:00 next 3", w.Who(None, "U2", FRIDAY, 3)),
        ("who was on call at 2026-02-02 18:00", w.Who(at=datetime(2026, 2, 2, 17, 0, tzinfo=UTC))),
        ("<@U2|ben>", w.Who(slack_user_id="U2")),
        ("<@U2|ben> next 2", w.Who(slack_user_id="U2", following=2)),
        ("shifts", w.Shifts()),
        ("shifts me", w.Shifts()),
        ("my shifts", g.Unknown("my shifts", None)),
        ("shifts payments", w.Shifts("payments")),
        ("shifts <@U2>", w.Shifts(None, "U2")),
        ("shifts payments 2026-02-01..2026-02-03", w.Shifts("payments", span=FEBRUARY)),
        ("shifts payments from 2026-02-01 to 2026-02-03", w.Shifts("payments", span=FEBRUARY)),
        ("shifts me 2h", w.Shifts(span=TWO_HOURS)),
        ("cover me fri 18:00-22:00", g.Handed("cover", "me fri 18:00-22:00")),
        ("schedule new", g.Handed("schedule", "new")),
        ("ack 42", g.Deed("ack", (42,))),
        ("ACK 42.", g.Deed("ack", (42,))),
        ("Ack\u00a0#42, #43 and 44", g.Deed("ack", (42, 43, 44))),
        ("ack 42 42", g.Deed("ack", (42,))),
        ("\u200back 42", g.Deed("ack", (42,))),
        ("acknowledge 7", g.Deed("ack", (7,))),
        ("close 7", g.Deed("resolve", (7,))),
        ("ack", g.Deed("ack", ())),
        ("escalate 42", g.Deed("escalate", (42,))),
        ("snooze 42 30m", g.Snooze((42,), Span(NOW, NOW + timedelta(minutes=30)))),
        ("snooze 42 30 min", g.Snooze((42,), Span(NOW, NOW + timedelta(minutes=30)))),
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
        ("me", g.Handed("me", "")),
        ("status", g.Status()),
        ("help override", g.Help("override")),
        ("?", g.Help(None)),
        ("page payments Disk Full", g.Open("payments Disk Full")),
        ("override list", o.ListOverrides()),
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
        ("<@U2> 2h", o.SetOverride("U2", TWO_HOURS, None)),
        ("<@U2|ben> for 2 hours", o.SetOverride("U2", TWO_HOURS, None)),
        ("payments <@U2> 2h", o.SetOverride("U2", TWO_HOURS, "payments")),
        ("<@U2> 2h on “payments primary”", o.SetOverride("U2", TWO_HOURS, "payments primary")),
        ("<@u2> until 12:00 payments", o.SetOverride("U2", TWO_HOURS, "payments")),
        ("me 2h", o.SetOverride(None, TWO_HOURS, None)),
        ("@zoe 2h", o.Stranger("zoe")),
        ("payments @Zoe until 12:00", o.Stranger("zoe")),
        ("", o.OverrideForm()),
        ("list", o.ListOverrides()),
        ("list payments", o.ListOverrides("payments")),
        ("payments <@U2> tomorrow 9am to 5pm", o.SetOverride("U2", TOMORROW, "payments")),
        ("tomorrow 9am to 5pm payments <@U2>", o.SetOverride("U2", TOMORROW, "payments")),
        ("<@U2> for payments for 2h", o.SetOverride("U2", TWO_HOURS, "payments")),
        ("“fri rota” <@U2> 2h", o.SetOverride("U2", TWO_HOURS, "fri rota")),
        ("me in 0.5h for 1h", o.SetOverride(None, Span(NOW + HALF, NOW + 3 * HALF), None)),
        ("cancel #7", o.CancelOverride(7)),
        ("remove 7", o.CancelOverride(7)),
    ],
)
def test_an_override(text: str, command: g.Command) -> None:
    """Person, time and schedule in any order."""
    assert o.parse(text, NOW, BERLIN) == command


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<@U2> yesterday", "I don't understand `yesterday` as a time"),
        ("user 2h", "Mention with @ who takes over"),
        ("<@U2>", "Say for how long"),
        ("<@U2> <@U3> 2h", "Mention one person only"),
        ("<@U2> until 2020-01-01", "That is over already"),
        ("<@U2> 2h ago", "I don't understand `2h ago` as a time"),
        ("payments <@U2> next friday", "I don't understand `next friday` as a time"),
        ("<@U2> 9", "I don't understand `9` as a time"),
        ("<@U2> 01/02/2026", "I don't understand `01/02/2026` as a time"),
        ("<@U2> tomorrow 9am 5pm", "I don't understand `tomorrow 9am 5pm` as a time"),
        ("<@U2> next fri 18:00 to 20:00", "I don't understand"),
        (
            "fri rota <@U2> 2h",
            "I don't understand `fri rota 2h` as a time .if it is a schedule, put it in quotes",
        ),
        ("cancel", "Name one override by its number"),
        ("cancel 1 2", "Name one override by its number"),
        ("<@U2> " + "x " * 100, "more than I can read"),
    ],
)
def test_a_wrong_override_is_answered_with_the_form(text: str, words: str) -> None:
    """A refusal says what was not understood, and most show the right form."""
    with pytest.raises(BadCommand, match=words):
        o.parse(text, NOW, BERLIN)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ack foo", "`foo` is no incident number"),
        ("ack 1 -2", "`-2` is no incident number"),
        ("snooze 42", "Say for how long"),
        ("who payments next 0", "Between 1 and 50 shifts"),
        ("who payments at 25:00", "no time of day"),
        ("shifts payments 9 to 5", "in the morning or in the evening"),
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
    for read in (g.parse, g.parse_incident, o.parse):
        try:
            said: object = read(text, NOW, BERLIN)
        except BadCommand as refused:
            said = str(refused)
        assert said


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("add sms <tel:+12025550177|+1 202 555 0177>", me.Add(Method.SMS, "tel:+12025550177")),
        ("add Landline +1 202 555 0177", me.Add(Method.VOICE, "+1 202 555 0177")),
        ("add sms +12025550177 by call", me.Add(Method.SMS, "+12025550177", by_call=True)),
        ("add mail <mailto:ana@x.example|ana@x.example>", me.Add(Method.EMAIL, "ana@x.example")),
        ("add push `ntfy://t?a=1&amp;b=2`", me.Add(Method.PUSH, "ntfy://t?a=1&b=2")),
        ("add", me.ShowMethods(add=True)),
        ("verify", me.ShowMethods()),
        ("confirm 123 456", me.Verify("123 456")),
        ("code 7 by phone", me.SendCode("7", by_call=True)),
        ("change sms to “+12025550177”", me.Change("sms", "+12025550177")),
        ("rules", me.ShowRules()),
        ("rules RESET", me.ResetRules()),
        ("rules slack, sms after 1m", me.SetRules({Urgency.HIGH: "slack, sms after 1m"})),
        (
            "rules High urgency: slack; low slack",
            me.SetRules({Urgency.HIGH: "slack;", Urgency.LOW: "slack"}),
        ),
        ("ask everyone", me.AskEverybody()),
        ("vcard", me.ShowNumbers()),
        ("test", me.RunTest()),
    ],
)
def test_how_one_is_reached_is_read_as_people_and_slack_write_it(typed: str, expected: me.Command) -> None:
    """Links, quotes, capitals and small words around what is meant."""
    assert me.parse(typed) == expected


@pytest.mark.parametrize(
    "typed", ["add slack", "add sms", "add fax 1", "change sms", "test it", "ask", "rules high:", "what"]
)
def test_what_is_behind_me_and_not_understood_is_refused(typed: str) -> None:
    """With what would be."""
    with pytest.raises(BadCommand, match="`/oncall me"):
        me.parse(typed)
