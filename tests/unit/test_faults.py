"""The catalogue of faults is whole, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CATALOGUE = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
TIME_OF_THE_DATABASE = re.compile(
    r"func\.now\b|CURRENT_TIMESTAMP|clock_timestamp|statement_timestamp|\bNOW\(\)"
)


def proofs_in(file: Path) -> set[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, functions)}


def test_every_test_that_the_catalogue_names_exists() -> None:
    """A proof that was renamed or removed is missed."""
    named = re.findall(r"`([a-z0-9_]+/test_\w+\.py)::(test_\w+)`", CATALOGUE)
    assert len(named) > 60
    missing = []
    for file, test in named:
        path = ROOT / "tests" / file
        if not path.exists() or test not in proofs_in(path):
            missing.append(f"{file}::{test}")
    assert missing == []


def test_no_fault_is_left_out() -> None:
    """F-01 to F-66, the security rows of what reaches people, and B039 to B118 each have their row."""
    rows = re.findall(r"^\| ([FBS]-?\d+) \|", CATALOGUE, re.MULTILINE)
    faults = [f"F-{n:02}" for n in range(1, 67)]
    harm = [f"S-{n:02}" for n in (3, 4, 9, 10, *range(13, 19))]
    learned = [f"B{n:03}" for n in range(39, 119)]
    assert rows == [*faults, *harm, *learned]


def test_no_statement_asks_the_database_for_the_time() -> None:
    """Due times and leases come from one clock; only the measuring of the skew reads the other (F-22)."""
    files = [*(ROOT / "engine").rglob("*.py"), *(ROOT / "bot").rglob("*.py")]
    asking = {str(file.relative_to(ROOT)) for file in files if TIME_OF_THE_DATABASE.search(file.read_text())}
    assert asking <= {"engine/checks.py"}
