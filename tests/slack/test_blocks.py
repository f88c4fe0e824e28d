"""The card says what is so, and no alert can make Slack refuse it or mention anybody."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bot.slack import blocks
from bot.slack.lint import lint_message
from bot.slack.message import Message
from engine.models import DeliveryStatus, IncidentStatus, IncidentView, Method, Via
from tests.slack.views import NOW, a_view, acked, an_alert, an_attempt, resolved, variations

VIEWS = variations()
OURS = re.compile(r"<!date\^\d+\^[^|>]*\|[^>]*>|<https?://[^|>\s]+\|[^<>|]+>")


def texts(thing: Any) -> list[str]:
    """Every text of a message that Slack would look for markup in."""
    if isinstance(thing, str):
        return [thing]
    values = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list | tuple) else ()
    return [text for value in values for text in texts(value)]


def shown(message: Message) -> str:
    return "\n".join(texts(message.payload()))


def action_ids(message: Message) -> list[str]:
    found: list[str] = re.findall(r'"action_id": "([a-z_]+)"', json.dumps(message.payload()))
    return found


@pytest.mark.parametrize("name", VIEWS)
def test_slack_takes_every_card_and_every_plain_card(name: str) -> None:
    """Whatever an alert holds, the card and its plain form keep Slack's limits."""
    assert lint_message(blocks.card(VIEWS[name])) == []
    plain = blocks.plain(VIEWS[name])
    assert lint_message(plain) == []
    assert len(plain.text) <= 3000


@pytest.mark.parametrize("name", VIEWS)
def test_no_alert_mentions_anybody(name: str) -> None:
    """The only markup on a card is our own dates and links."""
    for message in (blocks.card(VIEWS[name]), blocks.plain(VIEWS[name])):
        for text in texts(message.payload()):
            assert not set("<>") & set(OURS.sub("", text)), text
        assert "<!channel>" not in shown(message)


@pytest.mark.parametrize("name", VIEWS)
def test_a_card_stays_far_below_the_size_slack_refuses(name: str) -> None:
    """All text of a card together is under 9,000 characters."""
    assert sum(len(text) for text in texts(blocks.card(VIEWS[name]).payload())) < 9_000


@pytest.mark.parametrize(
    ("view", "words", "buttons"),
    [
        (a_view(), "🔴 FIRING · *#42 db-1 is down*", ["incident_ack", "incident_resolve", "incident_more"]),
        (acked(), "🟡 ACKED by @ana · *#42", ["incident_unack", "incident_resolve", "incident_more"]),
        (VIEWS["merged"], "🟢 RESOLVED · ", ["incident_unmerge"]),
        (VIEWS["snoozed"], "⚪ SNOOZED · ", ["incident_unack", "incident_resolve", "incident_more"]),
        (VIEWS["unanswered"], "⚫ UNANSWERED · ", ["incident_ack", "incident_resolve", "incident_more"]),
        (resolved(), "🟢 RESOLVED · ", ["incident_reopen"]),
    ],
)
def test_a_card_begins_with_its_state_and_offers_what_works_in_it(
    view: IncidentView, words: str, buttons: list[str]
) -> None:
    """State word and emoji come first; the buttons are those of the state."""
    card = blocks.card(view)
    assert card.text.startswith(words)
    assert action_ids(card) == buttons


def test_buttons_carry_the_incident_and_its_epoch_only() -> None:
    """A button's value is id and epoch: nothing that a forged click could bring along."""
    values = re.findall(r'"value": "([^"]+)"', json.dumps(blocks.card(a_view()).payload()))
    assert {value.rpartition(":")[2] for value in values} == {"11.3"}


def test_a_colour_bar_follows_the_state() -> None:
    """Each state has a colour of its own."""
    names = ("firing", "acked", "snoozed", "unanswered", "resolved")
    assert len({blocks.card(VIEWS[name]).attachments[0]["color"] for name in names}) == 5


@pytest.mark.parametrize(
    ("via", "words"),
    [
        (Via.SMS, "Acked by @ana via SMS · <!date^"),
        (Via.VOICE, "Acked by @ana via phone call · <!date^"),
        (Via.SLACK_BUTTON, "Acked by @ana via Slack button · <!date^"),
        (Via.API, "Acked by ana via API · <!date^"),
        (Via.SOURCE, "Acked by its source · <!date^"),
    ],
)
def test_the_footer_says_who_acknowledged_how_and_when(via: Via, words: str) -> None:
    """An ack by any way is on the card with its person, way and time."""
    assert words in shown(blocks.card(acked(acknowledged_via=via)))


def test_a_resolved_card_keeps_the_ack() -> None:
    """The end is added to what was, and replaces nothing."""
    text = shown(blocks.card(resolved()))
    assert "Acked by @ana via SMS" in text
    assert "Resolved by @ben via Slack button" in text


def test_counts_say_what_is_not_shown() -> None:
    """Repeats, further alerts and what the source cut off are counted."""
    text = shown(blocks.card(a_view(event_count=200, alert_count=5, firing_count=4, truncated=3)))
    assert (
        "×200 · 4 of 5 alerts firing · showing the last alert of 5 · 3 more not shown by Alertmanager" in text
    )
    assert "×" not in shown(blocks.card(a_view()))


def test_the_newest_alert_is_the_one_shown() -> None:
    """Of several alerts the one seen last stands on the card, whatever their order."""
    new = an_alert(id=1, labels={"pod": "new"}, last_seen_at=NOW + timedelta(minutes=1))
    text = shown(blocks.card(a_view(alerts=(an_alert(labels={"pod": "old"}), new), alert_count=2)))
    assert "`pod=new`" in text
    assert "pod=old" not in text


