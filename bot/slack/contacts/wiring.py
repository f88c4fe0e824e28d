"""What Slack has of how people are reached: `/oncall me`, its forms and buttons, wired by hand.

Decides nothing, and runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot import vcard
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.slack.contacts import showing
from bot.slack.contacts.me import MeCommand
from bot.slack.contacts.methods_form import MethodsForm
from bot.slack.contacts.numbers import NumbersCard
from bot.slack.contacts.overview import Overviews
from bot.slack.contacts.rules_form import RulesForm
from bot.slack.identity import Identity
from bot.slack.listeners import Button
from bot.slack.modals.opening import Form, Modals
from engine.clock import Clock
from engine.contacts.contacts import Contacts
from engine.pager.own_test import OwnTests
from engine.rota.roster import Roster


@dataclass(frozen=True, slots=True)
class Reached:
    me: MeCommand
    overviews: Overviews
    forms: Sequence[Form]
    buttons: Mapping[str, Button]


def build(
    settings: Settings,
    clock: Clock,
    contacts: Contacts,
    own_tests: OwnTests,
    roster: Roster,
    client: SlackClient,
    identity: Identity,
    modals: Modals,
) -> Reached:
    numbers = NumbersCard(client, vcard.numbers(settings))
    overviews = Overviews(contacts, roster, identity, client, clock, numbers=bool(numbers.numbers))
    me = MeCommand(contacts, own_tests, overviews, modals, numbers)
    forms = (MethodsForm(contacts, overviews), RulesForm(contacts, overviews))
    return Reached(me, overviews, forms, {showing.NOUN: me.click})
