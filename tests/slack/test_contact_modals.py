"""The forms of contact methods and contact rules, as people fill them in; and the Home tab."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bot.sandbox.content import visible_text
from bot.sandbox.hands import Hands
from bot.slack.contacts import methods_views, rules_form, showing
from bot.slack.contacts.rules_form import Draft
from bot.slack.lint import lint_view
from bot.slack.modals.opening import View
from engine.contacts.contacts import Pending
from engine.contacts.warnings import RuleWarning
from engine.directory import ContactMethod, ContactRule, Person
from engine.models import Actor, DeliveryStatus, Method, Urgency, Via
from tests.slack.conftest import Desk, until
from tests.slack.schedule_forms import Forms
from tests.slack.test_answers import a_person
from tests.slack.test_me import NEW, OWN, answer, code_of, person
from tests.slack.views import HOSTILE, NOW

MIN = timedelta(minutes=1)


@pytest.fixture
async def online(desk: Desk) -> Desk:
    await desk.connect()
    return desk


@pytest.fixture
def forms(online: Desk) -> Forms:
    return Forms(online)


async def presses_one(forms: Forms, block_id: str, action_id: str) -> None:
    """A button of which there are several: that of this block."""
    blocks = [one for one in forms.view.body["blocks"] if one.get("block_id") == block_id]
    (found,) = [e for one in blocks for e in one["elements"] if e["action_id"] == action_id]
    view = forms.view
    before, kept = view.body["hash"], view.body["blocks"]
    view.body["blocks"] = [*blocks, *(one for one in kept if one not in blocks)]
    seen = await Hands(forms.desk.sandbox.world).click_in_view(
        forms.person, view, action_id, found["value"], {}
    )
    assert seen.error is None, seen.error
    await until(lambda: forms.view.body["hash"] != before)


def chosen(forms: Forms, urgency: str) -> list[tuple[str, str]]:
    """The steps that the form of rules shows, in words."""
    rows = [b for b in forms.view.body["blocks"] if str(b.get("block_id")).startswith(f"{urgency}:")]
    return [tuple(e["initial_option"]["text"]["text"] for e in row["elements"]) for row in rows]  # type: ignore[misc]


def picks(forms: Forms, urgency: str, at: int, **choices: str) -> dict[str, Any]:
    """What is chosen in that step, as values of the view."""
    rows = [b for b in forms.view.body["blocks"] if str(b.get("block_id")).startswith(f"{urgency}:")]
    return {rows[at]["block_id"]: dict(choices)}


async def saves(forms: Forms, **values: Any) -> dict[str, Any]:
    found: dict[str, Any] = await Hands(forms.desk.sandbox.world).submit(forms.person, forms.view, values)
    return found


# --- contact methods ---------------------------------------------------------------------------------------


async def test_a_method_is_added_and_verified_in_one_form(forms: Forms) -> None:
    """Kind, address, code; the form then shows it as verified, with what is still wrong."""
    await forms.opened("/oncall me methods")
    assert f"✓ SMS `{OWN}`" in forms.said
    await forms.press("add")
    await forms.submit(kind="email", address="ana@example.com")
    assert "The code for Email `ana@example.com` comes by mail" in forms.said
    assert "5 tries left" in forms.said
    assert forms.actions == ["resend", "back"], "nobody calls a mail address"
    code = await code_of(forms.desk)
    wrong = f"{(int(code) + 1) % 1_000_000:06d}"
    assert (await forms.submit(code=wrong))["errors"] == {"code:0": "That is not the code. 4 tries are left."}
    assert (await forms.submit(code="tomorrow"))["errors"]["code:0"].startswith("A code has 6 digits")
    await forms.submit(code=code)
    assert "✅ Email `ana@example.com` is verified." in forms.said
    assert "none of your contact rules uses it" in forms.said
    assert [one.kind for one in (await person(forms.desk)).methods if one.usable][-1] is Method.EMAIL


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"address": "0202"}, "address", "A number begins with +"),
        ({"address": OWN}, "address", "among your contact methods already"),
        ({"address": "+8821612345678"}, "address", "Satellite and premium-rate"),
        ({"kind": "push", "address": "http://x.example"}, "address", "reaches no phone"),
        ({"kind": "email", "address": "a@b.example", "call": ["call"]}, "call", "Only a telephone number"),
        ({"address": "<!channel>&amp;"}, "address", "A number begins with +"),
    ],
)
async def test_what_is_wrong_is_said_at_its_field(
    forms: Forms, values: dict[str, Any], field: str, said: str
) -> None:
    """Nothing typed is lost, and nothing is added."""
    await forms.opened("/oncall me add")
    answered = await forms.submit(**values)
    assert said in answered["errors"][field]
    assert len((await person(forms.desk)).methods) == 3


async def test_another_code_and_a_call_are_asked_for_in_the_form(forms: Forms) -> None:
    """Each ends the one before and empties the field; the limit is said above, and what was typed stays."""
    await forms.opened("/oncall me add")
    await forms.submit(address=NEW, kind="sms")
    first = await code_of(forms.desk)
    await forms.press("resend")
    assert "by text" in forms.said
    await forms.press("recall")
    assert f"The code for SMS `{NEW}` comes in a call" in forms.said
    assert "code:2" in forms.said
    await forms.press("resend")
    assert "Too many codes" in forms.said
    second = await code_of(forms.desk)
    if first != second:
        assert "errors" in await forms.submit(code=first)
    await forms.submit(code=second)
    assert f"✅ SMS `{NEW}` is verified" in forms.said


async def test_a_code_that_could_not_be_sent_says_why(forms: Forms) -> None:
    """What became of its delivery stands beside the field."""
    method = ContactMethod(7, 1, Method.SMS, NEW, verified=False)
    died = Pending(7, NOW, NOW + 15 * MIN, 5, False, DeliveryStatus.DEAD, "no such <number>")
    shown = str(methods_views.entering(method, died, {}).blocks)
    assert "⚠️ Its code could not be sent (no such &lt;number&gt;), 5 tries left." in shown
    assert "No code for" in str(methods_views.entering(method, None, {}).blocks)


async def test_an_address_is_changed_and_verified_again(forms: Forms) -> None:
    """The code screen follows, later goes back to the list, and from there on to the code again."""
    sms = next(one for one in (await person(forms.desk)).methods if one.kind is Method.SMS)
    await forms.opened("/oncall me methods")
    await presses_one(forms, f"method:{sms.id}", "change")
    assert OWN in forms.said
    assert "That is its address already" in (await forms.submit(address=OWN))["errors"]["address"]
    await forms.submit(address=NEW)
    assert f"The code for SMS `{NEW}` comes by text" in forms.said
    await forms.press("back")
    assert f"✗ SMS `{NEW}` – not verified; a code is on its way, 5 tries left" in forms.said
    await presses_one(forms, f"method:{sms.id}", "verify")
    assert "The six digits" in forms.said


async def test_a_method_is_removed_after_a_second_look(forms: Forms) -> None:
    """With what ends with it; back changes nothing."""
    sms = next(one for one in (await person(forms.desk)).methods if one.kind is Method.SMS)
    await forms.opened("/oncall me methods")
    await presses_one(forms, f"method:{sms.id}", "remove")
    assert "Its steps of high urgency end with it" in forms.said
    await forms.press("back")
    await presses_one(forms, f"method:{sms.id}", "remove")
    await saves(forms)
    assert "is forgotten. midwatch.yaml names it" in forms.said
    assert len((await person(forms.desk)).methods) == 2


async def test_what_went_meanwhile_is_said(forms: Forms) -> None:
    """A method that was removed elsewhere: no error of ours, and nobody else's is touched."""
    sms = next(one for one in (await person(forms.desk)).methods if one.kind is Method.SMS)
    await forms.opened("/oncall me methods")
    await forms.desk.contacts.remove(sms.id, Actor("root", Via.CLI))
    await presses_one(forms, f"method:{sms.id}", "change")
    assert "There is no such contact method any more" in forms.said


