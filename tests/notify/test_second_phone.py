"""A second company for SMS and calls, through the real apprise and a web hook on this machine."""

from __future__ import annotations

import pytest

from engine.models import Method, Rejected, Retry, Sent
from engine.notify.gsm7 import TWO_PARTS, septets
from engine.notify.second_phone import SecondPhone
from tests.notify.test_apprise_url import Hook, hook
from tests.notify.values import NUMBER, page, view

# apprise imports it where the language still has it
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
OURS = "+12025550100"


def phone(there: Hook, method: Method = Method.SMS, answer_to: str | None = OURS) -> SecondPhone:
    return SecondPhone(method, there.url.replace(NUMBER.removeprefix("+"), "{to}"), answer_to=answer_to)


async def test_a_text_goes_to_the_number_and_says_where_replies_are_heard() -> None:
    """A reply to the second company reaches nobody, so the text names the number that is heard."""
    async with hook(NUMBER.removeprefix("+")) as there:
        assert await phone(there).send(page(method=Method.SMS)) == Sent("", "second json")
        assert await phone(there, answer_to=None).send(page(method=Method.SMS)) == Sent("", "second json")
    with_number, without = (got["message"] for got in there.got)
    assert with_number == "Midwatch #42 FIRING checkout: db-1 is down. Text ACK 42 to +12025550100"
    assert without == "Midwatch #42 FIRING checkout: db-1 is down."


async def test_a_long_title_leaves_room_for_the_number() -> None:
    """Two parts at most, whatever the alert says."""
    async with hook(NUMBER.removeprefix("+")) as there:
        await phone(there).send(page(method=Method.SMS, incident=view(title="db " * 300)))
    assert there.got[0]["message"].endswith("Text ACK 42 to +12025550100")
    assert septets(there.got[0]["message"]) <= TWO_PARTS


async def test_a_call_says_the_same_sentence_as_the_first_company() -> None:
    """Nothing can be pressed in it, so it says the number to text."""
    async with hook(NUMBER.removeprefix("+")) as there:
        await phone(there, Method.VOICE).send(page(method=Method.VOICE))
    said = "Midwatch. Incident 42 firing, service checkout: db-1 is down. Text ACK to +12025550100."
    assert there.got[0]["message"] == said


async def test_what_it_refuses_is_tried_again_and_no_number_is_said() -> None:
    """The outcome names the kind of service only: its URL holds a key, and the number is private."""
    async with hook(NUMBER.removeprefix("+")) as there:
        there.status = 500
        outcome = await phone(there).send(page(method=Method.SMS))
    assert isinstance(outcome, Retry)
    assert NUMBER.removeprefix("+") not in outcome.reason
    assert await phone(there).send(page(method=Method.SMS, address="ana")) == Rejected(
        "not a telephone number"
    )


async def test_a_url_that_apprise_does_not_know_is_a_company_that_is_down() -> None:
    """Never a page that is dead: the first company goes on trying."""
    outcome = await SecondPhone(Method.SMS, "nonsense://key@from/{to}").send(page(method=Method.SMS))
    assert isinstance(outcome, Retry)
    assert outcome.down


async def test_a_number_that_the_company_drops_is_not_counted_as_sent() -> None:
    """Apprise takes ten digits and more: of a shorter number Vonage would text its own (Faroe Islands)."""
    vonage = SecondPhone(Method.SMS, "vonage://12345678:abcdefgh12345678@12025550100/{to}")
    outcome = await vonage.send(page(method=Method.SMS, address="+298212345"))
    assert outcome == Retry("the second company takes no number like this", unsent=True)


def test_another_account_of_the_first_company_is_another_provider() -> None:
    """Its breaker is its own: the first account may be the one that is suspended."""
    assert SecondPhone(Method.SMS, "twilio://AC0:token@from/{to}").provider == "second twilio"
