"""How somebody is reached, gathered for whoever shows it: methods, codes, rules, warnings, Slack's silence.

Changes nothing. Addresses are in clear: whoever shows them says whether others read there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.slack.client import SlackClient
from bot.slack.contacts.silence import Silence, silence_of
from bot.slack.identity import Asker, Identity
from engine.clock import Clock
from engine.contacts.contacts import Contacts, Pending
from engine.contacts.warnings import RuleWarning
from engine.directory import Person
from engine.models import Via
from engine.rota.roster import Roster


@dataclass(frozen=True, slots=True)
class Overview:
    person: Person
    pending: Mapping[int, Pending] = field(default_factory=dict)
    warnings: Sequence[RuleWarning] = ()
    silence: Silence | None = None
    on_call: bool = False
    numbers: bool = False  # are there numbers of ours to save on a telephone?


class Overviews:
    def __init__(
        self,
        contacts: Contacts,
        roster: Roster,
        identity: Identity,
        client: SlackClient,
        clock: Clock,
        *,
        numbers: bool,
    ) -> None:
        self._contacts = contacts
        self._roster = roster
        self._identity = identity
        self._client = client
        self._clock = clock
        self._numbers = numbers

    async def enrolled(self, asker: Asker) -> Person:
        """Whoever asks, as they are now; who was nobody yet becomes a person who can be paged."""
        known = await self._identity.reader(asker)
        return await self._contacts.person((known or await self._identity.enrol(asker)).id)

    async def of(self, person: Person) -> Overview:
        """All that there is to say. Asks Slack, and does not wait for it."""
        silence = await silence_of(self._client, person.slack_user_id, self._clock.now())
        on_call = any(one.id == person.id for row in await self._roster.who() for one in row.people)
        return Overview(
            person,
            await self._contacts.pending(person.id),
            await self._contacts.warnings(person.id),
            silence,
            on_call,
            self._numbers,
        )


def alone(asker: Asker) -> bool:
    """Does nobody else read the answer? Commands and clicks are answered to their sender alone."""
    return asker.via is not Via.SLACK_MENTION or asker.channel_id.startswith("D")
