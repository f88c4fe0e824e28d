"""The same questions to each project: how late, how often twice, what a kill loses, what it costs.

A timer's lateness is from its due time, as it was stored, to the commit of its effect, as PostgreSQL
noted it: no worker measures itself.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import asyncpg

from tests.bench.peers.peer import EFFECTS, Due, Peer
from tests.bench.peers.processes import Worker, workers

MONTH_S: Final = 30 * 86_400
BATCH: Final = 2_000
PATIENCE_S: Final = 8.0  # after the last due time, for those that keep up
ROUNDS: Final = 4
AFTER_KILLS_S: Final = 10.0  # who was killed is counted for some seconds by those that count each other
SETTLED_S: Final = 3.0  # after its start a worker has no more to set up
STATEMENT: Final = re.compile(rb"LOG:  (?:statement|execute [^:]*): (?!BEGIN|COMMIT|ROLLBACK)")
LEAD_S: Final = 2.0  # between the last arming and the first due time

FIRED = """
    SELECT due.id, due.at,
           array_agg(extract(epoch FROM pg_xact_commit_timestamp(effects.xmin))::float8 ORDER BY 1)
               FILTER (WHERE effects.id IS NOT NULL)
    FROM due LEFT JOIN effects USING (id) GROUP BY due.id, due.at
"""


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything: of `make bench`, and of its short form."""

    pending: int = 1_000_000
    seconds: float = 5.0
    rates: tuple[int, ...] = (1_000, 5_000)
    kills: int = 5
    ours: int = 50  # kills of Midwatch, besides
    sample: int = 20_000  # armed in batches, to measure it
    singly: int = 1_000
    near: int = 200
    idle_s: float = 10.0


SHORT: Final = Size(20_000, 1.0, (500,), 2, 5, 2_000, 100, 20, 2.0)


@dataclass(frozen=True, slots=True)
class Fired:
    """What became of timers: how late each fired first, how many never did, how many effects too many."""

    lateness: Sequence[float] = ()
    lost: int = 0
    twice: int = 0
    kills: int = 0

    def __add__(self, other: Fired) -> Fired:
        lateness = [*self.lateness, *other.lateness]
        return Fired(lateness, self.lost + other.lost, self.twice + other.twice, self.kills + other.kills)

    @property
    def armed(self) -> int:
        return len(self.lateness) + self.lost

    def quantile(self, q: float) -> float:
        ordered = sorted(self.lateness) or [float("inf")]
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


@dataclass(slots=True)
class Answers:
    """One column of the table."""

    peer: Peer
    pending: int
    singly: float = 0.0  # armed a second
    batches: float = 0.0
    idle: float = 0.0  # statements a second with nothing due
    fired: dict[int, Fired] = field(default_factory=dict)  # by rate
    near: Fired = Fired()
    two: Fired = Fired()
    two_rate: int = 0
    killed: dict[int, Fired] = field(default_factory=dict)  # by the number of kills


