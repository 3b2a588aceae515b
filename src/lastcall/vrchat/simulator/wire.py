"""One HTTP/1.1 connection, with ways to misbehave that a real server library would not offer."""

from __future__ import annotations

import asyncio
import socket
import struct

import h11

from lastcall.vrchat.simulator.messages import Reply, Request

LONGEST_BODY = 1024 * 1024


class Wire:
    """Reads requests, writes replies. ``base_path`` is cut off what is asked for; other paths stay whole."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, base_path: str) -> None:
        self._reader = reader
        self._writer = writer
        self._base_path = base_path
        self._http = h11.Connection(h11.SERVER)

    async def read_request(self) -> Request | None:
        """The next whole request, or ``None`` when the peer has gone before one was complete."""
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Request):
                head = event
                if self._http.they_are_waiting_for_100_continue:
                    self._write(h11.InformationalResponse(status_code=100, headers=[]))
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > LONGEST_BODY:
                    return None
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                path, _, query = head.target.decode("ascii", "replace").partition("?")
                headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
                return Request(
                    head.method.decode("ascii"),
                    path.removeprefix(self._base_path),
                    query,
                    headers,
                    bytes(body),
                )
            else:
                return None

    async def _next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            self._http.receive_data(await self._reader.read(64 * 1024))

    async def send(self, reply: Reply) -> None:
        self._send_head(reply)
        self._write(h11.Data(data=reply.body))
        await self._finish()

    async def send_half(self, reply: Reply) -> bytes:
        """Send the head and half the body; the other half is returned, for ``send_rest``."""
        middle = len(reply.body) // 2
        self._send_head(reply)
        self._write(h11.Data(data=reply.body[:middle]))
        await self._writer.drain()
        return reply.body[middle:]

    async def send_some(self, body: bytes, count: int) -> bytes:
        """Send the first ``count`` bytes of what is left; the others are returned."""
        self._write(h11.Data(data=body[:count]))
        await self._writer.drain()
        return body[count:]

    async def send_rest(self, body: bytes) -> None:
        self._write(h11.Data(data=body))
        await self._finish()

    async def send_noise(self) -> None:
        """Bytes that are not HTTP."""
        self._writer.write(b"\x16\x03\x01\x00\x2a this is no answer\r\n\r\n")
        await self._writer.drain()

    def next_cycle(self) -> bool:
        """Get ready for another request on this connection; no, if either side wants it closed."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    def close(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        """Close with a TCP reset instead of an orderly end."""
        plug: socket.socket = self._writer.get_extra_info("socket")
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def _send_head(self, reply: Reply) -> None:
        headers = [
            ("Content-Type", reply.content_type),
            ("Content-Length", str(len(reply.body))),
            *reply.headers,
        ]
        self._write(h11.Response(status_code=reply.status, headers=headers))

    def _write(self, event: h11.Event) -> None:
        self._writer.write(self._http.send(event) or b"")

    async def _finish(self) -> None:
        self._write(h11.EndOfMessage())
        await self._writer.drain()
