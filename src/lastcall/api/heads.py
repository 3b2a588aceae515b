"""HEAD is answered wherever GET is, by the same code: the same status and headers, and no body."""

from __future__ import annotations

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send


class HeadAnswers:
    """Wraps the whole application. A stream of events ends with its headers: the end of the answer is the
    disconnect that it waits for.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        asked = scope.copy()
        asked["method"] = "GET"
        await self._app(asked, receive, send_head)