async def test_everybody_sees_and_changes_their_own(online: Desk) -> None:
    """Whoever presses a button below somebody else's answer gets their own form (S-14)."""
    await online.types("ana", f"/oncall me add sms {NEW}")
    assert "A code" in visible_text(answer(online, "ana"))
    await online.types("dee", "/oncall me")
    await online.clicks("dee", answer(online, "dee"), showing.METHODS)
    dee = Forms(online, "dee")
    await until(lambda: bool(dee.stack))
    assert NEW not in dee.said
    assert OWN not in dee.said


async def test_the_button_below_an_added_number_asks_for_its_code(online: Desk) -> None:
    """From words to the form; once it is verified the same button says so."""
    await online.types("ana", f"/oncall me add sms {NEW}")
    asked = answer(online, "ana")
    await online.clicks("ana", asked, showing.CODE)
    forms = Forms(online)
    await until(lambda: bool(forms.stack))
    await forms.submit(code=await code_of(online))
    assert f"✅ SMS `{NEW}` is verified." in forms.said
    online.sandbox.state.modals["U0ANA"].clear()
    await online.clicks("ana", asked, showing.CODE)
    await until(lambda: bool(forms.stack))
    assert "is verified already" in forms.said


# --- contact rules -----------------------------------------------------------------------------------------


