"""What people do to an incident, and what each of them is told."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.directory import Target, TargetKind
from engine.models import Severity, Via
from tests.scenario.fates import entries, fate_timers, queued, rota, soon, take
from tests.scenario.harness import Pager


async def target(pager: Pager, person: str) -> Target:
    return Target(TargetKind.PERSON, (await pager.person(person)).person_id or 0)


async def status(pager: Pager, number: int = 1) -> str:
    return (await pager.incident(number)).status.value


# --- acknowledge -----------------------------------------------------------------------------------------


async def test_the_second_ack_is_told_who_was_first(pager: Pager) -> None:
    """It changes nothing; another person is noted once, one's own second press leaves no trace."""
    await pager.alert()
    await pager.ack(by="alice")
    epoch = (await pager.incident()).epoch
    pager.clock.move(seconds=12)
    for by in ("bob", "bob", "alice"):
        answer = await pager.ack(by=by, via=Via.SMS)
        assert (answer.changed, answer.reason) == (False, "already acknowledged by alice 12 s ago")
        assert answer.incident.acknowledged_by == "alice"
    assert await entries(pager, "acknowledged") == ["acknowledged"]
    assert len(await entries(pager, "also_acknowledged")) == 1
    assert (await pager.incident()).epoch == epoch
    take(pager)


async def test_an_ack_of_a_resolved_incident_is_told_so(pager: Pager) -> None:
    """By whom and when; nothing changes, and nothing is noted."""
    await pager.alert()
    await pager.resolve(by="bob")
    pager.clock.move(minutes=3)
    answer = await pager.ack()
    assert (answer.changed, answer.reason) == (False, "already resolved by bob 3 min ago")
    assert (await status(pager), await entries(pager, "acknowledged")) == ("resolved", [])
    take(pager)


async def test_an_ack_takes_back_what_was_queued(pager: Pager) -> None:
    """Later contact rules are cancelled with the reason, and no timer is left."""
    await pager.alert()
    assert await queued(pager) == 2
    await pager.ack(by="bob")
    assert (await queued(pager), await fate_timers(pager)) == (0, [])
    incident = await pager.incident()
    reasons = {one.reason for one in await pager.app.views.deliveries(incident.id) if one.reason}
    assert reasons == {"acknowledged by bob"}
    take(pager)


async def test_an_unanswered_incident_can_still_be_taken(pager: Pager) -> None:
    """Hours later, by whoever finds it."""
    await pager.alert()
    await pager.advance(hours=3)
    assert await status(pager) == "unanswered"
    assert (await pager.ack()).changed
    assert (await status(pager), await fate_timers(pager)) == ("acknowledged", [])
    take(pager)
    await pager.advance(hours=2)
    pager.expect_page("carol", "slack", kind="status")  # who was paged by SMS alone
    pager.expect_silence()


async def test_unacknowledge_starts_over(pager: Pager) -> None:
    """A new round: who was paged is paged again; the one who gave it back is named."""
    await pager.alert()
    await pager.ack()
    take(pager)
    answer = await pager.answer("unacknowledge")
    assert (answer.changed, await status(pager), await soon(pager)) == (
        True,
        "triggered",
        [("alice", "slack")],
    )
    assert (await pager.incident()).acknowledged_by is None
    refused = await pager.answer("unacknowledge")
    assert (refused.changed, refused.reason) == (False, "it is triggered")
    await pager.resolve()


# --- snooze ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["nobody", "alice"])
async def test_a_snooze_is_quiet_until_it_ends(pager: Pager, by: str) -> None:
    """Then paging starts over, with nothing of the snooze left."""
    await pager.alert()
    if by == "alice":
        await pager.ack()
    take(pager)
    until = pager.clock.now() + timedelta(hours=1)
    answer = await pager.answer("snooze", by="bob", until=until)
    assert (answer.incident.status, answer.incident.snoozed_until) == ("acknowledged", until)
    assert answer.incident.acknowledged_by == ("alice" if by == "alice" else "bob")
    await pager.advance(minutes=59)
    pager.expect_silence()
    await pager.advance(minutes=1)
    assert (await status(pager), take(pager)) == ("triggered", [("alice", "slack")])
    assert (await pager.incident()).snoozed_until is None
    await pager.resolve()


