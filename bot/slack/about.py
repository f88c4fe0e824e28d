"""What Midwatch tells about itself: help and status.

Never looks anything up and never sends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Final

from bot import condition_words
from bot.slack import escape, words
from bot.slack.answers import paragraphs
from bot.slack.grammar.times import FORMS
from bot.slack.health import SlackHealth, SlackState
from bot.slack.message import Message
from engine.directory import Directory
from engine.models import Urgency
from engine.notify.slack_watch import SlackWatch
from engine.outage import Figures, Standing
from engine.pager.ladder import Resolver, reaches_somebody
from engine.rota.on_call import OnCallNow

TOPICS: Final[Mapping[str, tuple[str, ...]]] = {
    "who": (
        "`/oncall` or `/oncall who` – who is on call on every schedule, until when, and who is next",
        "`/oncall who payments` – one schedule · `/oncall who @ana` – one person",
        "`/oncall who payments at fri 18:00` – another time · `/oncall who payments next 5` – what follows",
    ),
    "shifts": (
        "`/oncall shifts` – when you are on call · `/oncall shifts @ana`",
        "`/oncall shifts payments fri to mon` – everybody's on a schedule, with its gaps",
    ),
    "incidents": (
        "`/oncall list` – open incidents · `/oncall show 42` – one with its timeline",
        "`/oncall why 42` – everything that was tried, why, and what comes next",
        "`/oncall ack 42 43` · `unack 42` · `resolve 42` · `reopen 42` · `escalate 42`",
        "`/oncall snooze 42 30m` or `until 09:00` · `/oncall note 42 rebooted db-1`",
        "`/oncall merge 42 into 41` – 42 is over, its alerts go on on 41 · `/oncall unmerge 42`",
        "`/incident` knows the same verbs. In the thread of a card `@Midwatch ack` is enough.",
    ),
    "page": ("`/page payments Disk full on db1` – pages whoever is on call; a service or its schedule",),
    "override": (
        "`/override` – a form · `/override @ana 2h` – Ana is on call from now",
        "`/override payments @ana tomorrow 9am to 5pm` · `/override me fri 18:00 - mon 9:00`",
        "`/override list` · `/override cancel 7`",
    ),
    "cover": (
        "`/oncall cover me fri 18:00-22:00` – asks the people of your schedule; the first who accepts has it",
        "`/oncall cover list` · `take 3 [18:00-20:00]` · `decline 3` · `cancel 3`",
    ),
    "schedule": (
        "`/oncall schedule` – those there are · `/oncall schedule show payments` – its weeks as a picture",
        "`/oncall schedule new` – a form · `edit payments` – shows what it changes before it is saved",
        "`/oncall schedule delete payments` – asks first; not while a policy pages it",
    ),
    "calendar": (
        "`/oncall me calendar` – a link to your shifts, for any calendar program · `new` · `revoke`",
        "`/oncall schedule calendar payments` – the same for a whole schedule",
        "`/oncall schedule import payments https://…/basic.ics` – follow a calendar of yours · `off`",
    ),
    "group": (
        "`/oncall schedule group payments @payments-oncall` – a user group holds whoever is on call · `off`",
        "`/oncall schedule topic payments on` – the channel's topic says who is on call · `off`",
    ),
    "maintenance": (
        "`/oncall maintenance checkout 2h new switches` – nobody is paged for it, a day at most",
        "`/oncall maintenance` – what is on or planned · `/oncall maintenance end checkout`",
    ),
    "me": (
        "`/oncall me` – makes you a person who can be paged; shows how you are reached, and changes it",
        "`/oncall me add sms +12025550143` · `verify 123456` · `remove sms` – or `voice`, `email`, `push`",
        "`/oncall me rules high: slack now, sms after 1m, voice after 3m` · `rules reset` – the usual order",
        "`/oncall me test` – pages you alone, by all that is verified, and says what arrived",
        "`/oncall me ask-everybody` – to verify what they have not (admins)",
        "`/oncall me reminders off [24h|1h|start|end]` – messages about your shifts; `on` brings them back",
    ),
    "dead": (
        "`/oncall dead` – what could not be delivered, and why · `/oncall why 42` – the same of one incident",
        "`/oncall retry 17` · `retry like 17` – all of its cause · `retry all` – what is still wanted",
        "`/oncall dead clear 17` – out of the list, unsent (admins)",
    ),
    "status": (
        "`/oncall status` – is everything that should page able to?",
        "`/oncall test outage payments` – rehearses that Slack is down: pages by SMS and call, asks first",
    ),
    "times": (f"Times in your own zone: {FORMS}",),
}


def help_on(topic: str | None) -> Message:
    if topic is None:
        return paragraphs(["*Midwatch pages whoever is on call, until somebody answers.*", *_all(), _known()])
    near = get_close_matches(topic, TOPICS, n=1, cutoff=0.5)
    if not near:
        return paragraphs([f"There is no help on {escape.code(topic, 40)}. {_known()}"])
    return paragraphs([f"*{near[0]}*", *TOPICS[near[0]]])


def unknown(typed: str, suggestion: str | None) -> Message:
    meant = f" Did you mean `{suggestion}`?" if suggestion else ""
    return paragraphs([f"I don't know {escape.code(typed, 60)}.{meant}", *_all()])


def _known() -> str:
    return f"One topic alone: `/oncall help override`. Topics: {', '.join(f'`{name}`' for name in TOPICS)}."


def _all() -> list[str]:
    return [line for lines in TOPICS.values() for line in lines]


def status(
    health: SlackHealth,
    directory: Directory,
    rows: Sequence[OnCallNow],
    open_now: int,
    silent: timedelta | None,
    now: datetime,
    *,
    windows: int = 0,
    ahead: Sequence[tuple[str, str]] = (),
    dead: int = 0,
    watch: SlackWatch | None = None,
) -> Message:
    """`silent`: for how long no worker of any process has left word that it works, if that is too long."""
    lines = [
        _slack(health, watch, now),
        f"{'🔴' if open_now else '🟢'} {open_now} open incident{'' if open_now == 1 else 's'}",
    ]
    if silent is not None:
        quiet = words.duration(silent)
        lines.append(f"🚨 No worker has ticked for {quiet}: nobody is paged. Start one: `midwatch run`")
    if dead:
        lines.append(f"🪦 {dead} dead letter{'' if dead == 1 else 's'}: `/oncall dead`")
    if windows:
        lines.append(f"🔧 {windows} maintenance on or planned: `/oncall maintenance`")
    lines += [*_unstaffed(directory, rows, now), *_slack_faults(health, watch)]
    lines.append(f"{len(directory.people)} people · {len(directory.schedules)} schedules")
    # Why last: it may be more than fits, and what is wrong now must be there to read.
    lines += [f"🔭 *{escape.line(schedule, 60)}*: {escape.line(text, 400)}" for schedule, text in ahead]
    return paragraphs(lines)


def _unstaffed(directory: Directory, rows: Sequence[OnCallNow], now: datetime) -> Iterator[str]:
    """Where a page would reach nobody."""
    empty = [escape.line(row.schedule, 60) for row in rows if not row.people]
    if empty:
        yield f"🚨 Nobody is on call on {', '.join(empty[:20])}"
    if not reaches_somebody(Resolver(directory, Urgency.HIGH, now).chain(None)):
        yield "🚨 The fallback chain is empty: when nobody can be reached, nobody hears of it"
    without = [service.name for service in directory.services.values() if service.policy_id is None]
    if without:
        yield f"⚠️ Without a policy: {', '.join(escape.line(name, 60) for name in without[:20])}"


def _slack_faults(health: SlackHealth, watch: SlackWatch | None) -> Iterator[str]:
    if health.missing_scopes:
        yield f"⚠️ Slack scopes missing: {', '.join(health.missing_scopes)}; reinstall from manifest.yaml"
    if health.probe_off:
        yield f"⚠️ A socket that goes deaf would not be noticed: {escape.line(health.probe_off, 120)}"
    figures = watch.figures if watch is not None else Figures()
    # Why this process's own too: it may have seen it just now.
    figures = replace(figures, skew=max(figures.skew, health.clock_skew, key=abs))
    yield from (f"⚠️ {escape.line(fault, 200)}" for fault in condition_words.slack_faults(figures))


def _slack(health: SlackHealth, watch: SlackWatch | None, now: datetime) -> str:
    """By all processes together; by this one alone where nobody has looked yet."""
    standing = watch.standing if watch is not None else None
    if standing is None:
        standing = Standing(health.state, health.since, health.reason, health.last_event_at)
    said = condition_words.slack(standing, watch.figures if watch is not None else Figures(), now)
    sign = {SlackState.UP: "🟢", SlackState.DEGRADED: "🟡", SlackState.DOWN: "🔴"}[standing.state]
    return f"{sign} {escape.line(said, 300)}"
