"""What SQLAlchemy compiled for one test's database serves the next one's: it is most of a short
test's work otherwise. Never changes what is compiled."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Engine
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.dialects.sqlite.aiosqlite import SQLiteDialect_aiosqlite
from sqlalchemy.util import LRUCache

SIZE: Final = 5000


def share_compiled_statements() -> None:
    """From now on every engine of one kind of database has the same cache."""
    caches: dict[str, LRUCache[Any, Any]] = {}
    for dialect in (PGDialect_asyncpg, SQLiteDialect_aiosqlite):
        # Why: a dialect is part of a statement's key, and each engine makes one; ours are all alike.
        dialect.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign]  # see above
        dialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]  # see above
    made = Engine.__init__

    def make(self: Engine, pool: Any, dialect: Any, *args: Any, **kwargs: Any) -> None:
        made(self, pool, dialect, *args, **kwargs)
        self._compiled_cache = caches.setdefault(dialect.driver, LRUCache(SIZE))

    Engine.__init__ = make  # type: ignore[method-assign]  # there is no event for it
