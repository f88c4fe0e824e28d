"""Warnings about contact rules: what can never run, and what would leave somebody unreached.

Pure; never changes a rule. An address is not named: the kind of method is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from engine.directory import Directory, Person
from engine.models import Method, Urgency


@dataclass(frozen=True, slots=True)
class RuleWarning:
    """`text` is a whole sentence for the person; `method_id` the contact method it is about, if one."""

    text: str
    urgency: Urgency | None = None
    method_id: int | None = None


def warnings(
    person: Person, directory: Directory, ways: Collection[Method] | None = None
) -> tuple[RuleWarning, ...]:
    return ()
