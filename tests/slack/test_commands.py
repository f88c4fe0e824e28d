"""Commands in Slack, typed by people into a real socket: done, refused, or already so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.sandbox.content import visible_text
from bot.sandbox.hands import Hands
from engine.models import ORG, Actor, IncidentStatus, Via
from engine.store import marks
from tests.slack.conftest import Desk, until

CLI = Actor("cho", Via.CLI)


@pytest.fixture
async def online(desk: Desk) -> Desk:
    await desk.connect()
    return desk


async def test_oncall_shows_every_schedule(online: Desk) -> None:
    """Bare, it says who is on call on each schedule, until when and who is next."""
    answer = await online.types("dee", "/oncall")
    assert "📟 *payments-primary*: *ana* · since <!date^" in answer
    assert "next: *ben*" in answer
    assert "*payments-secondary*: *ben*" in answer


@pytest.mark.parametrize(
    "text", ["/oncall who payments-primary", "/oncall PAYMENTS-PRIMARY", "/oncall who “payments-primary”"]
)
async def test_oncall_of_one_schedule(online: Desk, text: str) -> None:
    """A schedule may be named with or without the verb, in any case and quotes."""
    answer = await online.types("dee", text)
    assert "payments-primary" in answer
    assert "payments-secondary" not in answer


async def test_oncall_of_one_person(online: Desk) -> None:
    """A mention asks where this person is on call."""
    assert "payments-primary" in await online.types("dee", "/oncall @ana")
    assert "run `/oncall me` once" in await online.types("dee", "/oncall @dee")


async def test_an_unknown_schedule_is_answered_with_those_there_are(online: Desk) -> None:
    """A mistyped name gets the nearest one."""
    answer = await online.types("dee", "/oncall who paymnts-primary")
    assert "Did you mean `payments-primary`?" in answer


async def test_ack_by_command(online: Desk) -> None:
    """Success, and the card's state follows the command."""
    incident = await online.open()
    answer = await online.types("ana", f"/oncall ack {incident.number}")
    assert answer == f"🟡 *#{incident.number}* db-1 is down: acknowledged"
    view = await online.view(incident.id)
    assert (view.acknowledged_by, view.acknowledged_via) == ("ana", Via.SLACK_COMMAND)


async def test_ack_of_what_is_acknowledged(online: Desk) -> None:
    """Already done: the second person is told who was first, and nothing changes hands."""
    incident = await online.open()
    await online.responder.acknowledge(incident.id, CLI)
    answer = await online.types("ben", f"/oncall ack {incident.number}")
    assert answer.startswith(f"ℹ️ *#{incident.number}* db-1 is down: already acknowledged by cho")
    assert (await online.view(incident.id)).acknowledged_by == "cho"


async def test_ack_of_a_resolved_incident(online: Desk) -> None:
    """Resolve wins: an ack afterwards is told so."""
    incident = await online.open()
    await online.responder.resolve(incident.id, CLI)
    assert "already resolved" in await online.types("ben", f"/oncall ack {incident.number}")
    assert (await online.view(incident.id)).status is IncidentStatus.RESOLVED


@pytest.mark.parametrize(
    "verb", ["ack", "resolve", "unack", "reopen", "escalate", "snooze", "note", "merge", "unmerge"]
)
async def test_a_stranger_to_midwatch_changes_nothing(online: Desk, verb: str) -> None:
    """Not yours: somebody unknown is told to run /oncall me, and the incident stays as it is."""
    incident = await online.open()
    rest = {"snooze": " 30m", "note": " x", "merge": " into 1"}.get(verb, "")
    answer = await online.types("dee", f"/oncall {verb} {incident.number}{rest}")
    assert "Run `/oncall me` once" in answer
    assert await online.view(incident.id) == incident


@pytest.mark.parametrize(
    ("user", "words"), [("gus", "Guests may not use Midwatch"), ("eve", "only people of its own workspace")]
)
async def test_outsiders_are_refused(online: Desk, user: str, words: str) -> None:
    """Guests and strangers change nothing and cannot become people here."""
    incident = await online.open()
    assert words in await online.types(user, f"/oncall ack {incident.number}")
    assert words in await online.types(user, "/oncall me")
    assert (await online.view(incident.id)).status is IncidentStatus.TRIGGERED


@pytest.mark.parametrize("command", ["/oncall list", "/oncall show 1", "/oncall who", "/incident list"])
@pytest.mark.parametrize(
    ("user", "words"), [("gus", "Guests may not use Midwatch"), ("eve", "only people of its own workspace")]
)
async def test_outsiders_read_nothing(online: Desk, user: str, words: str, command: str) -> None:
    """What is broken, and who is asleep, is for members of the workspace; they need not be enrolled."""
    await online.open("db-1 is down")
    answer = await online.types(user, command)
    assert words in answer
    assert "db-1" not in answer
    assert words not in await online.types("dee", command)


