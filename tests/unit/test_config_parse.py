"""midwatch.yaml: what is read, and that every mistake is told at once."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.dump import dump_config
from engine.config.durations import parse_duration, show_duration
from engine.config.form import Config, Known, LevelForm, Step, TargetForm
from engine.config.parse import parse_config
from engine.directory import OnExhaustion, TargetKind
from engine.errors import BadConfig
from engine.models import Method, Urgency

DEMO = Path(__file__).parents[2] / "bot" / "demo.yaml"

EVERYTHING = """
people:
  - {name: ana, slack: U012AB3CD, timezone: Europe/Berlin, admin: true,
     contact: {sms: "+12025550143", voice: +12025550143, email: ana@example.com},
     rules: {high: [slack, sms after 1m, voice after 1h30m], low: [email]}}
  - {name: lead, contact: {voice: "+12025550144"}}
schedules:
  - name: payments-primary
    timezone: Europe/Berlin
    layers:
      - {name: night, users: [ana, [ana, lead]], start: 2026-01-05T09:00, until: 2027-01-05T09:00,
         rotation: {every: 12, unit: hour}, restrictions: [{days: [mon, fri], from: 17:00, to: 09:00}],
         skip_holidays: true}
    holidays: [{date: 2026-12-25, name: Christmas}]
    fallback: lead
    channel: "#payments"
    user_group: "@payments-oncall"
    topic: true
policies:
  - name: payments
    levels:
      - {targets: [{schedule: payments-primary}, {channel: "#payments"}], timeout: 5m}
      - {targets: [{person: lead}], timeout: 15m}
    repeat: 2
    on_exhaustion: repeat
    ack_timeout: 30m
services:
  - {name: checkout, policy: payments, channel: "#payments", group_by: [cluster, alertname],
     group_window: 5m, flap_window: 3m, urgency: {warning: low, info: none}}
  - {name: bare, group_by: []}
