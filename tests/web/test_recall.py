"""A body that was read is not read again, and the memory of it is bounded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.web import recall
from bot.web.recall import Recall
from engine.errors import BadPayload
from engine.models import Action, Body, Event
from engine.sources import SOURCES


class Reader:
    """A source that counts how often it reads; a body without a key is given one."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self, payload: object, new_key: Callable[[], str]) -> Body:
        self.reads += 1
        if not isinstance(payload, dict):
            raise BadPayload("an object is wanted")
        return Body("test", (Event(Action.TRIGGER, payload.get("key") or new_key(), "x"),))


def test_the_same_bytes_are_read_once_for_each_source() -> None:
    """A repeat is known by its bytes, but another source may mean something else by them."""
    memory, first, second = Recall(), Reader(), Reader()
    for _ in range(3):
        memory.read(first, b'{"key": "a"}')
        memory.read(second, b'{"key": "a"}')
    memory.read(first, b'{"key":  "a"}')
    assert (first.reads, second.reads) == (2, 1)


def test_a_key_of_our_making_is_made_anew() -> None:
    """Two triggers without a key are two problems, even if they read the same."""
    memory, reader = Recall(), Reader()
    keys = {memory.read(reader, b"{}").events[0].dedup_key for _ in range(3)}
    assert len(keys) == 3


def test_a_refused_body_is_refused_again() -> None:
    """Mistakes are not remembered."""
    memory, reader = Recall(), Reader()
    for _ in range(2):
        with pytest.raises(BadPayload):
            memory.read(reader, b"7")
    assert reader.reads == 2


def test_the_memory_forgets_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds no more bytes than it has room for, and no body that is long by itself."""
    monkeypatch.setattr(recall, "ROOM", 50)
    monkeypatch.setattr(recall, "LONGEST", 30)
    memory, reader = Recall(), Reader()
    for n in range(10):
        memory.read(reader, b'{"key": "%d"}' % n)
    long = b'{"key": "' + b"x" * 30 + b'"}'
    memory.read(reader, long)
    assert reader.reads == 11
    memory.read(reader, b'{"key": "9"}')
    assert reader.reads == 11
    memory.read(reader, b'{"key": "0"}')
    memory.read(reader, long)
    assert reader.reads == 13


def test_what_is_recalled_is_what_was_read() -> None:
    """The real source gives an equal body."""
    raw = b'{"alerts": [{"status": "firing", "labels": {"a": "b"}, "fingerprint": "f"}]}'
    memory = Recall()
    assert memory.read(SOURCES["alertmanager"], raw) is memory.read(SOURCES["alertmanager"], raw)
    assert memory.read(SOURCES["alertmanager"], raw) == Recall().read(SOURCES["alertmanager"], raw)
