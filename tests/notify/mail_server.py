"""A mail server on this machine: keeps the mails it took, and answers one command as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class MailServer:
    mails: list[EmailMessage] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)  # "RCPT": "550 no such user"; "": hangs up
    silent: bool = False
    port: int = 0
    _silence: asyncio.Event = field(default_factory=asyncio.Event)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.silent:
                await self._silence.wait()
            await self._say(writer, "220 mail.test ESMTP")
            while line := await reader.readline():
                if not await self._command(line.decode(), reader, writer):
                    break
        except ConnectionError:
            pass  # the client is gone; its outcome is what the test looks at
        finally:
            writer.close()

    async def _command(self, line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        word = line.split(maxsplit=1)[0].upper()
        if word in self.answers:
            if not self.answers[word]:
                return False
            await self._say(writer, self.answers[word])
            return True
        if word == "DATA":
            await self._say(writer, "354 go on")
            body = await reader.readuntil(b"\r\n.\r\n")
            answer = self.answers.get("BODY", "250 taken")
            if answer.startswith("250"):
                mail = message_from_bytes(body[:-3], policy=policy.default)
                assert isinstance(mail, EmailMessage)
                self.mails.append(mail)
            await self._say(writer, answer)
            return True
        usual = {"EHLO": "250-mail.test\r\n250 AUTH PLAIN LOGIN", "AUTH": "235 welcome", "QUIT": "221 bye"}
        await self._say(writer, usual.get(word, "250 ok"))
        return word != "QUIT"

    async def _say(self, writer: asyncio.StreamWriter, answer: str) -> None:
        writer.write(answer.encode() + b"\r\n")
        await writer.drain()


@asynccontextmanager
async def mail_server() -> AsyncIterator[MailServer]:
    mails = MailServer()
    server = await asyncio.start_server(mails._talk, "127.0.0.1", 0)
    mails.port = server.sockets[0].getsockname()[1]
    try:
        yield mails
    finally:
        mails._silence.set()
        server.close()
        await server.wait_closed()
