"""The environment and midwatch.toml as one frozen value; every mistake is reported at once.

Never repeats a value in a mistake: most of them are secret.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from sqlalchemy.exc import ArgumentError

from engine.db import async_url
from engine.errors import BadConfig
from engine.notify.paces import PER_DAY, PER_SECOND

TOML: Final = Path("midwatch.toml")
OWN_PREFIX: Final = "MIDWATCH_"
SHARED_PREFIXES: Final = ("SLACK_", "TWILIO_", "SMTP_")  # other programs have variables there too
OTHER_NAMES: Final = frozenset({"MIDWATCH_DEBUG"})  # read by the command line itself
SHORTEST_SECRET: Final = 16
MAKE_A_KEY: Final = "Make one with: openssl rand -hex 32"


def _database(url: str) -> str:
    try:
        async_url(url)
    except (ValueError, ArgumentError):
        raise ValueError("must begin with sqlite:///, with a path, or postgresql://") from None
    return url


def _web(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be a URL like https://midwatch.example.com")
    return url.rstrip("/")


def _bind(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise ValueError("must be an address and a port, like 0.0.0.0:8080")
    return text


def _ids(raw: object) -> object:
    return [word for word in re.split(r"[\s,]+", raw) if word] if isinstance(raw, str) else raw


def _urls(raw: object) -> object:
    """Commas part URLs only where one ends: they may stand inside of one, too."""
    parted = re.split(r"\s+|,\s+|,(?=[a-z][a-z0-9+.-]*://)", raw) if isinstance(raw, str) else raw
    return [word for word in parted if word] if isinstance(parted, list) else parted


def _long_enough(secret: SecretStr) -> SecretStr:
    if len(secret.get_secret_value()) < SHORTEST_SECRET:
        raise ValueError(f"must be at least {SHORTEST_SECRET} characters long. {MAKE_A_KEY}")
    return secret


def _rate(per_second: float) -> float:
    if not 0.01 <= per_second <= 1000:
        raise ValueError("must be a number from 0.01 to 1000")
    return per_second


def _per_day(count: int) -> int:
    if not 1 <= count <= 1_000_000:
        raise ValueError("must be a number from 1 to 1000000")
    return count


def _matching(pattern: str, words: str) -> AfterValidator:
    form = re.compile(pattern, re.ASCII)

    def check(value: str | SecretStr) -> str | SecretStr:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if not form.fullmatch(text):
            raise ValueError(words)
        return value

    return AfterValidator(check)


WebUrl = Annotated[str, AfterValidator(_web)]
SlackUser = Annotated[str, _matching(r"[UW][A-Z0-9]{2,20}", "must be Slack member IDs like U012AB3CD")]
Channel = Annotated[str, _matching(r"#\S{1,80}|[CG][A-Z0-9]{6,20}", 'must be a channel like "#ops"')]
AppriseUrl = Annotated[str, _matching(r"[a-z][a-z0-9+.-]*://\S+", "must be Apprise URLs like ntfy://topic")]
Country = Annotated[str, _matching(r"\+[1-9]\d{0,3}", "must be calling codes like +49")]
PhoneUrl = Annotated[
    SecretStr,
    _matching(
        r"[a-z][a-z0-9+.-]*://\S*\{to\}\S*",
        "must be an Apprise URL with {to} in place of the number, like vonage://key:secret@from/{to}",
    ),
]

Subaccount = Annotated[
    SecretStr, _matching(r"AC[0-9a-fA-F]{32}:[^\s,:]+", "must be like AC…:token, with commas between them")
]


class Settings(BaseModel):
    """`demo` is not a setting: the demo sets it for itself."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    database_url: Annotated[str, AfterValidator(_database)] = Field(
        "sqlite:///data/midwatch.sqlite3", repr=False
    )
    public_url: WebUrl | None = None
    secret_key: Annotated[SecretStr, AfterValidator(_long_enough)] | None = None
    bind: Annotated[str, AfterValidator(_bind)] = "0.0.0.0:8080"
    ops_channel: Channel | None = None
    admins: Annotated[tuple[SlackUser, ...], BeforeValidator(_ids)] = ()
    fallback_urls: Annotated[tuple[AppriseUrl, ...], BeforeValidator(_urls)] = Field((), repr=False)
    heartbeat_url: WebUrl | None = Field(None, repr=False)
    slack_bot_token: (
        Annotated[SecretStr, _matching(r"xoxb-\S+", "must be a bot token: it begins with xoxb-")] | None
    ) = None
    slack_app_token: (
        Annotated[SecretStr, _matching(r"xapp-\S+", "must be an app-level token: it begins with xapp-")]
        | None
    ) = None
    slack_signing_secret: SecretStr | None = None
    slack_api_url: Annotated[WebUrl, AfterValidator(lambda url: f"{url}/")] = "https://slack.com/api/"
    slack_client_id: str | None = None
    slack_client_secret: SecretStr | None = None
    twilio_account_sid: (
        Annotated[str, _matching(r"AC[0-9a-fA-F]{32}", "must be AC and 32 hexadecimal digits")] | None
    ) = None
    twilio_auth_token: SecretStr | None = None
    twilio_auth_token_old: SecretStr | None = None
    twilio_subaccounts: Annotated[tuple[Subaccount, ...], BeforeValidator(_ids)] = ()
    twilio_from: (
        Annotated[str, _matching(r"\+[1-9]\d{6,14}", "must be a number like +12025550100")] | None
    ) = None
    twilio_api_url: WebUrl = "https://api.twilio.com"
    sms_fallback_url: PhoneUrl | None = None
    voice_fallback_url: PhoneUrl | None = None
    sms_countries: Annotated[tuple[Country, ...], BeforeValidator(_ids)] = ()  # of numbers that people add
    sms_per_second: Annotated[float, AfterValidator(_rate)] = PER_SECOND  # all of them, from our number
    calls_per_second: Annotated[float, AfterValidator(_rate)] = PER_SECOND
    phone_per_day: Annotated[int, AfterValidator(_per_day)] = PER_DAY  # SMS, and as many calls
    smtp_url: (
        Annotated[
            SecretStr, _matching(r"smtps?://\S+", "must be like smtps://user:password@mail.example.com")
        ]
        | None
    ) = None
    calendar_private: bool = False  # may a calendar that a schedule follows be on a private address?
    demo: bool = False

    @property
    def host(self) -> str:
        return self.bind.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.bind.rpartition(":")[2])

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        if mistakes := [*_slack_mistakes(self), *_twilio_mistakes(self)]:
            raise ValueError("\n".join(mistakes))
        return self


