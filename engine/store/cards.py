"""Card rows: where a Slack message shows an incident. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from engine.bulk import Insert, ReturningInsert, insert_many
from engine.db import Tx, any_of, given, given_list
from engine.models import Card
from engine.schema import alerts, cards, incidents

COLUMNS = (
    cards.c.id,
    cards.c.org_id,
    cards.c.incident_id,
    cards.c.channel,
    cards.c.person_id,
    cards.c.channel_id,
    cards.c.ts,
    cards.c.shown_at,
)


def _card(row: Any) -> Card:
    return Card(*row)


_READ = sa.select(*COLUMNS).where(any_of(cards.c.id, given_list("ids", cards.c.id))).order_by(cards.c.id)


async def read(tx: Tx, card_ids: Sequence[int]) -> list[Card]:
    rows = await tx.execute(_READ, {"ids": card_ids})
    return [_card(row) for row in rows]


_LOCK = (
    sa.select(cards.c.id)
    .where(any_of(cards.c.id, given_list("ids", cards.c.id)))
    .order_by(cards.c.id)
    .with_for_update(key_share=True)
)


async def lock(tx: Tx, card_ids: Sequence[int]) -> None:
    await tx.execute(_LOCK, {"ids": card_ids})


_OF_INCIDENTS = (
    sa.select(*COLUMNS)
    .where(
        cards.c.org_id == given("org", cards.c.org_id),
        any_of(cards.c.incident_id, given_list("incidents", cards.c.incident_id)),
        cards.c.broken.is_(None),
    )
    .order_by(cards.c.id)
)


async def of_incidents(tx: Tx, org_id: int, incident_ids: Sequence[int]) -> list[Card]:
    """The cards of these incidents that can be shown."""
    rows = await tx.execute(_OF_INCIDENTS, {"org": org_id, "incidents": incident_ids})
    return [_card(row) for row in rows]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an incident is shown, since when, or why it cannot be."""

    channel: str
    created_at: datetime
    shown_at: datetime | None
    broken: str | None


async def places_of(tx: Tx, org_id: int, incident_id: int) -> list[Place]:
    """Broken ones too."""
    rows = await tx.execute(
        sa.select(cards.c.channel, cards.c.created_at, cards.c.shown_at, cards.c.broken)
        .where(cards.c.org_id == org_id, cards.c.incident_id == incident_id, cards.c.person_id.is_(None))
        .order_by(cards.c.id)
    )
    return [Place(*row) for row in rows]


_BY_MESSAGE = sa.select(*COLUMNS).where(
    cards.c.org_id == given("org", cards.c.org_id),
    cards.c.channel_id == given("conversation", cards.c.channel_id),
    cards.c.ts == given("at", cards.c.ts),
)


async def by_message(tx: Tx, org_id: int, channel_id: str, ts: str) -> Card | None:
    rows = await tx.execute(_BY_MESSAGE, {"org": org_id, "conversation": channel_id, "at": ts})
    row = rows.first()
    return None if row is None else _card(row)


async def ensure_all(tx: Tx, org_id: int, places: Iterable[tuple[int, str]], now: datetime) -> list[int]:
    """The cards of incidents in channels, made where there is none yet."""
    rows = [{"incident_id": incident, "channel": channel} for incident, channel in sorted(set(places))]
    if not rows:
        return []
    same = {"org_id": org_id, "person_id": None, "created_at": now}
    return list((await insert_many(tx, cards, rows, _or_found, same)).scalars())


def _or_found(insert: Insert) -> ReturningInsert[Any]:
    return insert.on_conflict_do_update(
        index_elements=["org_id", "incident_id", "channel"], set_={"channel": insert.excluded.channel}
    ).returning(cards.c.id)


@dataclass(frozen=True, slots=True)
class Posted:
    """A message that shows an incident; one in a conversation with somebody is that person's card."""

    incident_id: int
    channel: str
    person_id: int | None
    channel_id: str
    ts: str


async def posted(tx: Tx, org_id: int, new: Sequence[Posted], now: datetime) -> None:
    """These messages are the cards of their incidents there; of two in one place the last one is."""
    last = {(one.incident_id, one.channel): one for one in new}
    if last:
        rows = [asdict(one) for _, one in sorted(last.items())]
        same = {"org_id": org_id, "created_at": now, "shown_at": now}
        await insert_many(tx, cards, rows, _in_its_place, same)


def _in_its_place(insert: Insert) -> sa.Insert:
    new = insert.excluded
    return insert.on_conflict_do_update(
        index_elements=["org_id", "incident_id", "channel"],
        set_={"channel_id": new.channel_id, "ts": new.ts, "shown_at": new.shown_at, "broken": None},
    )


_CARD = sa.update(cards).where(cards.c.id == given("card", cards.c.id))
_PLACED = _CARD.values(
    channel_id=given("conversation", cards.c.channel_id),
    ts=given("at", cards.c.ts),
    shown_at=given("now", cards.c.shown_at),
    broken=None,
)
_SHOWN = _CARD.values(shown_at=given("now", cards.c.shown_at))


async def placed(tx: Tx, card_id: int, channel_id: str, ts: str, now: datetime) -> None:
    await tx.execute(_PLACED, {"card": card_id, "conversation": channel_id, "at": ts, "now": now})


async def shown(tx: Tx, card_id: int, now: datetime) -> None:
    await tx.execute(_SHOWN, {"card": card_id, "now": now})


async def lost(tx: Tx, card_id: int) -> None:
    """Its message is gone: the next time it is posted anew."""
    await tx.execute(sa.update(cards).where(cards.c.id == card_id).values(channel_id=None, ts=None))


async def broken(tx: Tx, card_id: int, reason: str) -> bool:
    """No card can stand there. True if nobody had said so before."""
    row = await tx.execute(
        sa.update(cards).where(cards.c.id == card_id, cards.c.broken.is_(None)).values(broken=reason)
    )
    return row.rowcount == 1


async def of_open_incidents(tx: Tx, org_id: int) -> list[tuple[int, int]]:
    """(card id, incident id) of every open incident, newest first: all shown anew after an outage."""
    rows = await tx.execute(
        sa.select(cards.c.id, cards.c.incident_id)
        .join(incidents, incidents.c.id == cards.c.incident_id)
        .where(cards.c.org_id == org_id, cards.c.broken.is_(None), sa.text("incidents.status <> 'resolved'"))
        .order_by(cards.c.incident_id.desc(), cards.c.id)
    )
    return [(row.id, row.incident_id) for row in rows]


async def outdated(tx: Tx, org_id: int, older_than: timedelta, now: datetime, limit: int) -> list[int]:
    """Cards whose alerts were counted up since they were shown, and that were left alone long enough."""
    latest = (
        sa.select(sa.func.max(alerts.c.last_seen_at))
        .where(alerts.c.org_id == org_id, alerts.c.incident_id == cards.c.incident_id)
        .scalar_subquery()
    )
    rows = await tx.execute(
        sa.select(cards.c.id)
        .join(incidents, incidents.c.id == cards.c.incident_id)
        .where(
            cards.c.org_id == org_id,
            cards.c.broken.is_(None),
            cards.c.shown_at < now - older_than,
            cards.c.shown_at < latest,
            sa.text("incidents.status <> 'resolved'"),
        )
        .order_by(cards.c.incident_id.desc())
        .limit(limit)
    )
    return list(rows.scalars())
