"""A soak that fails for a traceback says which, and nothing of what was sent."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

from engine.db import async_url
from tests.soak.tracebacks import tracebacks

SECRET = "+12025550143"


def wrong() -> str:
    """The traceback of an error with a cause that was raised in the engine; both tell the secret."""
    try:
        try:
            async_url(f"mysql://{SECRET}")
        except ValueError as error:
            raise KeyError(f"{SECRET}\nof two lines") from error
    except KeyError:
        return traceback.format_exc()
    raise AssertionError


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as same:
        return same


def test_a_traceback_is_named_by_its_event_its_kinds_and_its_place(tmp_path: Path) -> None:
    """The report names them, and shows no text of an error."""
    log = tmp_path / "process-0.log"
    events = [
        {"event": "page.sent", "text": "Traceback (most recent call last):"},
        {"event": "sweep.failed\nof two lines", "text": SECRET, "exception": wrong()},
    ]
    log.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    (told,) = tracebacks(log)
    assert told.startswith("process-0.log: sweep.failed: ValueError at engine/db.py:")
    assert told.endswith(" async_url, KeyError")


def test_what_the_interpreter_says_by_itself_is_found_too(tmp_path: Path) -> None:
    """An error before the log is set up, or in the middle of it, and a line that a kill cut off."""
    log = tmp_path / "process-1.log"
    log.write_text(f'{{"event": "a"}}\n{wrong()}{{"event": "b", "exception": "Traceb')
    (told,) = tracebacks(log)
    assert told.startswith("process-1.log: not logged: ValueError at engine/db.py:")


def test_each_error_of_a_group_is_named(tmp_path: Path) -> None:
    """What several tasks raised together is one event with all of their kinds."""
    log = tmp_path / "process-0.log"
    try:
        raise ExceptionGroup("several", [raised(OSError(SECRET)), raised(ValueError(SECRET))])
    except ExceptionGroup:
        text = traceback.format_exc()
    log.write_text(json.dumps({"event": "watch.failed", "exception": text}) + "\n")
    assert tracebacks(log) == ["process-0.log: watch.failed: ExceptionGroup, OSError, ValueError"]
