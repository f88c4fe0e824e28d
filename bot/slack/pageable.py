"""What `/page` names: a service, or a schedule that a service pages first; what is wrong; who is paged.

Never looks anything up by itself, and never chooses among several services.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.slack import escape
from bot.slack.names import no_such
from engine.directory import Directory, NamedSchedule, Person, Service
from engine.errors import BadCommand
from engine.models import IncidentView, Urgency
from engine.pager.ladder import Resolver

Named = Service | NamedSchedule


def service_and_title(said: str, directory: Directory) -> tuple[int, str]:
    """The longest name that the words begin with, of a service before a schedule, and the rest."""
    words = said.replace('"', " ").split()
    if not words:
        raise BadCommand("Name the service and what is wrong: `/page payments Disk full on db1`.")
    known: list[Named] = [*directory.services.values(), *directory.schedules.values()]
    named = _named(words, known)
    if named is None:
        raise no_such("service or schedule", words[0], [one.name for one in known])
    title = " ".join(words[len(named.name.split()) :])
    if not title:
        raise BadCommand(f"Say what is wrong: `/page {escape.line(named.name, 60)} Disk full on db1`.")
    service = named if isinstance(named, Service) else _of_schedule(named, directory)
    return service.id, title


def paged_first(view: IncidentView, directory: Directory, now: datetime) -> list[Person]:
    """The people of the first level that holds anything; of channels only, that is nobody."""
    service = directory.services.get(view.service_id)
    policy = directory.policies.get(service.policy_id) if service and service.policy_id else None
    if policy is None or view.urgency is Urgency.NONE:
        return []
    rungs = Resolver(directory, view.urgency, now).ladder(policy, None).rungs
    first = next((rung.people for rung in rungs if rung.people or rung.channels), ())
    return [directory.people[one] for one in first]


def _named(said: Sequence[str], known: Sequence[Named]) -> Named | None:
    """By whole words, in any case; of two equal names the first."""
    folded = [word.casefold() for word in said]
    for one in sorted(known, key=lambda each: -len(each.name.split())):
        name = one.name.casefold().split()
        if folded[: len(name)] == name:
            return one
    return None


def _of_schedule(schedule: NamedSchedule, directory: Directory) -> Service:
    """The service that pages it first: its policy says what happens when nobody there answers."""
    first = {
        policy.id for policy in directory.policies_paging(schedule.id) if policy.levels[0].pages(schedule.id)
    }
    found = [one for one in directory.services.values() if one.policy_id in first]
    name = escape.code(schedule.name, 60)
    if not found:
        raise BadCommand(
            f"No service pages {name} first, so nobody there can be paged by it yet. "
            "Name a service, or name it on the first level of a policy in `midwatch.yaml`."
        )
    if len(found) > 1:
        which = " or ".join(f"`/page {escape.line(one.name, 60)} …`" for one in found)
        raise BadCommand(f"{name} is paged by several services. Say of which this is about: {which}.")
    return found[0]
