"""One running Midwatch per SQLite file: a lock beside it, which ends with the process however it dies.

Never keeps the command line out: its commands work beside the one that runs.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.engine import make_url

from engine.db import Database
from engine.errors import MidwatchError


@contextmanager
def sole_process(database: Database) -> Iterator[None]:
    """Hold the lock; raises when another process has it. PostgreSQL serves any number of processes.

    Why not two on one file: each would page whenever the other holds the write lock for long, and
    one that is stopped while it holds it stops them both.
    """
    if not database.is_sqlite:
        yield
        return
    file = Path(str(make_url(database.url).database))
    with file.with_name(f"{file.name}.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise MidwatchError(
                f"Another Midwatch (process {holder}) runs on {file}. SQLite serves one process: "
                "stop that one first, or use PostgreSQL for several."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
