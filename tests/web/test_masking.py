"""Keys never reach the log, whichever way they came in."""

from __future__ import annotations

import pytest

from bot.web.keys import masked

KEY = "mw_9f8e7d6c"


@pytest.mark.parametrize(
    "path",
    [
        f"/webhooks/alertmanager/{KEY}",
        f"/webhooks/alertmanager/{KEY}/",
        f"/webhooks/alertmanager/a/{KEY}",
        f"/webhooks/alertmanager?key={KEY}",
        f"/webhooks/generic?x=1&key={KEY}&y=2",
        f"/v1/events?key=a/{KEY}",
        f"/webhooks/alertmanager/{KEY}?key={KEY}",
        f"/calendar/{KEY}.ics",
        f"/calendar/{KEY}.ics?x=1",
        f"/calendar/{KEY}",
        f"/calendar/x/{KEY}.ics",
        f"/answer/{KEY}",
        f"/answer/{KEY}?x=1",
        f"/answer/x/{KEY}",
    ],
)
def test_a_key_in_an_address_becomes_dots(path: str) -> None:
    """Neither the path form nor the query form shows the key."""
    assert KEY not in masked(path)
    assert "•••" in masked(path)


@pytest.mark.parametrize("path", ["/webhooks/twilio/sms", "/webhooks/alertmanager", "/v1/incidents?limit=2"])
def test_an_address_without_a_key_stays_readable(path: str) -> None:
    """Masking hides keys and nothing else."""
    assert masked(path) == path