async def test_a_snooze_into_the_past_is_refused(pager: Pager) -> None:
    """And the paging goes on."""
    await pager.alert()
    answer = await pager.answer("snooze", until=pager.clock.now())
    assert (answer.changed, await status(pager)) == (False, "triggered")
    assert await fate_timers(pager) == ["escalate"]
    take(pager)
    await pager.resolve()


# --- escalate and assign -----------------------------------------------------------------------------------


async def test_escalate_now_pages_the_next_level_and_past_the_end_the_next_pass(pager: Pager) -> None:
    """Beyond `repeat` too, since a person asked; the timeout counts from now."""
    await pager.alert()
    take(pager)
    await pager.answer("escalate")
    assert take(pager) == [("bob", "slack")]
    pager.clock.move(seconds=1)
    await pager.answer("escalate")
    assert take(pager) == [("alice", "slack")]
    incident = await pager.incident()
    assert (incident.level, incident.pass_, await fate_timers(pager)) == (0, 1, ["escalate"])
    assert incident.next_step_at == pager.clock.now() + timedelta(minutes=5)
    await pager.ack()


async def test_escalate_now_after_an_ack_goes_to_the_level_after_it(pager: Pager) -> None:
    """And after the last one to the first."""
    await pager.alert()
    await pager.ack()
    take(pager)
    await pager.answer("escalate")
    assert (await status(pager), take(pager)) == ("triggered", [("bob", "slack")])
    await pager.ack(by="bob")
    await pager.answer("escalate")
    assert await soon(pager) == [("alice", "slack")]
    await pager.ack()


async def test_escalate_now_of_an_unanswered_incident_starts_over(pager: Pager) -> None:
    """At level 0."""
    await pager.alert()
    await pager.advance(minutes=20)
    take(pager)
    await pager.answer("escalate")
    assert (await status(pager), take(pager)) == ("triggered", [("alice", "slack")])
    await pager.resolve()
    refused = await pager.answer("escalate")
    assert (refused.changed, refused.reason) == (False, "already resolved by alice 0 s ago")


async def test_escalate_now_of_urgency_none_raises_it_to_low(pager: Pager) -> None:
    """Whoever presses the button wants somebody to hear of it."""
    await pager.alert(service="quiet", severity=Severity.INFO)
    await pager.answer("escalate")
    assert ((await pager.incident()).urgency, take(pager)) == ("low", [("alice", "slack")])
    await pager.ack()


async def test_an_assigned_incident_pages_that_person_and_then_the_policy(pager: Pager) -> None:
    """For as long as level 0 would wait; then level 0 itself."""
    await pager.alert()
    await pager.ack()
    take(pager)
    answer = await pager.answer("reassign", target=await target(pager, "carol"))
    assert (answer.incident.status, take(pager)) == ("triggered", [("carol", "sms")])
    assert (await pager.incident()).level == -1
    await pager.advance(minutes=4)
    pager.expect_silence()
    await pager.advance(minutes=1)
    assert take(pager) == [("alice", "slack")]
    await pager.ack(by="carol")


async def test_assigning_twice_pages_once(pager: Pager) -> None:
    """A double click is one assignment."""
    await pager.alert()
    take(pager)
    carol = await target(pager, "carol")
    assert (await pager.answer("reassign", target=carol)).changed
    assert not (await pager.answer("reassign", target=carol)).changed
    assert take(pager) == [("carol", "sms")]
    await pager.ack(by="carol")


async def test_a_helper_is_told_until_they_answer(pager: Pager) -> None:
    """Their own ack ends it, somebody else's does not; asked again, they are told again."""
    await pager.alert()
    await pager.ack()
    take(pager)
    bob = (await pager.person("bob")).person_id
    assert (await pager.answer("add_responder", person_id=bob)).changed
    assert take(pager) == [("bob", "slack")]
    assert not (await pager.answer("add_responder", person_id=bob)).changed
    await pager.ack(by="carol")
    await pager.advance(minutes=1)
    assert take(pager) == [("bob", "sms")]
    assert (await pager.answer("add_responder", person_id=bob)).changed
    assert take(pager) == [("bob", "slack")]
    await pager.ack(by="bob")
    await pager.advance(minutes=5)
    pager.expect_silence()
    assert await status(pager) == "acknowledged"


