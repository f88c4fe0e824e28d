"""The breaker: a provider that fails in a row is left alone, then tried with one page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine.models import Method, Outcome, Rejected, Retry, Sent, Throttled
from engine.notify.breaker import OPEN_FOR, THRESHOLD, Breakers, breaker_key

NOW = datetime(2026, 11, 5, 14, 0, tzinfo=UTC)
FAULT = Retry("timeout")


def failing(times: int = THRESHOLD) -> Breakers:
    breakers = Breakers()
    for _ in range(times):
        breakers.record("twilio", FAULT, NOW)
    return breakers


def test_it_opens_at_the_threshold_for_that_provider_only() -> None:
    """Five faults in a row open it, four do not, and another provider is not touched."""
    assert failing(THRESHOLD - 1).allows("twilio", NOW)
    breakers = failing()
    assert not breakers.allows("twilio", NOW)
    assert breakers.allows("slack", NOW)
    assert breakers.opened(NOW) == {"twilio": NOW + OPEN_FOR}


@pytest.mark.parametrize("outcome", [Sent("SM1"), Rejected("landline"), Throttled(NOW)])
def test_any_answer_that_is_no_fault_counts_as_alive(outcome: Outcome) -> None:
    """A rejected number or a throttle says that the provider works: the row of faults starts anew."""
    breakers = failing(THRESHOLD - 1)
    breakers.record("twilio", outcome, NOW)
    breakers.record("twilio", FAULT, NOW)
    assert breakers.allows("twilio", NOW)


def test_refused_credentials_open_it_at_once() -> None:
    """A provider that refuses us altogether is not asked five times."""
    breakers = Breakers()
    breakers.record("twilio", Retry("provider down: credentials refused", down=True), NOW)
    assert not breakers.allows("twilio", NOW)


def test_half_open_lets_one_page_through() -> None:
    """After 30 s one page goes, the others wait for what becomes of it."""
    breakers = failing()
    later = NOW + OPEN_FOR
    assert [breakers.allows("twilio", later) for _ in range(3)] == [True, False, False]
    breakers.record("twilio", Sent("SM1"), later)
    assert breakers.allows("twilio", later)
    assert breakers.allows("twilio", later)


def test_a_failed_probe_opens_it_again() -> None:
    """One fault while half open is enough for another 30 s."""
    breakers = failing()
    later = NOW + OPEN_FOR
    breakers.allows("twilio", later)
    breakers.record("twilio", FAULT, later)
    assert breakers.opened(later) == {"twilio": later + OPEN_FOR}


def test_faults_of_pages_begun_earlier_do_not_prolong_it() -> None:
    """Ten sends time out together: the provider is tried again 30 s after the fifth, not the tenth."""
    breakers = failing()
    breakers.record("twilio", FAULT, NOW + timedelta(seconds=20))
    assert breakers.opened(NOW + OPEN_FOR) == {}


def test_a_probe_of_which_nothing_is_heard_is_given_up() -> None:
    """A crash between the probe and its outcome does not close the provider off for ever."""
    breakers = failing()
    assert breakers.allows("twilio", NOW + OPEN_FOR)
    assert breakers.allows("twilio", NOW + 2 * OPEN_FOR)


def test_a_clock_that_is_set_back_opens_nothing_for_hours() -> None:
    """An hour back: the provider is tried, not left alone for an hour and 30 s."""
    assert failing().allows("twilio", NOW - timedelta(hours=1))


def test_one_dead_url_does_not_close_the_others() -> None:
    """Each apprise URL fails alone, and the key does not show it."""
    one = breaker_key("apprise", Method.URL, "ntfys://secret@one")
    assert one != breaker_key("apprise", Method.URL, "ntfys://secret@two")
    assert "secret" not in one
    assert breaker_key("twilio", Method.SMS, "+12025550143") == "twilio:sms"
