"""HTTP/1.1 to one host, with nothing around it: no redirect, no proxy, no second try.

A collector makes some ten calls a pass, and a general client spends several times the CPU on each. The wire's grammar
is h11's. What is sent goes out once: a connection that is lost under it is a ``WireFault``, whether it was new or kept
from the exchange before.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11
import httpx2

HEAD_MOST = 64 * 1024
"""Bytes of an answer's head that are read at most."""

NEXT_ADDRESS_AFTER = 0.25
"""Seconds after which the next address of a host is tried beside the first (RFC 8305, section 5)."""

OnSent = Callable[[], Awaitable[None]]
"""Awaited once the whole request has been handed to the network."""

Headers = list[tuple[bytes, bytes]]
"""In their order, names in lower case."""


class WireFault(Exception):
    """The connection failed, or its other end speaks no HTTP; the request may or may not have arrived."""


class HeldBack(Exception):
    """The caller's last look before the first byte said no."""


class AnswerTooLong(Exception):
    """More came than the caller wants to read."""


@dataclass(frozen=True)
class Reply:
    """A whole answer."""

    status: int
    headers: Headers
    body: bytes

    def header(self, name: bytes) -> str | None:
        """The first header of that name (lower case)."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), None)


class _Wire(asyncio.Protocol):
    """One exchange at a time. ``on_lost`` is told when it is closed, by whomever."""

    transport: asyncio.Transport

    def __init__(self, on_lost: Callable[[_Wire], None]) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MOST)
        self._on_lost = on_lost
        self._over: asyncio.Future[Reply | Exception] | None = None
        self._status, self._headers = 0, Headers()
        self._body, self._most = bytearray(), 0
        self._has_ended = False
        self.idle_since = 0.0

    def is_open(self) -> bool:
        return not self._has_ended and not self.transport.is_closing()

    async def exchange(self, request: h11.Request, body: bytes, most: int, on_sent: OnSent | None) -> Reply:
        if not self.is_open():
            raise WireFault("the connection was closed")
        self._body, self._most = bytearray(), most
        self._over = over = asyncio.get_running_loop().create_future()
        events = (request, h11.Data(body), h11.EndOfMessage()) if body else (request, h11.EndOfMessage())
        self.transport.write(b"".join(self._http.send(event) or b"" for event in events))
        if on_sent is not None:
            await on_sent()
        ended: Reply | Exception = await over
        if isinstance(ended, Exception):
            raise ended
        return ended

    def is_ready_again(self) -> bool:
        """Prepare it for another exchange, where both sides have said all of this one and keep it open."""
        http = self._http
        if (
            not self.is_open()
            or self.transport.get_write_buffer_size()
            or http.our_state is not h11.DONE
            or http.their_state is not h11.DONE
            or http.trailing_data != (b"", False)
        ):
            return False
        http.start_next_cycle()
        return True

    def _is_waiting(self) -> bool:
        return self._over is not None and not self._over.done()

    def _end(self, ended: Reply | Exception) -> None:
        """The first end counts: what comes after a whole answer takes nothing of it back."""
        if self._over is not None and not self._over.done():
            self._over.set_result(ended)

    def _read_on(self, data: bytes) -> None:
        try:
            self._http.receive_data(data)
            while (event := self._http.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Data):
                    self._body += event.data
                    if len(self._body) > self._most:
                        return self._end(AnswerTooLong())
                elif isinstance(event, h11.Response):
                    self._status, self._headers = event.status_code, list(event.headers)
                elif isinstance(event, h11.EndOfMessage):
                    return self._end(Reply(self._status, self._headers, bytes(self._body)))
                elif not isinstance(event, h11.InformationalResponse):
                    return self._end(WireFault("the connection was closed"))
        except h11.ProtocolError as error:
            self._end(WireFault(str(error) if data else "the connection was closed"))
        return None

    # --- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self._is_waiting():
            self._read_on(data)
        else:
            self.transport.abort()  # nobody asked for that, so that it is no answer to what is asked next

    def eof_received(self) -> None:
        self._has_ended = True
        if self._is_waiting():
            self._read_on(b"")

    def connection_lost(self, error: Exception | None) -> None:
        self._has_ended = True
        self._end(WireFault(str(error or "") or "the connection was closed"))
        self._on_lost(self)


class Wires:
    """The connections to the host of ``base_url``.

    ``keep``: how many connections wait at most for the next exchange, and for how many seconds. Proxies of the
    environment are not used.
    """

    def __init__(self, base_url: str, *, keep: tuple[int, float]) -> None:
        parts = urlsplit(base_url)
        self._host = parts.hostname or ""
        is_https = parts.scheme == "https"
        self._port = parts.port or (443 if is_https else 80)
        self._next_address_after = None if _is_address(self._host) else NEXT_ADDRESS_AFTER
        self._tls: ssl.SSLContext | None = httpx2.create_ssl_context(trust_env=False) if is_https else None
        self._path = parts.path.rstrip("/")
        self._authority = parts.netloc.rpartition("@")[2]
        self._keep_most, self._keep_for = keep
        self._all: set[_Wire] = set()
        self._idle: list[_Wire] = []
        """By when they were used, the last one last."""
        self._tidying: asyncio.TimerHandle | None = None

    async def exchange(
        self,
        method: str,
        target: str,
        headers: list[tuple[str, str]],
        body: bytes,
        most: int,
        *,
        is_first: bool = False,
        may_send: Callable[[], bool] | None = None,
        on_sent: OnSent | None = None,
    ) -> Reply:
        """Send a request, once, and read its whole answer, of ``most`` bytes at most.

        ``target`` follows the path of the base URL. ``is_first``: on a connection of its own, which nothing was asked
        on before. ``may_send`` is asked with the connection open, immediately before the first byte. Raises
        ``WireFault``, ``HeldBack`` and ``AnswerTooLong``; when it is cancelled, the connection is cut.
        """
        try:
            request = h11.Request(
                method=method,
                target=self._path + target,
                headers=[("Host", self._authority), *headers, *_length(method, body)],
            )
        except (h11.LocalProtocolError, UnicodeEncodeError) as error:
            # What is wrong with it is not said: it may be a key.
            raise WireFault("a header of the request holds what HTTP cannot carry") from error
        wire = (None if is_first else self._kept()) or await self._connected()
        is_kept = False
        try:
            if may_send is not None and not may_send():
                raise HeldBack
            reply = await wire.exchange(request, body, most, on_sent)
            is_kept = self._keep(wire)
            return reply
        finally:
            if not is_kept:
                # Nothing is left to say: the answer is here, or none is wanted any more.
                wire.transport.abort()

    def close(self) -> None:
        """Cut what is under way; whoever waits for it gets ``WireFault``."""
        for wire in list(self._all):
            wire.transport.abort()
        self._idle.clear()
        if self._tidying is not None:
            self._tidying.cancel()
            self._tidying = None

    async def _connected(self) -> _Wire:
        loop = asyncio.get_running_loop()
        try:
            _, wire = await loop.create_connection(
                lambda: _Wire(self._all.discard),
                self._host,
                self._port,
                ssl=self._tls,
                happy_eyeballs_delay=self._next_address_after,
            )
        except (OSError, ValueError) as error:
            raise WireFault(str(error) or type(error).__name__) from error
        if wire.is_open():
            self._all.add(wire)
        return wire

    # --- connections between two exchanges

    def _kept(self) -> _Wire | None:
        since = asyncio.get_running_loop().time() - self._keep_for
        while self._idle:
            wire = self._idle.pop()
            if wire.idle_since > since and wire.is_open():
                return wire
            wire.transport.abort()
        return None

    def _keep(self, wire: _Wire) -> bool:
        if len(self._idle) >= self._keep_most or not wire.is_ready_again():
            return False
        loop = asyncio.get_running_loop()
        wire.idle_since = loop.time()
        self._idle.append(wire)
        if self._tidying is None:
            self._tidying = loop.call_later(self._keep_for, self._tidy)
        return True

    def _tidy(self) -> None:
        """Close what nobody wanted in time, and look again while there is any."""
        loop = asyncio.get_running_loop()
        since = loop.time() - self._keep_for
        for wire in self._idle:
            if wire.idle_since <= since:
                wire.transport.abort()
        self._idle = [wire for wire in self._idle if wire.is_open()]
        self._tidying = None
        if self._idle:
            self._tidying = loop.call_at(self._idle[0].idle_since + self._keep_for, self._tidy)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _length(method: str, body: bytes) -> list[tuple[str, str]]:
    return [("Content-Length", str(len(body)))] if body or method in ("POST", "PUT") else []
