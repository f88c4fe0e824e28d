"""Uploads as Slack takes them: an address, the bytes, and the message that shows them."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.faults import Fault
from bot.sandbox.server import SandboxServer
from bot.sandbox.world import Options

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100


async def refused(call: Any) -> SlackApiError:
    with pytest.raises(SlackApiError) as caught:
        await call
    return caught.value


async def uploaded(slack: AsyncWebClient, http: aiohttp.ClientSession, data: bytes = PNG) -> str:
    place = await slack.files_getUploadURLExternal(filename="a.png", length=len(data), alt_txt="a <picture>")
    async with http.post(place["upload_url"], data=data) as answer:
        assert (answer.status, await answer.text()) == (200, f"OK - {len(data)}")
    return str(place["file_id"])


async def test_a_picture_is_uploaded_shared_and_shown(
    slack: AsyncWebClient, http: aiohttp.ClientSession, sandbox: SandboxServer
) -> None:
    """The message carries the file; its bytes come back with a type that no browser runs."""
    file_id = await uploaded(slack, http)
    answer = await slack.files_completeUploadExternal(
        files=[{"id": file_id, "title": "Weeks"}], channel_id="C0GENERAL", initial_comment="look"
    )
    assert answer["files"][0]["title"] == "Weeks"
    (message,) = sandbox.state.channels["C0GENERAL"].messages.values()
    assert (message.text, message.subtype, message.files[0]["alt_txt"]) == (
        "look",
        "file_share",
        "a <picture>",
    )
    async with http.get(f"{sandbox.url}{message.files[0]['url_private']}") as shown:
        assert await shown.read() == PNG
        assert shown.content_type == "image/png"
        assert shown.headers["X-Content-Type-Options"] == "nosniff"


async def test_what_is_no_picture_is_only_to_be_saved(
    slack: AsyncWebClient, http: aiohttp.ClientSession, sandbox: SandboxServer
) -> None:
    """A page that somebody uploads does not run in the sandbox's own."""
    place = await slack.files_getUploadURLExternal(filename="a.html", length=4)
    async with http.post(place["upload_url"], data=b"<br>"):
        pass
    async with http.get(f"{sandbox.url}/files/{place['file_id']}") as shown:
        assert shown.headers["Content-Disposition"] == "attachment"


async def test_other_bytes_than_announced_are_not_taken(
    slack: AsyncWebClient, http: aiohttp.ClientSession
) -> None:
    """And what was not taken cannot be shown."""
    place = await slack.files_getUploadURLExternal(filename="a.png", length=5)
    async with http.post(place["upload_url"], data=b"123456") as answer:
        assert answer.status == 400
    error = await refused(
        slack.files_completeUploadExternal(files=[{"id": place["file_id"]}], channel_id="C0GENERAL")
    )
    assert error.response["error"] == "file_not_found"


async def test_an_upload_is_shown_once(slack: AsyncWebClient, http: aiohttp.ClientSession) -> None:
    """A second completion, and one of nothing, are refused."""
    files = [{"id": await uploaded(slack, http)}]
    await slack.files_completeUploadExternal(files=files, channel_id="C0GENERAL")
    again = await refused(slack.files_completeUploadExternal(files=files, channel_id="C0GENERAL"))
    assert again.response["error"] == "file_not_found"
    assert (await refused(slack.files_completeUploadExternal(files=[]))).response[
        "error"
    ] == "invalid_arguments"


@pytest.mark.parametrize(
    ("channel", "state", "error"),
    [
        ("C0NOWHERE", "", "channel_not_found"),
        ("#general", "", "channel_not_found"),
        ("C0GENERAL", "archived", "is_archived"),
        ("C0GENERAL", "left", "not_in_channel"),
    ],
)
async def test_only_a_member_may_share_a_file(
    slack: AsyncWebClient,
    http: aiohttp.ClientSession,
    sandbox: SandboxServer,
    channel: str,
    state: str,
    error: str,
) -> None:
    """Only an id names the channel, and `chat:write.public` does not help."""
    general = sandbox.state.channels["C0GENERAL"]
    general.archived = state == "archived"
    if state == "left":
        general.members.discard(sandbox.state.team.bot_user)
    files = [{"id": await uploaded(slack, http)}]
    found = await refused(slack.files_completeUploadExternal(files=files, channel_id=channel))
    assert found.response["error"] == error


@pytest.mark.parametrize(
    ("name", "length", "error"),
    [
        ("", 5, "invalid_arguments"),
        ("a.png", 0, "invalid_arguments"),
        ("a.png", 10**9, "file_upload_size_restricted"),
    ],
)
async def test_an_address_wants_a_name_and_a_length(
    slack: AsyncWebClient, name: str, length: int, error: str
) -> None:
    """As Slack says it."""
    found = await refused(slack.files_getUploadURLExternal(filename=name, length=length))
    assert found.response["error"] == error


async def test_without_the_scope_it_is_named() -> None:
    """`missing_scope` says which one is needed."""
    fewer = Options(scopes=Options().scopes - {"files:write"})
    async with SandboxServer(options=fewer) as sandbox:
        slack = AsyncWebClient(token="xoxb-demo", base_url=sandbox.api_url, retry_handlers=[], timeout=5)
        found = await refused(slack.files_getUploadURLExternal(filename="a.png", length=5))
        assert (found.response["error"], found.response["needed"]) == ("missing_scope", "files:write")


async def test_the_upload_itself_may_fail(
    slack: AsyncWebClient, http: aiohttp.ClientSession, sandbox: SandboxServer
) -> None:
    """The address may be down while the rest of Slack is not."""
    sandbox.world.faults.begin(Fault("slack", "outage", method="files.upload"))
    place = await slack.files_getUploadURLExternal(filename="a.png", length=len(PNG))
    async with http.post(place["upload_url"], data=PNG) as answer:
        assert answer.status == 503
