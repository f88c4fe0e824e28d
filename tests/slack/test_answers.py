"""Every answer keeps Slack's limits and mentions nobody, however long or hostile its content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.slack import about, answers, blocks, home, maintenance, notices
from bot.slack.contacts import showing
from bot.slack.contacts.overview import Overview
from bot.slack.contacts.silence import Silence
from bot.slack.errors import Kind, Trouble
from bot.slack.health import SlackHealth
from bot.slack.lint import lint_message, lint_view
from bot.slack.message import Message
from bot.slack.rota import override_answers
from engine.contacts.contacts import Pending
from engine.contacts.warnings import RuleWarning
from engine.directory import (
    ContactMethod,
    ContactRule,
    Directory,
    Override,
    Person,
    Service,
    Target,
    TargetKind,
)
from engine.errors import BadCommand, NotFound
from engine.models import DeliveryKind, DeliveryStatus, Method, Page, TimelineEntry, Urgency
from engine.pager.respond import Answer
from engine.rota.on_call import OnCallNow
from engine.rota.overrides import OverrideSet
from engine.store.maintenance import Window
from tests.fakes import FakeClock
from tests.slack.test_blocks import OURS, texts
from tests.slack.views import HOSTILE, NOW, a_view, variations

TWO_HOURS = NOW + timedelta(hours=2)


def a_person(name: str = "ana", zone: str = "Europe/Berlin", person_id: int = 1) -> Person:
    methods = (
        ContactMethod(1, person_id, Method.SLACK, "U0ANA", verified=True),
        ContactMethod(2, person_id, Method.SMS, "+12025550143", verified=True),
        ContactMethod(3, person_id, Method.EMAIL, "ana@example.com", verified=False),
        ContactMethod(4, person_id, Method.VOICE, "+12025550143", verified=True, disabled_reason=name),
    )
    rules = {Urgency.HIGH: (ContactRule(1, timedelta()), ContactRule(2, timedelta(minutes=1)))}
    return Person(person_id, name, "U0ANA", zone, True, True, methods, rules)


def a_row(name: str, people: tuple[Person, ...]) -> OnCallNow:
    return OnCallNow(1, name, people, name, NOW, TWO_HOURS, people, TWO_HOURS)


def overview(person: Person, text: str) -> Overview:
    """Everything that there can be to say of somebody, with this text in it."""
    waits = Pending(3, NOW, TWO_HOURS, 4, False, DeliveryStatus.DEAD, text)
    warned = [RuleWarning(text or "?", Urgency.HIGH, 2)] * 20
    return Overview(person, {3: waits}, warned, Silence(NOW, TWO_HOURS), True, True)


def messages(text: str) -> Iterator[Message]:
    """One of every kind of answer, with this text wherever others can put one."""
    person, stranger = a_person(text), a_person(text, "nowhere/at all", 2)
    override = Override(7, 1, "replace_all", 1, None, NOW, TWO_HOURS, text)
    view = a_view(title=text, service=text)
    rows = [a_row(text, (person,)), a_row(text, ())] * 30
    entry = TimelineEntry(NOW, text, text, "sms", text)
    health = SlackHealth(FakeClock(NOW))
    health.failed(Trouble(Kind.TRANSIENT, text))
    directory = Directory(1, 1, {1: person}, {1: Service(1, text, None, None)}, {}, {})
    yield answers.on_call([])
    yield answers.on_call(rows)
    yield answers.on_call_of(person, rows)
    yield answers.on_call_of(stranger, [])
    yield override_answers.override_set(OverrideSet(override, text, (person, stranger)), person, stranger)
    yield override_answers.override_set(OverrideSet(override, text, ()), person, person)
    yield override_answers.overrides([(override, text, text)] * 60)
    yield override_answers.overrides([])
    yield override_answers.override_cancelled(override, text, text)
    yield answers.done([Answer(view, True, text), Answer(view, False, text), "❔"] * 40)
    yield answers.opened(view, created=True)
    yield answers.opened(view, created=False)
    yield answers.opened(view, created=True, held_until=TWO_HOURS)
    windows = [Window(n, service, NOW, TWO_HOURS, text, text) for n, service in enumerate((1, 2, None))]
    for window in windows:
        yield maintenance.started(window, directory.services)
    yield maintenance.listed(windows * 20, directory.services)
    yield maintenance.listed([], {})
    yield maintenance.ended(windows, directory.services[1])
    yield maintenance.ended([], None)
    yield answers.incidents([view] * 60)
    yield answers.incidents([])
    yield answers.timeline([entry] * 60)
    yield answers.shown(blocks.card(view), [entry] * 60)
    yield answers.shown(blocks.card(view), [])
    yield answers.refusal(NotFound(text or None))
    yield answers.refusal(BadCommand("Name one: `/oncall show 42`."))
    yield answers.not_applied("a1b2c3")
    yield answers.working()
    yield about.help_on(None)
    yield about.help_on(text)
    yield about.unknown(text, "ack")
    for clear in (True, False):
        yield showing.me(overview(person, text), clear=clear)
    yield about.status(health, directory, rows, 3, TWO_HOURS - NOW, NOW, windows=2)
    yield about.status(health, directory, rows, 3, None, NOW)
    yield notices.call_for_anybody(view, "")
    for kind in (DeliveryKind.STATUS, DeliveryKind.NOTICE, DeliveryKind.OPS, DeliveryKind.VERIFICATION):
        yield notices.of_page(Page(1, 1, kind, Method.CHANNEL, "#x", incident=view, text=text))
        yield notices.of_page(Page(1, 1, kind, Method.CHANNEL, "#x", text=text))


@pytest.mark.parametrize("name", HOSTILE)
def test_every_answer_can_be_shown(name: str) -> None:
    """No content makes an answer that Slack would refuse."""
    for message in messages(HOSTILE[name]):
        assert lint_message(message) == [], message.text[:100]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_answer_mentions_anybody(name: str) -> None:
    """Only our own dates, links and the asker's own mention are markup."""
    for message in messages(HOSTILE[name]):
        for text in texts(message.payload()):
            left = re.sub(r"<@U0ANA>", "", OURS.sub("", text))
            assert not set("<>") & set(left), left[:200]


