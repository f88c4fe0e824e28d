"""Puts a picture into a channel: Slack gives an address, takes the bytes there, and is told where to show it.

Never tries twice: whoever asks says what was to be seen in words.
"""

from __future__ import annotations

import asyncio

from bot.slack.client import TIMEOUT, SlackClient


class NotTaken(Exception):
    """Slack gave an address and did not take the bytes there."""


async def upload(
    client: SlackClient,
    channel_id: str,
    data: bytes,
    *,
    filename: str,
    title: str,
    alt: str,
    thread_ts: str | None = None,
) -> None:
    """`alt` is what people hear who cannot see it. The bot must be in the channel."""
    place = await client.call(
        client.web.files_getUploadURLExternal(filename=filename, length=len(data), alt_txt=alt[:1000])
    )
    async with asyncio.timeout(TIMEOUT.total_seconds()):
        async with client.session().post(
            str(place["upload_url"]), data=data, proxy=client.web.proxy
        ) as answer:
            if answer.status != 200:
                raise NotTaken
    file: dict[str, str | None] = {"id": str(place["file_id"]), "title": title[:200]}
    await client.call(
        client.web.files_completeUploadExternal(files=[file], channel_id=channel_id, thread_ts=thread_ts)
    )
