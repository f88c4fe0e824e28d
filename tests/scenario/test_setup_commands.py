"""The command line on a new install: configure, look, answer; plain sentences and exit codes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import structlog

from bot.__main__ import COMMANDS, _run
from bot.settings import load
from engine.clock import SystemClock
from engine.db import Database, Tx
from engine.models import ORG, DeliveryKind, DeliveryStatus, Method, NewDelivery
from engine.store import deliveries
from tests.servers import database_url, new_database

DEMO = Path(__file__).parents[2] / "bot" / "demo.yaml"


class Terminal:
    """Types commands, in a directory of its own, and reads what they write."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.code = 0
        self.errors = ""

    def __call__(self, *arguments: str) -> str:
        self._capsys.readouterr()
        self.code = _run(arguments)
        written = self._capsys.readouterr()
        self.errors = written.err
        return written.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Terminal]:
    monkeypatch.chdir(tmp_path)
    for name in ("MIDWATCH_DATABASE_URL", "MIDWATCH_SECRET_KEY", "MIDWATCH_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield Terminal(capsys)
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def configured(terminal: Terminal) -> Terminal:
    terminal("apply", str(DEMO))
    assert terminal.code == 0, terminal.errors
    return terminal


def test_a_new_install_is_configured_by_one_file(terminal: Terminal, tmp_path: Path) -> None:
    """apply makes the tables, the secret key and the directory; a second time changes nothing."""
    assert terminal("export").startswith("people: []")
    assert "8 applied." in terminal("apply", str(DEMO))
    assert (tmp_path / "data" / "secret.key").exists()
    assert terminal("apply", str(DEMO)) == "nothing to change\n"
    assert terminal.json("apply", str(DEMO)) == {"applied": True, "changes": [], "left": []}


def test_what_is_exported_can_be_applied(
    configured: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """export writes a file that changes nothing when it is applied, also from standard input."""
    exported = configured("export")
    (tmp_path / "again.yaml").write_text(exported)
    assert configured("apply", "again.yaml") == "nothing to change\n"
    monkeypatch.setattr(sys, "stdin", StringIO(exported))
    assert configured("apply", "-") == "nothing to change\n"


def test_every_mistake_of_the_file_is_written_and_nothing_applied(terminal: Terminal, tmp_path: Path) -> None:
    """Each mistake is a line on standard error; the exit code says that the input was wrong."""
    (tmp_path / "bad.yaml").write_text("people: [{name: ana}]\nfallback: [{person: bob}]\n")
    assert terminal("apply", "bad.yaml") == ""
    assert terminal.code == 2
    assert [line.split(": ")[:2] for line in terminal.errors.splitlines()[-2:]] == [
        ["bad.yaml", "people[1]"],
        ["bad.yaml", "fallback[1].person"],
    ]
    assert terminal.json("incidents") == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("people: [", "bad.yaml: line 1, column 10: not YAML"),
        ("- ana", "bad.yaml: must be a mapping"),
        ("", "bad.yaml: is empty: write people, schedules,"),
        ("# nothing yet\n", "bad.yaml: is empty"),
    ],
)
def test_a_file_that_says_nothing_is_a_mistake(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, mistake: str
) -> None:
    """What is no YAML, no mapping or nothing at all is told with the name of the file that was given."""
    (tmp_path / "bad.yaml").write_text(text)
    terminal("apply", "bad.yaml")
    assert terminal.code == 2
    assert mistake in terminal.errors
    monkeypatch.setattr(sys, "stdin", StringIO(text))
    terminal("apply", "-", "--dry-run")
    assert mistake.replace("bad.yaml", "standard input") in terminal.errors


def test_who_is_on_call_is_shown_for_people_and_for_scripts(configured: Terminal) -> None:
    """who names each schedule's person, until when and who is next; --json is JSON."""
    shown = configured("who", "--at", "2026-03-02T10:00:00Z")
    assert shown == "There is no schedule yet. Write one into midwatch.yaml and run: midwatch apply\n"
    rows = configured.json("who")
    assert [row["schedule"] for row in rows] == ["payments-primary", "payments-secondary"]
    on_call, following = rows[0]["people"][0], rows[0]["next_people"][0]
    assert {on_call, following} == {"ana", "ben"}
    text = configured("who", "payments-primary")
    assert text.startswith(f"payments-primary\n  {on_call}, since ")
    assert f"then {following}" in text
    assert "payments-secondary" not in text
    assert configured("who", "payments") == configured("who")