@pytest.mark.parametrize("name", variations())
def test_every_home_tab_can_be_shown(name: str) -> None:
    """With anything open, and many of it, the tab keeps Slack's limits."""
    view = variations()[name]
    assert lint_view(home.view(None, [], [])) == []
    incidents = [view] + [a_view(id=100 + number) for number in range(40)]
    assert lint_view(home.view(overview(a_person(), name), [a_row("x", ())] * 300, incidents)) == []


def test_a_long_list_says_how_much_is_left_out() -> None:
    """What does not fit is counted, not dropped in silence."""
    message = answers.incidents([a_view()] * 200)
    shown = "\n".join(texts(message.payload()))
    listed = shown.count("#42 db-1 is down") - message.text.count("#42 db-1 is down")
    assert f"and {200 - listed} more" in shown


def test_status_shouts_before_it_lists_what_was_found_ahead() -> None:
    """However much was found of the coming weeks, that nobody is on call now is there to read."""
    ahead = [(f"schedule {number}", "Nobody is on call " + "x" * 200) for number in range(80)]
    rows, directory = [a_row("payments", ())], Directory(1, 1, {}, {}, {}, {})
    said = about.status(SlackHealth(FakeClock(NOW)), directory, rows, 0, None, NOW, ahead=ahead)
    text = "\n".join(texts(said.payload()))
    assert "Nobody is on call on payments" in text
    assert "fallback chain is empty" in text


def test_status_shouts_what_would_fail() -> None:
    """An empty schedule, an empty fallback chain and a service without a policy are alarming."""
    health = SlackHealth(FakeClock(NOW))
    health.missing_scopes = ("im:write",)
    directory = Directory(1, 1, {}, {1: Service(1, "checkout", None, None)}, {}, {})
    text = "\n".join(texts(about.status(health, directory, [a_row("payments", ())], 0, None, NOW).payload()))
    for words in (
        "🔴 Slack is down",
        "🚨 Nobody is on call on payments",
        "🚨 The fallback chain is empty",
        "Without a policy: checkout",
        "Slack scopes missing: im:write",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("fallback", "urls", "empty"),
    [
        ((Target(TargetKind.CHANNEL, "#ops"),), (), True),
        ((Target(TargetKind.PERSON, 1),), (), True),
        ((Target(TargetKind.PERSON, 2),), (), False),
        ((), ("json://example.com",), False),
    ],
)
def test_a_fallback_that_reaches_nobody_is_empty(
    fallback: tuple[Target, ...], urls: tuple[str, ...], empty: bool
) -> None:
    """Channels alone do not count, nor people whom nothing reaches: as when it comes to paging them."""
    mute = Person(1, "mute", None, "UTC", admin=False, active=True)
    reachable = replace(a_person(person_id=2), admin=False)
    people = {1: mute, 2: reachable}
    directory = Directory(1, 1, people, {}, {}, {}, fallback=fallback, fallback_urls=urls)
    text = "\n".join(texts(about.status(SlackHealth(FakeClock(NOW)), directory, [], 0, None, NOW).payload()))
    assert ("The fallback chain is empty" in text) is empty


def test_an_override_of_oneself_is_told_once() -> None:
    """One wall clock where both are the same person's."""
    override = Override(7, 1, "replace_all", 1, None, NOW, TWO_HOURS, "ana")
    message = override_answers.override_set(OverrideSet(override, "payments", ()), a_person(), a_person())
    assert "For ana that is" not in message.text
    assert "It takes nobody else's place." in message.text
