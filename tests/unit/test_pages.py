"""Effects become deliveries, each with the key that makes a second one impossible."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from engine.directory import ContactMethod, ContactRule, Directory, Person
from engine.escalation import Fate
from engine.escalation import fate as f
from engine.models import DeliveryKind, Method, NewDelivery, Urgency
from engine.pager.ladder import Link
from engine.pager.pages import Pages
from tests.unit.escalations import ANA, MIN, NOW, after, fresh

METHODS = (
    ContactMethod(11, 1, Method.SLACK, "U1", verified=True),
    ContactMethod(12, 1, Method.SMS, "+1", verified=True),
)
RULES = {Urgency.HIGH: (ContactRule(11, timedelta()), ContactRule(12, MIN))}
PERSON = Person(1, "ana", "U1", "UTC", admin=False, active=True, methods=METHODS, rules=RULES)
DIRECTORY = Directory(1, 1, {1: PERSON}, {}, {}, {})


def made(effect: f.Effect, fate: Fate | None = None, chain: tuple[Link, ...] = ()) -> list[NewDelivery]:
    return Pages(DIRECTORY, NOW).of(effect, 42, fate or fresh(), chain)


def test_a_level_pages_people_by_their_rules_and_channels_at_once() -> None:
    """Later contact rules are later deliveries; all are of the incident's round, pass and level."""
    pages = made(f.PageLevel(1, (1,), ("#ops",)))
    assert [(one.method, one.due_at - NOW, one.level) for one in pages] == [
        (Method.SLACK, 0 * MIN, 1),
        (Method.SMS, MIN, 1),
        (Method.CHANNEL, 0 * MIN, 1),
    ]
    assert {one.kind for one in pages} == {DeliveryKind.PAGE}


def test_a_key_names_incident_round_pass_level_recipient_method_and_step() -> None:
    """The same page twice has one key; in another round, pass or level it has another."""
    page = f.PageLevel(0, (1,), ())
    keys = {one.idem_key for one in made(page)}
    assert keys == {one.idem_key for one in made(page)}
    for other in (
        made(page, replace(fresh(), round=2)),
        made(page, replace(fresh(), pass_=1)),
        made(replace(page, level=1)),
    ):
        assert keys.isdisjoint(one.idem_key for one in other)


def test_the_fallback_pages_its_first_links_and_a_person_in_two_of_them_once() -> None:
    """Whoever is an admin and in the list has one key; a URL goes by its index, for it holds a secret."""
    chain = (Link((1,)), Link((1,), ("#ops",)), Link(urls=(0,)))
    first = made(f.PageFallback(1), chain=chain)
    two = made(f.PageFallback(2), chain=chain)
    every = made(f.PageFallback(9), chain=chain)
    assert len({one.idem_key for one in first}) == 2
    assert len({one.idem_key for one in two}) == 3
    assert [one.address for one in every if one.method is Method.URL] == ["0"]
    assert {one.level for one in every} == {f.FALLBACK}


def test_each_ask_for_help_has_keys_of_its_own() -> None:
    """A person who is asked a second time is told a second time."""
    first, second = (made(f.PageResponder(1, sequence)) for sequence in (1, 2))
    assert {one.kind for one in first} == {DeliveryKind.RESPONDER}
    assert {one.idem_key for one in first}.isdisjoint(one.idem_key for one in second)
    assert made(f.PageResponder(9, 1)) == []  # somebody who is no longer in the directory


def test_who_acknowledged_is_told_quietly_and_a_source_is_not() -> None:
    """A quiet message needs a person; a line goes to the thread either way."""
    assert [one.person_id for one in made(f.Tell("k", "text"), after(f.Acknowledge(ANA)))] == [1]
    assert made(f.Tell("k", "text"), fresh()) == []
    (line,) = made(f.Say("k", "text"))
    assert (line.kind, line.method, line.address) == (DeliveryKind.STATUS, Method.CHANNEL, None)


def test_what_sends_nothing_makes_nothing() -> None:
    """Timers and cancellations are no deliveries."""
    assert made(f.Disarm()) == []