async def test_rules_are_chosen_and_saved(forms: Forms) -> None:
    """The form shows what holds; a step changes, one goes, one comes."""
    ana = await person(forms.desk)
    call = next(str(one.id) for one in ana.methods if one.kind is Method.VOICE)
    await forms.opened("/oncall me rules")
    assert chosen(forms, "high") == [
        ("Slack", "At once"),
        (f"SMS {OWN}", "After 1 min"),
        (f"Call {OWN}", "After 3 min"),
    ]
    assert chosen(forms, "low") == [("Slack", "At once")]
    await presses_one(forms, "add:low", "add")
    assert chosen(forms, "low") == [("Slack", "At once"), (f"SMS {OWN}", "After 30 s")]
    picked = picks(forms, "high", 1, method=call, delay="120") | picks(forms, "high", 2, method="none")
    await saves(forms, **picked)
    await until(lambda: bool(forms.desk.whispers("ana", "#general")))
    said = forms.desk.whispers("ana", "#general")[-1]
    assert "✅ *High urgency* (your own): Slack at once, call after 2 min" in said
    assert "✅ *Low urgency* (your own): Slack at once, SMS after 30 s" in said
    assert "No page" not in said
    rules = (await person(forms.desk)).rules[Urgency.HIGH]
    assert [one.delay for one in rules] == [timedelta(), 2 * MIN]


async def test_rules_that_cannot_be_are_said_in_the_form(forms: Forms) -> None:
    """Nothing is changed, of neither urgency."""
    before = (await person(forms.desk)).rules
    await forms.opened("/oncall me rules")
    gone = {key: value for at in range(3) for key, value in picks(forms, "high", at, method="none").items()}
    await saves(forms, **gone)
    assert "High urgency needs at least one step" in forms.said
    slack = next(str(one.id) for one in (await person(forms.desk)).methods if one.kind is Method.SLACK)
    twice = picks(forms, "high", 0, method=slack) | picks(forms, "high", 1, method=slack, delay="0")
    await saves(forms, **twice)
    assert "Two steps do the same at the same time" in forms.said
    assert (await person(forms.desk)).rules == before


async def test_the_usual_order_comes_back_by_a_button(forms: Forms) -> None:
    """At once; to save it untouched writes nothing down, so that it follows what is verified."""
    await forms.desk.types("ana", "/oncall me rules slack after 30m")
    await forms.opened("/oncall me rules")
    assert chosen(forms, "high") == [("Slack", "After 30 min")]
    assert "Nothing wakes you" in forms.said
    await forms.press("reset")
    assert "The usual order is in force" in forms.said
    assert len(chosen(forms, "high")) == 3
    assert (await person(forms.desk)).rules_by == ""
    await saves(forms)
    await until(lambda: "the usual order goes on" in str(forms.desk.whispers("ana", "#general")))
    assert (await person(forms.desk)).rules_by == ""


async def test_six_steps_and_no_more_are_offered(forms: Forms) -> None:
    """Each with another delay; a choice alone changes nothing yet."""
    await forms.opened("/oncall me rules")
    for _ in range(3):
        await presses_one(forms, "add:high", "add")
    assert len(chosen(forms, "high")) == 6
    assert "add:high" not in forms.said
    assert len({delay for _, delay in chosen(forms, "high")}) == 6
    assert len((await person(forms.desk)).rules[Urgency.HIGH]) == 3


