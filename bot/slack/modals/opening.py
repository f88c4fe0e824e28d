"""Opens modals, and takes what people press and submit in them.

Each modal is a `Form` with a name of its own; `face` lists them. From a command or a button::

    return await self._modals.open(asker, "override", {"schedule": 7})

which is None where the modal now stands open, and else a message with a button that opens it: a
trigger lives for three seconds, and a mention has none. Slack keeps what was typed where the ids of
block and element stay; what else the form must remember travels in `View.about`, never in memory.

    class ScheduleForm:
        name = "schedule"
        async def view(self, asker, about): ...          # -> View; may take its time, and may refuse
        async def press(self, action, values, asker, about): ...  # -> View, or None: nothing to show
        async def submit(self, values, asker, about):    # -> View (the next step), Wrong or Done
            return Wrong({"zone": "There is no such zone."})

`values` are what the inputs hold, by block id (see `values.py`). An error of the engine becomes an
inline error, so that nobody types twice. Never decides what a form means.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Protocol

import structlog
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.slack import escape
from bot.slack.answering import Answering, failed
from bot.slack.client import SlackClient
from bot.slack.errors import trouble_of
from bot.slack.identity import Asker
from bot.slack.lint import lint_view
from bot.slack.message import Block, Message, actions, button, note, plain_text, section
from bot.slack.modals.values import Values, read_values
from engine.errors import BadCommand, MidwatchError

log = structlog.get_logger(__name__)

CALLBACK: Final = "modal."
REOPEN: Final = "modal_open"  # the button in a message; `modal` is its noun
BANNER: Final = "modal_banner"
HOME: Final = "home"  # in `about`: opened from the Home tab, which shows what a submission changed
SOON: Final = timedelta(seconds=1)  # a trigger dies after three: what takes longer opens empty first
About = Mapping[str, Any]
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """What a modal shows. Without `submit` it can only be read and closed."""

    title: str
    blocks: Sequence[Block]
    about: About = field(default_factory=dict)
    submit: str | None = "Save"
    close: str = "Cancel"


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong, by the block id of an input."""

    errors: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Done:
    """The modal closes; the message is shown where it was opened."""

    message: Message | None = None


class Form(Protocol):
    name: str

    async def view(self, asker: Asker, about: About) -> View: ...

    async def press(self, action: Json, values: Values, asker: Asker, about: About) -> View | None: ...

    async def submit(self, values: Values, asker: Asker, about: About) -> View | Wrong | Done: ...


def in_modal(body: Json) -> bool:
    """Was this pressed or submitted in one of our modals?"""
    return str((body.get("view") or {}).get("callback_id", "")).startswith(CALLBACK)


class Modals:
    def __init__(self, client: SlackClient, answering: Answering) -> None:
        self._client = client
        self._answering = answering
        self._forms: dict[str, Form] = {}
        self.show_home: Callable[[Asker], Awaitable[object]] | None = None

    def add(self, form: Form) -> None:
        """Why not at once: what a form does on submit may open another."""
        self._forms[form.name] = form

    async def open(self, asker: Asker, name: str, about: About | None = None) -> Message | None:
        """Open it; where that cannot be, a message with a button that does."""
        about = about or {}
        if not asker.trigger_id:
            return _reopening("Fill it in here:", name, about)
        made = asyncio.ensure_future(self._forms[name].view(asker, about))
        in_time, _ = await asyncio.wait({made}, timeout=SOON.total_seconds())
        first = made.result() if in_time else View("Midwatch", [section("⏳ Loading…")], submit=None)
        shown = _payload(first, name, asker.response_url)
        try:
            view_id = await self._client.open_view(asker.trigger_id, shown)
        except Exception as error:
            made.cancel()
            code = trouble_of(error).code
            log.info("slack.modal_not_opened", form=name, code=code)
            why = "That took too long for Slack" if "trigger" in code else "Slack did not open the form"
            return _reopening(f"{why}: nothing was changed. Open it with this button.", name, about)
        if not in_time:
            await self._show(view_id, await _late_view(made, shown, name, asker.response_url))
        return None

    async def _show(self, view_id: str, shown: dict[str, Any], expected: str = "") -> None:
        try:
            await self._client.update_view(view_id, shown, expected)
        except Exception as error:  # closed meanwhile, or changed by a later press
            log.info("slack.modal_not_updated", code=trouble_of(error).code)

    async def reopen(self, body: Json, asker: Asker) -> Message | None:
        """A click on that button."""
        told = json.loads(body["actions"][0]["value"])
        return await self.open(asker, told["n"], told["a"])

    async def pressed(self, ack: AsyncAck, body: Json, asker: Asker) -> None:
        """A button or a choice inside of a modal: the form says what is shown next."""
        await ack()
        view, name, about, url = _read(body)
        try:
            shown = await self._forms[name].press(body["actions"][0], read_values(view), asker, about)
        except MidwatchError as error:
            await self._show(str(view["id"]), _with_banner(view, _sentence(error)), str(view["hash"]))
            return
        if shown is not None:
            await self._show(str(view["id"]), _payload(shown, name, url), str(view["hash"]))

    async def submitted(self, ack: AsyncAck, body: Json, asker: Asker) -> None:
        """Commit first, then answer: inline errors, the next step, or the modal closes."""
        view, name, about, url = _read(body)
        done: list[Message] = []

        async def unit() -> dict[str, Any]:
            ended = await self._ended(self._forms[name], view, asker, about)
            if isinstance(ended, Done) and ended.message is not None:
                done.append(ended.message)
            return _response(ended, view, name, url)

        async def late(response: dict[str, Any]) -> None:
            await self._late(response, view, done)

        working = {"response_action": "update", "view": _notice(view, "⏳ Working…")}
        in_time = await self._answering.submission(ack, unit(), working, late)
        for message in done if in_time else ():
            await self._say(url, asker, message)
        if about.get(HOME) and self.show_home is not None:
            await self._home_again(asker, self.show_home)

    async def _ended(self, form: Form, view: Json, asker: Asker, about: About) -> View | Wrong | Done | str:
        try:
            return await form.submit(read_values(view), asker, about)
        except MidwatchError as error:
            said = _sentence(error)
        except Exception:
            said = failed("slack.modal_failed").text
        where = next((block["block_id"] for block in view["blocks"] if block["type"] == "input"), None)
        return said if where is None else Wrong({where: said})

    async def _late(self, response: dict[str, Any], view: Json, done: Sequence[Message]) -> None:
        """What came after the ack is shown in the modal, which says "working"."""
        shown = response.get("view")
        if shown is None:
            said = done[0].text if done else "\n".join(response.get("errors", {}).values())
            shown = _notice(view, said or "✅ Done.")
        await self._show(str(view["id"]), shown)

    async def _home_again(self, asker: Asker, show: Callable[[Asker], Awaitable[object]]) -> None:
        try:
            await show(asker)
        except Exception as error:  # it is right again when it is opened the next time
            log.info("slack.home_not_shown", code=trouble_of(error).code)

    async def _say(self, url: str, asker: Asker, message: Message) -> None:
        try:
            if url:
                await self._client.respond(url, message)
            else:
                await self._client.tell(asker.user_id, message)
        except Exception as error:  # what was done is done, whether or not it can be told
            log.warning("slack.not_answered", error=type(error).__name__)


