"""Who is at the other end of a request, as far as its address tells."""

from __future__ import annotations

from typing import Any

from litestar.connection import ASGIConnection

UNKNOWN = "unknown"


def client_address(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """The client's address: what limits per source count by and what logs show.

    It is the socket's, or with the setting ``trust_proxy`` the one that the proxy saw (``intake``). Nothing a
    client can write into a header changes it.
    """
    client = connection.scope.get("client")
    return client[0] if client else UNKNOWN