fallback: [{person: lead}, {channel: C012AB3CD}]
"""


def mistakes(text: str, known: Known | None = None) -> list[str]:
    with pytest.raises(BadConfig) as caught:
        parse_config(text, known)
    return list(caught.value.mistakes)


def test_everything_the_form_has_is_read() -> None:
    """Each field arrives with its meaning, also unquoted times and numbers."""
    config = parse_config(EVERYTHING)
    ana, lead = config.people["ana"], config.people["lead"]
    assert (ana.slack, ana.timezone, ana.admin) == ("U012AB3CD", "Europe/Berlin", True)
    assert ana.contact[Method.VOICE] == "+12025550143"
    assert ana.rules is not None
    assert ana.rules[Urgency.HIGH][2] == Step(Method.VOICE, timedelta(hours=1, minutes=30))
    assert (lead.timezone, lead.rules) == ("UTC", None)
    (layer,) = config.schedules["payments-primary"].schedule.layers
    assert layer.users == (("ana",), ("ana", "lead"))
    assert (layer.restrictions[0].opens.hour, layer.skip_holidays) == (17, True)
    form = config.schedules["payments-primary"]
    assert (form.channel, form.user_group, form.topic) == ("#payments", "@payments-oncall", True)
    policy = config.policies["payments"]
    assert policy.levels[1] == LevelForm((TargetForm(TargetKind.PERSON, "lead"),), timedelta(minutes=15))
    assert (policy.repeat, policy.on_exhaustion, policy.ack_timeout) == (
        2,
        OnExhaustion.REPEAT,
        timedelta(minutes=30),
    )
    checkout, bare = config.services["checkout"], config.services["bare"]
    assert (checkout.group_by, checkout.group_window) == (("cluster", "alertname"), timedelta(minutes=5))
    assert checkout.urgency == {"warning": Urgency.LOW, "info": Urgency.NONE}
    assert (bare.group_by, bare.flap_window, bare.policy) == ((), timedelta(minutes=2), None)
    assert config.fallback == (
        TargetForm(TargetKind.PERSON, "lead"),
        TargetForm(TargetKind.CHANNEL, "C012AB3CD"),
    )


@pytest.mark.parametrize("text", [EVERYTHING, DEMO.read_text(encoding="utf-8")], ids=["everything", "demo"])
def test_what_is_exported_reads_back_as_the_same(text: str) -> None:
    """parse(dump(config)) is the config, and dumping it again gives the same text."""
    config = parse_config(text)
    exported = dump_config(config)
    assert parse_config(exported) == config
    assert dump_config(parse_config(exported)) == exported


def test_an_empty_file_says_nothing() -> None:
    """Sections that are missing are left alone; an empty fallback is a wish, a missing one is none."""
    assert parse_config("") == Config()
    assert parse_config("fallback: []").fallback == ()


WRONG = [
    ("peple: []", "midwatch.yaml: there is no 'peple' here; did you mean 'people'?"),
    ("people: {ana: {}}", "people: must be a list, not a mapping"),
    ("people: [ana]", "people[1]: must be a mapping, not 'ana'"),
    ("people: [{name: 42, slack: U012AB3CD}]", "people[1].name: must be text, not 42"),
    ("people: [{name: '@ana', slack: U012AB3CD}]", "people[1].name: '@ana' must be a plain name"),
    ("people: [{name: ana, slack: '@ana'}]", "people[1].slack: must be a member ID like U012AB3CD"),
    ("people: [{name: ana}]", "people[1]: ana cannot be reached; add slack: U012AB3CD or contact:"),
    ("people: [{name: ana, slack: U012AB3CD, timezone: Berlin}]", "no time zone 'Berlin'"),
    (
        "people: [{name: ana, contact: {sms: 12025550143}}]",
        "people[1].contact.sms: must be a number with + and its country code",
    ),
    ("people: [{name: ana, contact: {mail: a@b.example}}]", "there is no 'mail' here; did you mean 'email'?"),
    ("people: [{name: ana, contact: {email: ana}}]", "people[1].contact.email: must be an address"),
    (
        "people: [{name: ana, slack: U012AB3CD, rules: {high: [sms after 1m]}}]",
        "people[1].rules.high[1]: no sms is given for this person; add contact: {sms: …}",
    ),
    (
        "people: [{name: ana, slack: U012AB3CD, rules: {high: [slack in 1m]}}]",
        """people[1].rules.high[1]: must be like "slack" or "sms after 1m", not 'slack in 1m'""",
    ),
    ("people: [{name: ana, slack: U012AB3CD, rules: {high: [slak]}}]", "did you mean 'slack'?"),
    ("people: [{name: ana, slack: U012AB3CD, rules: {high: []}}]", "needs at least one step"),
    ("people: [{name: ana, slack: U012AB3CD, rules: {high: [slack after 2d]}}]", "waits too long"),
    (
        "people: [{name: ana, slack: U012AB3CD}, {name: ana, slack: U012AB3CE}]",
        "people[2].name: 'ana' is there twice",
    ),
    (
        "people: [{name: ana, slack: U012AB3CD}, {name: ben, slack: U012AB3CD}]",
        "people[2].slack: U012AB3CD is ana's already",
    ),
    ("policies: [{name: p}]", "policies[1].levels: needs at least one level"),
    ("policies: [{name: p, levels: [{targets: [], timeout: 5m}]}]", "levels[1].targets: needs at least one"),
    (
        'policies: [{name: p, levels: [{targets: [{channel: "#a"}], timeout: 5}]}]',
        "policies[1].levels[1].timeout: must be a duration like 30s, 5m or 1h30m, not 5",
    ),
    (
        'policies: [{name: p, levels: [{targets: [{channel: "#a"}], timeout: 0s}]}]',
        "must be from 1s to 7d, not 0s",
    ),
    (
        'policies: [{name: p, levels: [{targets: [{channel: "#a", person: b}], timeout: 5m}]}]',
        "policies[1].levels[1].targets[1]: must be one of",
    ),
    ("policies: [{name: p, levels: 5, repeat: true}]", "policies[1].repeat: must be a whole number"),
    ("services: [{name: s, channel: payments}]", 'services[1].channel: must be a channel like "#payments"'),
    (
        "services: [{name: s, urgency: {warning: lo}}]",
        "services[1].urgency.warning: must be one of high, low",
    ),
    ("services: [{name: s, policy: nope}]", "services[1].policy: there is no 'nope' under policies"),
    ("fallback: [{person: bne}]", "fallback[1].person: there is no 'bne' under people; did you mean 'ben'?"),
    ("fallback: [{user: ben}]", "fallback[1]: there is no 'user' here"),
    ("schedules: [{name: s, timezone: UTC, overrides: [{user: ana}]}]", "are made by /override"),
    (
        "schedules: [{name: s, timezone: UTC, layers: [{users: [ana, [bob]], start: 2026-01-05T09:00, "
        "rotation: {every: 1, unit: week}}]}]",
        "schedules[1].layers[1].users[2]: there is no 'bob' under people",
    ),
    (
        "schedules: [{name: s, timezone: UTC, user_group: payments}]",
        'schedules[1].user_group: must be a user group like "@payments-oncall"',
    ),
    ("schedules: [{name: s, timezone: UTC, channel: payments}]", "schedules[1].channel: must be a channel"),
    (
        "schedules: [{name: s, timezone: UTC, topic: true}]",
        "schedules[1].topic: is of a channel: name it too",
    ),
    ("schedules: [{name: s, timezone: Mars, topic: 1}]", "schedules[1].topic: must be true or false"),
    ("people: [", "line 1, column 10: not YAML"),
    ("people: []\npeople: []", "line 2, column 1: not YAML: 'people' is there twice"),
    ("- people", "midwatch.yaml: must be a mapping, not a list"),
    ("a: !!python/object:os.system {}", "not YAML"),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG, ids=[text for text, _ in WRONG])
def test_a_mistake_is_a_sentence_with_its_place(text: str, sentence: str) -> None:
    """Each mistake says where it is and what to write instead."""
    found = mistakes(text, Known(people=frozenset({"ana", "ben"})))
    assert any(sentence in mistake for mistake in found), found


def test_every_mistake_is_told_at_once() -> None:
    """Five mistakes in four sections are five sentences, none of them a consequence of another."""
    text = """
