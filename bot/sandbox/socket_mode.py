"""Socket Mode: single-use tickets, hello, envelopes and their acks, disconnect frames.

Hands each payload to one of the open sockets; never sends one again on its own.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

from bot.sandbox.clock import monotonic
from bot.sandbox.ledger import Acknowledgement
from bot.sandbox.state import Json
from bot.sandbox.wire import EVENT, Parcel, Reply, body_of

if TYPE_CHECKING:
    from bot.sandbox.world import World

TARGET = "slack_socket"
HEARTBEAT_S = 10.0
REMEMBERED = 1_000


class Waiting:
    """A payload on its way: who waits for its ack, and since when."""

    def __init__(self, parcel: Parcel) -> None:
        self.parcel = parcel
        self.began = monotonic()
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    @property
    def ms(self) -> float:
        return round((monotonic() - self.began) * 1000, 1)


class SocketMode:
    def __init__(self, world: World) -> None:
        self._world = world
        self._sockets: list[web.WebSocketResponse] = []
        self._waiting: dict[str, Waiting] = {}

    @property
    def connected(self) -> bool:
        return bool(self._sockets)

    @property
    def connections(self) -> int:
        return len(self._sockets)

    async def connect(self, request: web.Request) -> web.StreamResponse:
        """GET /socket?ticket=…: a ticket lets one connection in, whatever becomes of it."""
        fault = self._world.faults.find(TARGET)
        if not self._world.vouchers.redeem_ticket(request.query.get("ticket", "")):
            return web.Response(status=403, text="invalid ticket")
        if fault and fault.kind == "hang":
            await fault.over.wait()
        if fault and fault.kind in ("outage", "hang"):
            return web.Response(status=503, text="<html><body>Service Unavailable</body></html>")
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S)
        await socket.prepare(request)
        if fault and fault.kind == "reset_after":
            if request.transport is not None:
                request.transport.abort()
            return socket
        await self._serve(socket)
        return socket

    async def _serve(self, socket: web.WebSocketResponse) -> None:
        self._sockets.append(socket)
        self._world.space.state_changed()
        try:
            await socket.send_json(self._hello())
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._received(message.data)
        except ConnectionResetError:
            return  # the other side went away between two frames
        finally:
            self._sockets.remove(socket)
            self._world.space.state_changed()

    def _hello(self) -> Json:
        return {
            "type": "hello",
            "num_connections": len(self._sockets),
            "debug_info": {"host": "sandbox", "build_number": 1, "approximate_connection_time": 18_060},
            "connection_info": {"app_id": self._world.space.team.app_id},
        }

    def _received(self, frame: str) -> None:
        try:
            said = json.loads(frame)
            waiting = self._waiting.pop(said["envelope_id"], None)
        except (ValueError, KeyError, TypeError):
            return
        fault = self._world.faults.find(TARGET)
        if waiting is None or (fault and fault.kind == "drop_ack"):
            return
        late = waiting.answer.done()
        self._record(said["envelope_id"], waiting, waiting.ms, "late" if late else None)
        if not late:
            waiting.answer.set_result(said.get("payload"))

    async def deliver(self, parcel: Parcel) -> Reply:
        fault = self._world.faults.find(TARGET)
        socket = self._next_socket()
        envelope_id = str(uuid.uuid4())
        waiting = Waiting(parcel)
        if socket is None or (fault and fault.kind in ("outage", "hang")):
            self._record(envelope_id, waiting, None, "dispatch_failed")
            return Reply("dispatch_failed", retry_reason="connection_failed")
        self._remember(envelope_id, waiting)
        if not (fault and fault.kind == "deaf"):
            await self._send(socket, envelope_id, parcel, twice=bool(fault and fault.kind == "duplicate"))
        try:
            async with asyncio.timeout(self._world.options.ack_timeout_s):
                body = await asyncio.shield(waiting.answer)
        except TimeoutError:
            waiting.answer.cancel()
            self._record(envelope_id, waiting, None, "operation_timeout")
            return Reply("operation_timeout")
        return Reply(body=body_of(body), ms=waiting.ms)

    async def _send(
        self, socket: web.WebSocketResponse, envelope_id: str, parcel: Parcel, *, twice: bool
    ) -> None:
        envelope: Json = {
            "envelope_id": envelope_id,
            "type": parcel.kind,
            "payload": parcel.payload,
            "accepts_response_payload": parcel.kind != EVENT,
        }
        if parcel.kind == EVENT:
            envelope |= {"retry_attempt": parcel.retry_attempt, "retry_reason": parcel.retry_reason}
        # A socket that closes meanwhile leaves the payload unacknowledged, which is what then shows.
        with suppress(ConnectionResetError):
            await socket.send_json(envelope)
            if twice:
                await socket.send_json({**envelope, "envelope_id": str(uuid.uuid4())})

    def _next_socket(self) -> web.WebSocketResponse | None:
        open_sockets = [s for s in self._sockets if not s.closed]
        if not open_sockets:
            return None
        chosen = open_sockets[0]
        self._sockets.remove(chosen)
        self._sockets.append(chosen)
        return chosen

    def _remember(self, envelope_id: str, waiting: Waiting) -> None:
        self._waiting[envelope_id] = waiting
        while len(self._waiting) > REMEMBERED:
            del self._waiting[next(iter(self._waiting))]

    def _record(self, envelope_id: str, waiting: Waiting, ms: float | None, error: str | None) -> None:
        parcel = waiting.parcel
        now = self._world.clock.now()
        self._world.ledger.add(
            Acknowledgement(envelope_id, parcel.kind, parcel.name, parcel.retry_attempt, ms, error, now)
        )

    async def disconnect(self, reason: str) -> int:
        """Tell every socket to connect anew; all but a warning closes it as well."""
        sockets = tuple(self._sockets)
        for socket in sockets:
            with suppress(ConnectionResetError):
                await socket.send_json(
                    {"type": "disconnect", "reason": reason, "debug_info": {"host": "sandbox"}}
                )
        return len(sockets)

    async def drop(self) -> None:
        """Cut every socket, as an outage does."""
        for socket in tuple(self._sockets):
            await socket.close(code=1011, message=b"sandbox")

    async def close(self) -> None:
        await asyncio.gather(*(s.close(code=1001, message=b"bye") for s in tuple(self._sockets)))
