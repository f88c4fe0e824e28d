"""Logs: for people on a terminal, JSON elsewhere, and secrets taken out of both.

Never decides what is logged; one processor redacts, so that a slip elsewhere stays harmless.
"""

from __future__ import annotations

import logging
import re
import sys
from asyncio import CancelledError
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final

import structlog

from engine.errors import Unavailable

NAMES: Final = re.compile(
    r"token|secret|passw|authorization|auth_key|api_key|routing_key|^key$|cookie|signature|address$|phone",
    re.IGNORECASE,
)
HIDDEN: Final = "[hidden]"

# What they find is replaced; a group named `kept` stays in front.
PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"xox[a-z]+-[\w.-]+",
        r"xapp-[\w.-]+",
        r"\bmw[ktc]_[\w-]+",
        r"(?P<kept>\bAC[0-9a-f]{32}:)[^\s@\"'/]+",
        r"(?P<kept>://(?:[^\s:/@\"']*:)?)[^\s@\"'/]+(?=@)",
        r"(?P<kept>\b(?:Bearer|Basic|Integration-Key)[ =:]+)[^\s,\"'}]+",
        r"(?P<kept>\bToken(?:[ :]+token)? ?= ?)[^\s,\"'}]+",
        # Why so choosy: "a bot token: it begins with xoxb-" and `midwatch token list` are words.
        r"(?P<kept>\bToken[ :]+)(?=\S*\d|\S{20})[^\s,\"'}]{6,}",
        r"(?P<kept>\bauthorization[\"']?\s*[:=]\s*[\"']?)[^\"'\r\n,}]+",
        r"(?P<kept>[?&](?:[\w-]*(?:key|token|secret|passw\w*|signature)|auth|code|sig)=)[^&\s#\"']+",
        r"(?P<kept>/webhooks/(?!twilio/)[a-z_-]+/)[^/?\s\"']+",
        r"(?P<kept>/(?:calendar|answer|response|commands|actions)/)[^?\s\"']+",
        r"(?<![\w.:-])(?:\+|%2B)[1-9]\d{6,14}(?!\d)",
    )
)

# What our own sentences name as an example; nobody has these numbers, and no server this name.
EXAMPLES: Final = re.compile(
    r"(?<![\w.+@:/-])(?:\+12025550143|\+12025550100|smtps://user:password@mail\.example\.com)(?![\w.@:/-]*\w)"
)


def set_up_logs(*, json: bool | None = None, path: Path | None = None, level: int = logging.INFO) -> None:
    """To standard error, or to the end of a file; JSON lines when that is no terminal."""
    handler = logging.StreamHandler(sys.stderr) if path is None else logging.FileHandler(path, delay=True)
    plain = (path is None and sys.stderr.isatty()) if json is None else not json
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        *([shorten] if level > logging.DEBUG else []),
        structlog.processors.format_exc_info,
        redact,
    ]
    last: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=True) if plain else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # Why: each tick of a sweep that overlaps is a warning there, and each request of a client an info.
    for name, least in (
        ("apscheduler", logging.ERROR),
        ("twilio", logging.WARNING),
        ("alembic", logging.WARNING),
    ):
        logging.getLogger(name).setLevel(max(level, least))


def shorten(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """That the database is away, or that we are told to stop, is a line, whoever logs it: a traceback of
    each loop that meets it would tell nothing."""
    error = _error_of(event)
    if isinstance(error, Unavailable | CancelledError):
        del event["exc_info"]
        event.setdefault("error", type(error.__cause__ or error).__name__)
    return event


def _error_of(event: Mapping[str, Any]) -> BaseException | None:
    given = event.get("exc_info")
    if isinstance(given, BaseException):
        return given
    return given[1] if isinstance(given, tuple) else sys.exc_info()[1] if given else None


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The event without secrets: by the names of fields, and by what secrets look like."""
    for name, value in event.items():
        # Why: the record that structlog itself passes along is needed whole by the formatter.
        if not name.startswith("_"):
            event[name] = HIDDEN if NAMES.search(name) and value else _clean(value)
    return event


def redact_text(text: str) -> str:
    for pattern in PATTERNS:
        text = pattern.sub(lambda match: match.groupdict().get("kept", "") + HIDDEN, text)
    return text


def redact_sentence(text: str) -> str:
    """The same for what people are told: the examples that stand in it are left."""
    kept = [*EXAMPLES.findall(text), ""]
    parts = zip(EXAMPLES.split(text), kept, strict=True)
    return "".join(redact_text(part) + example for part, example in parts)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if NAMES.search(str(key)) and item else _clean(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return redact_text(str(value))
