"""What people type on a phone at night."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.web.replies import NUMBERED, Reply, Verb, parse_reply


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("4", Reply(Verb.ACKNOWLEDGE)),
        (" 4 \n", Reply(Verb.ACKNOWLEDGE)),
        ("“4”", Reply(Verb.ACKNOWLEDGE)),
        ("ACK", Reply(Verb.ACKNOWLEDGE)),
        ("Ack 42", Reply(Verb.ACKNOWLEDGE, 42)),
        ("ack #42.", Reply(Verb.ACKNOWLEDGE, 42)),
        ("'ack  42' ", Reply(Verb.ACKNOWLEDGE, 42)),
        ("ack42", Reply(Verb.ACKNOWLEDGE, 42)),
        ("4 42", Reply(Verb.ACKNOWLEDGE, 42)),
        ("6", Reply(Verb.RESOLVE)),
        ("resolve", Reply(Verb.RESOLVE)),
        ("Resolve 42", Reply(Verb.RESOLVE, 42)),
        ("6 42", Reply(Verb.RESOLVE, 42)),
        ("List", Reply(Verb.LIST)),
        ("Status", Reply(Verb.STATUS)),
        ("help", Reply(Verb.HELP)),
        ("?", Reply(Verb.HELP)),
        ("", Reply(Verb.HELP)),
        ("42", Reply(Verb.HELP)),
        ("44", Reply(Verb.HELP)),
        ("ack all", Reply(Verb.ACKNOWLEDGE_ALL)),
        ("4 All!", Reply(Verb.ACKNOWLEDGE_ALL)),
        ("resolve all", Reply(Verb.HELP)),
        ("8", Reply(Verb.ESCALATE)),
        ("Escalate 42", Reply(Verb.ESCALATE, 42)),
        ("who", Reply(Verb.WHO)),
        ("Who?", Reply(Verb.WHO)),
        ("who payments", Reply(Verb.WHO, name="payments")),
        ("who is on call for Payments?", Reply(Verb.WHO, name="payments")),
        ("who is on call", Reply(Verb.WHO)),
        ("ack 42 43", Reply(Verb.HELP)),
        ("ack 9999999999", Reply(Verb.HELP)),  # no number of an incident is that long
        ("list 4", Reply(Verb.HELP)),
        (" Stop ", Reply(Verb.STOP)),
        ("UNSUBSCRIBE", Reply(Verb.STOP)),
        ("cancel", Reply(Verb.STOP)),
        ("start", Reply(Verb.START)),
        ("Stop.", Reply(Verb.HELP)),  # no carrier acts on that, so neither do we
        ("stop it", Reply(Verb.HELP)),
    ],
)
def test_a_reply_is_read_as_it_was_meant(text: str, reply: Reply) -> None:
    """Case, spaces, quotes and a hash change nothing; what is not known is a request for help."""
    assert parse_reply(text) == reply


@given(st.text(max_size=200))
def test_any_text_is_some_reply(text: str) -> None:
    """Nothing that arrives by SMS raises, and only known words act."""
    reply = parse_reply(text)
    assert reply.number is None or reply.verb in NUMBERED
