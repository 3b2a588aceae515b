"""What stands before every route: who is asking."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

FORWARDED_FOR = b"x-forwarded-for"


class Intake:
    """The outermost layer of the application; it sees every request, those of unknown paths too."""

    def __init__(self, app: ASGIApp, *, trust_proxy: bool) -> None:
        self._app = app
        self._trust_proxy = trust_proxy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["client"] = true_client(scope, trust_proxy=self._trust_proxy)
        await self._app(scope, receive, send)


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
    seen = _right_most(value for name, value in scope["headers"] if name.lower() == FORWARDED_FOR)
    return (seen, 0) if seen else client


def _right_most(values: Iterable[bytes]) -> str | None:
    hop = b",".join(values).rpartition(b",")[2].decode("latin-1").strip()
    if hop.startswith("["):
        hop = hop[1:].partition("]")[0]
    elif hop.count(":") == 1:
        hop = hop.partition(":")[0]
    try:
        return str(ipaddress.ip_address(hop))
    except ValueError:
        return None
