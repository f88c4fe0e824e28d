"""What Slack has of schedules: forms, buttons, and words of `/oncall`, wired by hand.

Decides nothing, and runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.slack.client import SlackClient
from bot.slack.identity import Identity
from bot.slack.listeners import Button
from bot.slack.modals.opening import Form, Modals
from bot.slack.modals.override import OverrideModal
from bot.slack.modals.schedule import ScheduleForm
from bot.slack.modals.schedule_delete import ScheduleDeleteForm
from bot.slack.nouns import Noun, by_word
from bot.slack.rota.calendars import CalendarCommand
from bot.slack.rota.cover import NOUN as COVER
from bot.slack.rota.cover import CoverCommand
from bot.slack.rota.handoffs import NOUN as HANDOFF
from bot.slack.rota.handoffs import HandoffButtons
from bot.slack.rota.override_answers import NOUN as OVERRIDE
from bot.slack.rota.overrides import OverrideCommand
from bot.slack.rota.places import PlaceCommand
from bot.slack.rota.schedules import ScheduleCommand
from engine.calendar.fetch import fetcher
from engine.clock import Clock
from engine.db import Database
from engine.pager.setup import Setup
from engine.rota.calendars import Calendars
from engine.rota.cover import Cover
from engine.rota.drafts import Drafts
from engine.rota.handoff import Handoffs
from engine.rota.imports import Imports
from engine.rota.reminders import Choices
from engine.rota.roster import Roster


@dataclass(frozen=True, slots=True)
class Needs:
    """What schedules are shown with."""

    clock: Clock
    database: Database
    roster: Roster
    setup: Setup
    nudge: Callable[[], None]
    client: SlackClient
    identity: Identity
    modals: Modals
    public_url: str | None
    calendar_private: bool


@dataclass(frozen=True, slots=True)
class Rota:
    """By noun: the buttons that stand on no card, and the verbs of /oncall that read their own words; by
    first word, what stands behind `me` about one's shifts."""

    overrides: OverrideCommand
    forms: Sequence[Form]
    buttons: Mapping[str, Button]
    nouns: Mapping[str, Noun]
    of_me: Mapping[str, Noun]


def build(needs: Needs) -> Rota:
    overrides = OverrideCommand(needs.roster, needs.identity, needs.clock, needs.modals)
    rota = (needs.database, needs.clock, needs.roster, needs.nudge)
    covers = CoverCommand(Cover(*rota), needs.roster, needs.identity, needs.clock)
    handoffs = HandoffButtons(Handoffs(*rota), Choices(needs.database), needs.identity)
    calendars = _calendars(needs)
    of_me: dict[str, Noun] = dict.fromkeys(("calendar", "calendars"), calendars.me)
    of_me |= dict.fromkeys(("reminders", "reminder"), handoffs.me)
    return Rota(
        overrides,
        _forms(needs, overrides),
        {COVER: covers.click, HANDOFF: handoffs.click, OVERRIDE: overrides.click},
        {COVER: covers.run, "schedule": _schedule(needs, calendars)},
        of_me,
    )


def _forms(needs: Needs, overrides: OverrideCommand) -> list[Form]:
    schedules, drafts = needs.setup.schedules, Drafts(needs.database, needs.clock)
    return [
        OverrideModal(overrides, needs.roster, needs.identity, needs.clock),
        ScheduleForm(needs.clock, needs.identity, needs.roster, schedules, drafts),
        ScheduleDeleteForm(needs.identity, needs.roster, schedules),
    ]


def _calendars(needs: Needs) -> CalendarCommand:
    links = Calendars(needs.database, needs.clock, needs.roster, needs.public_url)
    fetch = fetcher(allow_private=needs.calendar_private)
    imports = Imports(needs.database, needs.clock, needs.nudge, needs.roster, needs.setup.vault, fetch)
    return CalendarCommand(links, imports, needs.roster, needs.identity)


def _schedule(needs: Needs, calendars: CalendarCommand) -> Noun:
    places = PlaceCommand(needs.setup.places, needs.roster, needs.identity)
    shown = ScheduleCommand(
        needs.clock, needs.client, needs.identity, needs.roster, needs.setup.schedules, needs.modals
    )
    of_schedules: dict[str, Noun] = dict.fromkeys(("calendar", "import"), calendars.schedule)
    of_schedules |= dict.fromkeys(("group", "topic"), places.run)
    return by_word(of_schedules, shown.run)
