"""From the text of midwatch.yaml to a Config.

Never stops at the first mistake: all of them are reported together, each with its place and what
to write instead. Names that are used must be defined in the file or known already.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from engine.config.form import (
    Config,
    Known,
    LevelForm,
    PolicyForm,
    ScheduleForm,
    ServiceForm,
    TargetForm,
)
from engine.config.parse_people import parse_people
from engine.config.reading import FormFields, load_yaml
from engine.directory import OnExhaustion, TargetKind
from engine.errors import BadConfig
from engine.models import Urgency
from engine.schedule import Schedule, parse_schedule

SECTIONS: Final = ("people", "schedules", "policies", "services", "fallback")
SHOWN_KEYS: Final = ("channel", "user_group", "topic")  # of a schedule: where Slack shows it
SCHEDULE_KEYS: Final = ("name", "timezone", "layers", "holidays", "fallback", "overrides", *SHOWN_KEYS)
POLICY_KEYS: Final = ("name", "levels", "repeat", "on_exhaustion", "ack_timeout")
SERVICE_KEYS: Final = ("name", "policy", "channel", "group_by", "group_window", "flap_window", "urgency")

MOST_PASSES: Final = 100
SECOND: Final = timedelta(seconds=1)


def parse_config(text: str, known: Known | None = None) -> Config:
    """Raise BadConfig with every mistake."""
    fields = FormFields()
    raw = load_yaml(text)
    root = fields.mapping({} if raw is None else raw, "midwatch.yaml", SECTIONS)
    if root is None:
        raise BadConfig(fields.mistakes)
    fallback = root.get("fallback")
    config = Config(
        people=parse_people(fields, root.get("people")),
        schedules=_schedules(fields, root.get("schedules")),
        policies=_policies(fields, root.get("policies")),
        services=_services(fields, root.get("services")),
        fallback=None if "fallback" not in root else _targets(fields, fallback, "fallback"),
    )
    known = known or Known()
    fields.check_uses({"people": known.people, "schedules": known.schedules, "policies": known.policies})
    if fields.mistakes:
        raise BadConfig(fields.mistakes)
    return config


def _schedules(fields: FormFields, raw: object) -> dict[str, ScheduleForm]:
    found = {}
    for place, name, entry in fields.named(raw, "schedules", SCHEDULE_KEYS):
        if entry.get("overrides"):
            fields.wrong(f"{place}.overrides", "are made by /override or `midwatch override`, not here", None)
        elsewhere = ("overrides", *SHOWN_KEYS)
        rules = {key: entry[key] for key in entry if key in SCHEDULE_KEYS and key not in elsewhere}
        try:
            schedule = parse_schedule(rules, place)
        except BadConfig as error:
            fields.mistakes.extend(error.mistakes)
            schedule = Schedule("UTC")
        _use_people(fields, schedule, place)
        found[name] = _schedule(fields, name, schedule, entry, place)
    return found


def _schedule(
    fields: FormFields, name: str, schedule: Schedule, entry: Mapping[str, Any], place: str
) -> ScheduleForm:
    channel, group = entry.get("channel"), entry.get("user_group")
    topic = fields.flag(entry.get("topic", False), f"{place}.topic")
    if topic and channel is None:
        fields.wrong(f"{place}.topic", 'is of a channel: name it too, like channel: "#payments"', None)
    return ScheduleForm(
        name=name,
        schedule=schedule,
        channel=None if channel is None else fields.channel(channel, f"{place}.channel"),
        user_group=None if group is None else fields.user_group(group, f"{place}.user_group"),
        topic=topic,
    )


def _use_people(fields: FormFields, schedule: Schedule, place: str) -> None:
    for number, layer in enumerate(schedule.layers, start=1):
        for turn, together in enumerate(layer.users, start=1):
            for user in together:
                fields.use("people", user, f"{place}.layers[{number}].users[{turn}]")
    fields.use("people", schedule.fallback or "", f"{place}.fallback")


def _policies(fields: FormFields, raw: object) -> dict[str, PolicyForm]:
    return {
        name: _policy(fields, name, entry, place)
        for place, name, entry in fields.named(raw, "policies", POLICY_KEYS)
    }


def _policy(fields: FormFields, name: str, entry: Mapping[str, Any], place: str) -> PolicyForm:
    ends = {end.value: end for end in OnExhaustion}
    ack_timeout = entry.get("ack_timeout")
    levels = fields.items(entry.get("levels"), f"{place}.levels")
    if not levels:
        fields.wrong(f"{place}.levels", "needs at least one level: {targets: [...], timeout: 5m}", None)
    return PolicyForm(
        name=name,
        levels=tuple(_level(fields, item, where) for where, item in levels),
        repeat=_repeat(fields, entry.get("repeat", 0), f"{place}.repeat"),
        on_exhaustion=fields.choice(
            entry.get("on_exhaustion", OnExhaustion.NOTIFY_ADMINS.value),
            f"{place}.on_exhaustion",
            ends,
            OnExhaustion.NOTIFY_ADMINS,
        ),
        ack_timeout=None
        if ack_timeout is None
        else fields.duration(ack_timeout, f"{place}.ack_timeout", SECOND),
    )


def _repeat(fields: FormFields, raw: object, place: str) -> int:
    """Extra passes: none is a number here."""
    return 0 if raw == 0 and not isinstance(raw, bool) else fields.count(raw, place, MOST_PASSES)


def _level(fields: FormFields, raw: object, place: str) -> LevelForm:
    entry = fields.mapping(raw, place, ("targets", "timeout"))
    if entry is None:
        return LevelForm((), SECOND)
    targets = _targets(fields, entry.get("targets"), f"{place}.targets")
    if not entry.get("targets"):
        fields.wrong(f"{place}.targets", "needs at least one, like {schedule: payments-primary}", None)
    return LevelForm(targets, fields.duration(entry.get("timeout"), f"{place}.timeout", SECOND))


def _targets(fields: FormFields, raw: object, place: str) -> tuple[TargetForm, ...]:
    kinds = {kind.value: kind for kind in TargetKind}
    found = []
    for where, item in fields.items(raw, place):
        entry = fields.mapping(item, where, list(kinds))
        if entry is None:
            continue
        if len(entry) != 1:
            fields.wrong(where, "must be one of {schedule: …}, {person: …} or {channel: …}", None)
        for word, name in entry.items():
            if kind := kinds.get(word):
                found.append(TargetForm(kind, _target_name(fields, kind, name, f"{where}.{word}")))
    return tuple(found)


def _target_name(fields: FormFields, kind: TargetKind, raw: object, place: str) -> str:
    if kind is TargetKind.CHANNEL:
        return fields.channel(raw, place)
    name = fields.text(raw, place)
    fields.use("people" if kind is TargetKind.PERSON else "schedules", name, place)
    return name


def _services(fields: FormFields, raw: object) -> dict[str, ServiceForm]:
    return {
        name: _service(fields, name, entry, place)
        for place, name, entry in fields.named(raw, "services", SERVICE_KEYS)
    }


def _service(fields: FormFields, name: str, entry: Mapping[str, Any], place: str) -> ServiceForm:
    policy, channel, group_by = entry.get("policy"), entry.get("channel"), entry.get("group_by")
    window, flap = entry.get("group_window"), entry.get("flap_window")
    labels = fields.items(group_by, f"{place}.group_by")
    policy = None if policy is None else fields.text(policy, f"{place}.policy")
    fields.use("policies", policy or "", f"{place}.policy")
    return ServiceForm(
        name=name,
        policy=policy,
        channel=None if channel is None else fields.channel(channel, f"{place}.channel"),
        group_by=None if group_by is None else tuple(fields.text(label, where) for where, label in labels),
        group_window=None if window is None else fields.duration(window, f"{place}.group_window", SECOND),
        flap_window=ServiceForm("").flap_window
        if flap is None
        else fields.duration(flap, f"{place}.flap_window", timedelta()),
        urgency=_urgency(fields, entry.get("urgency"), f"{place}.urgency"),
    )


def _urgency(fields: FormFields, raw: object, place: str) -> dict[str, Urgency]:
    words = {urgency.value: urgency for urgency in Urgency}
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        return fields.wrong(place, "must be a mapping like {warning: low, info: none}", {})
    return {
        str(severity): fields.choice(word, f"{place}.{severity}", words, Urgency.HIGH)
        for severity, word in raw.items()
    }
