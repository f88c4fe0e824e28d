"""PostgreSQL databases with empty tables, lent to one test after another: to make and drop one takes
longer than most tests. Never lends one whose tables a test has changed."""

from __future__ import annotations

from typing import Final

import asyncpg

from tests.servers import connected, database_url, new_database, run_on_server

# Leftovers of the test: a pool that was not closed, a transaction that was cut off.
ALONE: Final = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
EMPTY: Final = """
DO $$
DECLARE
  one text;
  full_one boolean;
  full_ones text[] := '{}';
BEGIN
  FOR one IN SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', one) INTO full_one;
    IF full_one THEN full_ones := full_ones || one; END IF;
  END LOOP;
  IF cardinality(full_ones) > 0 THEN
    EXECUTE 'TRUNCATE ' || array_to_string(full_ones, ', ') || ' CASCADE';
  END IF;
  PERFORM setval(format('%I', sequencename)::regclass, 1, false)
  FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL;
END $$
"""
SHAPE: Final = """
SELECT md5(string_agg(line, ' ' ORDER BY line)) FROM (
  SELECT concat_ws(' ', c.relname, c.relkind, a.attname, a.atttypid, a.attnotnull) AS line
  FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid
  WHERE c.relnamespace = 'public'::regnamespace
  UNION ALL SELECT concat_ws(' ', conrelid, conname) FROM pg_constraint
  WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT concat_ws(' ', tgrelid, tgname) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
) AS lines
"""


class Lending:
    """The databases of one server, copies of one template."""

    def __init__(self, server: str, template: str) -> None:
        self._server = server
        self._template = template
        self._free: list[tuple[str, str]] = []  # names, and the shape each had when it was new
        self._lent: dict[str, str] = {}

    async def lend(self) -> str:
        """The URL of a database that nobody else has."""
        name, shape = self._free.pop() if self._free else await self._make()
        url = database_url(self._server, name)
        self._lent[url] = shape
        return url

    async def take_back(self, url: str) -> None:
        """Emptied, and lent again; dropped when it is not what it was."""
        shape = self._lent.pop(url)
        async with connected(url) as connection:
            name: str = await connection.fetchval("SELECT current_database()")
            try:
                await connection.execute(ALONE)
                await connection.execute(EMPTY)
                same = await connection.fetchval(SHAPE) == shape
            except asyncpg.PostgresError:
                same = False
        if same:
            self._free.append((name, shape))
        else:
            await run_on_server(self._server, f'DROP DATABASE "{name}" WITH (FORCE)')

    async def _make(self) -> tuple[str, str]:
        name = await new_database(self._server, template=self._template)
        async with connected(database_url(self._server, name)) as connection:
            return name, await connection.fetchval(SHAPE)
