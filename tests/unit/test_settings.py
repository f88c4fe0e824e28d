"""Settings: every mistake at once, no value repeated, mistyped names reported."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from bot.secret_key import to_look_only, with_secret_key
from bot.settings import FIELDS, Settings, load
from engine.errors import BadConfig

NO_FILE = Path("no-such-midwatch.toml")
SECRET = "0123456789abcdef"
SLACK = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
TWILIO = {
    "TWILIO_ACCOUNT_SID": "AC" + "0" * 32,
    "TWILIO_AUTH_TOKEN": "t",
    "TWILIO_FROM": "+12025550100",
}


def mistakes(env: dict[str, str], path: Path = NO_FILE) -> list[str]:
    with pytest.raises(BadConfig) as caught:
        load(env, path)
    return list(caught.value.mistakes)


def test_nothing_set_is_a_working_set_of_defaults() -> None:
    """Without a setting it is a SQLite file in ./data on port 8080, without Slack and phones."""
    settings = load({}, NO_FILE)
    assert (settings.database_url, settings.port) == ("sqlite:///data/midwatch.sqlite3", 8080)
    assert (settings.slack_bot_token, settings.twilio_from, settings.demo) == (None, None, False)


def test_every_setting_is_read_from_its_name() -> None:
    """Each name arrives in its field; lists by spaces or commas; an empty value is none."""
    env = {
        **SLACK,
        **TWILIO,
        "MIDWATCH_DATABASE_URL": "postgresql://midwatch:pw@db/midwatch",
        "MIDWATCH_PUBLIC_URL": "https://midwatch.example.com/",
        "MIDWATCH_SECRET_KEY": SECRET,
        "MIDWATCH_BIND": "[::1]:9000",
        "MIDWATCH_OPS_CHANNEL": "#ops",
        "MIDWATCH_ADMINS": "U012AB3CD, U012AB3CE",
        "MIDWATCH_FALLBACK_URLS": "ntfy://a,b ntfy://c, mailto://d:e@example.com",
        "MIDWATCH_HEARTBEAT_URL": "https://hc.example.com/1",
        "MIDWATCH_CALENDAR_PRIVATE": "1",
        "SLACK_SIGNING_SECRET": "s",
        "SLACK_API_URL": "http://127.0.0.1:8081/api",
        "SLACK_CLIENT_ID": "1.2",
        "SLACK_CLIENT_SECRET": "s",
        "TWILIO_API_URL": "http://127.0.0.1:8081/",
        "TWILIO_AUTH_TOKEN_OLD": "t",
        "TWILIO_SUBACCOUNTS": f"AC{'1' * 32}:t1, AC{'2' * 32}:t2",
        "SMTP_URL": "smtps://user:pw@mail.example.com",
        "MIDWATCH_SMS_FALLBACK_URL": "vonage://key:secret@from/{to}",
        "MIDWATCH_VOICE_FALLBACK_URL": "calls://key:secret@from/{to}",
        "MIDWATCH_SMS_COUNTRIES": "+49, +1",
        "MIDWATCH_SMS_PER_SECOND": "3",
        "MIDWATCH_CALLS_PER_SECOND": "0.5",
        "MIDWATCH_PHONE_PER_DAY": "250",
    }
    assert env.keys() == FIELDS.keys()
    settings = load(env, NO_FILE)
    assert settings.public_url == "https://midwatch.example.com"
    assert (settings.host, settings.port) == ("::1", 9000)
    assert settings.admins == ("U012AB3CD", "U012AB3CE")
    assert settings.fallback_urls == ("ntfy://a,b", "ntfy://c", "mailto://d:e@example.com")
    assert (settings.slack_api_url, settings.twilio_api_url) == (
        "http://127.0.0.1:8081/api/",
        "http://127.0.0.1:8081",
    )
    assert settings.sms_countries == ("+49", "+1")
    assert (settings.sms_per_second, settings.calls_per_second) == (3.0, 0.5)
    assert settings.phone_per_day == 250
    assert load(dict.fromkeys(FIELDS, ""), NO_FILE) == Settings()


def test_a_mistyped_name_is_reported_with_the_right_one() -> None:
    """Typing mistakes are told; variables of other programs are left in peace."""
    assert mistakes({"MIDWATCH_DATABSE_URL": "x", "SLACK_BOT_TOKN": "xoxb-1", "MIDWATCH_ZZZ": "1"}) == [
        "MIDWATCH_DATABSE_URL: there is no such setting; did you mean MIDWATCH_DATABASE_URL?",
        "MIDWATCH_ZZZ: there is no such setting",
        "SLACK_BOT_TOKN: there is no such setting; did you mean SLACK_BOT_TOKEN?",
    ]
    load({"SLACK_WEBHOOK_URL": "x", "TWILIO_REGION": "ie1", "MIDWATCH_DEBUG": "1", "PATH": "/bin"}, NO_FILE)


def test_every_mistake_is_told_at_once_and_no_value_is_repeated() -> None:
    """One start tells all of them, and none shows what was set."""
    env = {
        "MIDWATCH_DATABASE_URL": "mysql://root:hunter2@db/x",
        "MIDWATCH_PUBLIC_URL": "hunter2.example.com",
        "MIDWATCH_SECRET_KEY": "hunter2",
        "MIDWATCH_BIND": "hunter2",
        "MIDWATCH_ADMINS": "hunter2",
        "SLACK_BOT_TOKEN": "hunter2",
        "TWILIO_FROM": "hunter2",
        "SMTP_URL": "hunter2",
    }
    found = mistakes(env)
    assert {mistake.split(":")[0] for mistake in found} == env.keys()
    assert "hunter2" not in "\n".join(found)


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ({"SLACK_BOT_TOKEN": "xoxb-1"}, "SLACK_APP_TOKEN: is missing"),
        ({"SLACK_APP_TOKEN": "xapp-1"}, "SLACK_BOT_TOKEN: is missing"),
        ({"TWILIO_FROM": "+12025550100"}, "TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN: are missing"),
        ({"TWILIO_FROM": "+12025550100", "TWILIO_AUTH_TOKEN": "t"}, "TWILIO_ACCOUNT_SID: is missing"),
        ({"TWILIO_AUTH_TOKEN_OLD": "t"}, "TWILIO_AUTH_TOKEN_OLD: does nothing without"),
        ({"TWILIO_SUBACCOUNTS": "AC1:hunter2"}, "TWILIO_SUBACCOUNTS: must be like AC…:token"),
        ({"MIDWATCH_SECRET_KEY": "short"}, "16 characters long. Make one with: openssl rand -hex 32"),
        ({"SLACK_CLIENT_ID": "1"}, "set both or none"),
        ({"MIDWATCH_SMS_FALLBACK_URL": "vonage://k:s@from/1"}, "with {to} in place of the number"),
        ({"MIDWATCH_DATABASE_URL": "not a url"}, "MIDWATCH_DATABASE_URL: "),
        ({"MIDWATCH_BIND": "host:99999"}, "MIDWATCH_BIND: must be an address and a port"),
    ],
)
def test_what_belongs_together_is_asked_for(env: dict[str, str], sentence: str) -> None:
    """Half of a provider's settings is a mistake that names the other half."""
    assert any(sentence in mistake for mistake in mistakes(env)), mistakes(env)