def test_an_override_says_what_it_did(configured: Terminal) -> None:
    """override puts somebody on call, says instead of whom, and who sees it."""
    on_call = configured.json("who", "payments-primary")[0]["people"]
    said = configured("override", "@cho", "2h", "--schedule", "payments-primary")
    assert said.startswith(f"cho is on call on payments-primary instead of {on_call[0]} for 2h, until ")
    assert configured.json("who", "payments-primary")[0]["people"] == ["cho"]
    made = configured.json("override", "ana", "30m", "--schedule", "payments-secondary")
    assert made["override"]["schedule_id"] > 0


def test_maintenance_is_started_listed_and_ended(configured: Terminal) -> None:
    """Of a service or of all, for how long and why; nothing on is said with how to start."""
    assert "midwatch maintenance start SERVICE 2h" in configured("maintenance", "list")
    said = configured("maintenance", "start", "checkout", "2h", "--reason", "new switches")
    assert said.startswith("Nobody is paged for checkout for 2h, until ")
    assert configured.json("maintenance", "start", "all", "30m")["service"] is None
    listed = configured("maintenance", "list").splitlines()
    assert [line.split("  ")[0] for line in listed] == ["checkout", "all services"]
    assert listed[0].endswith("new switches")
    assert configured("maintenance", "end", "checkout").startswith("The maintenance of checkout is over.")
    assert configured("maintenance", "end", "checkout").startswith("No maintenance of checkout is on")
    assert [window["id"] for window in configured.json("maintenance", "list")] == [2]


def test_dead_letters_are_listed_sent_again_and_cleared(configured: Terminal) -> None:
    """By cause or each; one, all alike or all; which must be said."""
    assert configured("dead", "list") == "No dead letters.\n"
    first, second, third = asyncio.run(_given_up("no such number", "no such number", "a landline"))
    by_cause = configured("dead", "list").splitlines()
    assert [line.split()[0] for line in by_cause[:2]] == [str(third), str(second)]
    assert by_cause[1].endswith("no such number  2 of this cause")
    assert by_cause[2].startswith("3 in all.")
    assert [one["id"] for one in configured.json("dead", "list")] == [third, second, first]
    assert len(configured("dead", "list", "--each").splitlines()) == 3
    assert configured("dead", "retry", str(first), "--alike") == "2 queued again.\n"
    assert configured.json("dead", "clear", "--all") == {"done": 1, "left": {}}
    configured("dead", "retry")
    assert (configured.code, "or --all" in configured.errors) == (2, True)
    configured("dead", "retry", str(first))
    assert (configured.code, "it is queued" in configured.errors) == (1, True)


async def _given_up(*reasons: str) -> list[int]:
    """Notices that died, as a running Midwatch would have left them."""
    database, now = Database(load(os.environ).database_url), SystemClock().now()

    async def unit(tx: Tx) -> list[int]:
        ids = []
        for number, reason in enumerate(reasons):
            new = NewDelivery(None, DeliveryKind.NOTICE, Method.SMS, f"n:{number}", now)
            ((made, _),) = await deliveries.queue(tx, ORG, [new], now)
            await deliveries.set_status(tx, made, DeliveryStatus.DEAD, reason, now)
            ids.append(made)
        return ids

    try:
        return await database.write(unit)
    finally:
        await database.close()


def test_a_key_is_written_alone_so_that_scripts_can_take_it(configured: Terminal) -> None:
    """key create writes the key on standard output and everything else beside it."""
    made = configured("key", "create", "checkout")
    assert made.startswith("mwk_")
    assert made.count("\n") == 1
    assert "Shown once" in configured.errors
    assert configured.json("key", "create", "checkout", "--value", "old-key")["key"] == "old-key"
    assert len(configured.json("key", "list")) == 2
    assert configured("key", "revoke", "1") == "Key 1 is revoked.\n"
    assert made.strip() not in configured("key", "list")
    assert configured("token", "create", "laptop", "--person", "ana").startswith("mwt_")
    assert [(t["name"], t["person"]) for t in configured.json("token", "list")] == [("laptop", "ana")]
    assert configured("token", "revoke", "1") == "Token 1 is revoked.\n"


