"""What people do in Slack: type, run commands, click, pick, submit and close.

Shows them what Slack would show, timeouts included; knows nothing of Midwatch but its answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bot.sandbox import fields, forms, payloads
from bot.sandbox.call import SlackError
from bot.sandbox.content import Content, visible_text
from bot.sandbox.hooks import answer
from bot.sandbox.state import Channel, Json, Message, User, View
from bot.sandbox.typed import as_slack_text
from bot.sandbox.vouchers import ResponseUrl
from bot.sandbox.wire import INTERACTIVE, SLASH, Parcel, Reply

if TYPE_CHECKING:
    from bot.sandbox.world import World

# An app that acks a command with nothing in it mostly answers a moment later.
PATIENCE_S = 1.0


class NotThere(LookupError):
    """There is no such message, element or view to act on."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of it, as the person saw it."""

    error: str | None = None
    message: Message | None = None
    view: View | None = None
    ms: float | None = None

    def as_json(self) -> Json:
        return {
            "ok": self.error is None,
            "error": self.error,
            "response": visible_text(self.message) if self.message else "",
            "message": self.message.as_json() if self.message else None,
            "view_id": self.view.id if self.view else None,
            "ack_ms": self.ms,
        }


class Hands:
    def __init__(self, world: World) -> None:
        self._world = world

    async def type_(self, user: User, channel: Channel, text: str, thread_ts: str | None) -> Seen:
        """Send what is in the message box: a command when it begins with a slash."""
        if not text.startswith("/"):
            return Seen(message=self.say(user, channel, text, thread_ts))
        command, _, rest = text.partition(" ")
        if thread_ts:
            return self._refused(user, channel, f"{command} is not supported in threads.", "not_in_threads")
        if command not in self._world.options.commands:
            return self._refused(user, channel, f"{command} is not a valid command.", "unknown_command")
        return await self._command(user, channel, command, rest.strip())

    def say(self, user: User, channel: Channel, text: str, thread_ts: str | None = None) -> Message:
        space = self._world.space
        shown = as_slack_text(space, text, labels=False)
        message = Message(
            space.new_ts(), channel.id, user.id, shown, username=user.name, thread_ts=thread_ts or None
        )
        space.add(message)
        self._world.events.message(message)
        return message

    async def _command(self, user: User, channel: Channel, command: str, rest: str) -> Seen:
        trigger = self._world.vouchers.new_trigger(user.id)
        response = ResponseUrl(channel.id, user.id, self._world.clock.now())
        began = self._world.space.new_ts()
        payload = payloads.slash(
            self._world.space,
            user,
            channel,
            command,
            as_slack_text(self._world.space, rest, labels=True),
            trigger=trigger,
            response=self._response_url(response),
        )
        reply = await self._world.wire.deliver(Parcel(SLASH, command, payload))
        if not reply.ok:
            return self._refused(user, channel, f"{command} failed: {reply.error}", str(reply.error))
        if reply.body:
            return self._answered(user, channel, response, reply)
        return await self._followed(user, response, reply, began)

    def _answered(self, user: User, channel: Channel, response: ResponseUrl, reply: Reply) -> Seen:
        try:
            return Seen(message=answer(self._world, response, reply.body), ms=reply.ms)
        except SlackError as refused:
            text = f"The app's answer cannot be shown: {refused.error}"
            return self._refused(user, channel, text, "invalid_command_response")

    async def _followed(self, user: User, response: ResponseUrl, reply: Reply, began: str) -> Seen:
        """Wait a little for what the app shows besides an empty ack."""
        space = self._world.space

        def opened() -> View | None:
            stack = space.modals.get(user.id) or []
            return stack[-1] if stack and stack[-1].body["hash"] > began else None

        def whispered() -> Message | None:
            said = reversed(space.channels[response.channel].messages.values())
            return next((m for m in said if m.ts > began and m.ephemeral_to == user.id), None)

        def shown() -> bool:
            return bool(response.answers or opened() or whispered())

        await self._world.changes.until(shown, PATIENCE_S)
        message = response.answers[-1] if response.answers else whispered()
        return Seen(message=message, view=opened(), ms=reply.ms)

    async def click(self, user: User, message: Message, action_id: str, value: Any = None) -> Seen:
        element, block = _element(_blocks(message), action_id)
        action = self._action(element, block, value)
        origin = ResponseUrl(message.channel, user.id, self._world.clock.now(), message, message.thread_ts)
        payload = payloads.message_actions(
            self._world.space,
            user,
            message,
            action,
            trigger=self._world.vouchers.new_trigger(user.id),
            response=self._response_url(origin),
        )
        reply = await self._interact("block_actions", payload)
        channel = self._world.space.channels[message.channel]
        if not reply.ok:
            text = f":warning: That button did not answer ({reply.error})."
            return self._refused(user, channel, text, str(reply.error))
        return Seen(ms=reply.ms)

    async def click_in_view(
        self, user: User, view: View, action_id: str, value: Any, values: Mapping[str, Any]
    ) -> Seen:
        element, block = _element(view.body["blocks"], action_id)
        space = self._world.space
        view.body["state"] = {"values": fields.state_values(space, view.body, values)}
        action = self._action(element, block, value)
        if element["type"] not in ("button", "overflow"):
            part = fields.chosen(space, element, value)
            view.body["state"]["values"].setdefault(block["block_id"], {})[action_id] = part
        trigger = self._world.vouchers.new_trigger(user.id)
        payload = payloads.view_actions(space, user, view, action, trigger=trigger)
        reply = await self._interact("block_actions", payload)
        return Seen(error=reply.error, ms=reply.ms)

    async def submit(self, user: User, view: View, values: Mapping[str, Any]) -> Json:
        space = self._world.space
        state = fields.state_values(space, view.body, values)
        view.body["state"] = {"values": state}
        if errors := fields.missing(view.body, state):
            return forms.refused(self._world, view, errors)
        trigger = self._world.vouchers.new_trigger(user.id)
        reply = await self._interact(
            "view_submission", payloads.view_submission(space, user, view, trigger=trigger)
        )
        return forms.answered(self._world, view, reply)

    async def close(self, user: User, view: View) -> Seen:
        """Close a modal; all of the stack when the app asked for that."""
        stack = self._world.space.modals.get(user.id, [])
        cleared = bool(view.body.get("clear_on_close"))
        closed = list(stack) if cleared else [view]
        stack[:] = [v for v in stack if v not in closed]
        self._world.space.views_changed(user.id)
        ms = None
        for gone in reversed(closed):
            if gone.body.get("notify_on_close"):
                payload = payloads.view_closed(self._world.space, user, gone, cleared=cleared)
                ms = (await self._interact("view_closed", payload)).ms
        return Seen(ms=ms)

    def open_home(self, user: User) -> None:
        home = self._world.space.homes.get(user.id)
        ts = self._world.space.new_ts()
        channel = self._world.space.direct(user.id).id
        event = {"type": "app_home_opened", "user": user.id, "channel": channel, "tab": "home"}
        shown = {"view": home.body} if home else {}
        self._world.events.emit({**event, **shown, "event_ts": ts})

    async def shortcut(self, user: User, callback_id: str, message: Message | None) -> Seen:
        trigger = self._world.vouchers.new_trigger(user.id)
        space = self._world.space
        if message is None:
            kind, payload = (
                "shortcut",
                payloads.global_shortcut(space, user, callback_id, trigger=trigger),
            )
        else:
            origin = ResponseUrl(
                message.channel, user.id, self._world.clock.now(), message, message.thread_ts
            )
            kind = "message_action"
            payload = payloads.message_shortcut(
                space, user, callback_id, message, trigger=trigger, response=self._response_url(origin)
            )
        reply = await self._interact(kind, payload)
        return Seen(error=reply.error, ms=reply.ms)

    async def suggest(self, user: User, view: View, action_id: str, typed: str) -> Json:
        """The options that the app offers for what was typed in an external select."""
        _, block = _element(view.body["blocks"], action_id)
        payload = payloads.suggestion(self._world.space, user, view, block["block_id"], action_id, typed)
        reply = await self._interact("block_suggestion", payload)
        return {"ok": reply.ok, "error": reply.error, **reply.body}

    async def _interact(self, kind: str, payload: Json) -> Reply:
        return await self._world.wire.deliver(Parcel(INTERACTIVE, kind, payload))

    def _action(self, element: Json, block: Json, value: Any) -> Json:
        action: Json = {
            "action_id": element["action_id"],
            "block_id": block["block_id"],
            "type": element["type"],
            "action_ts": self._world.space.new_ts(),
        }
        if element["type"] != "button":
            return action | fields.chosen(self._world.space, element, value)
        return action | {key: element[key] for key in ("text", "value", "style", "url") if key in element}

    def _response_url(self, response: ResponseUrl) -> str:
        return f"{self._world.base_url}/response/{self._world.vouchers.new_response(response)}"

    def _refused(self, user: User, channel: Channel, text: str, error: str) -> Seen:
        """A line from Slack itself, which only this person sees."""
        space = self._world.space
        message = Message(
            space.new_ts(), channel.id, "USLACKBOT", text, "Slackbot", bot=True, ephemeral_to=user.id
        )
        space.add(message)
        return Seen(error=error, message=message)


def _blocks(message: Message | Content) -> list[Json]:
    attached = (block for a in message.attachments for block in a.get("blocks") or [])
    return [*message.blocks, *attached]


def _element(blocks: list[Json], action_id: str) -> tuple[Json, Json]:
    known = []
    for block in blocks:
        elements = block.get("elements", []) if block["type"] == "actions" else []
        for element in [*elements, block.get("accessory"), block.get("element")]:
            if not isinstance(element, dict) or "action_id" not in element:
                continue
            if element["action_id"] == action_id:
                return element, block
            known.append(element["action_id"])
    raise NotThere(f"no element {action_id!r} here; there are: {', '.join(known) or 'none'}")
