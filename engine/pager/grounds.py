"""Why a level pages whom it pages: the version of the policy, and who is on call by which turn or override.

Pure. Kept with the timeline entry of the level, since schedules and names may be others by the time
somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from engine.directory import Directory, Policy, Target, TargetKind
from engine.escalation import Decision
from engine.escalation.fate import PageFallback, PageLevel
from engine.schedule import on_call

GROUNDS: Final = "grounds"  # in the detail of a timeline entry
MOST: Final = 20  # of one level: a policy may name hundreds of people


class Grounds:
    """At one instant; each level of a policy is put into words once, however many incidents are at it."""

    def __init__(self, directory: Directory, now: datetime) -> None:
        self._directory = directory
        self._now = now
        self._known: dict[tuple[int, int], tuple[str, ...]] = {}

    def of(self, decision: Decision, policy: Policy | None, chain: Sequence[object]) -> tuple[str, ...]:
        """Nothing for a decision that pages nobody."""
        for effect in decision.effects:
            if isinstance(effect, PageLevel) and policy is not None and effect.level >= 0:
                return self._level(policy, effect.level)
            if isinstance(effect, PageLevel):
                return tuple(f"{self._name(one)} was asked for by hand" for one in effect.people)
            if isinstance(effect, PageFallback):
                links = min(effect.links, len(chain))
                return (f"the fallback chain, {links} of its {len(chain)} links",)
        return ()

    def _level(self, policy: Policy, level: int) -> tuple[str, ...]:
        asked = (policy.version_id, level)
        if asked not in self._known:
            targets = policy.levels[level].targets
            rung = f"level {level + 1} of {len(policy.levels)}"
            named = f"policy {policy.name} in version {policy.version_id}, {rung}"
            said = [named, *(word for target in targets[:MOST] for word in self._target(target))]
            more = [f"and {len(targets) - MOST} more"] if len(targets) > MOST else []
            self._known[asked] = (*said, *more)
        return self._known[asked]

    def _target(self, target: Target) -> Iterator[str]:
        if target.kind is TargetKind.CHANNEL:
            yield f"{target.ref} is named by the policy"
        elif target.kind is TargetKind.PERSON:
            yield f"{self._name(int(target.ref))} is named by the policy"
        elif (named := self._directory.schedules.get(int(target.ref))) is not None:
            names = {str(person.id): person.name for person in self._directory.people.values()}
            found = on_call(named.schedule, self._now, names)
            people = " and ".join(self._name(int(one)) for one in found.people) or "nobody"
            yield f"on call on {named.name}: {people} ({found.reason})"

    def _name(self, person_id: int) -> str:
        person = self._directory.people.get(person_id)
        return person.name if person is not None else "somebody who is gone"
