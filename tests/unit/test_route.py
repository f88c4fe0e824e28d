"""Where a delivery goes, as the directory has it now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.directory import IMPORTED, ContactMethod, Directory, Person
from engine.models import ORG, DeliveryKind, Method
from engine.notify.route import NoRoute, Route, route
from tests.unit.test_verdict import delivery

SMS = ContactMethod(7, 1, Method.SMS, "+12025550101", verified=True)
ANA = Person(1, "ana", "U0ANA", "UTC", admin=False, active=True, methods=(SMS,))
KNOWN = Directory(ORG, 1, {1: ANA}, {}, {}, {}, fallback_urls=("json://a", "json://b"))


def to(**changed: Any) -> Route | NoRoute:
    directory = changed.pop("directory", KNOWN)
    channel, ops = changed.pop("channel", None), changed.pop("ops", None)
    return route(replace(delivery(), **{"method_id": 7, **changed}), directory, channel, ops)


def with_person(**changed: Any) -> Directory:
    return replace(KNOWN, people={1: replace(ANA, **changed)})


def test_a_person_is_reached_at_the_address_of_now() -> None:
    """The address is looked up when the message goes out: a number changed meanwhile is the new one."""
    changed = with_person(methods=(replace(SMS, address="+12025550199"),))
    assert to() == Route("+12025550101", "ana", 7)
    assert to(directory=changed) == Route("+12025550199", "ana", 7)


@pytest.mark.parametrize(
    ("directory", "reason"),
    [
        (replace(KNOWN, people={}), "this person is no longer here"),
        (with_person(active=False), "this person is no longer here"),
        (with_person(methods=()), "this contact method (sms) was removed"),
        (with_person(methods=(replace(SMS, verified=False),)), "this contact method is not verified"),
        (with_person(methods=(replace(SMS, disabled_reason="replied STOP"),)), "replied STOP"),
    ],
)
def test_who_cannot_be_reached_any_more_is_said(directory: Directory, reason: str) -> None:
    """What was taken away after the page was queued is a failure with its reason, never a wrong number."""
    assert to(directory=directory) == NoRoute(reason)


@pytest.mark.parametrize("kind", DeliveryKind)
def test_only_a_code_goes_to_what_nobody_verified(kind: DeliveryKind) -> None:
    """And none to what is off or removed (S-15)."""
    unverified = replace(SMS, verified=False)
    went = Route("+12025550101", "ana", 7)
    refused = NoRoute("this contact method is not verified")
    code = kind is DeliveryKind.VERIFICATION
    assert to(kind=kind, directory=with_person(methods=(unverified,))) == (went if code else refused)
    off = replace(unverified, disabled_reason="replied STOP")
    assert to(kind=kind, directory=with_person(methods=(off,))) == NoRoute("replied STOP")


@pytest.mark.parametrize("kind", DeliveryKind)
def test_what_was_imported_may_be_paged_and_told_nothing_else(kind: DeliveryKind) -> None:
    """Whether a page goes there, the steps of the person have decided."""
    imported = replace(SMS, verified=False, verified_by=IMPORTED)
    pages = {DeliveryKind.PAGE, DeliveryKind.RESPONDER, DeliveryKind.VERIFICATION}
    found = to(kind=kind, directory=with_person(methods=(imported,)))
    assert isinstance(found, Route) is (kind in pages)


def test_a_code_is_called_out_at_the_number_of_the_method_for_texts() -> None:
    """The delivery says how, the method where: a landline hears its code."""
    texts = with_person(methods=(replace(SMS, verified=False),))
    called = to(kind=DeliveryKind.VERIFICATION, method=Method.VOICE, directory=texts)
    assert called == Route("+12025550101", "ana", 7)


def test_a_message_without_a_method_takes_the_usable_one_of_its_kind() -> None:
    """A line for a person names the kind only."""
    broken = replace(SMS, id=8, disabled_reason="replied STOP")
    directory = with_person(methods=(broken, SMS))
    assert to(directory=directory, method_id=None) == Route("+12025550101", "ana", 7)
    assert isinstance(to(directory=with_person(methods=(broken,)), method_id=None), NoRoute)


def test_channels_are_the_named_one_the_services_or_that_of_whoever_runs_midwatch() -> None:
    """A line without an address goes where the service has its card; an alarm to the ops channel."""
    say = {"method": Method.CHANNEL, "person_id": None}
    assert to(**say, address="#war-room", channel="#payments") == Route("#war-room")
    assert to(**say, channel="#payments") == Route("#payments")
    assert to(**say) == NoRoute("the service has no channel", quiet=True)
    alarm = {**say, "address": "ops", "incident_id": None, "kind": DeliveryKind.OPS}
    assert to(**alarm, ops="#ops") == Route("#ops")
    assert to(**alarm) == NoRoute("no ops channel is set", quiet=True)


def test_urls_are_named_by_their_place_in_the_settings() -> None:
    """The row holds an index, since a URL holds a secret; `all` is every one of them."""
    url = {"method": Method.URL, "person_id": None}
    assert to(**url, address="1") == Route("json://b")
    assert to(**url, address="all") == Route("json://a json://b")
    assert isinstance(to(**url, address="2"), NoRoute)
    assert to(**url, address="all", directory=replace(KNOWN, fallback_urls=())) == NoRoute(
        "no fallback URL is set", quiet=True
    )
