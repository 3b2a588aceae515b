"""One POST, one answer, one connection: HTTP/1.1 to the server with nothing around it.

A collector makes some ten calls a pass, each on a connection of its own. A general client spends four times the CPU
on such a call; the wire's grammar is still h11's.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import h11
import httpx2

from lastcall import __version__

CHUNK = 64 * 1024
"""Bytes that are read from the network at a time."""

OnSent = Callable[[], Awaitable[None]]
"""Awaited once the whole request has been handed to the network."""


class NoAnswer(Exception):
    """The connection failed, or its other end speaks no HTTP; the request may or may not have arrived."""


class AnswerTooLong(Exception):
    """More came than the caller wants to read."""


class Exchanges:
    """POST requests to one server. ``headers`` go with each of them. Proxies of the environment are not used."""

    def __init__(self, base_url: str, headers: dict[str, str]) -> None:
        parts = urlsplit(base_url)
        self._host = parts.hostname or ""
        is_https = parts.scheme == "https"
        self._port = parts.port or (443 if is_https else 80)
        self._tls: ssl.SSLContext | None = httpx2.create_ssl_context(trust_env=False) if is_https else None
        self._path = parts.path.rstrip("/")
        self._headers = [
            ("Host", parts.netloc.rpartition("@")[2]),
            ("User-Agent", f"Lastcall/{__version__}"),
            ("Accept-Encoding", "identity"),
            ("Connection", "close"),
            *headers.items(),
        ]
        self._open: set[asyncio.StreamWriter] = set()

    async def post(self, path: str, body: bytes, most: int, on_sent: OnSent | None) -> tuple[int, bytes]:
        """Status and body of the answer. Raises ``NoAnswer``, and ``AnswerTooLong`` past ``most`` bytes."""
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        except (OSError, ValueError) as error:
            raise NoAnswer(str(error) or type(error).__name__) from error
        self._open.add(writer)
        try:
            return await self._on(reader, writer, path, body, most, on_sent)
        except (OSError, EOFError, h11.ProtocolError) as error:
            raise NoAnswer(str(error) or type(error).__name__) from error
        finally:
            self._open.discard(writer)
            # Nothing is left to say: the answer is here, or none is wanted any more.
            writer.transport.abort()

    async def _on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        path: str,
        body: bytes,
        most: int,
        on_sent: OnSent | None,
    ) -> tuple[int, bytes]:
        http = h11.Connection(h11.CLIENT)
        head = h11.Request(
            method="POST",
            target=self._path + path,
            headers=[*self._headers, ("Content-Length", str(len(body)))],
        )
        writer.write(
            b"".join(http.send(event) or b"" for event in (head, h11.Data(body), h11.EndOfMessage()))
        )
        await writer.drain()
        if on_sent is not None:
            await on_sent()
        status, answer = 0, bytearray()
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await reader.read(CHUNK))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                answer += event.data
                if len(answer) > most:
                    raise AnswerTooLong
            elif isinstance(event, h11.EndOfMessage):
                return status, bytes(answer)
            elif not isinstance(event, h11.InformationalResponse):
                raise NoAnswer("the connection was closed")

    def close(self) -> None:
        """Cut what is under way; whoever waits for it gets ``NoAnswer``."""
        for writer in self._open:
            with contextlib.suppress(OSError):
                writer.transport.abort()