def test_a_key_can_be_given_on_standard_input(configured: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--value -` keeps a key out of the list of processes."""
    monkeypatch.setattr(sys, "stdin", StringIO("taken-over\n"))
    assert configured("key", "create", "checkout", "--value", "-") == "taken-over\n"


WRONG = [
    (["override", "@bne", "2h"], 1, "There is no person 'bne'; did you mean 'ben'?"),
    (["override", "@ben", "yesterday"], 2, "'yesterday' is no duration. Write it like 2h, 90m or 1h30m."),
    (["override", "@ben", "2h", "--schedule", "x"], 1, "There is no schedule 'x'."),
    (["who", "paymnts"], 1, "There is no schedule 'paymnts'"),
    (["override", "ana", "2h"], 2, "Say which schedule: payments-primary, payments-secondary."),
    (["override", "ana", "2h", "--schedule", "payments"], 2, "'payments' can be any of payments-primary,"),
    (["why", "42"], 1, "There is no incident #42."),
    (["who", "--at", "noon"], 2, "'noon' is no time."),
    (["key", "create", "chekout"], 1, "There is no service 'chekout'. There are: checkout."),
    (["key", "revoke", "99"], 1, "There is no key 99"),
    (["token", "create", "x", "--person", "bob"], 1, "There is no person 'bob'."),
    (["ack", "42"], 1, "There is no incident #42."),
    (["merge", "42", "41"], 1, "There is no incident #42."),
    (["unmerge", "42"], 1, "There is no incident #42."),
    (["maintenance", "start", "chekout", "2h"], 1, "There is no service 'chekout'"),
    (["maintenance", "start", "checkout", "25h"], 2, "A maintenance window lasts 24 hours at most."),
    (["ack"], 2, "requires an argument"),
    (["ack", "x"], 2, "Invalid value"),
    (["incidents", "--status", "open"], 2, "A status is one of triggered, acknowledged"),
    (["apply", "no-such.yaml"], 2, "There is no file no-such.yaml."),
    (["apply", "."], 2, "cannot be read"),
    (["nonsense"], 2, 'Unknown command "nonsense"'),
    (["export", "nope"], 2, "'nope' is more than this command takes; --help shows what it does take."),
]


@pytest.mark.parametrize(("arguments", "code", "sentence"), WRONG, ids=[" ".join(a) for a, _, _ in WRONG])
def test_what_cannot_be_done_is_one_sentence(
    configured: Terminal, arguments: list[str], code: int, sentence: str
) -> None:
    """No traceback; 2 for wrong input, 1 for what is not there."""
    assert configured(*arguments) == ""
    assert configured.code == code
    assert sentence in configured.errors
    assert configured.errors.count("\n") == 1


def test_wrong_settings_are_told_all_at_once(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped setting stops every command with the right name."""
    monkeypatch.setenv("MIDWATCH_DATABSE_URL", "x")
    monkeypatch.setenv("MIDWATCH_BIND", "x")
    terminal("who")
    assert terminal.code == 2
    assert "did you mean MIDWATCH_DATABASE_URL?" in terminal.errors
    assert "MIDWATCH_BIND: must be an address" in terminal.errors


@pytest.mark.parametrize("command", ["who", "migrate", "run"])
def test_a_database_that_is_away_is_one_sentence(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Nobody listening is said with the setting and what to run, without a traceback and the password."""
    monkeypatch.setenv("MIDWATCH_DATABASE_URL", "postgresql://midwatch:hunter2@127.0.0.1:1/x")
    monkeypatch.setenv("MIDWATCH_SECRET_KEY", "0123456789abcdef")
    terminal(command)
    assert terminal.code == 1
    assert "Traceback" not in terminal.errors
    assert "hunter2" not in terminal.errors
    assert terminal.errors.splitlines()[-1] == (
        "The database cannot be used: nobody listens at its address. "
        "See MIDWATCH_DATABASE_URL, or run: midwatch doctor"
    )


def test_a_database_that_is_not_there_is_told_by_each_command(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, postgresql_server: str
) -> None:
    """PostgreSQL that answers and has no such database: the reason, the setting, and no name of a class."""
    monkeypatch.setenv("MIDWATCH_DATABASE_URL", database_url(postgresql_server, "nobody_made_it"))
    monkeypatch.setenv("MIDWATCH_SECRET_KEY", "0123456789abcdef")
    for command in (["migrate"], ["migrate", "--check"], ["run"], ["apply", str(DEMO), "--dry-run"]):
        terminal(*command)
        assert terminal.code == 1
        assert "The database cannot be used: there is no database of that name." in terminal.errors, command
    assert "database: cannot be used: there is no database of that name\n" in terminal("doctor")
    assert terminal.errors == ""


def test_a_dry_run_makes_no_tables(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, postgresql_server: str
) -> None:
    """An empty PostgreSQL is as empty after it, and no key is asked for."""
    name = asyncio.run(new_database(postgresql_server))
    monkeypatch.setenv("MIDWATCH_DATABASE_URL", database_url(postgresql_server, name))
    assert "+ service checkout" in terminal("apply", str(DEMO), "--dry-run")
    assert terminal.errors.startswith("The database has no tables yet, and a dry run makes none")
    terminal("migrate", "--check")
    assert terminal.code == 1


def test_the_doctor_writes_its_report_and_nothing_else(
    configured: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another key there is one problem with it, and no line of a log beside the report."""
    monkeypatch.setenv("MIDWATCH_SECRET_KEY", "another key than that of the file")
    report = configured("doctor")
    assert configured.errors == ""
    assert report.count("problem  ") == 2, report  # the key, and that nothing is set up
    assert "9 of 9 addresses were written with another key" in report
    assert "cannot be reached by anything" not in report


def test_what_only_looks_leaves_nothing_behind(terminal: Terminal, tmp_path: Path) -> None:
    """In an empty directory a check, a dry run and the doctor make no database and no key, and say so."""
    terminal("migrate", "--check")
    assert (terminal.code, terminal.errors) == (
        1,
        "There is no database yet: data/midwatch.sqlite3 is not there. Run: midwatch migrate\n",
    )
    assert "+ service checkout" in terminal("apply", str(DEMO), "--dry-run")
    assert "no database yet (data/midwatch.sqlite3), and a dry run makes none" in terminal.errors
    assert terminal.json("apply", str(DEMO), "--dry-run")["applied"] is False
    assert "there is none yet: data/midwatch.sqlite3" in terminal("doctor")
    assert "secret key" not in terminal.errors
    assert list(tmp_path.iterdir()) == []


def test_migrate_may_be_the_first_command(terminal: Terminal) -> None:
    """The tables come first and the key with the first thing that is encrypted: no command is locked out."""
    assert terminal("migrate") == "The database is up to date.\n"
    assert terminal("migrate", "--check") == "The database is up to date.\n"
    assert terminal.code == 0
    assert "up to date" in terminal("doctor")
    assert "8 applied." in terminal("apply", str(DEMO))
    assert "Made a secret key in data/secret.key" in terminal.errors
    assert terminal.json("who")[0]["people"]


def test_a_dry_run_on_tables_without_anything_makes_no_key(terminal: Terminal, tmp_path: Path) -> None:
    """Nothing is encrypted by it, so no key is made."""
    terminal("migrate")
    assert "+ service checkout" in terminal("apply", str(DEMO), "--dry-run")
    assert terminal.code == 0, terminal.errors
    assert not (tmp_path / "data" / "secret.key").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(terminal: Terminal, command: str) -> None:
    """--help of each command shows its usage and one sentence, and does nothing."""
    shown = terminal(command, "--help")
    assert f"Usage: midwatch {command}" in shown
    assert COMMANDS[command][1] in shown
    assert terminal.code == 0


def test_the_coming_weeks_are_written_into_a_file(configured: Terminal, tmp_path: Path) -> None:
    """A PNG, and a line that says where it is."""
    file = tmp_path / "weeks.png"
    said = configured("who", "payments-primary", "--picture", str(file))
    assert (configured.code, said) == (0, f"The coming weeks of payments-primary are in {file}.\n")
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--picture", "a.png"], "Say of which schedule"),
        (["paymnts-primary", "--picture", "a.png"], "payments-primary"),
        (["payments-primary", "--picture", "a.png", "--at", "2026-12-24T18:00"], "leave out --at"),
        (["payments-primary", "--picture", "nowhere/a.png"], "nowhere/a.png"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_sentence(
    configured: Terminal,
    tmp_path: Path,
    arguments: list[str],
    said: str,
) -> None:
    """Which schedule, which name, which time, which folder; and no file is left behind."""
    configured("who", *arguments)
    assert configured.code != 0
    assert said in configured.errors
    assert list(tmp_path.glob("**/*.png")) == []
