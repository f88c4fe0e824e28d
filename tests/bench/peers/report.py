"""The peers' columns of the table: one line for each question, one cell for each project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.bench.peers.measure import PATIENCE_S, Answers, Fired


def rows(columns: Sequence[Answers]) -> Iterator[list[str]]:
    first = columns[0]
    yield ["Timers on PostgreSQL, side by side", *(each.peer.name for each in columns)]
    yield ["---"] * (len(columns) + 1)
    yield ["pending meanwhile", *(f"{each.pending:,}" for each in columns)]
    for rate in first.fired:
        cells = (_late(each.fired.get(rate)) for each in columns)
        yield [f"{rate:,} due/s, one worker: p50 / p99 / max", *cells]
    yield ["armed by another process 20 ms before: p50 / p99 / max", *(_late(each.near) for each in columns)]
    yield ["two workers: rate, p99, fired twice", *(_two(each) for each in columns)]
    for kills in first.killed:
        cells = (_killed(each, kills) for each in columns)
        yield [f"{kills} kills -9: rate, lost, fired twice, latest", *cells]
    yield ["armed per second, singly / in batches", *(_armed(each) for each in columns)]
    yield ["statements/s of one worker with nothing due", *(f"{each.idle:.1f}" for each in columns)]


def notes(columns: Sequence[Answers]) -> Iterator[str]:
    for each in columns:
        alone = "" if each.peer.shares else "; one worker at a time, by its documentation"
        yield f"{each.peer.name}: {each.peer.settings}{alone}."


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f}" if seconds < 0.1 else f"{seconds * 1000:,.0f}"


def _late(fired: Fired | None) -> str:
    if fired is None:
        return "cannot"
    if not fired.lateness:
        return f"none of {fired.armed:,} in time"
    share = f"; {fired.lost:,} of {fired.armed:,} not {PATIENCE_S:.0f} s after" if fired.lost else ""
    return " / ".join(_ms(fired.quantile(q)) for q in (0.5, 0.99, 1.0)) + f" ms{share}"


def _two(each: Answers) -> str:
    return f"{each.two_rate:,}/s: {_ms(each.two.quantile(0.99))} ms, {each.two.twice} of {each.two.armed:,}"


def _killed(each: Answers, kills: int) -> str:
    fired = each.killed.get(kills)
    if fired is None:
        return "–"
    fewer = "" if fired.kills == kills else f" ({fired.kills} kills)"
    rate = f"{each.peer.steady:,}/s"
    return f"{rate}: {fired.lost}, {fired.twice} of {fired.armed:,}, {_ms(fired.quantile(1.0))} ms{fewer}"


def _armed(each: Answers) -> str:
    return f"{each.singly:,.0f} / {f'{each.batches:,.0f}' if each.peer.in_batches else 'no batches'}"