async def test_nothing_is_read_by_whom_slack_does_not_vouch_for(online: Desk) -> None:
    """While Slack does not say whether somebody is a guest, only people of the directory read."""
    await online.open("db-1 is down")
    online.breaks("outage", method="users.info")
    assert "does not tell me who you are" in await online.types("gus", "/oncall list")
    assert "db-1" in await online.types("ana", "/oncall list")


async def test_every_verb_of_an_incident(online: Desk) -> None:
    """Resolve, reopen, snooze, unack, escalate and note, each answered with what it did."""
    number = (await online.open()).number
    for text, words in [
        (f"/incident resolve {number}", f"🟢 *#{number}*"),
        (f"/oncall resolve {number}", "already resolved"),
        (f"/oncall reopen {number}", f"🔴 *#{number}*"),
        (f"/oncall snooze {number} 30 min", f"⚪ *#{number}*"),
        (f"/oncall unack {number}", f"🔴 *#{number}*"),
        (f"/oncall escalate {number}", f"*#{number}*"),
        (f"/oncall note {number} Rebooted “db-1”", "noted"),
        (f"/oncall show {number}", "Rebooted “db-1”"),
        ("/oncall ack 999", "There is no incident #999"),
    ]:
        assert words in await online.types("ana", text), text


async def test_several_incidents_at_once(online: Desk) -> None:
    """Each number has its own line, also one that is not there."""
    first, second = await online.open("one"), await online.open("two")
    answer = await online.types("ana", f"/oncall ack #{first.number}, #{second.number} and 77")
    assert [line[:2] for line in answer.splitlines()] == ["🟡 ", "🟡 ", "❔ "]


async def test_a_merge_and_back(online: Desk) -> None:
    """Success, "already done", what is not there, and the undo of it, each in a line."""
    one, two = (await online.open("one")).number, (await online.open("two")).number
    for text, words in [
        (f"/oncall merge {two} into {one}", f"🟢 *#{two}* two: merged into #{one}"),
        (f"/oncall merge {two} into {one}", "already merged into another incident"),
        (f"/oncall merge {one} into {two}", f"#{two} is resolved: reopen it first"),
        (f"/oncall merge {one} into {one}", "an incident cannot be merged into itself"),
        (f"/oncall merge {one} into 99", "There is no incident #99"),
        (f"/oncall merge 99 into {one}", "There is no incident #99"),
        (f"/oncall unmerge {two}", f"🔴 *#{two}* two: taken out again by ana"),
        (f"/oncall unmerge {two}", "it was not merged"),
    ]:
        assert words in await online.types("ana", text), text


async def test_maintenance_from_start_to_end(online: Desk) -> None:
    """Set, listed, told to whoever opens an incident meanwhile, and ended early."""
    assert "Start one with `/oncall maintenance checkout 2h [reason]`" in await online.types(
        "ana", "/oncall maintenance"
    )
    for text, words in [
        ("/oncall maintenance checkout 2h New <switches>", "🔧 Nobody is paged for *checkout* from <!date^"),
        ("/oncall maintenance", "by ana · New &lt;switches&gt;"),
        ("/page checkout Disk full", "🔧 Maintenance holds its pages until <!date^"),
        ("/oncall status", "🔧 1 maintenance on or planned: `/oncall maintenance`"),
        ("/oncall maintenance end all", "No maintenance of *all services* is on or planned"),
        ("/oncall maintenance end Checkout", "The maintenance of *checkout* is over"),
        ("/oncall maintenance", "No maintenance is on or planned"),
        ("/oncall maintenance all 30m", "Nobody is paged for *all services*"),
    ]:
        assert words in await online.types("ana", text), text


@pytest.mark.parametrize(
    ("user", "text", "words"),
    [
        ("ana", "checkout 25h", "24 hours at most"),
        ("ana", "chekout 2h", "Did you mean `checkout`?"),
        ("ana", "checkout", "Say of what, and for how long: `/oncall maintenance checkout 2h [reason]`"),
        ("ana", "end", "Say of what"),
        ("dee", "checkout 2h", "Run `/oncall me` once"),
        ("gus", "all 2h", "Guests may not use Midwatch"),
    ],
)
async def test_maintenance_that_cannot_be_is_refused(online: Desk, user: str, text: str, words: str) -> None:
    """With the right form, what was mistyped or who may do it; nothing is held back."""
    assert words in await online.types(user, f"/oncall maintenance {text}")
    assert "No maintenance is on or planned" in await online.types("ana", "/oncall maintenance")


