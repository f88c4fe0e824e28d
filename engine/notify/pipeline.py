"""The delivery pipeline: admit, begin, send, record.

Delivery is at least once: a crash between send and record sends again, with the same delivery id.
Nothing is sent inside a transaction, and no attempt begins after an ack has committed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog

from engine import metrics
from engine.backoff import MOST_ATTEMPTS
from engine.clock import Clock, monotonic
from engine.contacts import codes
from engine.db import Database, Tx, Writer
from engine.directory import Directory
from engine.errors import LeaseLost, Unavailable
from engine.models import (
    Carried,
    DeliveryKind,
    Method,
    Outcome,
    Page,
    Rejected,
    Retry,
    Sent,
    Throttled,
    Timer,
)
from engine.notify import bundle
from engine.notify.admission import Admission
from engine.notify.begin import LEASE, Begun, begin
from engine.notify.breaker import Breakers, breaker_key
from engine.notify.paces import Paces
from engine.notify.record import Ended, Recorded
from engine.notify.recorder import Recorder
from engine.notify.render import SLACK_DOWN
from engine.notify.route import NoRoute, Route, route
from engine.notify.slack_watch import SlackWatch
from engine.notify.suspects import Suspects
from engine.notify.transport import Transport, Transports
from engine.notify.unworkable import TRIES, give_up, put_off
from engine.notify.verdict import Unstarted, Waits
from engine.nudge import Nudge
from engine.outage import WAIT
from engine.vault import Vault

log = structlog.get_logger(__name__)

SLACK: Final = frozenset({Method.SLACK, Method.CHANNEL})
SEND_TIMEOUT: Final = LEASE * 3 / 10  # longer, and a send with its record could outlive its lease
START_WITHIN: Final = timedelta(seconds=1)  # of the commit that began it, else it is put back
IN_FLIGHT: Final = 100  # as many as an HTTP client has connections: none waits for one under its lease
TOGETHER: Final = 32  # sends that begin in one transaction when many are in flight
LINGER: Final = timedelta(milliseconds=50)  # and how long the first of them waits for the others
OVERDUE: Final = timedelta(seconds=1)  # then the incident's lock is waited for
SUSPECTS: Final = 5  # in one go: each is a few commits, and a new page waits for them
WAIT_FOR: Final = 3  # of them in one go: each wait holds up the lane
PATIENCE: Final = timedelta(milliseconds=250)  # for one of them


class Pipeline:
    """Handles due `deliver` timers. Sends run by themselves; `drain` waits for those in flight."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        directory_now: Callable[[], Awaitable[Directory]],
        nudge: Nudge,
        transports: Transports,
        *,
        owner: str,
        ops_channel: str | None = None,
        slack: SlackWatch | None = None,
        paces: Paces | None = None,
        vault: Vault | None = None,
    ) -> None:
        """`vault` opens the codes that verify a contact method; without it none can be sent."""
        self._database = database
        self._clock = clock
        self._directory_now = directory_now
        self._nudge = nudge
        self._transports = transports
        self._owner = owner
        self._ops_channel = ops_channel
        self._slack = slack
        self._vault = vault
        self.breakers = Breakers()
        self._admission = Admission(database, paces or Paces.per_second())
        self._recorder = Recorder(database, clock)
        self._suspects = Suspects(database, clock.now())
        self._flying: set[asyncio.Task[None]] = set()
        self._known_held: set[int] = set()  # timers: said once, and not at every look
        self._began_at = monotonic()  # sends, the last time

    @property
    def capacity(self) -> int:
        """How many more sends may begin: none ever waits under a lease."""
        free = max(0, IN_FLIGHT - len(self._flying))
        # Why: when all are in flight, places come free one by one, and a transaction for each would be
        # most of the work.
        if free < TOGETHER and monotonic() - self._began_at < LINGER.total_seconds():
            return 0
        return free

    async def handle(self, due: Sequence[Timer]) -> int:
        """Begin what may begin now; returns how many timers were moved, ended or begun."""
        batch = list(due)[: self.capacity]
        found, tries = await self._suspects.sort(batch)
        done = await self._together(found.usual)
        if found.left:
            done += await self._counted(found.left)
        for timer in found.suspects[:SUSPECTS]:
            if tries[timer.id] >= TRIES:
                done += await self._end(partial(give_up, timer=timer, tries=tries[timer.id]))
            elif ended := await self._counted([timer], at_once=True):
                done += ended
            else:
                self._suspects.put_last(timer)
        return done

    async def _counted(self, old: Sequence[Timer], *, at_once: bool = False) -> int:
        """Begin what may have ended a process before: it is counted while we are at it.

        `at_once`: whoever was told a moment ago. Put off, it would be a suspect no more.
        """
        now = self._clock.now()
        ours = await self._suspects.count(old, now)
        try:
            done = await self._together(ours, at_once=at_once)
        except Unavailable:
            await self._suspects.survived(ours, now)
            raise
        await self._suspects.survived(ours, now)
        return done

    async def _together(self, batch: Sequence[Timer], *, at_once: bool = False) -> int:
        if not batch:
            return 0
        try:
            done, skipped = await self._start(batch, at_once=at_once)
        except Unavailable:
            raise
        except Exception:
            log.exception("deliver.batch_failed", timers=len(batch))
            return sum([await self._alone(timer, at_once=at_once) for timer in batch])
        waited = [timer for timer in skipped if self._clock.now() - timer.due_at > OVERDUE]
        return done + sum([await self._alone(timer, at_once=at_once) for timer in waited[:WAIT_FOR]])

    async def _start(
        self, batch: Sequence[Timer], wait: timedelta | None = None, *, at_once: bool = False
    ) -> tuple[int, Sequence[Timer]]:
        """How many were moved, ended or begun, and what belongs to incidents that somebody holds."""
        now = self._clock.now()
        admitted, moved = await self._admission.admit(batch, now, at_once=at_once)
        if not admitted:
            return moved, ()
        # Why before: a failure between the commit and the sends would leave them to their leases.
        known = await self._directory_now()
        counted = self._suspects.counted(admitted)
        beginning = await self._database.write(
            lambda tx: begin(tx, admitted, self._owner, now, wait=wait, counted=counted, at_once=at_once),
            rank=Writer.ESCALATE,
        )
        self._suspects.begun(counted)
        self._admission.owe(beginning.skipped)
        committed = self._began_at = monotonic()
        metrics.attempts_unknown.inc(beginning.unknown)
        for one in beginning.begun:
            self._launch(self._fly(one, known, committed), f"deliver-{one.delivery.id}")
        return moved + beginning.worked, beginning.skipped

    async def _alone(self, timer: Timer, *, at_once: bool) -> int:
        """One delivery, waiting for its incident; what cannot be worked keeps no other waiting."""
        try:
            done, held = await self._start([timer], PATIENCE, at_once=at_once)
        except Unavailable:
            log.warning("deliver.unavailable", delivery=timer.subject_id)
            return 0
        except Exception:
            log.exception("deliver.unworkable", delivery=timer.subject_id)
            metrics.timers_failed.labels(timer.kind).inc()
            return await self._end(partial(put_off, timer=timer))
        if held and timer.id not in self._known_held:
            log.warning("deliver.held", delivery=timer.subject_id)
        self._known_held = {*self._known_held, timer.id} if held else self._known_held - {timer.id}
        return done

    async def _end(self, unit: Callable[[Tx, datetime], Awaitable[int]]) -> int:
        """How many were given up. Counted after the commit, since a unit may be run again."""
        now = self._clock.now()
        dead = await self._database.write(lambda tx: unit(tx, now), rank=Writer.OUTCOME)
        metrics.deliveries_dead.labels("unknown").inc(dead)
        return dead

    def _launch(self, flight: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(flight, name=name)
        self._flying.add(task)
        task.add_done_callback(self._flying.discard)

    async def drain(self) -> None:
        while self._flying:
            await asyncio.wait(set(self._flying))

    # --- the send, outside any transaction, and its record --------------------------------------------

    async def _fly(self, begun: Begun, known: Directory, committed: float) -> None:
        try:
            late = monotonic() - committed > START_WITHIN.total_seconds()
            ended = _ended(begun, Unstarted()) if late else await self._send(begun, known)
            await self._record(ended, known)
            if isinstance(ended.outcome, Sent):
                return  # what that armed (a card) can wait for the next look
        except Unavailable:
            # The row stays `sending` until its lease ends; then it is taken up again and counted.
            log.warning("deliver.unrecorded", delivery=begun.delivery.id)
        except LeaseLost:
            log.warning("deliver.lease_lost", delivery=begun.delivery.id, attempt=begun.number)
        except Exception:
            log.exception("deliver.failed", delivery=begun.delivery.id)
        self._nudge()

    async def _record(self, ended: Ended, known: Directory) -> None:
        """Each delivery of a message by itself: one that cannot be recorded costs no other its record."""
        together = [ended, *(replace(ended, begun=one) for one in ended.begun.carried)]
        done = await asyncio.gather(
            *(self._recorder.record(one, known) for one in together), return_exceptions=True
        )
        recorded = [one for one in done if isinstance(one, Recorded)]
        delivery, sent = ended.delivery, ended.outcome
        for_nothing = len(recorded) == len(together) and all(one.too_late for one in recorded)
        if isinstance(sent, Sent) and for_nothing and delivery.method is Method.VOICE:
            self.hang_up([(sent.provider, sent.ref, delivery.person_id)])
        for one in done:
            if isinstance(one, BaseException):
                raise one

    async def _send(self, begun: Begun, known: Directory) -> Ended:
        delivery, view = begun.delivery, begun.view
        where = route(delivery, known, view.channel if view else None, self._ops_channel)
        if isinstance(where, NoRoute):
            return _ended(begun, Rejected(where.reason, quiet=where.quiet))
        if delivery.attempts >= MOST_ATTEMPTS:
            # Why: whatever ends the process each time it is sent must not do so for ever.
            return _ended(begun, Rejected("none of its attempts ever ended"), where.address)
        away = None if self._slack is None else await self._slack.away_for(view)
        if away is not None and delivery.method in SLACK:
            return _ended(begun, Waits(self._clock.now() + WAIT, away), where.address)
        page = _with_code(_page(begun, where), self._vault)
        if away is not None:
            page = replace(page, body={**page.body, SLACK_DOWN: True})
        tried = await self._attempt(page)
        outcome = tried.outcome
        if isinstance(outcome, Throttled):
            await self._admission.hold(delivery, outcome.until)
        metrics.attempts.labels(delivery.method.value, type(outcome).__name__.lower()).inc()
        log.info(
            "delivery.attempted",
            delivery=delivery.id,
            attempt=begun.number,
            method=delivery.method.value,
            outcome=type(outcome).__name__.lower(),
            reason=getattr(outcome, "reason", ""),
        )
        ended = _ended(begun, outcome, where.address, threaded="thread_ts" in page.body)
        return replace(ended, provider=tried.provider, passed_over=tried.passed_over, refused=tried.refused)

    async def _attempt(self, page: Page) -> Tried:
        """Send by the first provider that is not down; one that refuses us, or that surely sent nothing, is
        passed over at once. A next attempt begins with the next provider."""
        candidates = in_turn(self._transports.for_method(page.method), page.attempt)
        if not candidates:
            return Tried(Rejected(f"no provider for {page.method} is set up"))
        if page.attempt > 1 and (found := await self._transports.sent_before(page)) is not None:
            return Tried(found, found.provider)
        passed_over: list[str] = []
        refused: list[str] = []
        tried = Tried(Retry(f"every provider for {page.method} is down"))
        # Why one deadline for all: together they must not outlive the lease.
        deadline = asyncio.get_running_loop().time() + SEND_TIMEOUT.total_seconds()
        for transport in candidates:
            key = breaker_key(transport.provider, page.method, page.address)
            if not self.breakers.allows(key, self._clock.now()):
                passed_over.append(f"{transport.provider} was down")
                continue
            outcome = await self._try(transport, page, deadline)
            self.breakers.record(key, outcome, self._clock.now())
            refused += [outcome.reason] if isinstance(outcome, Retry) and outcome.down else []
            tried = Tried(outcome, transport.provider, tuple(passed_over), tuple(refused))
            if not (isinstance(outcome, Retry) and (outcome.down or outcome.unsent)):
                break
            passed_over.append(f"{transport.provider}: {outcome.reason}")
        return tried if tried.provider else replace(tried, passed_over=tuple(passed_over))

    async def _try(self, transport: Transport, page: Page, deadline: float) -> Outcome:
        try:
            async with asyncio.timeout_at(deadline):
                return await transport.send(page)
        except TimeoutError:
            return Retry("no answer in time: it may have been sent")
        except Exception as error:
            log.exception("transport.raised", provider=transport.provider, delivery=page.id)
            return Retry(f"unexpected {type(error).__name__}")

    # --- calls that ring for nothing ------------------------------------------------------------------

    def hang_up(self, calls: Sequence[tuple[str, str, int | None]]) -> None:
        """End these calls, by themselves: (provider, reference, person)."""
        for provider, ref, _ in calls:
            self._launch(self._end_call(provider, ref), "hang-up")

    async def _end_call(self, provider: str, ref: str) -> None:
        try:
            async with asyncio.timeout(SEND_TIMEOUT.total_seconds()):
                await self._transports.hang_up(provider, ref)
        except Exception:
            log.exception("call.not_hung_up", provider=provider)


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of an attempt, by which provider, and which others were passed over for it and why."""

    outcome: Outcome
    provider: str = ""
    passed_over: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()  # why a provider wants nothing of us at all


def in_turn(transports: Sequence[Transport], attempt: int) -> Sequence[Transport]:
    """Why not the same one first each time: one that takes everything and answers nothing would have all
    attempts of a lone page, which are fewer than the faults that open a breaker."""
    first = (attempt - 1) % len(transports) if transports else 0
    return [*transports[first:], *transports[:first]]


def _ended(
    begun: Begun, outcome: Outcome | Unstarted | Waits, address: str = "", *, threaded: bool = False
) -> Ended:
    jitter = random.uniform(-1, 1)  # noqa: S311  # spreads retries, no secret
    return Ended(begun, address, outcome, jitter, threaded)


def _page(begun: Begun, where: Route) -> Page:
    delivery = begun.delivery
    body = dict(delivery.body)
    news = _news(begun)
    in_thread = bool(body.pop("thread", False)) or delivery.kind is DeliveryKind.PAGE
    if delivery.method is Method.CHANNEL and in_thread:
        card = next((one for one in begun.cards if one.channel == where.address and one.ts), None)
        if card is not None:
            body |= {"thread_ts": card.ts, "channel_id": card.channel_id}
    return Page(
        id=delivery.id,
        since=delivery.created_at,
        attempt=begun.number,
        kind=delivery.kind,
        method=delivery.method,
        address=where.address,
        person=where.person,
        person_id=delivery.person_id if where.person is not None else None,
        incident=None if news else begun.view,
        text=news or str(body.get("text", "")),
        body=body,
        carried=tuple(
            Carried(one.delivery.id, one.number, one.view) for one in begun.carried if one.view is not None
        ),
    )


def _with_code(page: Page, vault: Vault | None) -> Page:
    """A code is in clear from here to its provider, and nowhere else."""
    if page.kind is not DeliveryKind.VERIFICATION or vault is None or codes.SEALED not in page.body:
        return page
    code = vault.decrypt(str(page.body[codes.SEALED]))
    body = {name: value for name, value in page.body.items() if name != codes.SEALED}
    return replace(page, text=codes.words(code, page.method), body=body)


def _news(begun: Begun) -> str:
    """Of several status updates in one message: each with the number of its incident."""
    each = [begun, *begun.carried]
    if len(each) == 1 or begun.delivery.kind is not DeliveryKind.STATUS:
        return ""
    told = [(one.view.number, one.delivery.body.get("text", "")) for one in each if one.view is not None]
    return bundle.in_words([f"#{number} {text}" for number, text in told])
