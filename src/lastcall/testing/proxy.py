"""A proxy in front of PostgreSQL that cuts a connection at a chosen statement, before or after it took
effect."""

from __future__ import annotations

import asyncio
import contextlib
from enum import Enum
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

_STARTUP = 196608
"""Protocol 3.0, the code in the message that begins a session; others (TLS, cancel) come before or instead.
"""

_IDLE = b"Z\x00\x00\x00\x05I"
"""ReadyForQuery outside a transaction: the server is done with the statement."""


class Cut(Enum):
    """What becomes of the matching statement and of the client that sent it."""

    BEFORE = "the server never gets it; both sides are cut"
    AFTER = "the server carries it out; its answer is dropped and the client cut"
    LATE = "the client is cut; the server gets the statement at release()"
    SILENT = "nobody answers the client; the server gets the statement at release()"


class CuttingProxy:
    """``async with CuttingProxy(url) as proxy``: connect to ``proxy.url``, ``arm`` it, and lose a connection.

    Without being armed it only passes bytes on. It cuts once for each ``arm``.
    """

    def __init__(self, url: str) -> None:
        self._upstream = url
        self._armed: tuple[Cut, bytes] | None = None
        self._server: asyncio.Server
        self._links: set[_Link] = set()
        self._held: list[tuple[_Link, bytes]] = []
        self.reached = asyncio.Event()
        """Set when the armed statement arrived (for ``AFTER``: when it has taken effect)."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for link in tuple(self._links):
            link.cut()
        await asyncio.gather(*(link.ended.wait() for link in tuple(self._links)))
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Address of the same database through the proxy."""
        parts = urlsplit(self._upstream)
        credentials = parts.netloc.rpartition("@")[0]
        port = self._server.sockets[0].getsockname()[1]
        return urlunsplit(parts._replace(netloc=f"{credentials}@127.0.0.1:{port}", query="sslmode=disable"))

    def arm(self, cut: Cut, statement: str = "commit") -> None:
        """Cut at the next statement whose text contains ``statement`` (in lower case)."""
        self._armed = (cut, statement.encode())
        self.reached.clear()

    async def release(self, *, answer: bool = False) -> None:
        """Let the server have the statements that were held back, and wait until it is done with them.

        ``answer`` passes the answers on; otherwise the clients are cut.
        """
        while self._held:
            link, frame = self._held.pop()
            if answer:
                link.pass_on(frame)
            else:
                await link.carry_out(frame)
                link.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        query = parse_qs(urlsplit(self._upstream).query)
        path = f"{unquote(query['host'][0])}/.s.PGSQL.{query.get('port', ['5432'])[0]}"
        server_reader, server_writer = await asyncio.open_unix_connection(path)
        link = _Link(self, reader, writer, server_reader, server_writer)
        self._links.add(link)
        await link.run()
        self._links.discard(link)

    async def _judge(self, link: _Link, frame: bytes) -> bool:
        """Whether to pass the frame on; an armed one is dealt with here."""
        if self._armed is None or frame[:1] not in {b"Q", b"P"} or self._armed[1] not in frame.lower():
            return True
        cut, _ = self._armed
        self._armed = None
        match cut:
            case Cut.BEFORE:
                link.cut()
            case Cut.AFTER:
                await link.carry_out(frame)
                link.cut()
            case Cut.LATE:
                self._hold(link, frame)
                link.cut_client()
            case Cut.SILENT:
                self._hold(link, frame)
        self.reached.set()
        return False

    def _hold(self, link: _Link, frame: bytes) -> None:
        link.outlives_client = True
        self._held.append((link, frame))


class _Link:
    """One client's connection and its counterpart at the server."""

    def __init__(
        self,
        proxy: CuttingProxy,
        client_reader: asyncio.StreamReader,
        client_writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._client_reader, self._client_writer = client_reader, client_writer
        self._server_reader, self._server_writer = server_reader, server_writer
        self.outlives_client = False
        self._is_mute = False
        self._is_done = asyncio.Event()
        self.ended = asyncio.Event()

    async def run(self) -> None:
        """Until the server's side has ended."""
        forth = asyncio.create_task(self._forth())
        try:
            await self._back()
        finally:
            forth.cancel()
            await asyncio.gather(forth, return_exceptions=True)
            self._client_writer.close()
            self._server_writer.close()
            self.ended.set()

    def cut(self) -> None:
        self.cut_client()
        self._server_writer.transport.abort()

    def cut_client(self) -> None:
        self._is_mute = True
        self._client_writer.transport.abort()

    def pass_on(self, frame: bytes) -> None:
        self.outlives_client = False
        self._server_writer.write(frame)

    async def carry_out(self, frame: bytes) -> None:
        """Let the server have ``frame``, keep its answer from the client, and wait for the end of it."""
        self._is_mute = True
        self._is_done.clear()
        self._server_writer.write(frame)
        await self._is_done.wait()

    async def _forth(self) -> None:
        is_started = False
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = await self._client_reader.readexactly(5 if is_started else 4)
                length = int.from_bytes(head[-4:]) - 4
                frame = head + await self._client_reader.readexactly(length)
                if self.outlives_client or (is_started and not await self._proxy._judge(self, frame)):
                    continue
                is_started = is_started or int.from_bytes(frame[4:8]) == _STARTUP
                self._server_writer.write(frame)
                await self._server_writer.drain()
        if not self.outlives_client:
            self._server_writer.close()

    async def _back(self) -> None:
        with contextlib.suppress(OSError):
            while data := await self._server_reader.read(65536):
                if not self._is_mute:
                    self._client_writer.write(data)
                elif data.endswith(_IDLE):
                    self._is_done.set()
        self._is_done.set()
        if not self._is_mute:
            self._client_writer.close()
