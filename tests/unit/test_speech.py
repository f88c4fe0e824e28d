"""What a call says: valid XML whatever the alert holds, short, and clear about the keys."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.notify import speech
from tests.notify.values import view

ACTION = "https://pager.example.com/webhooks/twilio/voice?delivery=901"


def spoken(twiml: str) -> list[str]:
    return [say.text or "" for say in ET.fromstring(twiml).iter("Say")]  # noqa: S314  # our own XML


def test_a_call_says_it_twice_and_takes_one_digit() -> None:
    """Who calls, which incident, which service, what; then the keys; each time a gather."""
    twiml = speech.call_twiml([view()], ACTION)
    sentence = (
        "Midwatch. Incident 42 firing, service checkout: db-1 is down. "
        "Press 4 to acknowledge, 6 to resolve, 8 to escalate, star to repeat."
    )
    assert spoken(twiml) == [sentence, sentence]
    gathers = list(ET.fromstring(twiml).iter("Gather"))  # noqa: S314  # our own XML
    assert [gather.get("numDigits") for gather in gathers] == ["1", "1"]
    assert {gather.get("action") for gather in gathers} == {ACTION}
    assert "delivery=901" in twiml


def test_without_a_public_url_the_answer_is_an_sms() -> None:
    """No key could reach us, so none is asked for."""
    twiml = speech.call_twiml([view()], None)
    assert "<Gather" not in twiml
    assert len(spoken(twiml)) == 2
    assert all(text.endswith("Reply 4 by SMS to acknowledge.") for text in spoken(twiml))


def test_markup_of_an_alert_is_read_out_not_obeyed() -> None:
    """S-09: tags are escaped, what XML cannot hold is gone, quotes stay."""
    text = 'A & B <Dial>+1900</Dial>\x07 "q"'
    assert '<Say>A &amp; B &lt;Dial&gt;+1900&lt;/Dial&gt; "q"</Say>' in speech.answer_twiml(text)


@pytest.mark.parametrize("title", ["peanut butter & jelly <x>", "\ud800 lone", "null\x00", "]]><Hangup/>"])
def test_a_call_is_valid_xml(title: str) -> None:
    """twilio-node#8, twilio-java#110: no character of an alert makes the call silent."""
    assert spoken(speech.call_twiml([view(title=title)], ACTION))


@given(st.text(max_size=500), st.text(max_size=100), st.booleans())
@example("disk full " * 50, "checkout " * 20, True)
@example("<" * 500, "", False)
def test_nobody_listens_for_a_minute(title: str, service: str, keys: bool) -> None:
    """Any alert: at most 300 characters, the request at the end is never cut."""
    texts = spoken(speech.call_twiml([view(title=title, service=service)], ACTION if keys else None))
    assert all(len(text) <= speech.SPOKEN for text in texts)
    assert all(text.endswith(speech.KEYS if keys else speech.BY_SMS) for text in texts)
    assert [len(text) <= speech.SPOKEN for text in spoken(speech.answer_twiml(title * 2))] == [True]


def test_an_address_is_not_spelled_out() -> None:
    """A URL is spoken as "a link"."""
    assert (
        ": see a link for it."
        in spoken(speech.call_twiml([view(title="see https://grafana.example/d/1?x=y for it")], ACTION))[0]
    )


def test_an_answer_ends_the_call_or_listens_again() -> None:
    """With a URL another key may follow; without, the call is over."""
    assert "<Gather" not in speech.answer_twiml("Acknowledged. Thank you.")
    again = speech.answer_twiml("That is no key here. Press 4.", ACTION)
    assert f'action="{ACTION}"' in again
    assert "numDigits" in again
    assert again.endswith("<Hangup /></Response>")