class Measure:
    """All runs of one project, on one database."""

    def __init__(self, name: str, peer: Peer, url: str, size: Size) -> None:
        self._name = name
        self._peer = peer
        self._url = url
        self._size = size
        self._ids = itertools.count(1)
        self.answers = Answers(peer, min(size.pending, peer.pending))

    async def run(self) -> Answers:
        await self._peer.install(self._url)
        await self._execute(EFFECTS)
        await self._arming()
        await self._idle()
        self.answers.near = await self._near()
        self.answers.two_rate = min(self._size.rates[0], self._peer.steady)
        self.answers.two = await self._fire(self.answers.two_rate, 2)
        for kills in (self._size.kills, self._size.ours if self._name == "midwatch" else 0):
            if kills:
                self.answers.killed[kills] = await self._kill(kills)
        await asyncio.sleep(AFTER_KILLS_S)
        # Last: who cannot keep up with a rate leaves timers behind, and is not asked for a higher one.
        for rate in self._size.rates:
            fired = self.answers.fired[rate] = await self._fire(rate, 1)
            if fired.lost:
                break
        await self._peer.close()
        return self.answers

    # --- arming, and what waits ------------------------------------------------------------------------

    async def _arming(self) -> None:
        far = time.time() + MONTH_S
        size, answers = self._size, self.answers
        answers.singly = await self._rate(self._due(size.singly, far, 100), 1)
        sample = min(size.sample, answers.pending - size.singly) if self._peer.in_batches else 0
        answers.batches = answers.singly
        if sample:
            answers.batches = await self._rate(self._due(sample, far, 100), BATCH)
        rest = answers.pending - size.singly - sample
        if rest > 0:
            await self._execute(self._peer.copy, rest)
        await self._execute("VACUUM ANALYZE")

    async def _rate(self, due: Sequence[Due], batch: int) -> float:
        began = time.perf_counter()
        await self._peer.arm(due, batch)
        return len(due) / (time.perf_counter() - began)

    def _due(self, count: int, start: float, rate: float) -> list[Due]:
        return [Due(next(self._ids), start + n / rate) for n in range(count)]

    async def _soon(self, count: int, rate: float) -> tuple[list[Due], float]:
        """Armed, and due a moment after the last was armed; with when the first is due."""
        start = time.time() + LEAD_S + 2 * count / self.answers.batches
        due = self._due(count, start, rate)
        await self._peer.arm(due, BATCH)
        if time.time() > start - LEAD_S / 2:
            raise RuntimeError(f"{self._peer.name} took too long to arm {count} timers")
        await self._note(due)
        return due, start

    async def _note(self, due: Sequence[Due]) -> None:
        """Keep when each is due by what was stored, which may differ from what was asked for."""
        first, last = due[0].id, due[-1].id
        await self._execute("DROP TABLE IF EXISTS due")
        await self._execute(
            f"CREATE TABLE due AS SELECT id, at::float8 FROM ({self._peer.armed}) AS armed (id, at) "  # noqa: S608  # our own text
            f"WHERE id BETWEEN {first} AND {last}"
        )

    # --- runs ------------------------------------------------------------------------------------------

    async def _fire(self, rate: int, count: int) -> Fired:
        """Timers that come due at this rate, before so many workers."""
        due, _ = await self._soon(int(rate * self._size.seconds), rate)
        async with workers(self._name, self._url, count):
            await self._until_fired(due, PATIENCE_S)
        return await self._fired()

    async def _near(self) -> Fired:
        """Armed one by one by another process while a worker runs, due 20 ms later."""
        due: list[Due] = []
        async with workers(self._name, self._url, 1):
            await asyncio.sleep(0.5)
            for _ in range(self._size.near):
                due += self._due(1, time.time() + 0.02, 1)
                await self._peer.arm(due[-1:], 1)
                await asyncio.sleep(0.01)
            await self._until_fired(due, 2.0)
        stored = [(one.id, one.at) for one in due]
        await self._execute("DROP TABLE IF EXISTS due")
        await self._execute("CREATE TABLE due (id bigint, at float8)")
        connection = await asyncpg.connect(self._url)
        await connection.copy_records_to_table("due", records=stored)
        await connection.close()
        return await self._fired()

    async def _kill(self, kills: int) -> Fired:
        """So many kills, in as many rounds as it takes: on a busy machine workers start slowly."""
        total = Fired()
        for _ in range(ROUNDS):
            if total.kills < kills:
                total += await self._kill_round(kills - total.kills)
        return total

    async def _kill_round(self, kills: int) -> Fired:
        """Kill -9 one of two workers at random moments while timers are due, and start it again at once."""
        seconds = max(self._size.seconds, kills * 0.6)
        due, start = await self._soon(int(self._peer.steady * seconds), self._peer.steady)
        moments = sorted(random.uniform(0.1, seconds - 0.1) for _ in range(kills))
        killed = 0
        async with workers(self._name, self._url, 2 if self._peer.shares else 1) as running:
            for moment in moments:
                await asyncio.sleep(max(0.0, start + moment - time.time()))
                if time.time() < due[-1].at:
                    await self._replace(running)
                    killed += 1
            await self._until_fired(due, PATIENCE_S + 1.5 * self._peer.heals_s)
        return replace(await self._fired(), kills=killed)

    async def _replace(self, running: list[Worker]) -> None:
        at = random.randrange(len(running))
        running[at].kill()
        running[at] = await Worker(self._name, self._url).ready()

    async def _until_fired(self, due: Sequence[Due], patience_s: float) -> None:
        """All have fired and nothing happens twice any more, or there is no point in waiting."""
        deadline = due[-1].at + patience_s
        await asyncio.sleep(max(0.0, due[-1].at - time.time()))
        connection = await asyncpg.connect(self._url)
        try:
            while time.time() < deadline:
                await asyncio.sleep(0.25)
                fired = await connection.fetchval(
                    "SELECT count(DISTINCT id) FROM effects WHERE id >= $1", due[0].id
                )
                if fired == len(due):
                    await asyncio.sleep(0.25)
                    break
        finally:
            await connection.close()

    async def _fired(self) -> Fired:
        connection = await asyncpg.connect(self._url)
        rows = await connection.fetch(FIRED)
        await connection.close()
        return Fired(
            [min(at) - due for _, due, at in rows if at],
            sum(not at for _, _, at in rows),
            sum(len(at) - 1 for _, _, at in rows if at),
        )

    # --- what it costs ---------------------------------------------------------------------------------

    async def _idle(self) -> None:
        """What a worker asks while nothing is due, by the log of the server."""
        database = self._url.rpartition("/")[2].partition("?")[0]
        await self._execute(f"ALTER DATABASE \"{database}\" SET log_statement = 'all'")  # of new connections
        log = Path(await self._value("SHOW data_directory")) / "log"
        async with workers(self._name, self._url, 1):
            await asyncio.sleep(SETTLED_S)
            before = log.stat().st_size
            await asyncio.sleep(self._size.idle_s)
            said = log.read_bytes()[before:]
        await self._execute(f'ALTER DATABASE "{database}" RESET log_statement')
        self.answers.idle = len(STATEMENT.findall(said)) / self._size.idle_s

    async def _value(self, query: str) -> str:
        connection = await asyncpg.connect(self._url)
        try:
            return str(await connection.fetchval(query))
        finally:
            await connection.close()

    async def _execute(self, statement: str, *arguments: object) -> None:
        connection = await asyncpg.connect(self._url)
        try:
            await connection.execute(statement, *arguments)
        finally:
            await connection.close()
