"""What stands before every route, those of unknown paths too: who asks, for which host, and with how much.

A route behind it can rely on three things: the client's address is not made up, the request was meant for this
server, and a body neither grows beyond ``BODY_LIMIT`` nor takes longer than ``BODY_TIMEOUT``.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import msgspec
import structlog
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from lastcall.api.client import FORWARDED_FOR, right_most
from lastcall.api.problems import MEDIA_TYPE, problem_document
from lastcall.errors import WrongRequest
from lastcall.redaction import redact

BODY_LIMIT = 1024 * 1024  # bytes; the largest thing that pages, API and collectors send is a tenth of it
BODY_TIMEOUT = timedelta(seconds=30)
"""From the request's head to the end of its body. A megabyte takes three seconds on a slow telephone."""

FOR_PROGRAMS = ("/api/", "/worker/", "/mcp", "/ops/", "/slack/commands", "/slack/events")
"""Paths whose errors are problem documents; all others are pages."""

FOR_ANY_HOST = ("/worker/", "/ops/")
"""Paths that are reached under other names as well: collectors and probes stand next to the server. They know no
cookies and make no links."""

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of this computer. A browser that is tricked into asking here says the name it was tricked with."""

log = structlog.get_logger()


class Intake:
    """The outermost layer of the application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        public_url: str,
        trust_proxy: bool,
        headers: list[tuple[bytes, bytes]],
        logs_requests: bool,
    ) -> None:
        self._app = app
        self._logs_requests = logs_requests
        self._hosts = _HERE | {_as_asked_for(public_url)}
        self._trust_proxy = trust_proxy
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        scope["client"] = true_client(scope, trust_proxy=self._trust_proxy)
        if not self._logs_requests:
            await self._take_in(scope, receive, send)
            return
        telling = _Telling(scope, send)
        try:
            await self._take_in(scope, receive, telling)
        finally:
            telling.tell()

    async def _take_in(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        try:
            self._check_host(scope)
            _check_length(scope)
        except WrongRequest as error:
            await self._refuse(scope, send, error)
            return
        await self._app(scope, _Body(receive), send)

    def _check_host(self, scope: HTTPScope) -> None:
        named = [value for name, value in scope["headers"] if name == b"host"]
        if scope["path"].startswith(FOR_ANY_HOST):
            return
        if len(named) != 1 or _host_name(named[0]) not in self._hosts:
            raise WrongRequest(
                "host_unknown",
                "There is no Lastcall under this name.",
                status=HTTPStatus.MISDIRECTED_REQUEST,
                advice="Use the address that this server's setting public_url names.",
            )

    async def _refuse(self, scope: HTTPScope, send: Send, error: WrongRequest) -> None:
        """Answer without the framework, and without having read the body."""
        if scope["path"].startswith(FOR_PROGRAMS):
            kind, body = MEDIA_TYPE, msgspec.json.encode(problem_document(error))
        else:
            kind, body = "text/plain; charset=utf-8", f"{error.sentence}\n{error.advice}\n".encode()
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            *self._headers,
        ]
        await send({"type": "http.response.start", "status": error.status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})


class _Body:
    """The framework's way to the body, which ends when the body is too large or too slow."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ends_at = time.monotonic() + BODY_TIMEOUT.total_seconds()
        self._size = 0
        self._is_whole = False

    async def __call__(self) -> Any:
        if self._is_whole:
            # Only the client's departure can follow, for which a stream waits as long as it lasts.
            return await self._receive()
        try:
            async with asyncio.timeout(self._ends_at - time.monotonic()):
                message = await self._receive()
        except TimeoutError:
            raise WrongRequest(
                "request_too_slow",
                f"The request was not complete after {BODY_TIMEOUT.seconds} seconds.",
                status=HTTPStatus.REQUEST_TIMEOUT,
                advice="Send it again over a better connection.",
            ) from None
        if message["type"] == "http.request":
            self._size += len(message["body"])
            self._is_whole = not message["more_body"]
        if self._size > BODY_LIMIT:
            raise _too_large()
        return message


class _Telling:
    """Sends the answer on and writes one line about it: never the query, where a provider's code may stand."""

    def __init__(self, scope: HTTPScope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._began = time.monotonic()
        self._status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
        await self._send(message)

    def tell(self) -> None:
        client = self._scope["client"]
        log.info(
            "request",
            method=self._scope["method"],
            path=redact(self._scope["path"]),
            status=self._status,
            client=client[0] if client else None,
            milliseconds=round((time.monotonic() - self._began) * 1000),
        )


def true_client(scope: HTTPScope, *, trust_proxy: bool) -> tuple[str, int] | None:
    """The socket's address, or the one that a trusted proxy says it saw.

    A proxy adds the address it saw at the right end of ``X-Forwarded-For``; whatever stands to the left of that
    came from the client, who may write anything. So only the right-most hop is read, and only when the setting
    says that nobody but the proxy reaches this port.
    """
    socket = scope.get("client")
    client = (socket[0], socket[1]) if socket else None
    if not trust_proxy:
        return client
    seen = right_most(value for name, value in scope["headers"] if name == FORWARDED_FOR)
    return (seen, 0) if seen else client


def _as_asked_for(public_url: str) -> str:
    """The host of ``public_url`` as browsers name it: other letters than ASCII's in DNS's form for them."""
    return (urlsplit(public_url).hostname or "").encode("idna").decode("ascii")


def _host_name(host: bytes) -> str | None:
    try:
        return urlsplit(f"//{host.decode('ascii')}").hostname
    except ValueError:
        return None


def _check_length(scope: HTTPScope) -> None:
    """Refuse what announces itself as too large before a byte of it is read."""
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or int(value) > BODY_LIMIT):
            raise _too_large()


def _too_large() -> WrongRequest:
    return WrongRequest(
        "body_too_large",
        f"The request is larger than {BODY_LIMIT // 1024} KiB.",
        status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        advice="Send less at once.",
    )
