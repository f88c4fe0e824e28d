"""The tables, and every invariant that SQL can hold.

Never holds a query. Every table has its organisation first in each unique index.
"""

from engine.schema.columns import (
    CARRIED,
    DEAD_LETTER,
    EPOCH,
    MICROSECOND,
    OPEN,
    REFERRED,
    UNFINISHED,
    Duration,
    Instant,
    Key,
    metadata,
)
from engine.schema.delivery import attempts, cards, deliveries
from engine.schema.incident import alerts, dedup_keys, incidents
from engine.schema.install import counters, schema_mark
from engine.schema.journal import events, inbound, timeline
from engine.schema.pace import paces
from engine.schema.person import LIVE, contact_methods, contact_rules, people, verifications
from engine.schema.policy import fallbacks, policies, policy_versions
from engine.schema.rota import (
    ASKING,
    calendar_feeds,
    calendar_imports,
    cover_offers,
    cover_parts,
    cover_requests,
    drafts,
    findings,
    handoffs,
    reminders_off,
    shift_marks,
    shown,
)
from engine.schema.schedule import overrides, schedule_versions, schedules
from engine.schema.service import api_tokens, integration_keys, maintenance_windows, services
from engine.schema.slack import rehearsals, slack_reports, slack_state
from engine.schema.timer import timers

__all__ = [
    "ASKING",
    "CARRIED",
    "DEAD_LETTER",
    "EPOCH",
    "LIVE",
    "MICROSECOND",
    "OPEN",
    "REFERRED",
    "UNFINISHED",
    "Duration",
    "Instant",
    "Key",
    "alerts",
    "api_tokens",
    "attempts",
    "calendar_feeds",
    "calendar_imports",
    "cards",
    "contact_methods",
    "contact_rules",
    "counters",
    "cover_offers",
    "cover_parts",
    "cover_requests",
    "dedup_keys",
    "deliveries",
    "drafts",
    "events",
    "fallbacks",
    "findings",
    "handoffs",
    "inbound",
    "incidents",
    "integration_keys",
    "maintenance_windows",
    "metadata",
    "overrides",
    "paces",
    "people",
    "policies",
    "policy_versions",
    "rehearsals",
    "reminders_off",
    "schedule_versions",
    "schedules",
    "schema_mark",
    "services",
    "shift_marks",
    "shown",
    "slack_reports",
    "slack_state",
    "timeline",
    "timers",
    "verifications",
]
