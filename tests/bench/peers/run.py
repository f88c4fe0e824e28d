"""All projects, one after the other, each on a database of its own of the same server."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.peers import processes
from tests.bench.peers.measure import Answers, Measure, Size
from tests.bench.peers.peer import NAMES, load
from tests.servers import database_url, new_database, run_on_server


async def run(server: str, size: Size, names: Sequence[str] = NAMES) -> list[Answers]:
    """A column for each. The server must track commit timestamps."""
    processes.preload(names)
    answers = []
    for name in names:
        database = await new_database(server)
        measure = Measure(name, load(name), database_url(server, database), size)
        answers.append(await measure.run())
        await run_on_server(server, f'DROP DATABASE "{database}" WITH (FORCE)')
    return answers
