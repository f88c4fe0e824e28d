"""The demo's people in a test's hand: they read Slack and their phones, and answer from both.

Acts and looks only as a person could, through the sandbox's routes; waits on changes, never sleeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

from bot.sandbox.content import visible_text
from bot.sandbox.phones import Call, Phone, Sms
from bot.sandbox.state import Message
from tests.product import Product

PAYMENTS: Final = "C0PAYMENTS"
GENERAL: Final = "C0GENERAL"
ROTA_BEGAN: Final = datetime(2026, 1, 5, 8, tzinfo=UTC)  # ana's weeks and ben's take turns from here
WEEK: Final = timedelta(weeks=1)
PATIENCE_S: Final = 20.0  # the machine may have other things to do

_problems = count(1)


class Team:
    """ana is on call, ben is the second level, cho the last resort; dee is nobody yet."""

    def __init__(self, midwatch: Product) -> None:
        self.midwatch = midwatch
        self.space = midwatch.sandbox.state
        self.exchange = midwatch.sandbox.world.exchange

    async def assemble(self) -> None:
        """Slack is connected, and it is the middle of a week in which ana is on call."""
        await self.until(lambda: self.midwatch.sandbox.world.wire.connected)
        now = self.midwatch.sandbox.world.clock.now()
        week = (now - ROTA_BEGAN) // WEEK + 1
        start = ROTA_BEGAN + (week + week % 2) * WEEK + timedelta(days=2)
        await self.time_passes(seconds=(start - now).total_seconds())

    async def until(self, met: Callable[[], Any], within_s: float = PATIENCE_S) -> None:
        await self.midwatch.sandbox.until(lambda: bool(met()), within_s)

    async def time_passes(self, minutes: float = 0, *, seconds: float = 0) -> None:
        passed = await self.midwatch.slack("advance", seconds=minutes * 60 + seconds)
        assert passed["ok"], passed

    # --- the trouble ------------------------------------------------------------------------------------

    async def alert(self, summary: str | None = None, **event: Any) -> int:
        """A monitor fires; the number of the incident, once its card and ana's DM stand."""
        number = await self.fire(summary or f"Disk {next(_problems)} full", **event)
        await self.until(lambda: self.card(number) and self.card(number, "ana"))
        return number

    async def fire(self, summary: str, **event: Any) -> int:
        """Accepted, and no more than that."""
        body = {"action": "trigger", "dedup_key": summary, "summary": summary, "severity": "critical"}
        status, answer = await self.midwatch.post("/v1/events", {**body, **event})
        assert status == 202, answer
        return int((await self.incidents(summary))[0]["number"])

    async def incidents(self, title: str | None = None) -> list[dict[str, Any]]:
        """Newest first, as the API shows them."""
        items = (await self.midwatch.get("/v1/incidents?limit=100"))["items"]
        return [item for item in items if title is None or item["title"] == title]

    async def status(self, number: int) -> str:
        return next(str(one["status"]) for one in await self.incidents() if one["number"] == number)

    async def all_clear(self) -> None:
        """Nothing is broken, nothing is open and nobody stands in for another."""
        for target in ("slack", "sms", "voice", "twilio"):
            await self.midwatch.slack("fault", target=target, kind="none")
        await self.until(lambda: self.midwatch.sandbox.world.wire.connected, within_s=45)
        for one in await self.incidents():
            if one["status"] != "resolved":
                status, _ = await self.midwatch.post(f"/v1/incidents/{one['id']}/resolve", {})
                assert status == 200
        phones = self.exchange.phones.values()
        await self.until(lambda: not any(phone.call("ringing", "in-progress") for phone in phones))
        for override in await self.midwatch.app.roster.overrides.listed():
            await self.types("ana", f"/override cancel {override.id}")

    # --- Slack ------------------------------------------------------------------------------------------

    def card(self, number: int, reader: str | None = None) -> Message | None:
        """The card in #payments, or the one in a person's DM; the newest one if it was posted again."""
        channel = self.space.channels[PAYMENTS] if reader is None else self._direct(reader)
        mark = f"*#{number} "
        shown = [one for one in channel.messages.values() if _stands(one) and mark in one.text]
        return shown[-1] if shown else None

    def direct_messages(self, name: str) -> list[str]:
        """What stands in the direct messages of a person."""
        return [visible_text(one) for one in self._direct(name).messages.values()]

    def words(self, number: int, reader: str | None = None) -> str:
        found = self.card(number, reader)
        return visible_text(found) if found else ""

    async def both_cards_say(self, number: int, *words: str, reader: str = "ana") -> None:
        def both() -> tuple[str, str]:
            return self.words(number), self.words(number, reader)

        try:
            await self.until(lambda: all(word in said for word in words for said in both()))
        except TimeoutError:
            raise AssertionError(f"{words} not in both of: {both()}") from None

    def buttons(self, number: int, reader: str | None = None) -> list[str]:
        found = self.card(number, reader)
        assert found is not None
        blocks = [block for each in found.attachments for block in each["blocks"]]
        return [e["action_id"] for b in blocks if b["type"] == "actions" for e in b["elements"]]

    async def clicks(self, name: str, action_id: str, message: Message | None, **more: Any) -> None:
        assert message is not None
        body = {"user": name, "channel": message.channel, "ts": message.ts, "action_id": action_id, **more}
        clicked = await self.midwatch.slack("click", **body)
        assert clicked["ok"], clicked

    async def types(self, name: str, text: str, channel: str = GENERAL, thread: str | None = None) -> str:
        """What only this person sees in answer to a command; "" when it was a plain message."""
        body = {"user": name, "channel": channel, "text": text, "thread_ts": thread}
        typed = await self.midwatch.slack("command", **body)
        assert typed["ok"], typed
        return str(typed["response"]) if text.startswith("/") else ""

    async def is_told(self, name: str, words: str, channel: str = PAYMENTS) -> None:
        """A line that only this person sees appears in the channel."""
        user = self.space.find_user(name)
        assert user is not None

        def told() -> bool:
            shown = self.space.channels[channel].messages.values()
            return any(m.ephemeral_to == user.id and words in visible_text(m) for m in shown)

        await self.until(told)

    def _direct(self, name: str) -> Any:
        user = self.space.find_user(name)
        assert user is not None
        return self.space.direct(user.id)

    # --- phones -----------------------------------------------------------------------------------------

    def phone(self, name: str) -> Phone:
        found = self.exchange.find(name)
        assert found is not None
        return found

    def texts_to(self, name: str, number: int) -> list[Sms]:
        """The SMS about one incident that were sent to a person by themselves."""
        return [m for m in self.phone(name).sms if m.direction == "outbound-api" and f"#{number} " in m.body]

    async def texts(self, name: str, words: str) -> str:
        """What Midwatch answers to an SMS."""
        phone = self.phone(name)
        before = len(phone.sms) + 1
        async with self.midwatch.http.post(
            f"{self.midwatch.sandbox.url}/sandbox/phones/{name}/reply", json={"text": words}
        ) as sent:
            assert sent.status == 200
        await self.until(lambda: len(phone.sms) > before)
        return phone.sms[-1].body

    def calls_to(self, name: str) -> list[Call]:
        return self.phone(name).calls

    async def answers_the_phone(self, name: str) -> str:
        """What the call says."""
        await self.until(lambda: self.phone(name).call("ringing"))
        return str((await self._hand(name, "answer"))["said"][0])

    async def presses(self, name: str, digits: str) -> str:
        """What the call says to that."""
        return str((await self._hand(name, "press", digits=digits))["said"][-1])

    async def _hand(self, name: str, deed: str, **body: Any) -> Any:
        done = await self.midwatch.slack(f"phones/{name}/{deed}", **body)
        assert done["ok"], done
        return done

    def told(self) -> Counter[str]:
        """How often each person was told anything by themselves: DM, SMS, call."""
        seen: Counter[str] = Counter()
        for phone in self.exchange.phones.values():
            seen[f"{phone.name} by SMS"] += sum(m.direction == "outbound-api" for m in phone.sms)
            seen[f"{phone.name} by call"] += len(phone.calls)
            seen[f"{phone.name} by DM"] += len(self._direct(str(phone.name)).messages)
        return +seen


def _stands(message: Message) -> bool:
    return not message.deleted and message.ephemeral_to is None and message.thread_ts is None