async def test_the_list_of_what_is_open(online: Desk) -> None:
    """Open incidents newest first; nothing open is said as such."""
    assert await online.types("dee", "/incident") == "🟢 No incident is open."
    await online.open("first")
    await online.open("second <!channel>")
    answer = await online.types("dee", "/oncall list")
    assert answer.index("second") < answer.index("first")
    assert "<!channel>" not in answer


async def test_me_makes_a_person(online: Desk) -> None:
    """Whoever runs it can act from then on; running it again changes nothing."""
    answer = await online.types("dee", "/oncall me")
    assert "You are *dee*, time zone Europe/London" in answer
    assert "✓ Slack <@U0DEE>" in answer
    assert "Nothing wakes you" in answer
    assert await online.types("dee", "/oncall me") == answer
    incident = await online.open()
    assert "acknowledged" in await online.types("dee", f"/oncall ack {incident.number}")


async def test_an_override_says_exactly_what_it_did(online: Desk) -> None:
    """Person, schedule, both wall clocks, whom it replaces and how to take it back; and it holds."""
    answer = await online.types("cho", "/override @ben 2h payments-primary")
    assert "✅ *ben* is on call on *payments-primary* for 2 h:" in answer
    assert "Mon 02 Mar 18:00 to 20:00 Asia/Tokyo" in answer
    assert "For ben that is Mon 02 Mar 04:00 to 06:00 America/New_York" in answer
    assert "In place of *ana*" in answer
    assert "`/override cancel 1`" in answer
    assert "*payments-primary*: *ben*" in await online.types("dee", "/oncall")
    assert "*ben* on *payments-primary*" in await online.types("dee", "/override list")
    assert "is cancelled" in await online.types("cho", "/override cancel 1")
    assert "cancelled already" in await online.types("cho", "/override cancel 1")
    assert "*payments-primary*: *ana*" in await online.types("dee", "/oncall")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/override @ben yesterday", "I don't understand `yesterday` as a time"),
        ("/override ben 2h", "Mention with @ who takes over: `/override @user 2h [schedule]`"),
        ("/override @zoe 2h", "Nobody here is called `zoe`. Midwatch knows: `@ana`, `@ben`, `@cho`"),
        ("/override @bne 2h", "Nobody here is called `bne`. Did you mean `@ben`?"),
        ("/oncall override @zoe 2h", "Nobody here is called `zoe`."),
        ("/oncall who @zoe", "Nobody here is called `zoe`."),
        ("/override @ben 2h nosuch", "I don't know a schedule `nosuch`"),
        ("/override @dee 2h", "they run `/oncall me` once"),
        ("/override @ben until 2020-01-01", "That is over already"),
        ("/oncall override @ben", "Say for how long"),
    ],
)
async def test_a_wrong_override_changes_nothing(online: Desk, text: str, words: str) -> None:
    """The answer shows the right form, and nobody is put on call."""
    assert words in await online.types("cho", text)
    assert await online.roster.overrides.listed() == []


async def test_a_stranger_to_midwatch_sets_no_override(online: Desk) -> None:
    """Not yours: only people of the directory change who is on call."""
    assert "Run `/oncall me` once" in await online.types("dee", "/override @ben 2h payments-primary")
    assert await online.roster.overrides.listed() == []


async def test_page_opens_an_incident(online: Desk) -> None:
    """A service and words open an incident with just these words; the service must be known."""
    answer = await online.types("ana", "/page checkout Disk <full> & hot on db1")
    assert answer.startswith("✅ Opened 🔴 FIRING · *#1 Disk &lt;full&gt; &amp; hot on db1* on *checkout*")
    (view,) = await online.views.list()
    assert view.title == "Disk <full> & hot on db1"
    assert "There are: `checkout`" in await online.types("ana", "/page chekout Disk full")
    assert "Did you mean `checkout`?" in await online.types("ana", "/page chekout Disk full")
    assert "Say what is wrong" in await online.types("ana", "/page checkout")
    assert "Name the service" in await online.types("ana", "/page")
    assert "Run `/oncall me` once" in await online.types("dee", "/page checkout Disk full")


async def test_why_tells_the_whole_story(online: Desk) -> None:
    """What happened, whom it pages and what comes next; in the thread of a card without a number."""
    await online.types("ana", "/page checkout Disk <full> on db1")
    said = await online.types("ana", "/oncall why 1")
    assert "*#1 Disk &lt;full&gt; on db1* on *checkout*" in said
    assert "opened by ana" in said
    assert "⏭" in said
    assert "the next level is paged" in said
    assert "There is no incident #99" in await online.types("ana", "/oncall why 99")
    assert "One at a time" in await online.types("ana", "/oncall why 1 2")
    assert "Name the incident" in await online.types("ana", "/oncall why")


