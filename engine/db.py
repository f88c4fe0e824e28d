"""The two databases, and the whole list of differences between them.

SQLite and PostgreSQL run the same statements. What differs stands here: how an engine is set up,
how a list of values is bound, which insert can upsert, who may write when, and which errors will
pass by themselves. Never holds a query of its own.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta
from enum import IntEnum
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self, TypeVar

import asyncpg
import sqlalchemy as sa
import structlog
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeDecorator

from engine.errors import Unavailable
from engine.sqlite import connect
from engine.turnstile import Turnstile

log = structlog.get_logger(__name__)
T = TypeVar("T")
Tx = AsyncConnection

LOCK_TIMEOUT: Final = timedelta(seconds=3)
STATEMENT_TIMEOUT: Final = timedelta(seconds=10)
IDLE_TIMEOUT: Final = timedelta(seconds=10)  # a cancelled worker must not keep its row locks
SQLITE_BUSY: Final = timedelta(seconds=5)  # then the sender is told 503 rather than kept waiting
UNIT_TRIES: Final = 3
PEOPLE: Final = {"pool_size": 5, "max_overflow": 5}  # connections for what people read, however slowly
PAGER: Final = {"pool_size": 3, "max_overflow": 2}  # and for what must be read to page somebody
IDLE: Final = timedelta(milliseconds=500)  # a connection that was used within it is taken for alive

# SQLSTATE codes. The unit is run again: serialization failure, deadlock, statement timeout, connection lost.
AGAIN: Final = frozenset({"40001", "40P01", "57014"})
# The sender is told to come back: lock and statement timeouts, read only, out of resources, going down.
TRANSIENT: Final = ("08", "53", "55P03", "57", "25006", "58")
LOCK_NOT_AVAILABLE: Final = "55P03"
SQLITE_TRANSIENT: Final = ("locked", "busy", "readonly", "full", "disk i/o", "unable to open")

in_transaction: ContextVar[bool] = ContextVar("in_transaction", default=False)


class Writer(IntEnum):
    """Who writes first on SQLite when several wait: people, then pages, then the rest."""

    RESPOND = 0
    ESCALATE = 1
    ADMIT = 2
    OUTCOME = 3
    INGEST = 4
    CARD = 5


class Database:
    """Transactions on one URL. `write` runs a unit of work, `snapshot` reads without waiting for writers,
    and `look` does so without waiting for readers either."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        self.url = async_url(url)
        self.is_sqlite = self.url.startswith("sqlite")
        if self.is_sqlite:
            self._writer, self._reader, self._looker = _sqlite_engines(self.url)
        else:
            self._writer, self._reader, self._looker = _postgresql_engines(self.url, pool_size)
        # Why a turnstile: SQLite has one writer. Waiting in its busy handler is neither fair nor
        # ranked; waiting here lets an ack pass a storm.
        self._turnstile = Turnstile(len(Writer)) if self.is_sqlite else None
        self._away = ""  # why writes fail, while they do
        self.barred = False
        self._let_through: Writer | None = None

    def bar(self, *, but: Writer | None = None) -> None:
        """From now on every write is Unavailable: this process is too old for the schema. `but` goes on."""
        self.barred, self._let_through = True, but

    @property
    def writer_engine(self) -> AsyncEngine:
        return self._writer

    async def write(self, unit: Callable[[Tx], Awaitable[T]], *, rank: Writer = Writer.OUTCOME) -> T:
        """Run `unit` in one transaction, to its end even if the caller is cancelled.

        The unit must be idempotent: a deadlock or a lost connection before the commit runs it
        again. Raises Unavailable when the database cannot take it now.
        """
        if self.barred and rank is not self._let_through:
            raise Unavailable
        task = asyncio.ensure_future(self._write(unit, rank))
        return await finish(task)

    async def _write(self, unit: Callable[[Tx], Awaitable[T]], rank: Writer) -> T:
        for attempt in range(1, UNIT_TRIES + 1):
            try:
                done = await self._write_once(unit, rank)
            except (DBAPIError, PoolTimeout, OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                if _again(error) and attempt < UNIT_TRIES:
                    await asyncio.sleep(random.uniform(0.005, 0.05) * attempt)  # noqa: S311  # jitter
                    continue
                if is_transient(error):
                    self._note(type(error).__name__, sqlstate(error))
                    raise Unavailable from error
                raise
            self._note()
            return done
        raise Unavailable  # pragma: no cover  # the loop returns or raises

    def _note(self, error: str = "", code: str = "") -> None:
        """An outage is a line when it begins, when its cause changes, and when it ends: not one a second."""
        before, self._away = self._away, error + code
        if self._away and self._away != before:
            log.warning("db.unavailable", error=error, code=code)
        elif before and not self._away:
            log.info("db.available")

    async def _write_once(self, unit: Callable[[Tx], Awaitable[T]], rank: Writer) -> T:
        if self._turnstile is not None:
            async with self._turnstile.turn(rank):
                return await self._transact(unit)
        return await self._transact(unit)

    async def _transact(self, unit: Callable[[Tx], Awaitable[T]]) -> T:
        async with self._writer.connect() as tx, tx.begin():
            token = in_transaction.set(True)
            try:
                return await unit(tx)
            finally:
                in_transaction.reset(token)

    def snapshot(self) -> AbstractAsyncContextManager[Tx]:
        """A read-only transaction; a write in it fails."""
        return _reading(self._reader)

    def look(self) -> AbstractAsyncContextManager[Tx]:
        """The same for a short read on the way to a page: ten slow questions of people do not delay it."""
        return _reading(self._looker)

    async def close(self) -> None:
        for engine in (self._looker, self._reader, self._writer):
            await engine.dispose()


@asynccontextmanager
async def _reading(engine: AsyncEngine) -> AsyncIterator[Tx]:
    try:
        async with engine.connect() as tx, tx.begin():
            yield tx
    except (DBAPIError, PoolTimeout, OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        if is_transient(error):
            raise Unavailable from error
        raise


async def finish(task: asyncio.Future[T]) -> T:
    """Await `task` to its end; a cancellation is passed on only then, however often it comes.

    Why: a cancelled unit of work may or may not have committed, and on SQLite a cancelled BEGIN
    can leave a transaction that nobody owns.
    """
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                break
            # Also when `task` has ended in this very moment: a loop that is cancelled once, and whose
            # cancellation is lost, never stops.
            cancelled = error
        except Exception:  # raised again by task.result() below
            break
    if cancelled is not None:
        raise cancelled
    return task.result()


def async_url(url: str) -> str:
    """The URL with the driver we use: postgresql:// and sqlite:/// as people write them."""
    parsed = make_url(url)
    backend = parsed.get_backend_name()
    if backend not in {"sqlite", "postgresql"}:
        raise ValueError("MIDWATCH_DATABASE_URL must begin with sqlite:/// or postgresql://")
    driver = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}[backend]
    return parsed.set(drivername=driver).render_as_string(hide_password=False)


def without_tls(url: str) -> tuple[str, dict[str, Any]]:
    """The URL without sslmode and its kin, and what asyncpg is told instead."""
    parsed = make_url(url)
    mode = parsed.query.get("sslmode") or parsed.query.get("ssl")
    plain = parsed.difference_update_query(["sslmode", "ssl", "channel_binding", "gssencmode"])
    return plain.render_as_string(hide_password=False), {"ssl": mode} if mode else {}


Engines = tuple[AsyncEngine, AsyncEngine, AsyncEngine]  # to write, for people who read, for the pager


def _sqlite_engines(url: str) -> Engines:
    path = make_url(url).database
    if not path or path == ":memory:":
        raise ValueError("an in-memory SQLite database would forget every alert: name a file")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    alone = {"pool_size": 1, "max_overflow": 0, "pool_timeout": SQLITE_BUSY.total_seconds()}
    writer, reader, looker = (
        create_async_engine(url, async_creator=partial(connect, path), **pool)
        for pool in (alone, PEOPLE, PAGER)
    )
    # Why BEGIN IMMEDIATE: a deferred transaction that reads and then writes fails at once when
    # another writes (the busy timeout is not asked), and the driver's default loses updates.
    _begin_with(writer, "BEGIN IMMEDIATE")
    _begin_with(reader, "BEGIN")  # and a look has none: see _postgresql_engines
    _set_up_sqlite(writer, query_only=False)
    for engine in (reader, looker):
        _set_up_sqlite(engine, query_only=True)
    return writer, reader, looker


def _set_up_sqlite(engine: AsyncEngine, *, query_only: bool) -> None:
    @event.listens_for(engine.sync_engine, "connect")
    def connect(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={SQLITE_BUSY // timedelta(milliseconds=1)}")
        cursor.execute("PRAGMA journal_mode=WAL")
        # Why FULL: 2xx promises durability; with NORMAL a power cut may roll back the last commits.
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA query_only={'ON' if query_only else 'OFF'}")
        cursor.close()


def _begin_with(engine: AsyncEngine, words: str) -> None:
    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(words)


def _postgresql_engines(url: str, pool_size: int) -> Engines:
    settings = {
        "lock_timeout": str(LOCK_TIMEOUT // timedelta(milliseconds=1)),
        "statement_timeout": str(STATEMENT_TIMEOUT // timedelta(milliseconds=1)),
        "idle_in_transaction_session_timeout": str(IDLE_TIMEOUT // timedelta(milliseconds=1)),
    }
    url, tls = without_tls(url)
    # Why a timeout of our own: the server's cannot end a wait for packets that nobody answers.
    arguments = {
        **tls,
        "server_settings": settings,
        "timeout": 5,
        "command_timeout": (STATEMENT_TIMEOUT + timedelta(seconds=2)).total_seconds(),
    }
    # Why no ping: a unit that meets a dead connection is run again on a new one.
    writer = create_async_engine(url, pool_size=pool_size, max_overflow=0, connect_args=arguments)
    read_only = {**arguments, "server_settings": {**settings, "default_transaction_read_only": "on"}}
    reader = create_async_engine(url, connect_args=read_only, **PEOPLE)
    # Why: each statement sees what is committed when it begins, in a transaction of READ COMMITTED too, and
    # BEGIN and ROLLBACK are two round trips more on the way to a page.
    looker = create_async_engine(url, connect_args=read_only, isolation_level="AUTOCOMMIT", **PAGER)
    for engine in (reader, looker):
        _try_before_use(engine)
    return writer, reader, looker


def _try_before_use(engine: AsyncEngine) -> None:
    """What a reader asks is not run again, so a connection that was closed is known by the driver, and
    one that may have died in silence is tried. Why not each time: a ping is three round trips, as much
    as most of what is asked."""
    sync = engine.sync_engine

    @event.listens_for(sync, "checkin")
    def put_back(_connection: Any, record: Any) -> None:
        record.info["used_at"] = monotonic()

    @event.listens_for(sync, "checkout")
    def take(connection: Any, record: Any, _proxy: Any) -> None:
        if record.driver_connection.is_closed():
            raise sa.exc.DisconnectionError  # then the pool makes a new one of it
        if monotonic() - record.info.get("used_at", monotonic()) < IDLE.total_seconds():
            return
        try:
            sync.dialect.do_ping(connection)
        except sync.dialect.loaded_dbapi.Error as error:
            raise sa.exc.DisconnectionError from error


@asynccontextmanager
async def waiting_at_most(tx: Tx, wait: timedelta) -> AsyncIterator[None]:
    """Row locks in this block are waited for so long; after that the block ends, and the transaction
    goes on without what was done in it. On SQLite nobody holds a row."""
    if tx.dialect.name == "sqlite":
        yield
        return
    try:
        async with tx.begin_nested():
            await tx.execute(sa.text(f"SET LOCAL lock_timeout = {wait // timedelta(milliseconds=1)}"))
            yield
            await tx.execute(sa.text("SET LOCAL lock_timeout TO DEFAULT"))
    except DBAPIError as error:
        if sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise


# --- statements ------------------------------------------------------------------------------------


def upsert(tx: Tx, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """The dialect's insert; both have on_conflict_do_nothing and on_conflict_do_update."""
    return insert_of(tx.dialect.name, table)


def insert_of(dialect: str, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """The same for a statement that is made once for each dialect."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


class ListOf(TypeDecorator[Any]):
    """A list in one parameter: an array on PostgreSQL, JSON text on SQLite."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, item: type[sa.BigInteger] | type[sa.Text]) -> None:
        self.item = item
        super().__init__()

    def load_dialect_impl(self, dialect: sa.Dialect) -> Any:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(sa.Text())
        return dialect.type_descriptor(postgresql.ARRAY(self.item()))

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        return json.dumps(list(value)) if dialect.name == "sqlite" else list(value)


def given(name: str, column: sa.Column[Any]) -> sa.BindParameter[Any]:
    """A value like those of `column`, given by name when the statement runs.

    For statements that are constants of their module, as all are that run for each alert, page and
    answer: to build one takes more than twice the time that running it does.
    """
    return sa.bindparam(name, type_=column.type)


def given_list(name: str, column: sa.Column[Any]) -> sa.BindParameter[Any]:
    """The same for `any_of`: a list of such values."""
    return sa.bindparam(name, type_=ListOf(_item(column)))


def _item(column: sa.ColumnElement[Any]) -> type[sa.BigInteger] | type[sa.Text]:
    return sa.Text if isinstance(column.type, sa.Text) else sa.BigInteger


class any_of(sa.sql.expression.ColumnElement[bool]):  # noqa: N801  # reads as an operator, like sa.and_
    """`column` is one of `values`, as one parameter: one statement text for any length.

    Why not IN: it is rendered anew for each length, and each length is another prepared statement.
    """

    inherit_cache = True
    type = sa.Boolean()
    _traverse_internals = [  # noqa: RUF012  # SQLAlchemy reads it and never changes it
        ("column", sa.sql.visitors.InternalTraversal.dp_clauseelement),
        ("values", sa.sql.visitors.InternalTraversal.dp_clauseelement),
    ]

    def __init__(
        self,
        column: sa.ColumnElement[Any],
        values: Sequence[int] | Sequence[str] | sa.BindParameter[Any],
    ) -> None:
        self.column = column
        self.values = (
            values
            if isinstance(values, sa.BindParameter)
            else sa.bindparam(None, list(values), type_=ListOf(_item(column)), unique=True)
        )

    def self_group(self, against: Any = None) -> Self:
        """Why: SQLite has no booleans, and a condition that is written `… IN (…) = 1` uses no index."""
        return self


@compiles(any_of)
def _any_of_array(element: any_of, compiler: Any, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} = ANY ({compiler.process(element.values, **kw)})"


@compiles(any_of, "sqlite")
def _any_of_json(element: any_of, compiler: Any, **kw: Any) -> str:
    column, values = compiler.process(element.column, **kw), compiler.process(element.values, **kw)
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608  # both are compiled by SQLAlchemy


# --- errors ----------------------------------------------------------------------------------------


def sqlstate(error: BaseException) -> str:
    """The SQLSTATE of a PostgreSQL error, the message's kind on SQLite, else nothing."""
    original = getattr(error, "orig", error)
    code = getattr(original, "sqlstate", None) or getattr(original.__cause__, "sqlstate", None)
    return str(code or "")


def _again(error: BaseException) -> bool:
    if sqlstate(error) in AGAIN:
        return True
    # a connection that died before the commit: nothing was stored (its COMMIT is idempotent to repeat)
    return isinstance(error, DBAPIError) and error.connection_invalidated


def is_transient(error: BaseException) -> bool:
    """Will it pass by itself, so that the sender should come back?"""
    if isinstance(error, (OSError, PoolTimeout, TimeoutError)):
        return True
    code = sqlstate(error)
    if code:
        return code in AGAIN or code.startswith(TRANSIENT)
    if isinstance(error, asyncpg.InterfaceError):
        return True
    if isinstance(error, DBAPIError):
        words = str(error.orig).lower()
        return error.connection_invalidated or any(word in words for word in SQLITE_TRANSIENT)
    return False
