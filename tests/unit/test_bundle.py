"""What travels together, when a number may be told again, and what one message about many says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backoff import MOST_ATTEMPTS
from engine.models import Carried, Delivery, DeliveryKind, DeliveryStatus, IncidentView, Method, Page
from engine.notify import bundle, gsm7, render, speech
from tests.notify.values import NOW, page, view

SECOND = timedelta(seconds=1)


def delivery(one: int, **changes: object) -> Delivery:
    usual = Delivery(
        id=one,
        org_id=1,
        incident_id=one,
        kind=DeliveryKind.PAGE,
        method=Method.SMS,
        person_id=1,
        method_id=7,
        address=None,
        round=1,
        pass_=0,
        level=0,
        step=0,
        status=DeliveryStatus.QUEUED,
        idem_key=str(one),
        due_at=NOW + one * SECOND,
        created_at=NOW,
    )
    return replace(usual, **changes)  # type: ignore[arg-type]  # each test changes another field


def ids(found: list[list[Delivery]]) -> list[list[int]]:
    return sorted([one.id for one in load] for load in found)


def loads(*begun: Delivery, high: tuple[int, ...] = ()) -> list[list[int]]:
    return ids(bundle.loads(begun, lambda one: one, lambda one: one.id in high))


def test_pages_of_one_number_go_in_one_message_and_the_most_urgent_carries_them() -> None:
    """The carrier is the oldest of those of high urgency; another number has its own message."""
    assert loads(delivery(1), delivery(2), delivery(3), high=(2, 3)) == [[2, 3, 1]]
    assert loads(delivery(1), delivery(2, method_id=8)) == [[1], [2]]


@pytest.mark.parametrize(
    "changes",
    [
        {"method": Method.SLACK},  # each incident keeps its card
        {"kind": DeliveryKind.VERIFICATION},
        {"kind": DeliveryKind.STATUS},  # a line that is no update of a fate
        {"kind": DeliveryKind.STATUS, "body": {bundle.UPDATE: "resolved"}},  # what only tells asks nothing
        {"method_id": None},
        {"attempts": MOST_ATTEMPTS},  # none of its attempts ever ended
    ],
)
def test_what_is_no_page_by_phone_mail_or_push_travels_by_itself(changes: dict[str, object]) -> None:
    """Only what asks the same of the same person by the same method shares a message."""
    assert loads(delivery(1), delivery(2, **changes)) == [[1], [2]]


@pytest.mark.parametrize("method", bundle.INTERVALS)
def test_a_number_is_told_again_after_its_interval_and_no_later(method: Method) -> None:
    """At once when nothing was sent; at most the interval later, whatever two hosts think the time is."""
    interval = bundle.INTERVALS[method]
    assert bundle.start_at(method, None, NOW, flying=False) == NOW
    assert bundle.start_at(method, NOW - 5 * SECOND, NOW, flying=True) == NOW - 5 * SECOND + interval
    assert bundle.start_at(method, NOW - interval, NOW, flying=False) == NOW
    assert interval <= timedelta(minutes=1)


def test_a_clock_that_was_set_back_holds_nobody() -> None:
    """What was told "in an hour" holds nothing; a difference of seconds between two hosts does."""
    hour, seconds = timedelta(hours=1), timedelta(seconds=5)
    assert bundle.start_at(Method.SMS, NOW + hour, NOW, flying=False) == NOW
    assert bundle.start_at(Method.SMS, NOW + seconds, NOW, flying=False) == NOW + timedelta(minutes=1)


def test_what_is_on_its_way_is_waited_for_a_moment() -> None:
    """It may fail, and then the next one need not wait for a minute."""
    assert bundle.start_at(Method.SMS, None, NOW, flying=True) == NOW + SECOND


def many(count: int, **changes: object) -> Page:
    """A page about incidents 42, 43, 44 …"""
    views = [view(id=1000 + n, number=42 + n, title=f"db-{n} is down", **changes) for n in range(count)]
    return page(incident=views[0], carried=tuple(Carried(n, 1, one) for n, one in enumerate(views[1:])))


def test_a_text_names_each_and_how_to_take_them_all() -> None:
    """How many, where, what, and the two replies."""
    assert render.sms(many(3)) == (
        "Midwatch: 3 new incidents on checkout: #42 db-0 is down, #43 db-1 is down, #44 db-2 is down."
        " Reply ACK ALL or ACK 42"
    )


def test_a_text_about_very_many_names_as_many_as_fit() -> None:
    """The numbers before the words; the rest is counted, and no incident is counted twice."""
    text = render.sms(many(200))
    named = [int(word.strip("#,")) for word in text.split() if word.startswith("#")]
    assert named == [*range(42, 42 + len(named))]
    assert len(named) > 25
    assert f"+{200 - len(named)} more. Reply ACK ALL or ACK 42" in text


TITLES = st.text(max_size=200)


@given(st.lists(TITLES, min_size=2, max_size=60), st.text(max_size=60), st.booleans())
def test_a_text_about_many_is_never_more_than_two_parts(
    titles: list[str], service: str, replies: bool
) -> None:
    """Whatever the alerts say: in the SMS alphabet, in two parts, and with the way to answer."""
    views = [view(id=n, number=9_000 + n, title=title, service=service) for n, title in enumerate(titles, 1)]
    told = page(incident=views[0], carried=tuple(Carried(one.id, 1, one) for one in views[1:]))
    text = render.sms(told, answer_to="+12025550100", replies=replies)
    assert gsm7.parts(text) <= 2
    assert set(text) <= gsm7.ALPHABET
    assert "ACK ALL" in text
    assert "http://" not in text.lower()
    assert "https://" not in text.lower()


def test_the_same_incident_twice_is_told_as_one() -> None:
    """Two levels that page one person about it are one page, in its usual words."""
    shown = view()
    assert render.sms(page(carried=(Carried(902, 1, shown),))) == render.sms(page())


def test_what_nobody_answered_in_time_is_called_open() -> None:
    """Incidents that are paged for again are not new."""
    assert "3 open incidents on checkout" in render.sms(many(3, pass_=1))
    first, second = view(id=1, number=1), view(id=2, number=2, service="search")
    told = page(incident=first, carried=(Carried(2, 1, second),))
    assert render.subject(told) == "[Midwatch] 2 new incidents on 2 services"


def test_a_call_says_how_many_and_the_first_and_takes_one_key_for_all() -> None:
    """Nobody listens to a list at night."""
    twiml = speech.page_twiml(many(5), "https://pager.example.com/key")
    assert "5 new incidents on checkout. The first: incident 42, db-0 is down" in twiml
    assert "Press 4 to acknowledge all, 6 to resolve all, 8 to escalate all" in twiml


def test_a_mail_lists_each_with_its_own_link() -> None:
    """A link that answers one of several says which."""
    mail = render.bundled_mail(many(60), lambda one: f"https://pager.example.com/{one.id}")
    assert mail.subject == "[Midwatch] 60 new incidents on checkout"
    assert "- #43 FIRING checkout: db-1 is down\n  https://pager.example.com/0\n" in mail.text
    assert mail.text.count("https://") == 50
    assert " +10 more" in mail.text
    assert '<a href="https://pager.example.com/901">Answer</a>' in mail.html


def test_a_mail_about_many_escapes_what_alerts_say() -> None:
    """A title is text, not a page."""
    evil = view(id=2, number=43, title="<script>alert(1)</script>")
    mail = render.bundled_mail(page(carried=(Carried(902, 1, evil),)), render.no_link)
    assert "<script>" not in mail.html
    assert "&lt;script&gt;" in mail.html


def test_a_push_about_many_is_short() -> None:
    """A locked screen shows a few lines."""
    said = render.push(many(40))
    assert said.startswith("#42 db-0 is down, #43 db-1 is down")
    assert len(said) <= render.PUSH_LENGTH


def test_updates_in_one_message_are_each_said_once() -> None:
    """One to a line."""
    assert bundle.in_words(["#1 resolved", "", "#2 resolved", "#1 resolved"]) == "#1 resolved;\n#2 resolved"


def numbers(views: tuple[IncidentView, ...]) -> list[int]:
    return [one.number for one in views]


def test_a_page_knows_all_that_it_is_about() -> None:
    """Each once, the carrier's first."""
    assert numbers(many(3).incidents) == [42, 43, 44]
    assert numbers(page().incidents) == [42]
