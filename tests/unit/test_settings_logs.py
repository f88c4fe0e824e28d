"""Logs: secrets are taken out wherever they are planted."""

from __future__ import annotations

import json
import logging
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog

from bot.logs import HIDDEN, redact_sentence, redact_text, set_up_logs
from bot.settings import load
from engine.config.parse import parse_config
from engine.errors import BadConfig, Unavailable

PLANTED = [
    "xoxb-123-hunter2",
    "xoxe.xoxp-1-hunter2",
    "xapp-1-A0-hunter2",
    "AC" + "0" * 32 + ":hunter2",
    "postgresql://midwatch:hunter2@db/midwatch",
    "https://:hunter2@host/",
    "https://hunter2@host/4",
    "GET /x?access_token=hunter2&page=1",
    "GET /x?page=1&password=hunter2",
    "Authorization: Bearer hunter2",
    "{'Authorization': 'Token token=hunter2', 'Accept': '*/*'}",
    "Basic hunter2==",
    "Integration-Key hunter2",
    "POST /webhooks/alertmanager?key=hunter2&x=1",
    "POST /webhooks/alertmanager/hunter2?x=1",
    "GET /calendar/hunter2.ics",
    "https://hooks.slack.com/commands/T1/2/hunter2",
    "to +12025550143",
    "To=%2B12025550143&x=1",
    "mwk_hunter2",
    "token: hunter2",
    "token=hunter",
    "Token 2025550143",
]


@pytest.fixture
def _logs() -> Iterator[None]:
    handlers, level = list(logging.getLogger().handlers), logging.getLogger().level
    yield
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    structlog.reset_defaults()


def shows(text: str) -> bool:
    return "hunter2" in text or "2025550143" in text


@pytest.mark.parametrize("text", PLANTED)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    """Tokens, passwords in URLs, headers, keys in queries and paths, and phone numbers are not shown."""
    cleaned = redact_text(f"before {text} after")
    assert not shows(cleaned), cleaned
    assert HIDDEN in cleaned
    assert cleaned.startswith("before ")


@pytest.mark.parametrize(
    "text",
    [
        "POST /webhooks/twilio/sms",
        "incident 42 of checkout at 2026-03-02T09:00:00+00:00",
        "https://midwatch.example.com/v1/incidents?status=triggered",
        "mail to ana@example.com by https://mail.example.com/ana@example.com",
        "postgresql://db/midwatch",
        "1 + 1 = 2, C++17",
        "SLACK_BOT_TOKEN: must be a bot token: it begins with xoxb-",
        "There is no token 7 that could be revoked; see `midwatch token list`.",
        "Slack refuses our token (token_revoked): pages go out by the other methods.",
    ],
)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    """Paths, times and plain words come through unharmed."""
    assert redact_text(text) == text


def test_the_examples_of_our_own_sentences_are_left() -> None:
    """Whoever is told what to write sees it; a value beside it that somebody wrote stays hidden."""
    env = {
        "TWILIO_FROM": "x",
        "SMTP_URL": "x",
        "SLACK_BOT_TOKEN": "x",
        "SLACK_APP_TOKEN": "x",
        "MIDWATCH_SECRET_KEY": "x",
    }
    yaml = "people: [{name: ana, contact: {sms: x, email: x}}, {name: ben}]"
    for read in (lambda: load(env, Path("no-such.toml")), lambda: parse_config(yaml)):
        with pytest.raises(BadConfig) as caught:
            read()
        sentences = str(caught.value)
        assert len(sentences.splitlines()) >= 3
        assert redact_sentence(sentences) == sentences
    for text in PLANTED:
        if "0143" not in text:
            told = redact_sentence(f"must be like +12025550143, not {text}")
            assert told.startswith("must be like +12025550143, not ")
            assert not shows(told.removeprefix("must be like +12025550143")), told
    real = "+14155550142 or +120255501430 or smtps://user:password@mail.example.com.evil.org"
    assert redact_sentence(real) == (
        f"{HIDDEN} or {HIDDEN} or smtps://user:{HIDDEN}@mail.example.com.evil.org"
    )


@pytest.mark.parametrize("json_lines", [True, False])
@pytest.mark.usefixtures("_logs")
def test_planted_secrets_never_appear(capfd: pytest.CaptureFixture[str], json_lines: bool) -> None:
    """In a message, a field, a nested field, an error's text or another library's log: none is written."""
    set_up_logs(json=json_lines)
    log = structlog.get_logger("test")
    for text in PLANTED:
        log.info(text, note=text, nested={"list": [text, {"deep": text}], "value": Exception(text)})
        logging.getLogger("other.library").warning("sent %s", text)
        with suppress(ValueError):
            raise ValueError(text)
        try:
            raise RuntimeError(text)
        except RuntimeError:
            log.exception("failed")
    log.info(
        "named", token="hunter2", api_key="hunter2", headers={"Authorization": "hunter2"}, address="hunter2"
    )
    written = capfd.readouterr().err
    assert written.count("sent ") == len(PLANTED)
    assert not shows(written), [line for line in written.splitlines() if shows(line)][:3]


@pytest.mark.usefixtures("_logs")
def test_a_line_is_one_json_object_with_its_fields(capfd: pytest.CaptureFixture[str]) -> None:
    """Where standard error is no terminal, machines read the log."""
    set_up_logs()
    structlog.get_logger("pager").info("page.sent", incident=42, person="ana")
    (line,) = capfd.readouterr().err.splitlines()
    event = json.loads(line)
    assert event.pop("timestamp").endswith("Z")
    assert event == {
        "event": "page.sent",
        "incident": 42,
        "person": "ana",
        "logger": "pager",
        "level": "info",
    }


def fail(error: Exception, cause: Exception | None = None) -> None:
    raise error from cause


@pytest.mark.usefixtures("_logs")
def test_an_outage_of_the_database_is_a_line_whoever_logs_it(capfd: pytest.CaptureFixture[str]) -> None:
    """By our log or by a library's, with the kind of its cause and without a traceback."""
    set_up_logs()
    try:
        fail(Unavailable(), TimeoutError())
    except Unavailable as error:
        structlog.get_logger("pager").exception("loop.failed")
        structlog.get_logger("pager").error("loop.failed", exc_info=error)
        logging.getLogger("library").exception("a job failed")
        logging.getLogger("library").warning("a job failed", exc_info=error)
    events = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [event["event"] for event in events] == ["loop.failed"] * 2 + ["a job failed"] * 2
    assert {event["error"] for event in events} == {"TimeoutError"}
    assert not any("exception" in event for event in events)


@pytest.mark.usefixtures("_logs")
def test_being_told_to_stop_is_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    """A library that logs its own cancellation as an error does so without a traceback."""
    set_up_logs()
    try:
        raise CancelledError
    except CancelledError:
        logging.getLogger("library").exception("an error while closing")
    (line,) = capfd.readouterr().err.splitlines()
    assert json.loads(line)["error"] == "CancelledError"
    assert "exception" not in json.loads(line)


@pytest.mark.parametrize(("error", "level"), [(KeyError(), logging.INFO), (Unavailable(), logging.DEBUG)])
@pytest.mark.usefixtures("_logs")
def test_what_nobody_expected_shows_where(
    capfd: pytest.CaptureFixture[str], error: Exception, level: int
) -> None:
    """Any other error is logged with its traceback, and to whoever debugs an outage is too."""
    set_up_logs(level=level)
    try:
        fail(error)
    except type(error):
        structlog.get_logger("pager").exception("loop.failed")
    (line,) = capfd.readouterr().err.splitlines()
    assert "in fail" in json.loads(line)["exception"]
