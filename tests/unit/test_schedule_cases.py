"""The golden cases: a schedule, a question, and the one right answer."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from engine.schedule import Schedule, dump_schedule, on_call, parse_schedule, people_at, shifts

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "cases" / "schedules.json").read_text(encoding="utf-8")
)


def _pieces(schedule: Schedule, ask: dict[str, Any]) -> list[dict[str, Any]]:
    a, b = datetime.fromisoformat(ask["from"]), datetime.fromisoformat(ask["to"])
    return [{"from": s.start, "to": s.end, "on": list(s.people)} for s in shifts(schedule, a, b)]


def test_no_golden_case_is_missing() -> None:
    """All cases of the collection are asked, each under a name of its own."""
    assert len({case["id"] for case in CASES}) == 352


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['family']}-{case['id']}")
def test_the_resolver_gives_the_one_right_answer(case: dict[str, Any]) -> None:
    """Whoever the case says is on call, at each instant or in each piece of the window, is."""
    schedule = parse_schedule(case["schedule"])
    for expected in case["expect"]:
        if "at" in expected:
            assert people_at(schedule, datetime.fromisoformat(expected["at"])) == tuple(expected["on"])
    if "from" in case["ask"]:
        wanted = [
            {"from": datetime.fromisoformat(e["from"]), "to": datetime.fromisoformat(e["to"]), "on": e["on"]}
            for e in case["expect"]
        ]
        assert _pieces(schedule, case["ask"]) == wanted


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['family']}-{case['id']}")
def test_a_schedule_written_out_and_read_again_is_the_same(case: dict[str, Any]) -> None:
    """Nothing is lost between the mapping and the schedule, and the result is plain JSON."""
    schedule = parse_schedule(case["schedule"])
    assert parse_schedule(json.loads(json.dumps(dump_schedule(schedule)))) == schedule


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['family']}-{case['id']}")
def test_every_answer_has_a_reason(case: dict[str, Any]) -> None:
    """The reason begins with where the answer comes from, and nobody is never left unexplained."""
    schedule = parse_schedule(case["schedule"])
    ask = case["ask"]
    for at in ask.get("at") or [ask["from"]]:
        answer = on_call(schedule, datetime.fromisoformat(at))
        assert answer.reason.split()[0] in ("layer", "override:", "fallback:", "nobody:")
        if not answer.people:
            assert answer.reason.startswith("nobody: ")