async def test_page_names_a_schedule_too(online: Desk) -> None:
    """Whoever is on call there is paged by the service that pages it first; of a schedule that no service
    pages first it says so, and opens nothing."""
    await online.says("ana", "<@UMIDWATCH> page payments-primary the shop is down", "#payments")

    def opened() -> bool:
        return any("the shop is down" in visible_text(one) for one in online.said("#payments"))

    await online.sandbox.until(opened)
    (view,) = await online.views.list()
    assert (view.title, view.service) == ("the shop is down", "checkout")
    assert "📟 It pages *ana*." in await online.types("ana", "/page payments-primary it is slow")
    answer = await online.types("ana", "/page payments-secondary the shop is down")
    assert "No service pages `payments-secondary` first" in answer
    assert "Say what is wrong" in await online.types("ana", "/page payments-primary")
    assert "Name the service" in await online.types("ana", '/page ""')


async def test_status_tells_what_is_wrong(online: Desk) -> None:
    """Slack's state, open incidents, and nothing alarming where nothing is wrong."""
    await online.open()
    answer = await online.types("dee", "/oncall status")
    assert "🟢 Slack is up" in answer
    assert "🔴 1 open incident\n" in answer
    assert "🚨" not in answer


async def test_status_misses_the_worker(online: Desk) -> None:
    """Where alerts are accepted and nobody works them, people are told in Slack too (B062)."""
    online.quiet[0] = timedelta(minutes=5)
    assert "🚨 No worker has ticked for 5 min: nobody" in await online.types("dee", "/oncall status")


async def test_status_misses_no_worker_whose_clock_is_off(online: Desk) -> None:
    """A tick says that a worker is here, whatever time it names: skew is no outage (F-23)."""
    now = online.clock.now()
    await online.database.write(lambda tx: marks.tick(tx, ORG, now - timedelta(minutes=5)))
    assert "No worker" not in await online.types("dee", "/oncall status")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/oncall help", "`/override @ana 2h`"),
        ("/oncall help overide", "*override*"),
        ("/oncall help", "Topics: `who`, `shifts`"),
        ("/oncall help <!channel>", "There is no help on"),
        ("/override help", "*override*"),
        ("/override cancel all", "`all` is no number of an override"),
        ("/oncall akc 42", "Did you mean `ack`?"),
        ("/oncall <!channel>", "I don't know `&lt;!channel&gt;`"),
        ("/oncall ack", "Name the incident by its number"),
    ],
)
async def test_what_is_not_understood_is_helped(online: Desk, text: str, words: str) -> None:
    """Unknown words get a guess and the verbs there are, and mention nobody."""
    answer = await online.types("dee" if "ack" not in text.split() else "ana", text)
    assert words in answer
    assert "<!channel>" not in answer


async def test_a_mention_in_the_thread_of_a_card_means_its_incident(online: Desk) -> None:
    """@Midwatch ack below a card needs no number; the answer stands in the thread."""
    incident = await online.open()
    await online.card(incident, "#payments")
    await online.slack.cards.show(incident.id)
    await online.run_cards()
    (card,) = online.said("#payments")
    await online.says("ana", "@midwatch ack", "#payments", card.ts)
    await until(lambda: len(online.said("#payments")) == 2)
    assert visible_text(online.said("#payments")[1]) == f"🟡 *#{incident.number}* db-1 is down: acknowledged"
    assert online.said("#payments")[1].thread_ts == card.ts
    assert (await online.view(incident.id)).acknowledged_via is Via.SLACK_MENTION


async def test_a_mention_that_is_refused_is_whispered(online: Desk) -> None:
    """A refusal is shown to its sender only."""
    await online.says("ana", "hey @midwatch ack", "#payments")
    await until(lambda: bool(online.whispers("ana", "#payments")))
    assert "Name the incident by its number" in online.whispers("ana", "#payments")[0]
    assert online.said("#payments") == []


async def test_a_direct_message_is_a_command(online: Desk) -> None:
    """In the direct messages no mention is needed, and Midwatch does not answer itself."""
    state = online.sandbox.state
    await online.says("ana", "who", state.direct("U0ANA").id)
    await until(lambda: bool(online.direct("ana")))
    assert "payments-primary" in visible_text(online.direct("ana")[0])
    await online.says("ana", "list", state.direct("U0ANA").id)
    await until(lambda: len(online.direct("ana")) == 2)


async def test_the_home_tab_shows_what_is_open_and_who_is_on_call(online: Desk) -> None:
    """Opened, it is built with the buttons of each incident."""
    incident = await online.open()
    user = online.sandbox.state.users["U0ANA"]
    Hands(online.sandbox.world).open_home(user)
    await until(lambda: "U0ANA" in online.sandbox.state.homes)
    shown = str(online.sandbox.state.homes["U0ANA"].body["blocks"])
    assert f"#{incident.number} db-1 is down" in shown
    assert "incident_ack" in shown
    assert "payments-primary" in shown