async def _late_view(made: asyncio.Future[View], loading: Json, name: str, url: str) -> dict[str, Any]:
    try:
        return _payload(await made, name, url)
    except MidwatchError as error:
        return _notice(loading, f"⚠️ {_sentence(error)}")


def _payload(view: View, name: str, url: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "modal",
        "callback_id": f"{CALLBACK}{name}",
        "title": plain_text(view.title),
        "close": plain_text(view.close),
        "blocks": list(view.blocks),
        "private_metadata": json.dumps({"a": dict(view.about), "u": url}, separators=(",", ":")),
    }
    if view.submit:
        made["submit"] = plain_text(view.submit)
    if faults := lint_view(made):
        log.error("slack.modal_faulty", form=name, faults=faults[:5])
    return made


def _read(body: Json) -> tuple[Json, str, About, str]:
    view = body["view"]
    kept = json.loads(view["private_metadata"])
    return view, str(view["callback_id"]).removeprefix(CALLBACK), kept["a"], kept["u"]


def _response(ended: View | Wrong | Done | str, view: Json, name: str, url: str) -> dict[str, Any]:
    match ended:
        case Done():
            return {"response_action": "clear"}
        case Wrong():
            return {"response_action": "errors", "errors": dict(ended.errors)}
        case View():
            return {"response_action": "update", "view": _payload(ended, name, url)}
        case str():
            return {"response_action": "update", "view": _with_banner(view, ended)}


def _again(view: Json) -> dict[str, Any]:
    """The modal as it stands, as Slack takes it."""
    kept = ("type", "callback_id", "title", "close", "submit", "blocks", "private_metadata")
    return {key: view[key] for key in kept if view.get(key)}


def _with_banner(view: Json, said: str) -> dict[str, Any]:
    blocks = [block for block in view["blocks"] if block.get("block_id") != BANNER]
    return {**_again(view), "blocks": [section(f"⚠️ {said}", block_id=BANNER), *blocks]}


def _notice(view: Json, said: str) -> dict[str, Any]:
    """The modal with nothing in it but a sentence."""
    shown = {**_again(view), "close": plain_text("Close"), "blocks": [section(escape.cut(said, 2800))]}
    shown.pop("submit", None)
    return shown


def _sentence(error: MidwatchError) -> str:
    """The grammar writes markup and escapes what it quotes, the engine neither."""
    said = str(error)
    return escape.cut(said, 1500) if isinstance(error, BadCommand) else escape.text(said, 1500)


def _reopening(said: str, name: str, about: About) -> Message:
    value = json.dumps({"n": name, "a": dict(about)}, separators=(",", ":"))
    blocks = (*note(said).blocks, actions("modal", [button(REOPEN, "Open the form", value, "primary")]))
    return Message(said, blocks)
