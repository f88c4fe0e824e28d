"""The table of the fate: the code, its data and docs/architecture.md say the same."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import get_args

import pytest

from engine.escalation import decide
from engine.escalation import fate as f
from engine.escalation.table import TABLE
from engine.models import IncidentStatus
from tests.unit.escalations import COMMANDS, LADDER, NOW, every_fate

PAGE = (Path(__file__).parents[2] / "docs/architecture.md").read_text()
STATUSES = {status.value: status for status in IncidentStatus}
Pairs = dict[str, set[tuple[str, str]]]  # (from, to) by command


def documented() -> Pairs:
    """The rows of the table whose command has a name in code font."""
    pairs: Pairs = defaultdict(set)
    row = re.compile(r"^\| (?P<words>[^|`]+)`(?P<command>\w+)` \| (?P<origins>[^|]+) \| (?P<goals>[^|]+) \|")
    for line in PAGE.splitlines():
        if (found := row.match(line)) is None:
            continue
        origins = found["origins"].strip().split(", ")
        goals = found["goals"].strip().split(", ")
        assert set(origins) <= set(STATUSES), line
        for origin in origins:
            pairs[found["command"]] |= {(origin, origin if goal == "same" else goal) for goal in goals}
    return dict(pairs)


def drawn() -> Pairs:
    """The arrows of the diagram, by the words on them."""
    pairs: Pairs = defaultdict(set)
    for origin, goal, words in re.findall(r"^ +(\w+) --> (\w+): (.+)$", PAGE, re.MULTILINE):
        for word in words.split(", "):
            pairs[word].add((origin, goal))
    return dict(pairs)


def words_of_commands() -> dict[str, set[str]]:
    words: dict[str, set[str]] = defaultdict(set)
    for text, command in re.findall(r"^\| ([^|`]+) `(\w+)` \|", PAGE, re.MULTILINE):
        words[command].add(text)
    return dict(words)


def coded() -> Pairs:
    return {
        command.__name__: {(origin.value, goal.value) for origin, goals in moves.items() for goal in goals}
        for command, moves in TABLE.items()
    }


def test_the_page_and_the_code_have_the_same_table() -> None:
    """Each command of the page is one of the code, with the same statuses before and after."""
    assert documented() == coded()


def test_every_command_is_in_the_table() -> None:
    """No command can be asked for that the table does not know."""
    assert {command.__name__ for command in get_args(f.Command)} == set(coded())


def test_the_diagram_shows_every_move_from_one_status_to_another() -> None:
    """The arrows are the table without the rows that stay where they are."""
    arrows = {word: moves for word, moves in drawn().items() if word != "trigger"}
    expected: Pairs = {}
    for command, moves in coded().items():
        for word in words_of_commands()[command]:
            leaving = {(origin, goal) for origin, goal in moves if origin != goal}
            if leaving and word != "end of a pass":
                expected[word] = leaving
    assert arrows == expected


def test_decisions_move_exactly_where_the_table_says() -> None:
    """Every pair that the table allows happens, and no other does."""
    seen: Pairs = defaultdict(set)
    for fate in every_fate():
        for command in COMMANDS:
            if fate.status in TABLE[type(command)]:
                decision = decide(fate, command, NOW, LADDER)
                if decision.changed or decision.effects or decision.fate != fate:
                    seen[type(command).__name__].add((fate.status.value, decision.fate.status.value))
    assert dict(seen) == coded()


@pytest.mark.parametrize("status", IncidentStatus)
def test_a_refused_pair_changes_nothing_and_says_why(status: IncidentStatus) -> None:
    """Where the table does not name a status the fate stays, nothing follows, and there is a reason."""
    fates = [fate for fate in every_fate() if fate.status is status]
    assert fates
    for fate in fates:
        for command in COMMANDS:
            if status not in TABLE[type(command)]:
                decision = decide(fate, command, NOW, LADDER)
                assert (decision.fate, decision.effects, decision.changed) == (fate, (), False)
                assert status.value in decision.reason or "merged" in decision.reason


def test_whatever_is_not_done_has_a_reason() -> None:
    """No decision is without a sentence for people, done or not."""
    for fate in every_fate():
        for command in COMMANDS:
            assert decide(fate, command, NOW, LADDER).reason


def test_the_tests_that_the_page_names_exist() -> None:
    """Each path under tests/ that the page names is there."""
    root = Path(__file__).parents[2]
    named = set(re.findall(r"`(tests/[\w/.]+)`", PAGE))
    assert len(named) > 5
    assert [path for path in sorted(named) if not (root / path).exists()] == []
