"""Wires Bolt: commands, clicks, mentions, direct messages, and a listener for everything else.

Thin: says who is asking and hands over. Registered in order, since the first match wins; a payload
that nobody listens to would leave its sender with a warning triangle.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import structlog
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack.actions import DEEDS, Actions
from bot.slack.answering import Answering, Ended, failed
from bot.slack.client import SlackClient
from bot.slack.commands import Commands
from bot.slack.health import SlackHealth
from bot.slack.home import Home
from bot.slack.identity import Asker
from bot.slack.message import Message
from bot.slack.modals.opening import CALLBACK, Modals, in_modal
from bot.slack.workspace import Workspace
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.models import ORG, Via
from engine.store.journal import first_time

log = structlog.get_logger(__name__)

COMMANDS: Final = ("/oncall", "/override", "/page", "/incident")
EVERYTHING: Final = re.compile(".*", re.DOTALL)
Json = Mapping[str, Any]
# Of a noun: what a button does whose action_id is "noun_verb". What it answers takes the place of the
# message that the button stands on; a refusal is shown to whoever pressed it.
Button = Callable[[Json, Asker], Awaitable[Message | None]]


def _worth_a_line(record: logging.LogRecord) -> bool:
    """Bolt reads SLACK_BOT_TOKEN by itself and warns that it does not use it: that is on purpose."""
    return "`token` will be unused" not in record.getMessage()


def bolt_app(base_url: str, workspace: Workspace) -> AsyncApp:
    """Bolt without its own authorization and signature check: `connection` and `door` do those."""

    async def authorize(team_id: str | None, user_id: str | None) -> AuthorizeResult:
        # Why not auth.test: a click must not fail because one more call to Slack does.
        return AuthorizeResult(
            enterprise_id=None,
            team_id=team_id,
            user_id=user_id,
            bot_user_id=workspace.bot_user_id,
            bot_id=workspace.bot_id,
        )

    logging.getLogger("slack_bolt.AsyncApp").addFilter(_worth_a_line)
    return AsyncApp(
        name="midwatch",
        client=AsyncWebClient(base_url=base_url, retry_handlers=[]),
        authorize=authorize,
        request_verification_enabled=False,
        signing_secret="unused",  # noqa: S106  # see `door`: Bolt's own check raises on odd headers
    )


class Listeners:
    def __init__(
        self,
        app: AsyncApp,
        client: SlackClient,
        answering: Answering,
        commands: Commands,
        actions: Actions,
        modals: Modals,
        buttons: Mapping[str, Button],
        home: Home,
        workspace: Workspace,
        health: SlackHealth,
        database: Database,
        clock: Clock,
    ) -> None:
        self._client = client
        self._answering = answering
        self._commands = commands
        self._actions = actions
        self._modals = modals
        self._buttons = buttons
        self._home = home
        self._workspace = workspace
        self._health = health
        self._database = database
        self._clock = clock
        self._register(app)

    def _register(self, app: AsyncApp) -> None:
        app.error(self._failed)
        for command in COMMANDS:
            app.command(command)(self._command)
        app.view(re.compile(re.escape(CALLBACK)))(self._submitted)
        app.action(EVERYTHING, matchers=[_of_modal])(self._pressed)
        app.action(re.compile("|".join(sorted(DEEDS))))(self._click)
        app.action(re.compile(rf"(?:{'|'.join(sorted(self._buttons))})_"))(self._button)
        app.event("app_mention")(self._mention)
        app.event("message")(self._message)
        app.event("app_home_opened")(self._home_opened)
        # Last of all. Also a button that only opens a URL must be acked.
        for everything in (app.action, app.options, app.shortcut, app.view, app.view_closed, app.command):
            everything(EVERYTHING)(self._nothing)
        app.event(EVERYTHING)(self._event)

    async def _command(self, ack: AsyncAck, body: Json) -> None:
        url, trigger = body.get("response_url", ""), body.get("trigger_id", "")
        place = body.get("channel_id", "")
        asker = Asker(body["team_id"], body["user_id"], place, trigger_id=trigger, response_url=url)
        unit = self._commands.run(body["command"], body.get("text") or "", asker)
        await self._answering.command(ack, url, unit)

    async def _click(self, ack: AsyncAck, body: Json) -> None:
        asker = _clicker(body)

        async def say(outcome: Ended) -> None:
            try:
                if outcome.message is not None:
                    await self._answer(body, outcome.message)
            finally:
                if _in_home(body):
                    await self._home.show(asker)

        await self._answering.click(ack, self._actions.click(body, asker), say)

    async def _button(self, ack: AsyncAck, body: Json) -> None:
        noun = str(body["actions"][0]["action_id"]).partition("_")[0]

        async def say(outcome: Ended) -> None:
            if outcome.message is not None:
                replace = outcome.well and outcome.final
                await self._answer(body, outcome.message, replace=replace)

        await self._answering.click(ack, self._buttons[noun](body, _clicker(body)), say)

    async def _pressed(self, ack: AsyncAck, body: Json) -> None:
        await self._modals.pressed(ack, body, _clicker(body))

    async def _submitted(self, ack: AsyncAck, body: Json) -> None:
        await self._modals.submitted(ack, body, _clicker(body))

    async def _answer(self, body: Json, message: Message, *, replace: bool = False) -> None:
        """To the sender of a click: where it was made, or by direct message when there is no such place."""
        response_url, user = body.get("response_url"), body.get("user")
        if response_url:
            await self._client.respond(str(response_url), message, replace=replace)
        elif isinstance(user, Mapping) and user.get("id"):
            await self._client.tell(str(user["id"]), message)

    async def _mention(self, body: Json, event: Json) -> None:
        """@Midwatch and a command, anywhere in a message."""
        mark = f"<@{self._workspace.bot_user_id}>"
        _, found, after = str(event.get("text") or "").partition(mark)
        text = after if found else re.sub(r"^\s*<@[UW][A-Z0-9]+>", "", str(event.get("text") or ""))
        await self._said(body, event, text, thread=True)

    async def _message(self, body: Json, event: Json) -> None:
        """Direct messages are commands too; what bots say and what was edited is not."""
        if event.get("channel_type") != "im" or event.get("subtype") or event.get("bot_id"):
            return
        text = str(event.get("text") or "").removeprefix(f"<@{self._workspace.bot_user_id}>")
        await self._said(body, event, text, thread=False)

    async def _said(self, body: Json, event: Json, text: str, *, thread: bool) -> None:
        user, channel = str(event.get("user") or ""), str(event.get("channel") or "")
        if not user or event.get("bot_id"):
            return
        thread_ts = event.get("thread_ts") or (event.get("ts") if thread else None)
        team = event.get("user_team") or event.get("team") or body.get("team_id") or ""
        asker = Asker(team, user, channel, event.get("thread_ts"), Via.SLACK_MENTION)

        async def unit() -> Message | None:
            if not await self._first_time(str(body.get("event_id") or "")):
                return None
            return await self._commands.run("/oncall", text, asker)

        async def say(outcome: Ended) -> None:
            if outcome.message is None:
                return
            if outcome.well or not thread:
                await self._client.post(channel, outcome.message, thread_ts=thread_ts)
            else:
                await self._client.whisper(channel, user, outcome.message, thread_ts)

        await self._answering.event(unit(), say)

    async def _first_time(self, event_id: str) -> bool:
        """Slack sends an event again when it heard no ack: a note must not be written twice."""
        now = self._clock.now()

        async def unit(tx: Tx) -> bool:
            return await first_time(tx, ORG, "slack", event_id, now)

        return not event_id or await self._database.write(unit, rank=Writer.RESPOND)

    async def _home_opened(self, body: Json, event: Json) -> None:
        if event.get("tab", "home") == "home":
            asker = Asker(body.get("team_id", ""), event["user"])
            await self._answering.event(self._home.show(asker), _say_nothing)

    async def _event(self, event: Json) -> None:
        """Events that mean nothing to us yet are acked, or Slack would send them again."""
        if event.get("type") in {"tokens_revoked", "app_uninstalled"}:
            self._health.doubt()  # auth.test finds out whether it is our token

    async def _nothing(self, ack: AsyncAck, body: Json) -> None:
        log.info("slack.unknown_payload", kind=body.get("type") or body.get("command"))
        await ack()

    async def _failed(self, error: Exception, body: Json, response: BoltResponse | None) -> None:
        """Whatever fails outside of a unit: the sender is told, and Slack gets its answer."""
        try:
            raise error
        except Exception:
            message = failed("slack.dispatch_failed")
        if response is not None:
            response.status, response.body = 200, ""
        try:
            await self._answer(body, message)
        except Exception as unsaid:
            log.warning("slack.not_answered", error=type(unsaid).__name__)


def _clicker(body: Json) -> Asker:
    user, channel = body["user"], (body.get("channel") or {}).get("id", "")
    team = user.get("team_id") or (body.get("team") or {}).get("id", "")
    trigger, url = body.get("trigger_id") or "", body.get("response_url") or ""
    thread = (body.get("container") or {}).get("thread_ts")
    return Asker(team, user["id"], channel, thread, Via.SLACK_BUTTON, trigger, url)


async def _of_modal(body: Json) -> bool:
    return in_modal(body)


def _in_home(body: Json) -> bool:
    return (body.get("view") or {}).get("type") == "home"


async def _say_nothing(_outcome: Ended) -> None:
    """A home tab is its own answer."""
