"""``/mcp``: what stands before the tools. Who asks is told by an API token, and by nothing that browsers add."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any, cast
from urllib.parse import urlsplit

from litestar import asgi
from litestar.handlers import ASGIRouteHandler
from litestar.types import HTTPScope, Message, Receive, Scope, Send

from lastcall.api.v1.requests import caller
from lastcall.db.database import Database
from lastcall.errors import NotAllowed, WrongRequest

PATH = "/mcp"


class McpEndpoint:
    """The MCP server of this process. Without the extra it says so, and everything else works."""

    def __init__(self, database: Database, public_url: str) -> None:
        self._database = database
        self._origin = _origin_of(public_url)
        self._manager: Any = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answers while the block lasts."""
        if find_spec("mcp") is None:
            yield
            return
        from lastcall.api.mcp.server import session_manager

        manager = session_manager(self._database)
        async with manager.run():
            self._manager = manager
            try:
                yield
            finally:
                self._manager = None

    def route(self) -> ASGIRouteHandler:
        """What the application mounts."""

        @asgi(PATH, copy_scope=True)
        async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
            await self._answer(cast("HTTPScope", scope), receive, send)

        return mcp

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._check_origin(headers)
        if self._manager is None:
            raise _not_installed()
        if scope["method"] != "POST":
            # Nothing is sent unasked here, so there is no stream to open and no session to end.
            raise WrongRequest(
                "method_not_allowed",
                "This address takes POST only.",
                status=HTTPStatus.METHOD_NOT_ALLOWED,
                headers={"Allow": "POST"},
            )
        from lastcall.api.mcp.server import ACTOR

        actor = await caller(self._database, headers.get("authorization", ""))

        async def send_unkept(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"cache-control", b"no-store")]
            await send(message)

        await self._manager.handle_request({**scope, ACTOR: actor}, receive, send_unkept)

    def _check_origin(self, headers: dict[str, str]) -> None:
        """A page of somebody else's must not talk to a server that its visitor's browser reaches."""
        origin = headers.get("origin")
        if origin is not None and origin.lower() != self._origin:
            raise NotAllowed(
                "origin_refused",
                "This address takes no calls from pages of other sites.",
                advice="Call it from a program instead of a page.",
            )


def _origin_of(url: str) -> str:
    """How a browser names the site: without the port that its scheme has anyway."""
    parts = urlsplit(url)
    host = (parts.hostname or "").encode("idna").decode("ascii")
    name = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port in (None, usual) else f":{parts.port}"
    return f"{parts.scheme}://{name}{port}".lower()


def _not_installed() -> WrongRequest:
    return WrongRequest(
        "mcp_not_installed",
        "This server was installed without MCP.",
        status=HTTPStatus.NOT_IMPLEMENTED,
        advice="Whoever runs it installs the extra “mcp” and starts it again.",
    )
