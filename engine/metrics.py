"""What can be counted from outside: Prometheus metrics of the pager, in one registry.

Never holds a label that a stranger can choose.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types for it

REGISTRY: Final = CollectorRegistry()
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)

events = Counter("midwatch_events", "Events accepted, by what became of them", ["outcome"], registry=REGISTRY)
ingest_seconds = Histogram(
    "midwatch_ingest_seconds", "From a request's arrival to its commit", buckets=SECONDS, registry=REGISTRY
)
ingest_batch = Histogram(
    "midwatch_ingest_batch_bodies",
    "Requests that shared one commit",
    buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500),
    registry=REGISTRY,
)
ingest_waiting = Gauge("midwatch_ingest_waiting", "Requests waiting for a commit", registry=REGISTRY)

timer_lateness_seconds = Histogram(
    "midwatch_timer_lateness_seconds",
    "From a timer's due time to its work",
    ["kind"],
    buckets=SECONDS,
    registry=REGISTRY,
)
timers_failed = Counter("midwatch_timers_failed", "Timers whose work failed", ["kind"], registry=REGISTRY)
timers_stale = Counter(
    "midwatch_timers_stale", "Timers of another epoch, which did nothing", registry=REGISTRY
)

attempts = Counter(
    "midwatch_attempts", "Attempts to send, by method and outcome", ["method", "outcome"], registry=REGISTRY
)
deliveries_dead = Counter(
    "midwatch_deliveries_dead", "Deliveries given up, by method", ["method"], registry=REGISTRY
)
dead_letters = Gauge(
    "midwatch_dead_letters",
    "Deliveries given up that nobody has retried or put aside, as of the last audit",
    registry=REGISTRY,
)
attempts_unknown = Counter(
    "midwatch_attempts_unknown",
    "Attempts whose end nobody recorded: the message may have been sent twice",
    registry=REGISTRY,
)
leases_lost = Counter(
    "midwatch_leases_lost", "Results dropped because another worker held the timer", registry=REGISTRY
)
sent_after_ack = Counter(
    "midwatch_sent_after_ack", "Pages that were in flight while somebody acknowledged", registry=REGISTRY
)
page_seconds = Histogram(
    "midwatch_page_seconds",
    "From an incident's opening to its first page",
    buckets=SECONDS,
    registry=REGISTRY,
)

responses = Counter(
    "midwatch_responses",
    "Answers of people, by what they asked and by which way",
    ["command", "via"],
    registry=REGISTRY,
)
slack_up = Gauge("midwatch_slack_up", "1 while Slack works both ways", registry=REGISTRY)
slack_state = Gauge(
    "midwatch_slack_state", "1 for how Slack is by all processes together", ["state"], registry=REGISTRY
)
slack_silent_seconds = Gauge(
    "midwatch_slack_silent_seconds", "Since the last click, command or event of Slack", registry=REGISTRY
)
slack_unexpected_connections = Gauge(
    "midwatch_slack_unexpected_connections",
    "Sockets of our Slack app that none of our processes holds",
    registry=REGISTRY,
)
slack_clock_skew_seconds = Gauge(
    "midwatch_slack_clock_skew_seconds", "How far this clock is ahead of Slack's", registry=REGISTRY
)
loop_tick = Gauge(
    "midwatch_loop_last_tick_seconds", "When a loop last ticked, Unix time", ["loop"], registry=REGISTRY
)
worker_silent_seconds = Gauge(
    "midwatch_worker_silent_seconds",
    "For how long no worker of any process has ticked, as this process sees it",
    registry=REGISTRY,
)
audit_findings = Gauge(
    "midwatch_audit_findings", "Broken invariants found by the last audit", ["invariant"], registry=REGISTRY
)
audit_repairs = Counter(
    "midwatch_audit_repairs", "Broken invariants that the audit repaired", ["invariant"], registry=REGISTRY
)
heartbeats = Counter(
    "midwatch_heartbeats",
    "Pings of the dead man's switch, by outcome",
    ["outcome"],
    registry=REGISTRY,
)
database_up = Gauge(
    "midwatch_database_up", "1 while the database takes commits of this process", registry=REGISTRY
)
clock_jumps = Counter(
    "midwatch_clock_jumps", "Jumps of the wall clock, suspends and stalls", ["kind"], registry=REGISTRY
)
clock_skew_seconds = Gauge(
    "midwatch_clock_skew_seconds", "How far this host's clock is ahead of the database's", registry=REGISTRY
)
