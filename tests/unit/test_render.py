"""What SMS and mail say: short enough, clear who and what, and harmless whatever the alert says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.links import Links
from engine.models import DeliveryKind, IncidentStatus, Link
from engine.notify import gsm7, render
from engine.vault import Vault
from tests.notify.values import NOW, alert, page, told, view


def test_a_page_by_sms_says_what_where_and_how_to_answer() -> None:
    """Number, state, service, title and the two replies, in one part."""
    text = render.sms(page())
    assert text == "Midwatch #42 FIRING checkout: db-1 is down. Reply 4 to ack, 6 to resolve"
    assert gsm7.parts(text) == 1


def test_a_group_says_how_many_alerts_it_holds() -> None:
    """The other alerts of the incident are counted."""
    assert " (+3 alerts). Reply 4" in render.sms(page(incident=view(firing_count=4)))
    assert " (+1 alert). Reply 4" in render.sms(page(incident=view(firing_count=2)))


def test_a_long_emoji_summary_takes_two_parts_and_keeps_its_ends() -> None:
    """However long the alert, the number and the replies are there (S-10)."""
    text = render.sms(page(incident=view(title="🔥 disk full “now” " * 60, service="s…" * 50)))
    assert gsm7.parts(text) == 2
    assert text.startswith("Midwatch #42 FIRING s...")
    assert text.endswith("Reply 4 to ack, 6 to resolve")


@given(st.text(max_size=400), st.text(max_size=60), st.sampled_from(IncidentStatus), st.integers(1, 10**9))
def test_no_alert_makes_an_sms_longer_or_another_alphabet(
    title: str, service: str, status: IncidentStatus, number: int
) -> None:
    """Any title, service, state and number: two parts at most, all in the alphabet, on one line."""
    text = render.sms(page(incident=view(title=title, service=service, status=status, number=number)))
    assert gsm7.parts(text) <= 2
    assert set(text) <= gsm7.ALPHABET - {"\n", "\r"}


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("see https://evil.example/x?y=1", "see hxxps://evil[.]example/x?y=1"),
        ("see HTTP://1.2.3.4/", "see hxxp://1.2.3.4/"),
        ("log in at www.evil.com. Now", "log in at www[.]evil[.]com. Now"),
        ("log in at evil．com", "log in at evil[.]com"),
        ("version 1.2.3 took 0.5 s", "version 1.2.3 took 0.5 s"),
    ],
)
def test_an_sms_holds_nothing_a_telephone_makes_a_link_of(title: str, shown: str) -> None:
    """URLs and host names of an alert are defanged; numbers with dots stay."""
    assert f": {shown}. Reply" in render.sms(page(incident=view(title=title)))


def test_an_alert_cannot_add_lines_or_turn_the_text_around() -> None:
    """Line breaks, overrides of direction and zero-width characters are gone."""
    text = render.sms(page(incident=view(title="down\r\nMidwatch #1\u202e RESOLVED\u200b\x00")))
    assert ": down Midwatch #1 RESOLVED. Reply" in text


def test_other_messages_ask_for_no_answer() -> None:
    """A status, a notice or a code says its text, with the number of the incident it is about."""
    status = page(kind=DeliveryKind.STATUS, text="acknowledged by ben")
    assert render.sms(status) == "Midwatch #42 checkout: acknowledged by ben"
    assert render.sms(told("your code is 123456", kind=DeliveryKind.VERIFICATION)) == (
        "Midwatch: your code is 123456"
    )
    assert gsm7.parts(render.sms(told("a line of a bundle\n" * 60))) == 2


def test_a_call_for_help_says_who_asks() -> None:
    """A responder reads the request before the title, and may answer."""
    text = render.sms(page(kind=DeliveryKind.RESPONDER, text="ana asks for your help"))
    assert text == (
        "Midwatch #42 FIRING checkout: ana asks for your help - db-1 is down. Reply 4 to ack, 6 to resolve"
    )


def test_all_mails_of_an_incident_have_one_subject() -> None:
    """Mail programs group by subject, so it does not change with the state."""
    resolved = view(status=IncidentStatus.RESOLVED, resolved_by="ben")
    assert render.subject(page()) == render.subject(page(incident=resolved))
    assert render.subject(page()) == "[Midwatch #42] checkout: db-1 is down"
    assert render.subject(told("Slack is down\nsince 14:00")) == "[Midwatch] Slack is down since 14:00"


def test_a_subject_is_one_short_line() -> None:
    """A title with line breaks cannot add a header."""
    subject = render.subject(page(incident=view(title="x\r\nBcc: all@example.com " * 20)))
    assert "\n" not in subject
    assert "\r" not in subject
    assert len(subject) <= render.SUBJECT_LENGTH


def test_a_mail_tells_the_whole_story() -> None:
    """State, service, since when, each alert with its links, and how to acknowledge."""
    link = Link("https://graphs.example/db", "graph")
    shown = view(alerts=(alert(links=(link,)), alert(summary="db-2 is slow")), alert_count=12)
    text = render.mail(page(incident=shown)).text
    for part in (
        "#42 FIRING: db-1 is down",
        "Service: checkout",
        "Since: 2026-11-05 14:00 UTC",
        "Severity: critical",
        "Alerts: 12, the newest 2 are below",
        "- db-1 is down (firing, seen 3 times since 2026-11-05 14:00 UTC)",
        "  graph: https://graphs.example/db",
        "- db-2 is slow",
        "/oncall ack 42",
    ):
        assert part in text


LINKS = Links(Vault("a secret of the tests").link_key, "https://pager.example.com")


def test_a_page_to_a_person_has_a_link_that_says_nothing() -> None:
    """No word of the incident is in it, and neither is its number."""
    link = render.answer_link(page(person_id=3), LINKS, NOW)
    assert link is not None
    assert link.startswith("https://pager.example.com/answer/")
    assert len(link.rpartition("/")[2]) == 36
    assert link in render.mail(page(), link).text
    assert link in render.push(page(), link)


@pytest.mark.parametrize(
    "changes",
    [
        {"person_id": None},
        {"incident": None},
        {"kind": DeliveryKind.STATUS},
        {"kind": DeliveryKind.VERIFICATION},
    ],
)
def test_what_nobody_can_answer_by_name_has_no_link(changes: dict[str, object]) -> None:
    """A channel, a fallback URL, a status and a code."""
    assert render.answer_link(page(**{"person_id": 3, **changes}), LINKS, NOW) is None


@given(st.text(max_size=2000), st.text(max_size=2000))
def test_a_push_message_is_short_whatever_the_alert(title: str, text: str) -> None:
    """And its link is whole."""
    link = "https://pager.example.com/answer/" + "t" * 36
    said = render.push(page(incident=view(title=title), text=text), link)
    assert said.endswith(f"\n{link}")
    assert len(said) <= render.PUSH_LENGTH + len(link) + 1


def test_typographic_quotes_are_sent_as_plain_ones() -> None:
    """An SMS with them is neither refused nor three times as long (B111)."""
    text = render.sms(page(incident=view(title="can’t open “/data” – it’s full…")))
    assert ": can't open \"/data\" - it's full.... Reply" in text
    assert gsm7.parts(text) == 1


def test_a_mail_says_who_ended_it() -> None:
    """The name of who acknowledged or resolved is in the mail, and no request to do so."""
    taken = view(status=IncidentStatus.ACKNOWLEDGED, acknowledged_by="ben")
    text = render.text(page(kind=DeliveryKind.STATUS, text="ben takes it", incident=taken))
    assert text.startswith("ben takes it\n\n#42 ACKNOWLEDGED: ")
    assert "Acknowledged by: ben" in text
    assert "/oncall ack" not in text
    ended = view(status=IncidentStatus.RESOLVED, resolved_by="ana", severity=None, raw_severity="page")
    assert "Resolved by: ana" in render.text(page(incident=ended))
    assert "Severity: page" in render.text(page(incident=ended))


def test_html_is_escaped_in_every_field() -> None:
    """No tag of an alert becomes a tag of the mail, and `javascript:` becomes no link (S-28)."""
    evil = "<script>alert(1)</script>"
    links = (
        Link("javascript:alert(1)", evil),
        Link('https://evil.example/"><b>', "https://bank.example"),
        Link("http://[", "broken"),
    )
    shown = view(
        title=evil,
        service=evil,
        acknowledged_by=evil,
        status=IncidentStatus.ACKNOWLEDGED,
        alerts=(alert(summary=evil, links=links),),
    )
    html = render.mail(page(incident=shown, text=evil)).html
    assert "<script>" not in html
    assert "<b>" not in html
    assert 'href="javascript' not in html
    assert ">https://bank.example</a> (evil.example)" in html
    assert "broken: http://[" in html
