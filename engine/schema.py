"""The tables, and every invariant that SQL can hold.

Never holds a query. Every table has its organisation first in each unique index. Names of
constraints follow one convention, because SQLite re-creates tables by them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Column, Index, Table, text
from sqlalchemy.types import TypeDecorator

from engine.models import (
    AlertStatus,
    DeliveryKind,
    DeliveryStatus,
    IncidentStatus,
    Method,
    Urgency,
)

# Why literal: a bound parameter in the predicate works on PostgreSQL until the generic plan is
# chosen (the sixth execution on a connection) and then fails for every alert; SQLite refuses it at
# once. The same text stands in the indexes, the upserts and the selects that must match them.
OPEN: Final = text("status <> 'resolved'")
UNFINISHED: Final = text("status IN ('queued', 'sending')")
REFERRED: Final = text("provider_ref <> ''")

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """Aware UTC datetimes as integer microseconds: the same order and arithmetic on both databases."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> int | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive datetime is not an instant")
        return (value - EPOCH) // MICROSECOND

    def process_result_value(self, value: int | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else EPOCH + value * MICROSECOND


class Duration(TypeDecorator[timedelta]):
    """A timedelta as integer microseconds."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: timedelta | None, dialect: sa.Dialect) -> int | None:
        return None if value is None else value // MICROSECOND

    def process_result_value(self, value: int | None, dialect: sa.Dialect) -> timedelta | None:
        return None if value is None else value * MICROSECOND


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite counts only INTEGER keys up


def _id() -> Column[Any]:
    return Column("id", Key, primary_key=True, autoincrement=True)


def _org() -> Column[Any]:
    return Column("org_id", sa.BigInteger, nullable=False)


def _ref(name: str, target: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, Key, sa.ForeignKey(f"{target}.id"), nullable=nullable)


def _text(name: str, *, nullable: bool = False, default: str | None = None) -> Column[Any]:
    return Column(name, sa.Text, nullable=nullable, default=default)


def _at(name: str, *, nullable: bool = True) -> Column[Any]:
    return Column(name, Instant, nullable=nullable)


def _int(name: str, *, default: int | None = 0, nullable: bool = False) -> Column[Any]:
    return Column(name, sa.Integer, nullable=nullable, default=default)


def _json(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, sa.JSON(none_as_null=True), nullable=nullable)


def _one_of(column: str, words: type[StrEnum] | Iterable[str], name: str) -> sa.CheckConstraint:
    values = ", ".join(f"'{word}'" for word in words)
    return sa.CheckConstraint(f"{column} IN ({values})", name=name)


# --- the directory -----------------------------------------------------------------------------

counters = Table(
    "counters",  # of an organisation: `incident` gives the next #, `directory` is its revision
    metadata,
    Column("org_id", sa.BigInteger, primary_key=True, autoincrement=False),
    Column("name", sa.Text, primary_key=True),
    Column("value", sa.BigInteger, nullable=False),
)

people = Table(
    "people",
    metadata,
    _id(),
    _org(),
    _text("name"),
    _text("slack_user_id", nullable=True),
    _text("timezone"),
    Column("admin", sa.Boolean, nullable=False, default=False),
    _at("created_at", nullable=False),
    _at("deactivated_at"),
    sa.UniqueConstraint("org_id", "name"),
    sa.UniqueConstraint("org_id", "slack_user_id"),
)

contact_methods = Table(
    "contact_methods",
    metadata,
    _id(),
    _org(),
    _ref("person_id", "people"),
    _text("kind"),
    _text("address"),  # encrypted; `address_hash` is what inbound messages are matched by
    _text("address_hash"),
    _at("verified_at"),
    _text("verified_by", default=""),
    _text("disabled_reason", nullable=True),
    _at("created_at", nullable=False),
    sa.UniqueConstraint("org_id", "person_id", "kind", "address_hash"),
    _one_of("kind", Method, "kind"),
)
Index("ix_contact_methods_hash", contact_methods.c.org_id, contact_methods.c.address_hash)

contact_rules = Table(
    "contact_rules",
    metadata,
    _id(),
    _org(),
    _ref("person_id", "people"),
    _text("urgency"),
    _int("position"),
    _ref("method_id", "contact_methods"),
    Column("delay", Duration, nullable=False),
    sa.UniqueConstraint("org_id", "person_id", "urgency", "position"),
    _one_of("urgency", Urgency, "urgency"),
)

policies = Table(
    "policies",
    metadata,
    _id(),
    _org(),
    _text("name"),
    _at("deleted_at"),
    sa.UniqueConstraint("org_id", "name"),
)

policy_versions = Table(
    "policy_versions",
    metadata,
    _id(),
    _org(),
    _ref("policy_id", "policies"),
    _json("definition"),  # levels, repeat, on_exhaustion, ack_timeout; targets by id
    _at("created_at", nullable=False),
)
Index("ix_policy_versions_policy", policy_versions.c.org_id, policy_versions.c.policy_id)

schedules = Table(
    "schedules",
    metadata,
    _id(),
    _org(),
    _text("name"),
    _at("deleted_at"),
    sa.UniqueConstraint("org_id", "name"),
)

schedule_versions = Table(
    "schedule_versions",
    metadata,
    _id(),
    _org(),
    _ref("schedule_id", "schedules"),
    _at("effective_from", nullable=False),
    _json("definition"),  # timezone, layers, holidays, fallback; people by the text of their id
    _at("created_at", nullable=False),
)
Index("ix_schedule_versions_schedule", schedule_versions.c.org_id, schedule_versions.c.schedule_id)

overrides = Table(
    "overrides",
    metadata,
    _id(),
    _org(),
    _ref("schedule_id", "schedules"),
    _text("kind"),
    _ref("person_id", "people"),
    _ref("covers_id", "people", nullable=True),
    _at("start_at", nullable=False),
    _at("end_at", nullable=False),
    _text("created_by", default=""),
    _at("created_at", nullable=False),
    _at("cancelled_at"),
    _one_of("kind", ("replace_all", "cover", "add"), "kind"),
    sa.CheckConstraint("end_at > start_at", name="order"),
)
Index("ix_overrides_schedule", overrides.c.org_id, overrides.c.schedule_id, overrides.c.end_at)

services = Table(
    "services",
    metadata,
    _id(),
    _org(),
    _text("name"),
    _ref("policy_id", "policies", nullable=True),
    _text("channel", nullable=True),
    _json("group_by", nullable=True),
    Column("group_window", Duration, nullable=True),
    Column("flap_window", Duration, nullable=False),
    _json("urgency"),
    _at("deleted_at"),
    sa.UniqueConstraint("org_id", "name"),
)

fallbacks = Table(
    "fallbacks",  # the organisation's list, tried when nobody can be found or reached
    metadata,
    _id(),
    _org(),
    _int("position"),
    _text("kind"),
    _text("ref"),
    sa.UniqueConstraint("org_id", "position"),
)

integration_keys = Table(
    "integration_keys",
    metadata,
    _id(),
    _org(),
    _ref("service_id", "services"),
    _text("key_hash"),
    _text("hint"),  # the first characters, so that people can tell keys apart
    _text("name", default=""),
    _at("created_at", nullable=False),
    _at("revoked_at"),
    _at("last_used_at"),
    sa.UniqueConstraint("org_id", "key_hash"),
)
Index("ix_integration_keys_hash", integration_keys.c.key_hash)  # all that a sender shows

api_tokens = Table(
    "api_tokens",
    metadata,
    _id(),
    _org(),
    _text("name"),
    _text("token_hash"),
    _text("hint"),
    _ref("person_id", "people", nullable=True),
    _at("created_at", nullable=False),
    _at("revoked_at"),
    _at("last_used_at"),
    sa.UniqueConstraint("org_id", "token_hash"),
)
Index("ix_api_tokens_hash", api_tokens.c.token_hash)

maintenance_windows = Table(
    "maintenance_windows",
    metadata,
    _id(),
    _org(),
    _ref("service_id", "services", nullable=True),
    _at("start_at", nullable=False),
    _at("end_at", nullable=False),
    _text("reason", default=""),
    _text("created_by", default=""),
    _at("cancelled_at"),
    sa.CheckConstraint("end_at > start_at", name="order"),
)
Index("ix_maintenance_windows_end", maintenance_windows.c.org_id, maintenance_windows.c.end_at)

# --- problems ----------------------------------------------------------------------------------

dedup_keys = Table(
    "dedup_keys",  # locked first; remembers the source's last start and end when no alert is open
    metadata,
    Column("org_id", sa.BigInteger, primary_key=True, autoincrement=False),
    Column("service_id", Key, sa.ForeignKey("services.id"), primary_key=True, autoincrement=False),
    Column("dedup_key", sa.Text, primary_key=True),
    _at("last_started_at"),
    _at("last_ended_at"),
    _at("end_arrived_at"),  # when the source's last end arrived, by our clock
    _text("last_severity", nullable=True),
    _ref("last_incident_id", "incidents", nullable=True),
    _text("ended_by", nullable=True),
)

incidents = Table(
    "incidents",
    metadata,
    _id(),
    _org(),
    _int("number", default=None, nullable=True),  # given last of all, under the counter's lock
    _ref("service_id", "services"),
    _text("group_key"),
    _text("status"),
    _text("urgency"),
    _text("title"),
    _text("severity", nullable=True),
    _text("raw_severity", default=""),
    _int("epoch", default=1),
    _int("round", default=1),
    _int("pass", default=0),
    _int("level", default=0),
    _at("level_started_at"),  # when `level` was paged; empty: its `escalate` has yet to fire
    Column("reached", sa.Boolean, nullable=False, default=False),  # did this pass reach a person
    _int("links"),  # how far down the fallback chain this round has paged
    _json("reassigned_to", nullable=True),
    _ref("policy_version_id", "policy_versions", nullable=True),
    _int("open_alerts", default=0),
    _int("alert_count", default=0),
    _int("truncated", default=0),
    _text("opened_by", default=""),  # empty: a source
    _at("opened_at", nullable=False),
    _at("last_joined_at", nullable=False),
    _at("last_paged_at"),
    _at("acknowledged_at"),
    _ref("acknowledged_by", "people", nullable=True),
    _text("acknowledged_name", nullable=True),
    _text("acknowledged_via", nullable=True),
    _at("snoozed_until"),
    _at("held_until"),
    _at("resolved_at"),
    _text("resolved_by", nullable=True),  # the name; `resolved_via` = source means the source did it
    _text("resolved_via", nullable=True),
    _text("kept_status", nullable=True),  # what a re-fire within the flap window takes up again
    _text("kept_timer", nullable=True),
    Column("kept_left", Duration, nullable=True),
    _ref("merged_into", "incidents", nullable=True),
    sa.UniqueConstraint("org_id", "number"),
    _one_of("status", IncidentStatus, "status"),
    _one_of("urgency", Urgency, "urgency"),
    sa.CheckConstraint("open_alerts >= 0", name="open_alerts"),
    sa.CheckConstraint("status <> 'resolved' OR open_alerts = 0", name="resolved_has_no_open_alert"),
)
Index(
    "uq_incidents_open",
    incidents.c.org_id,
    incidents.c.service_id,
    incidents.c.group_key,
    unique=True,
    sqlite_where=OPEN,
    postgresql_where=OPEN,
)
Index("ix_incidents_newest", incidents.c.org_id, incidents.c.opened_at)

alerts = Table(
    "alerts",
    metadata,
    _id(),
    _org(),
    _ref("service_id", "services"),
    _ref("incident_id", "incidents"),
    _text("dedup_key"),
    _text("source_group", nullable=True),  # the raw key: the source's group resolve goes by it
    _text("status"),
    _text("severity", nullable=True),
    _text("raw_severity", default=""),
    _text("urgency"),
    _text("summary"),
    _json("labels"),
    _json("links"),
    _int("event_count", default=1),
    _int("flap_count", default=0),
    _at("started_at"),
    _at("first_seen_at", nullable=False),
    _at("last_seen_at", nullable=False),
    _at("resolved_at"),
    _text("resolved_by", nullable=True),
    _one_of("status", AlertStatus, "status"),
    _one_of("resolved_by", ("source", "human"), "resolved_by"),
    sa.CheckConstraint("(status = 'resolved') = (resolved_at IS NOT NULL)", name="resolved_at"),
)
Index(
    "uq_alerts_open",
    alerts.c.org_id,
    alerts.c.service_id,
    alerts.c.dedup_key,
    unique=True,
    sqlite_where=OPEN,
    postgresql_where=OPEN,
)
Index("ix_alerts_incident", alerts.c.org_id, alerts.c.incident_id)
Index(
    "ix_alerts_source_group",
    alerts.c.org_id,
    alerts.c.service_id,
    alerts.c.source_group,
    sqlite_where=OPEN,
    postgresql_where=OPEN,
)

events = Table(
    "events",  # append-only
    metadata,
    _id(),
    _org(),
    _ref("service_id", "services"),
    _ref("incident_id", "incidents", nullable=True),
    _text("source"),
    _text("action"),
    _text("dedup_key"),
    _text("outcome"),
    _text("reason", default=""),
    _text("summary"),
    _text("raw_severity", default=""),
    _json("content"),
    _at("started_at"),
    _at("ended_at"),
    _at("received_at", nullable=False),
)
Index("ix_events_incident", events.c.org_id, events.c.incident_id)

timeline = Table(
    "timeline",  # one row for every change of an incident, in the transaction of the change
    metadata,
    _id(),
    _org(),
    _ref("incident_id", "incidents"),
    _at("at", nullable=False),
    _text("kind"),
    _text("actor"),
    _ref("person_id", "people", nullable=True),
    _text("via"),
    _text("text", default=""),
    _text("before", nullable=True),
    _text("after", nullable=True),
    _int("epoch"),
    _json("detail"),
)
Index("ix_timeline_incident", timeline.c.org_id, timeline.c.incident_id)

# --- what happens later, and who is told ---------------------------------------------------------

timers = Table(
    "timers",  # a row is live until it is deleted; history is the timeline
    metadata,
    _id(),
    _org(),
    _text("kind"),
    _text("lane"),  # which queue works it; with it, "what is due next" is one index probe
    Column("subject_id", sa.BigInteger, nullable=False),
    _at("due_at", nullable=False),
    _int("rank"),
    _int("epoch"),
    _int("rev", default=1),
    _int("attempt"),
    _at("lease_until"),
    _text("lease_owner", nullable=True),
    sa.UniqueConstraint("org_id", "kind", "subject_id"),
    # Why: SQLite gives the id of a deleted row again, and a worker that stalled would take the new
    # timer for the one it held.
    sqlite_autoincrement=True,
)
Index("ix_timers_due", timers.c.lane, timers.c.rank, timers.c.due_at, timers.c.id)

deliveries = Table(
    "deliveries",
    metadata,
    _id(),
    _org(),
    _ref("incident_id", "incidents", nullable=True),
    _text("kind"),
    _text("method"),
    _ref("person_id", "people", nullable=True),
    _ref("method_id", "contact_methods", nullable=True),
    _text("address", nullable=True),
    _int("round"),
    _int("pass"),
    _int("level"),
    _int("step"),
    _text("idem_key"),
    _text("status"),
    _text("reason", default=""),
    _int("attempts"),
    _text("provider", default=""),
    _text("provider_ref", default=""),
    _json("body"),
    _at("due_at", nullable=False),
    _at("created_at", nullable=False),
    _at("sent_at"),
    _at("ended_at"),
    _int("cancelled_epoch", default=None, nullable=True),  # what a re-fire may revive
    sa.UniqueConstraint("org_id", "idem_key"),
    _one_of("kind", DeliveryKind, "kind"),
    _one_of("method", Method, "method"),
    _one_of("status", DeliveryStatus, "status"),
)
Index("ix_deliveries_incident", deliveries.c.org_id, deliveries.c.incident_id)
Index(
    "ix_deliveries_ref",
    deliveries.c.org_id,
    deliveries.c.provider_ref,
    sqlite_where=REFERRED,
    postgresql_where=REFERRED,
)
Index(
    "ix_deliveries_unfinished",
    deliveries.c.org_id,
    deliveries.c.status,
    deliveries.c.id,
    sqlite_where=UNFINISHED,
    postgresql_where=UNFINISHED,
)
Index("ix_deliveries_method", deliveries.c.org_id, deliveries.c.method_id)

attempts = Table(
    "attempts",
    metadata,
    _id(),
    _org(),
    _ref("delivery_id", "deliveries"),
    _int("number"),
    _at("started_at", nullable=False),
    _at("ended_at"),
    _text("outcome"),  # sending, sent, retry, rejected, throttled, unknown, not_started
    _text("reason", default=""),
    _text("provider", default=""),
    sa.UniqueConstraint("org_id", "delivery_id", "number"),
)

cards = Table(
    "cards",
    metadata,
    _id(),
    _org(),
    _ref("incident_id", "incidents"),
    _text("channel"),
    _ref("person_id", "people", nullable=True),
    _text("channel_id", nullable=True),
    _text("ts", nullable=True),
    _text("broken", nullable=True),  # why no card can stand there, said once
    _at("shown_at"),
    _at("created_at", nullable=False),
    sa.UniqueConstraint("org_id", "incident_id", "channel"),
)
Index("ix_cards_message", cards.c.org_id, cards.c.channel_id, cards.c.ts)

inbound = Table(
    "inbound",  # ids of what Slack and Twilio sent, so that the same click twice is one effect
    metadata,
    Column("org_id", sa.BigInteger, primary_key=True, autoincrement=False),
    Column("source", sa.Text, primary_key=True),
    Column("external_id", sa.Text, primary_key=True),
    _at("at", nullable=False),
)
Index("ix_inbound_at", inbound.c.at)

# --- the schema itself ---------------------------------------------------------------------------

schema_mark = Table(
    "schema_mark",  # one row, written by every migration
    metadata,
    Column("id", sa.Integer, primary_key=True, autoincrement=False),
    _text("revision"),
    _int("oldest", default=None),  # the oldest version that may still work here, by its newest revision
    sa.CheckConstraint("id = 1", name="one_row"),
)