people:
  - {name: ana, slack: U012AB3CD, timezone: Europe/Berln}
  - {name: ben, contact: {sms: "0202"}, rules: {high: [sms]}}
schedules:
  - {name: broken, timezone: UTC, layers: [{users: [ana], start: tomorrow, rotation: {every: 1, unit: week}}]}
  - {name: good, timezone: UTC, layers: [], fallback: nobody}
policies:
  - {name: p, levels: [{targets: [{schedule: broken}], timeout: soon}]}
services:
  - {name: s, policy: p}
"""
    found = mistakes(text)
    places = [mistake.split(": ")[0] for mistake in found]
    assert places == [
        "people[1].timezone",
        "people[2].contact.sms",
        "schedules[1].layers[1].start",
        "policies[1].levels[1].timeout",
        "schedules[2].fallback",
    ]


def test_a_wrong_number_is_not_repeated() -> None:
    """Mistakes are shown in CI logs, where phone numbers have no place."""
    assert "2025550199" not in "".join(mistakes('people: [{name: ana, contact: {sms: "2025550199"}}]'))


@given(st.integers(min_value=0, max_value=10_000_000))
def test_a_duration_shown_reads_back(seconds: int) -> None:
    """show and parse are each other's inverse."""
    duration = timedelta(seconds=seconds)
    assert parse_duration(show_duration(duration)) == duration


@pytest.mark.parametrize("text", ["", "5", "5 minutes", "m", "-5m", "5m5m", "1.5h", "30s1h", "٣m", "5mm"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """No unit, an unknown unit, or units out of order are not guessed at."""
    assert parse_duration(text) is None


def told(text: str) -> None:
    """It is a Config, or its mistakes are told."""
    try:
        mistakes = None if isinstance(parse_config(text), Config) else ()
    except BadConfig as bad:
        mistakes = bad.mistakes
    assert mistakes is None or (mistakes and all(mistakes))


@given(st.text() | st.binary().map(repr))
def test_any_text_is_a_config_or_a_list_of_mistakes(text: str) -> None:
    """Whatever the file holds, the answer is a Config or BadConfig."""
    told(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "levels", "targets", "users", "rules", "high", "contact", "sms", "layers"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["people", "schedules", "policies", "services", "fallback"]), JSON))
def test_any_shape_is_a_config_or_a_list_of_mistakes(document: dict[str, object]) -> None:
    """Wrong types anywhere are mistakes, never another exception."""
    told(json.dumps(document))