# --- the Home tab ------------------------------------------------------------------------------------------


async def home(desk: Desk, name: str) -> Any:
    user = desk.sandbox.state.find_user(f"@{name}")
    assert user is not None
    desk.sandbox.state.homes.pop(user.id, None)
    Hands(desk.sandbox.world).open_home(user)
    await until(lambda: user.id in desk.sandbox.state.homes)
    return desk.sandbox.state.homes[user.id]


async def test_the_home_tab_warns_and_opens_the_form(online: Desk) -> None:
    """Whoever nothing wakes reads it first; what the form changes is seen in the tab at once."""
    await online.types("dee", "/oncall me")
    tab = await home(online, "dee")
    assert "Nothing wakes you" in str(tab.body["blocks"][0])
    user = online.sandbox.state.find_user("@dee")
    assert user is not None
    await Hands(online.sandbox.world).click_in_view(user, tab, showing.METHODS, None, {})
    dee = Forms(online, "dee")
    await until(lambda: bool(dee.stack))
    await dee.press("add")
    await dee.submit(kind="voice", address="+12025550146")
    await dee.submit(code=await code_of(online))
    await until(lambda: "Nothing wakes you" not in str(online.sandbox.state.homes[user.id].body["blocks"]))
    assert "call after 3 min" in str(online.sandbox.state.homes[user.id].body["blocks"])


async def test_the_home_tab_warns_of_slacks_silence(online: Desk) -> None:
    """Of whoever is on call; and it is there when Slack does not say."""
    now = online.clock.now()
    online.sandbox.state.quiet["U0ANA"] = (now + timedelta(hours=1), now + timedelta(hours=9))
    assert "🔕 You are on call, and Slack is silent" in str((await home(online, "ana")).body["blocks"][0])
    online.breaks("missing_scope", method="dnd.info")
    shown = str((await home(online, "ana")).body["blocks"])
    assert "🔕" not in shown
    assert "How you are reached" in shown
    assert OWN not in shown


# --- what Slack takes --------------------------------------------------------------------------------------


def shown(view: View) -> dict[str, Any]:
    """As it is sent."""
    body = {"type": "modal", "title": {"type": "plain_text", "text": view.title}, "blocks": list(view.blocks)}
    if view.submit:
        body["submit"] = {"type": "plain_text", "text": view.submit}
    body["private_metadata"] = str(dict(view.about))
    return body


@pytest.mark.parametrize("name", HOSTILE)
def test_every_screen_can_be_shown(name: str) -> None:
    """Whatever stands in an address or a reason, and however much there is of it."""
    text = HOSTILE[name]
    kinds = (Method.SLACK, Method.SMS, Method.VOICE, Method.EMAIL, Method.PUSH)
    methods = tuple(
        ContactMethod(
            n, 1, kinds[n % 5], text or "x", verified=n % 2 == 0, disabled_reason=text if n == 4 else None
        )
        for n in range(1, 21)
    )
    many = tuple(ContactRule(n, n * MIN) for n in range(1, 21))
    somebody: Person = replace(a_person(text), methods=methods, rules={Urgency.HIGH: many, Urgency.LOW: many})
    waits = {n: Pending(n, NOW, NOW + MIN, 3, False, DeliveryStatus.DEAD, text) for n in range(1, 21)}
    warned = [RuleWarning(text or "?")] * 30
    views = [
        methods_views.listed(somebody, waits, warned, {}, "said"),
        methods_views.adding({}),
        *(methods_views.entering(one, waits[one.id], {}) for one in methods if one.kind is not Method.SLACK),
        *(methods_views.changing(one, {}) for one in methods if one.kind is not Method.SLACK),
        methods_views.removing(methods[0], somebody, {}),
        rules_form.view(somebody, Draft.of(somebody), warned, {}, "said"),
    ]
    for view in views:
        assert lint_view(shown(view)) == []
        assert "<!channel>" not in str([b for b in view.blocks if b["type"] in {"section", "context"}])