def _slack_mistakes(settings: Settings) -> list[str]:
    found = []
    socket, signed = settings.slack_app_token is not None, settings.slack_signing_secret is not None
    if settings.slack_bot_token is None and (socket or signed):
        found.append("SLACK_BOT_TOKEN: is missing; the other Slack settings do nothing without it")
    if settings.slack_bot_token is not None and not (socket or signed):
        found.append(
            "SLACK_APP_TOKEN: is missing; set it for Socket Mode, or SLACK_SIGNING_SECRET for HTTP mode"
        )
    if (settings.slack_client_id is None) is not (settings.slack_client_secret is None):
        found.append("SLACK_CLIENT_ID, SLACK_CLIENT_SECRET: set both or none of them")
    return found


def _twilio_mistakes(settings: Settings) -> list[str]:
    names = ("twilio_account_sid", "twilio_auth_token", "twilio_from")
    missing = [env_name(name) for name in names if getattr(settings, name) is None]
    if 0 < len(missing) < len(names):
        are = "is" if len(missing) == 1 else "are"
        return [f"{', '.join(missing)}: {are} missing; SMS and calls need all three Twilio settings"]
    more = [name for name in ("twilio_auth_token_old", "twilio_subaccounts") if getattr(settings, name)]
    if more and missing:
        return [f"{env_name(more[0])}: does nothing without the other Twilio settings"]
    return []


def env_name(field: str) -> str:
    """What a field is called in the environment."""
    own = not field.startswith(tuple(prefix.lower() for prefix in SHARED_PREFIXES))
    return f"{OWN_PREFIX if own else ''}{field.upper()}"


# What midwatch.toml can get wrong and the environment cannot.
_KIND: Final[Mapping[str, str]] = {
    "string_type": "must be text, in quotes",
    "tuple_type": "must be a list",
}

FIELDS: Final[Mapping[str, str]] = {
    env_name(field): field for field in Settings.model_fields if field != "demo"
}


def load(env: Mapping[str, str], toml_path: Path = TOML) -> Settings:
    """The environment over the file over the defaults; BadConfig with every mistake."""
    mistakes: list[str] = []
    written, given = _toml(toml_path, mistakes), _environment(env, mistakes)
    try:
        settings = Settings.model_validate({**written, **given})
    except ValidationError as error:
        in_file = {field: f"{toml_path}: {field}" for field in written.keys() - given.keys()}
        mistakes += _sentences(error, in_file)
    if mistakes:
        raise BadConfig(mistakes)
    return settings


def _environment(env: Mapping[str, str], mistakes: list[str]) -> dict[str, Any]:
    for name in sorted(env.keys() - FIELDS.keys() - OTHER_NAMES):
        # Why close for the shared prefixes: SLACK_WEBHOOK_URL of another program is no mistake of ours.
        close = get_close_matches(name, FIELDS, n=1, cutoff=0.75 if name.startswith(OWN_PREFIX) else 0.85)
        if name.startswith(OWN_PREFIX) or (name.startswith(SHARED_PREFIXES) and close):
            instead = f"; did you mean {close[0]}?" if close else ""
            mistakes.append(f"{name}: there is no such setting{instead}")
    return {field: env[name] for name, field in FIELDS.items() if env.get(name)}


def _toml(path: Path, mistakes: list[str]) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # unreadable, not UTF-8, or not TOML
        mistakes.append(f"{path}: cannot be read: {error}")
        return {}
    known = set(FIELDS.values())
    for name in sorted(values.keys() - known):
        close = get_close_matches(name.lower().removeprefix("midwatch_"), known, n=1)
        instead = f"; did you mean {close[0]}?" if close else ""
        mistakes.append(f"{path}: there is no setting {name!r}{instead}")
    return {name: value for name, value in values.items() if name in known}


def _sentences(error: ValidationError, in_file: Mapping[str, str]) -> list[str]:
    """Each mistake with the name that the setting has where it was written."""
    found = []
    for each in error.errors(include_url=False, include_input=False, include_context=False):
        words = _KIND.get(each["type"], each["msg"].removeprefix("Value error, "))
        if each["loc"]:
            field = str(each["loc"][0])
            found.append(f"{in_file.get(field, env_name(field))}: {words}")
        else:
            found += words.split("\n")
    return list(dict.fromkeys(found))