async def test_a_resolve_ends_a_call_for_help(pager: Pager) -> None:
    """Nobody is asked for help with what is over."""
    await pager.alert()
    await pager.ack()
    await pager.answer("add_responder", person_id=(await pager.person("bob")).person_id)
    take(pager)
    await pager.resolve()
    assert await queued(pager) == 0
    await pager.advance(minutes=5)
    pager.expect_silence()


# --- resolve and reopen ----------------------------------------------------------------------------------


async def test_a_person_resolves_and_the_keys_remember_it(pager: Pager) -> None:
    """Alerts are closed; the same alert that fires on opens a new incident, and pages it late."""
    await pager.alert()
    await pager.advance(minutes=1)
    await pager.resolve(by="bob")
    incident = await pager.incident()
    assert (incident.resolved_by, incident.firing_count) == ("bob", 0)
    assert [alert.status for alert in incident.alerts] == ["resolved"]
    take(pager)
    receipt = await pager.alert()
    assert (receipt.status, receipt.incident_number) == ("opened", 2)
    await pager.advance(minutes=14)
    pager.expect_silence()
    await pager.advance(minutes=1)
    assert take(pager) == [("alice", "slack")]
    await pager.ack(2)


async def test_who_acts_before_the_first_page_meets_the_policy_of_the_incident(pager: Pager) -> None:
    """The incident waits after a human's resolve; to escalate it pages level 1 now and stores the policy."""
    await pager.alert()
    await pager.resolve()
    take(pager)
    await pager.alert()
    await pager.answer("escalate", number=2)
    incident = await pager.incident(2)
    assert (await soon(pager), incident.policy) == ([("alice", "slack")], "payments")
    await pager.ack(2)


async def test_resolving_twice_is_told_so(pager: Pager) -> None:
    """One entry in the timeline, and the first one stays."""
    await pager.alert()
    await pager.resolve(by="bob")
    answer = await pager.resolve(by="alice")
    assert (answer.changed, answer.incident.resolved_by) == (False, "bob")
    assert await entries(pager, "resolved") == ["resolved"]
    take(pager)


async def test_a_reopened_incident_pages_again(pager: Pager) -> None:
    """In a round of its own."""
    await pager.alert()
    await pager.resolve()
    take(pager)
    answer = await pager.answer("reopen", by="bob")
    assert (answer.incident.status, await soon(pager)) == ("triggered", [("alice", "slack")])
    assert await fate_timers(pager) == ["escalate"]
    refused = await pager.answer("reopen")
    assert (refused.changed, refused.reason) == (False, "it is triggered")
    await pager.resolve()


@pytest.mark.parametrize("group", ["db-1 is down", "another group"])
async def test_a_reopen_is_refused_naming_who_holds_the_problem(pager: Pager, group: str) -> None:
    """The same group, or the same key in another group."""
    await pager.alert()
    await pager.resolve()
    await pager.advance(minutes=20)
    await pager.alert(group_key=group)
    await pager.advance(minutes=1)
    take(pager)
    answer = await pager.answer("reopen")
    assert (answer.changed, answer.reason) == (False, "#2 is already open for the same problem")
    assert await status(pager) == "resolved"
    await pager.resolve(2)
    assert (await pager.answer("reopen")).changed
    await pager.resolve(1)
    take(pager)


async def test_whoever_escalates_is_told_who_could_not_be_reached(pager: Pager) -> None:
    """The remarks stand in the timeline by the answer of a person too."""
    await rota(pager)
    await pager.alert(service="quiet", severity=Severity.INFO)
    await pager.answer("escalate")
    assert (await entries(pager, "escalated"))[
        -1
    ] == "escalated by alice: paging level 2; nobody is on call on primary"
    await pager.ack(by="bob")
    take(pager)
