"""The files.* methods: an address for an upload, the upload itself, and the message that shows it.

Serves what was uploaded to its own page. Never keeps anything longer than it runs.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from aiohttp import web

from bot.sandbox.call import Call, SlackError
from bot.sandbox.chat import thread_of
from bot.sandbox.shelf import File
from bot.sandbox.state import Channel, Json, Message
from bot.sandbox.world import world_of

if TYPE_CHECKING:
    from bot.sandbox.world import World

LARGEST = 4 * 1024 * 1024
SHOWN = ("image/png", "image/jpeg", "image/gif")


def get_upload_url(world: World, call: Call) -> Json:
    name, length = call.text("filename"), call.number("length", 0)
    if not name or length < 1:
        missing = "filename" if not name else "length"
        raise SlackError(
            "invalid_arguments",
            response_metadata={"messages": [f"[ERROR] missing required field: {missing}"]},
        )
    if length > LARGEST:
        raise SlackError("file_upload_size_restricted")
    file = File(world.space.new_id("F"), secrets.token_hex(16), name, length, call.text("alt_txt")[:1000])
    world.shelf.put(file)
    return {"upload_url": f"{world.base_url}/upload/{file.token}", "file_id": file.id}


async def take(request: web.Request) -> web.Response:
    """The bytes, at the address that was given for them."""
    world = world_of(request)
    file = world.shelf.by_token(request.match_info["token"])
    if file is None:
        return web.Response(status=404, text="no such upload")
    fault = world.faults.strike("slack", "files.upload", {})
    if fault is not None:
        return web.Response(status=503, text="upload failed")
    data = await request.read()
    if len(data) != file.length:
        return web.Response(status=400, text=f"{len(data)} bytes came, {file.length} were announced")
    file.data = data
    return web.Response(text=f"OK - {len(data)}")


def complete_upload(world: World, call: Call) -> Json:
    files = [_taken(world, each) for each in _listed(call)]
    if not files:
        raise SlackError("invalid_arguments")
    channel_id = call.text("channel_id")
    if channel_id:
        _share(world, call, _channel(world, channel_id), files)
    return {"files": [file.as_json() for file in files]}


def _listed(call: Call) -> list[Json]:
    listed = call.json("files", "invalid_arguments")
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise SlackError("invalid_arguments")
    return listed


def _taken(world: World, wanted: Json) -> File:
    file = world.shelf.by_id(str(wanted.get("id")))
    if file is None or file.data is None or file.shared:
        raise SlackError("file_not_found")
    file.title = str(wanted.get("title") or file.name)
    return file


def _channel(world: World, channel_id: str) -> Channel:
    """Only an id names it, and the bot must be in it: `chat:write.public` does not reach that far."""
    channel = world.space.channels.get(channel_id)
    bot = world.space.team.bot_user
    if channel is None or (channel.private and bot not in channel.members):
        raise SlackError("channel_not_found")
    if channel.archived:
        raise SlackError("is_archived")
    if bot not in channel.members:
        raise SlackError("not_in_channel")
    return channel


def _share(world: World, call: Call, channel: Channel, files: list[File]) -> None:
    for file in files:
        file.shared = True
    message = Message(
        world.space.new_ts(),
        channel.id,
        world.space.team.bot_user,
        call.text("initial_comment"),
        username="Midwatch",
        bot=True,
        thread_ts=thread_of(channel, call),
        subtype="file_share",
        files=[file.as_json() for file in files],
    )
    world.space.add(message)
    world.events.message(message)


async def show(request: web.Request) -> web.Response:
    """A picture for the page; anything else only to be saved."""
    file = world_of(request).shelf.by_id(request.match_info["id"])
    if file is None or file.data is None:
        return web.Response(status=404, text="There is no such file.")
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, max-age=3600",
    }
    if file.kind not in SHOWN:
        headers["Content-Disposition"] = "attachment"
    return web.Response(body=file.data, content_type=file.kind, headers=headers)


def routes() -> list[web.RouteDef]:
    return [web.post(r"/upload/{token:\w+}", take), web.get(r"/files/{id:\w+}", show)]