def test_the_file_is_under_the_environment(tmp_path: Path) -> None:
    """midwatch.toml is read, the environment wins, and a wrong name in it is told."""
    path = tmp_path / "midwatch.toml"
    path.write_text('bind = "127.0.0.1:1"\nops_channel = "#ops"\nadmins = ["U012AB3CD"]\n')
    settings = load({"MIDWATCH_BIND": "127.0.0.1:2"}, path)
    assert (settings.port, settings.ops_channel, settings.admins) == (2, "#ops", ("U012AB3CD",))
    path.write_text("demo = true\nMIDWATCH_BIND = 'x'\nbind = 3\n")
    found = mistakes({}, path)
    assert [mistake.removeprefix(f"{path}: ") for mistake in found] == [
        "there is no setting 'MIDWATCH_BIND'; did you mean bind?",
        "there is no setting 'demo'",
        "bind: must be text, in quotes",
    ]
    path.write_text("bind = 'x'\nadmins = 3\npublic_url = 'y'\n")
    found = mistakes({"MIDWATCH_PUBLIC_URL": "y"}, path)
    assert [mistake.split(" must")[0] for mistake in found] == [
        "MIDWATCH_PUBLIC_URL:",
        f"{path}: bind:",
        f"{path}: admins:",
    ]
    path.write_bytes(b"\xff = 1")
    assert "cannot be read" in mistakes({}, path)[0]


