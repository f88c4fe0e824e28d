"""Where a delivery goes: the address behind it, as the directory has it now.

Pure: never sends and never reads the database. An address is in clear only here and in the page.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.directory import ContactMethod, Directory
from engine.models import Delivery, DeliveryKind, Method
from engine.notify.verdict import PAGES
from engine.pager.alarm import ALL_URLS, OPS_CHANNEL


@dataclass(frozen=True, slots=True)
class Route:
    address: str
    person: str | None = None
    method_id: int | None = None


@dataclass(frozen=True, slots=True)
class NoRoute:
    """It cannot go anywhere; `quiet` when that is as configured."""

    reason: str
    quiet: bool = False


def route(
    delivery: Delivery, directory: Directory, channel: str | None, ops_channel: str | None
) -> Route | NoRoute:
    """`channel` is the one of the incident's service, for lines that go where its card is."""
    if delivery.method is Method.URL:
        return _url(delivery, directory)
    if delivery.method is Method.CHANNEL:
        return _channel(delivery, channel, ops_channel)
    return _person(delivery, directory)


def _url(delivery: Delivery, directory: Directory) -> Route | NoRoute:
    urls = directory.fallback_urls
    if delivery.address == ALL_URLS:
        return Route(" ".join(urls)) if urls else NoRoute("no fallback URL is set", quiet=True)
    index = int(delivery.address or 0)
    return (
        Route(urls[index]) if index < len(urls) else NoRoute("this fallback URL was taken from the settings")
    )


def _channel(delivery: Delivery, channel: str | None, ops_channel: str | None) -> Route | NoRoute:
    if delivery.address == OPS_CHANNEL and delivery.incident_id is None:
        return Route(ops_channel) if ops_channel else NoRoute("no ops channel is set", quiet=True)
    address = delivery.address or channel
    return Route(address) if address else NoRoute("the service has no channel", quiet=True)


def _person(delivery: Delivery, directory: Directory) -> Route | NoRoute:
    person = directory.people.get(delivery.person_id or 0)
    if person is None or not person.active:
        return NoRoute("this person is no longer here")
    method = _method(delivery, person.methods)
    if method is None:
        return NoRoute(f"this contact method ({delivery.method}) was removed")
    if not (method.usable or _may_go_unverified(delivery, method)):
        return NoRoute(method.disabled_reason or "this contact method is not verified")
    return Route(method.address, person.name, method.id)


def _may_go_unverified(delivery: Delivery, method: ContactMethod) -> bool:
    """A code must, to verify it; a page may where nothing of its person is verified."""
    if delivery.kind is DeliveryKind.VERIFICATION:
        return method.disabled_reason is None
    return delivery.kind in PAGES and method.last_resort


def _method(delivery: Delivery, methods: tuple[ContactMethod, ...]) -> ContactMethod | None:
    if delivery.method_id is None:
        return next((one for one in methods if one.kind is delivery.method and one.usable), None)
    return next((one for one in methods if one.id == delivery.method_id), None)
