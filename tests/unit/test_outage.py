"""How Slack is follows from what the processes report, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from engine.outage import (
    CUT_FOR,
    ECHO_WITHIN,
    FAILURES,
    FRESH,
    REBUILDS,
    SETTLED,
    TOLD_AFTER,
    WINDOW,
    Probe,
    Report,
    Standing,
    State,
    decide,
    figures,
    to_tell,
)
from tests.fakes import START

SECOND = timedelta(seconds=1)
UP = Standing(State.UP, START - timedelta(hours=1), ok_at=START - timedelta(minutes=5))
NOW = START


def seen(owner: str = "a", at: datetime = NOW, **more: object) -> Report:
    return Report(owner, at, **{"listening": True, **more})  # type: ignore[arg-type]  # a test's words


def failing(count: int, at: datetime = NOW, owner: str = "a") -> Report:
    return seen(owner, at, failed=(at,) * count, code="http_503")


def down(at: datetime = NOW) -> Standing:
    return decide(UP, [failing(FAILURES, at)], at)


def test_some_failures_in_a_row_are_an_outage() -> None:
    """One call that was lost is none."""
    assert decide(UP, [failing(FAILURES - 1)], NOW).state is State.UP
    found = decide(UP, [failing(FAILURES)], NOW)
    assert (found.state, found.reason, found.down_from) == (State.DOWN, "http_503", NOW)


def test_failures_of_all_processes_count_together() -> None:
    """Each made one call in vain."""
    reports = [failing(1, owner=owner) for owner in "abc"]
    assert decide(UP, reports, NOW).state is State.DOWN


def test_a_success_anywhere_speaks_for_slack() -> None:
    """One process cannot reach Slack and another can: that is no outage of Slack."""
    well = seen("b", ok_at=NOW + SECOND)
    assert decide(UP, [failing(FAILURES), well], NOW + SECOND).state is State.UP


def test_a_cut_socket_and_one_failure_are_an_outage() -> None:
    """Both ways fail at once."""
    cut = replace(failing(1), listening=False, cut_at=NOW)
    assert decide(UP, [cut], NOW).state is State.DOWN


def test_old_failures_tell_nothing() -> None:
    """An hour ago three calls failed, and none was made since."""
    old = seen(failed=(NOW - WINDOW - SECOND,) * FAILURES, code="http_503")
    assert decide(UP, [old], NOW).state is State.UP


@pytest.mark.parametrize("code", ["token_revoked", "account_inactive", "invalid_auth", "not_authed"])
def test_a_dead_token_is_an_outage_at_once(code: str) -> None:
    """One call is enough (F-46), and it is told at once."""
    dead = seen(dead_token=code, dead_at=NOW, failed=(NOW,), code=code)
    found = decide(UP, [dead], NOW)
    assert (found.state, found.reason) == (State.DOWN, code)
    told = to_tell(found, [dead], NOW)
    assert told is not None
    assert f"refuses our token ({code})" in told


def test_it_is_back_after_a_success_and_a_moment_without_failure() -> None:
    """A success between two failures ends no outage."""
    before = down()
    at = NOW + timedelta(minutes=3)
    mixed = seen(at=at, ok_at=at, failed=(at - SETTLED + SECOND,))
    assert decide(before, [mixed], at).state is State.DOWN
    found = decide(before, [seen(at=at, ok_at=at)], at)
    assert (found.state, found.down_from, found.down_until) == (State.UP, NOW, at)


def test_silence_of_all_processes_changes_nothing() -> None:
    """The process that saw the outage is gone: nobody has seen its end."""
    before = down()
    later = NOW + FRESH + SECOND
    assert decide(before, [failing(FAILURES)], later).state is State.DOWN
    assert decide(before, [seen("new", later)], later).state is State.DOWN


def test_a_lost_socket_is_no_trouble_for_a_moment() -> None:
    """Slack asks for a new connection every few hours; one that stays away is something else."""
    cut = seen(listening=False, cut_at=NOW)
    assert decide(UP, [cut], NOW + CUT_FOR - SECOND).state is State.UP
    assert decide(UP, [cut], NOW + CUT_FOR).state is State.DEGRADED
    other = seen("b", NOW + CUT_FOR)
    assert decide(UP, [cut, other], NOW + CUT_FOR).state is State.UP, "another one hears for all"


def test_nobody_who_listens_is_said() -> None:
    """Workers alone: pages go out, and no click arrives."""
    found = decide(UP, [seen(listening=None)], NOW)
    assert (found.state, found.reason) == (State.DEGRADED, "no process listens to Slack")


def test_a_missed_echo_is_a_deaf_socket_where_echoes_came_before() -> None:
    """An install that never heard one is never called deaf for that."""
    asked = Probe(sent_at=NOW, waiting=True, echoed_at=NOW - timedelta(hours=1))
    late = NOW + ECHO_WITHIN
    assert decide(replace(UP, probe=asked), [seen(at=late)], late - SECOND).state is State.UP
    found = decide(replace(UP, probe=asked), [seen(at=late)], late)
    assert (found.state, found.probe.missed, found.probe.waiting) == (State.DEGRADED, 1, False)
    never = replace(UP, probe=replace(asked, echoed_at=None))
    assert decide(never, [seen(at=late)], late).state is State.UP


def test_whatever_is_heard_ends_the_deafness() -> None:
    """The echo itself, a click, or an event of somebody else; a process heard it that did not ask."""
    probe = Probe(sent_at=NOW, echoed_at=NOW, missed=2)
    before = Standing(State.DEGRADED, NOW, probe=probe)
    later = NOW + timedelta(minutes=1)
    found = decide(before, [seen("a", later), seen("b", later, heard_at=later)], later)
    assert (found.state, found.probe.missed) == (State.UP, 0)


def test_an_outage_is_told_once_when_it_lasts() -> None:
    """Not before a minute has passed, and not again in the same outage."""
    found, reports = down(), [failing(FAILURES)]
    assert to_tell(found, reports, NOW + TOLD_AFTER - SECOND) is None
    told = to_tell(found, reports, NOW + TOLD_AFTER)
    assert told is not None
    assert "Slack is down (http_503) since 09:00 UTC" in told
    assert to_tell(replace(found, told=State.DOWN), reports, NOW + TOLD_AFTER) is None


def test_a_deaf_socket_is_told_after_two_rebuilds_in_vain() -> None:
    """The first missed echo has it rebuilt, the second again; the third is an alarm (F-45)."""
    deaf = Standing(State.DEGRADED, NOW, "no event arrives", probe=Probe(NOW, echoed_at=NOW, missed=REBUILDS))
    assert to_tell(deaf, [seen()], NOW) is None
    worse = replace(deaf, probe=replace(deaf.probe, missed=REBUILDS + 1))
    told = to_tell(worse, [seen()], NOW)
    assert told is not None
    assert "does not hear Slack" in told
    assert to_tell(replace(deaf, reason="no socket"), [seen(rebuilds=REBUILDS)], NOW) is not None


def test_what_got_worse_is_told_again() -> None:
    """Told that clicks are lost, and then that nothing goes out."""
    found = replace(down(), told=State.DEGRADED)
    assert to_tell(found, [failing(FAILURES)], NOW + TOLD_AFTER) is not None


def test_a_socket_that_is_none_of_ours_is_counted() -> None:
    """Slack counts three sockets of this app, and two processes hold one each (S-03)."""
    reports = [seen("a", connections=3), seen("b", connections=2), seen("worker", listening=None)]
    found = figures(reports, NOW)
    assert (found.connections, found.listeners, found.unexpected) == (3, 2, 1)
    assert figures([seen("gone", NOW - FRESH - SECOND, connections=9)], NOW).unexpected == 0
