"""Hands a schedule over: tells its sheet once for each instant at which people change.

Never decides who is on call, and sends nothing itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from engine.db import Tx
from engine.directory import Directory, NamedSchedule
from engine.models import ORG, NewDelivery, Rank, TimerKind
from engine.rota import addressed, notice
from engine.rota.sheet import Facts, people_in, sheet
from engine.rota.shift_plan import LOOK_BACK, Handing
from engine.schedule import shifts
from engine.store import handoffs as store
from engine.store import timers
from engine.store.timers import Arming

ACCEPT: Final = "handoff_accept"
ACCEPT_WITHIN: Final = timedelta(minutes=15)
KEPT: Final = timedelta(days=90)  # only the newest of a schedule can still be accepted
CHANNEL: Final = "channel"  # to whom a post goes, beside the ids of people


async def hand_off(
    tx: Tx, directory: Directory, named: NamedSchedule, handing: Handing, now: datetime
) -> None:
    """Say who is on call now: in the schedule's channel, or without one to those who come on."""
    facts = await _facts(tx, directory, named, handing)
    coming = people_in(directory, handing.came)
    if named.channel:
        texts = {CHANNEL: sheet(directory, named, handing, facts, named.schedule.timezone)}
        mentions = [one.slack_user_id for one in coming if one.slack_user_id]
    else:
        texts = {str(one.id): sheet(directory, named, handing, facts, one.timezone) for one in coming}
        mentions = []
    number = await store.insert(
        tx, ORG, named.id, handing.at, handing.came, {"texts": texts, "mentions": mentions}
    )
    if number is None:
        return
    await store.forget(tx, ORG, named.id, now - KEPT)
    button = [{"do": ACCEPT, "label": "Accept", "value": str(number), "style": "primary"}]
    extra = {"mentions": mentions, **({"buttons": button} if handing.came else {})}
    posts = [
        _post(directory, named, key_of(number, to), to, {"text": text, **extra}, now)
        for to, text in texts.items()
    ]
    await notice.tell(tx, ORG, posts, now)
    if handing.came:
        await timers.arm(tx, ORG, [Arming(TimerKind.HANDOFF, number, now + ACCEPT_WITHIN, rank=Rank.NOTICE)])


def key_of(number: int, to: str) -> str:
    """Of a handoff's post in the channel, or to one who came."""
    return f"handoff:{number}" if to == CHANNEL else f"handoff:{number}:{to}"


def _post(
    directory: Directory, named: NamedSchedule, key: str, to: str, body: addressed.Body, now: datetime
) -> NewDelivery | None:
    if to == CHANNEL:
        return addressed.to_channel(named.channel or "", key, body, now)
    return addressed.to_person(directory.people[int(to)], key, body, now)


async def _facts(tx: Tx, directory: Directory, named: NamedSchedule, handing: Handing) -> Facts:
    services = _services(directory, named.id)
    opened, count = await store.open_incidents(tx, ORG, services)
    snoozed = await store.snoozed(tx, ORG, services, handing.until)
    noisy = await store.noisiest(tx, ORG, services, _last_shift_began(named, handing), handing.at)
    return Facts(opened, count, snoozed, noisy)


def _services(directory: Directory, schedule_id: int) -> list[int]:
    """Those whose policy pages this schedule at some level."""
    policies = {one.id for one in directory.policies_paging(schedule_id)}
    return sorted(one.id for one in directory.services.values() if one.policy_id in policies)


def _last_shift_began(named: NamedSchedule, handing: Handing) -> datetime:
    back = shifts(named.schedule, handing.at - LOOK_BACK, handing.at)
    return back[-1].start
