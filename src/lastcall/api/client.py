"""Who is at the other end of a request, as far as its address tells."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from litestar.connection import ASGIConnection

FORWARDED_FOR = b"x-forwarded-for"
UNKNOWN = "unknown"


def client_address(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """The client's address: what limits per source count by and what logs show.

    It is the socket's, or with the setting ``trust_proxy`` the one that the proxy saw (``intake``). Nothing a
    client can write into a header changes it.
    """
    client = connection.scope.get("client")
    return client[0] if client else UNKNOWN


def right_most(values: Iterable[bytes]) -> str | None:
    """The last hop of ``X-Forwarded-For`` headers, with or without a port; ``None`` when it is no address."""
    hop = b",".join(values).rpartition(b",")[2].decode("latin-1").strip()
    if hop.startswith("["):
        hop = hop[1:].partition("]")[0]
    elif hop.count(":") == 1:
        hop = hop.partition(":")[0]
    try:
        return str(ipaddress.ip_address(hop))
    except ValueError:
        return None