def test_secrets_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Printing the settings shows no secret and no password in a URL."""
    env = {
        **dict.fromkeys(SLACK, "xoxb-hunter2"),
        "SLACK_APP_TOKEN": "xapp-hunter2",
        "MIDWATCH_SECRET_KEY": "hunter2" * 4,
        "MIDWATCH_DATABASE_URL": "postgresql://a:hunter2@b/c",
        "MIDWATCH_FALLBACK_URLS": "ntfy://hunter2",
        "SMTP_URL": "smtp://a:hunter2@b",
    }
    assert "hunter2" not in repr(load(env, NO_FILE))


def test_a_key_is_made_once_beside_a_new_database(tmp_path: Path) -> None:
    """The first start makes a key only the owner can read, and says so; the second start uses it."""
    settings = Settings(database_url=f"sqlite:///{tmp_path}/data/midwatch.sqlite3")
    said: list[str] = []
    first = with_secret_key(settings, said.append)
    second = with_secret_key(settings, said.append)
    assert first.secret_key == second.secret_key
    assert first.secret_key is not None
    path = tmp_path / "data" / "secret.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(said) == 1
    assert str(path) in said[0]
    assert first.secret_key.get_secret_value() not in said[0]


def written(path: Path, addresses: int) -> Settings:
    """A database with the one table that holds what is encrypted."""
    with closing(sqlite3.connect(path / "midwatch.sqlite3")) as file:
        file.execute("CREATE TABLE contact_methods (address TEXT)")
        file.executemany("INSERT INTO contact_methods VALUES (?)", [("x",)] * addresses)
        file.commit()
    return Settings(database_url=f"sqlite:///{path}/midwatch.sqlite3")


def test_no_second_key_is_made_for_a_database_that_had_one(tmp_path: Path) -> None:
    """A lost key is told, not replaced: a new one could read nothing."""
    settings = written(tmp_path, addresses=1)
    for look in (lambda: with_secret_key(settings, print), lambda: to_look_only(settings)):
        with pytest.raises(BadConfig, match="was written with one"):
            look()
    assert not (tmp_path / "secret.key").exists()


def test_a_file_that_cannot_be_read_may_have_had_a_key(tmp_path: Path) -> None:
    """What is no database is not given a new key over it."""
    (tmp_path / "midwatch.sqlite3").write_bytes(b"what is this? " * 100)
    with pytest.raises(BadConfig, match="was written with one"):
        with_secret_key(Settings(database_url=f"sqlite:///{tmp_path}/midwatch.sqlite3"), print)


def test_tables_without_an_address_were_written_with_no_key(tmp_path: Path) -> None:
    """A database that holds nothing encrypted yet gets its key then, and only from who stores something."""
    settings = written(tmp_path, addresses=0)
    assert to_look_only(settings).secret_key is not None
    assert not (tmp_path / "secret.key").exists()
    made = with_secret_key(settings, print)
    assert (tmp_path / "secret.key").exists()
    assert to_look_only(settings).secret_key == made.secret_key


def test_postgresql_wants_the_key_from_its_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes need one key, so none of them makes it up."""
    monkeypatch.chdir(tmp_path)
    settings = Settings(database_url="postgresql://a/b")
    with pytest.raises(BadConfig, match="openssl rand"):
        with_secret_key(settings, print)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret.key").write_text("short")
    with pytest.raises(BadConfig, match="at least 16"):
        with_secret_key(settings, print)
    given = Settings(database_url="postgresql://a/b", secret_key=SECRET)  # type: ignore[arg-type]  # as text
    assert with_secret_key(given, print) == given