def test_who_is_paged_and_when_the_next_step_comes() -> None:
    """While nobody answered, the card names who is being paged and the next rung with its time."""
    text = shown(blocks.card(a_view()))
    assert "Paging ana (level 1)" in text
    assert "Next: level 2 at <!date^" in text
    assert "Paging" not in shown(blocks.card(acked()))


def test_the_next_step_of_a_level_not_yet_paged_is_that_level() -> None:
    """Before the first page has gone out, level 1 itself comes next."""
    assert "Next: level 1 at" in shown(blocks.card(a_view(receipts=())))


AT = r"<!date[^>]+>"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, rf"DM ✓ {AT}"),
        ({"method": Method.SMS}, rf"SMS sent {AT}"),
        ({"method": Method.SMS, "status": DeliveryStatus.DELIVERED}, rf"SMS delivered {AT}"),
        ({"method": Method.SMS, "status": DeliveryStatus.SENDING}, r"SMS sending"),
        ({"method": Method.SMS, "status": DeliveryStatus.QUEUED}, rf"SMS queued for {AT}"),
        (
            {"method": Method.SMS, "status": DeliveryStatus.QUEUED, "tries": 1, "reason": "Twilio: 503"},
            r"SMS queued again \(Twilio: 503\)",
        ),
        (
            {"method": Method.SMS, "status": DeliveryStatus.DEAD, "tries": 4, "reason": "no such number"},
            rf"SMS dead {AT} after 4 tries \(no such number\)",
        ),
        ({"method": Method.VOICE}, rf"call ringing since {AT}"),
        ({"method": Method.VOICE, "status": DeliveryStatus.DELIVERED}, rf"call answered {AT}"),
        (
            {"method": Method.VOICE, "status": DeliveryStatus.UNCONFIRMED, "reason": "no key pressed"},
            rf"call unconfirmed {AT} \(no key pressed\)",
        ),
        (
            {"method": Method.VOICE, "status": DeliveryStatus.CANCELLED, "reason": "hung up"},
            rf"call hung up {AT}",
        ),
        ({"skipped": ((Method.SMS, "STOP"),)}, rf"DM ✓ {AT} · SMS skipped: STOP"),
    ],
)
def test_a_receipt_says_what_became_of_it(changes: dict[str, Any], said: str) -> None:
    """Each way in its own words, with the time, the tries and the reason where there are some."""
    text = shown(blocks.card(a_view(receipts=(an_attempt(**changes),))))
    assert re.search(rf"^ana: {said}$", text, re.M), text


def test_every_person_has_a_line() -> None:
    """What was never sent is not shown; of a crowd the last stand there, and how many more there are."""
    cancelled = an_attempt(method=Method.SMS, status=DeliveryStatus.CANCELLED, reason="acknowledged by ben")
    text = shown(blocks.card(a_view(receipts=(an_attempt(), cancelled, an_attempt(person="ben")))))
    assert re.search(rf"^ana: DM ✓ {AT}\nben: DM ✓ {AT}$", text, re.M)
    crowd = tuple(an_attempt(person=f"p{number:02}") for number in range(11))
    assert "+3: `/oncall why 42`" in shown(blocks.card(a_view(receipts=crowd)))


def test_what_nobody_answered_says_how_often_who_was_tried() -> None:
    """The count is on the black card, beside whoever is being paged now."""
    receipts = (
        an_attempt(tries=1),
        an_attempt(method=Method.SMS, status=DeliveryStatus.DEAD, tries=4),
        an_attempt(person="ben", tries=1),
        an_attempt(person="cho", tries=1, level=-2),
        an_attempt(person="dan", status=DeliveryStatus.QUEUED),
    )
    view = a_view(status=IncidentStatus.UNANSWERED, level=-2, receipts=receipts)
    card = blocks.card(view)
    assert card.attachments[0]["color"] == "#1f2937"
    assert card.text.startswith("⚫ UNANSWERED")
    assert "Nobody answered: tried 7 times, 3 people" in shown(card)
    assert "Paging cho (fallback chain)" in shown(card)
    assert "tried 7 times" in shown(blocks.plain(view))
    nobody = a_view(status=IncidentStatus.UNANSWERED, level=-2, receipts=())
    assert "nobody could be tried" in shown(blocks.card(nobody))


def test_a_mention_stands_in_the_text_of_a_channel_page() -> None:
    """The card for a channel target mentions, in the text that notifies."""
    assert blocks.card(a_view(), mention="<!channel>").text.endswith(" <!channel>")


def test_an_unknown_severity_is_shown_as_it_came() -> None:
    """A word we do not know is not hidden."""
    assert "· sev1 ·" in shown(blocks.card(a_view(severity=None, raw_severity="sev1")))
    assert "severity unknown" in shown(blocks.card(replace(a_view(), severity=None, raw_severity="")))


def test_a_held_incident_says_until_when_and_no_next_step() -> None:
    """Nobody need wonder why nobody is paged, nor wait for a level that will not come then."""
    said = shown(blocks.card(VIEWS["held"]))
    assert f"🔧 Held by maintenance until <!date^{int((NOW + timedelta(hours=1)).timestamp())}^" in said
    assert "Next:" not in said
    assert "Held" not in shown(blocks.card(resolved(held_until=NOW)))


def test_a_merged_incident_says_which_one_goes_on() -> None:
    """In place of "resolved"; whoever merged it is named."""
    said = shown(blocks.card(VIEWS["merged"]))
    assert "Merged into #41 by" in said
    assert "Resolved" not in said
