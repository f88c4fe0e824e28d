"""Reads YAML and single values of midwatch.yaml; a mistake becomes a sentence and reading goes on.

Never raises on a value. YAML is read without its surprises: `no`, `17:00` and `+12025550143` are text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final

import yaml

from engine.config.durations import parse_duration, show_duration
from engine.contacts.address import EMAIL, PHONE
from engine.errors import BadConfig
from engine.models import Method
from engine.schedule.fields import Fields

SLACK_USER: Final = re.compile(r"[UW][A-Z0-9]{2,20}", re.ASCII)
USER_GROUP: Final = re.compile(r"@[^\s@#,]{1,80}|S[A-Z0-9]{6,20}")
CHANNEL: Final = re.compile(r"#[^\s#@,]{1,80}|[CG][A-Z0-9]{6,20}")
LONGEST_NAME: Final = 80
LONGEST: Final = timedelta(days=7)


class FormFields(Fields):
    """The values that only midwatch.yaml has, the names it defines, and where it uses which."""

    def __init__(self) -> None:
        super().__init__()
        self._defined: dict[str, set[str]] = defaultdict(set)
        self._used: list[tuple[str, str, str]] = []

    def mapping(self, raw: object, place: str, known: Sequence[str]) -> Mapping[Any, Any] | None:
        if not isinstance(raw, Mapping):
            return super().mapping(raw, place, known)
        for key in raw:
            if key not in known:
                instead = did_you_mean(key, known) or f"; known are {', '.join(known)}"
                self.wrong(place, f"there is no {key!r} here{instead}", None)
        return raw

    def named(self, raw: object, section: str, known: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
        """The entries of a section: place, name and mapping; each name once."""
        taken = self._defined[section]
        for place, item in self.items(raw, section):
            entry = self.mapping(item, place, known)
            if entry is None:
                continue
            name = self.name(entry.get("name"), f"{place}.name")
            if name and name in taken:
                self.wrong(f"{place}.name", f"{name!r} is there twice; give each a name of its own", None)
            taken.add(name)
            yield place, name, entry

    def name(self, raw: object, place: str) -> str:
        name = self.text(raw, place)
        if name != name.strip() or not name.isprintable() or name[:1] in {"@", "#"}:
            return self.wrong(place, f"{name!r} must be a plain name, like payments", "")
        if len(name) > LONGEST_NAME:
            return self.wrong(place, f"must be at most {LONGEST_NAME} characters long", "")
        return name

    def duration(self, raw: object, place: str, least: timedelta, most: timedelta = LONGEST) -> timedelta:
        value = parse_duration(raw) if isinstance(raw, str) else None
        if value is None:
            return self.wrong(place, f"must be a duration like 30s, 5m or 1h30m, not {raw!r}", least)
        if not least <= value <= most:
            bounds = f"from {show_duration(least)} to {show_duration(most)}"
            return self.wrong(place, f"must be {bounds}, not {raw}", least)
        return value

    def address(self, method: Method, raw: object, place: str) -> str:
        # Why the value is not repeated: mistakes end up in logs of CI.
        form, example = (EMAIL, "ana@example.com") if method is Method.EMAIL else (PHONE, '"+12025550143"')
        if isinstance(raw, str) and form.fullmatch(raw):
            return raw
        what = "an address" if method is Method.EMAIL else "a number with + and its country code"
        return self.wrong(place, f"must be {what}, like {example}", "")

    def slack_user(self, raw: object, place: str) -> str | None:
        if isinstance(raw, str) and SLACK_USER.fullmatch(raw):
            return raw
        where = "in Slack: their profile, ⋮, Copy member ID"
        return self.wrong(place, f"must be a member ID like U012AB3CD ({where}), not {raw!r}", None)

    def channel(self, raw: object, place: str) -> str:
        if isinstance(raw, str) and CHANNEL.fullmatch(raw):
            return raw
        return self.wrong(place, f'must be a channel like "#payments" or C012AB3CD, not {raw!r}', "")

    def user_group(self, raw: object, place: str) -> str:
        if isinstance(raw, str) and USER_GROUP.fullmatch(raw):
            return raw
        form = 'must be a user group like "@payments-oncall" or S012AB3CD'
        return self.wrong(place, f"{form}, not {raw!r}", "")

    def use(self, section: str, name: str, place: str) -> None:
        """A name that is used must be defined: looked up when everything has been read."""
        if name:
            self._used.append((section, name, place))

    def check_uses(self, known: Mapping[str, Collection[str]]) -> None:
        for section, name, place in self._used:
            defined = {*self._defined[section], *known.get(section, ())}
            if name not in defined:
                instead = did_you_mean(name, defined) or f"; write it down under `{section}`"
                self.wrong(place, f"there is no {name!r} under {section}{instead}", None)


def did_you_mean(word: object, known: Collection[str]) -> str:
    close = get_close_matches(str(word), sorted(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


class _Loader(yaml.SafeLoader):
    """Text unless it is plainly a number, true, false or null; and no key twice."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  # as in its base

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key in [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} is there twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_PLAIN: Final = {
    "bool": (r"true|false", "tf"),
    "int": (r"-?(?:0|[1-9]\d*)", "-0123456789"),
    "float": (r"-?\d+\.\d+", "-0123456789"),
    "null": (r"~|null|", ["~", "n", ""]),
}
for _tag, (_form, _first) in _PLAIN.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_form})\Z"), list(_first))


def load_yaml(text: str) -> object:
    """Plain values; BadConfig with line and column when it is not YAML."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  # a SafeLoader that knows fewer types
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise BadConfig([f"{where}not YAML: {error.problem or error.context}"]) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadConfig([f"not YAML: {error}"]) from None
