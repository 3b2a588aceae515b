"""One request to one address and its answer: a fresh connection, one total time, no redirect, no proxy from the
environment, an answer of bounded length, and only to addresses that may be asked (``addresses``).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2

from lastcall import __version__
from lastcall.outgoing.addresses import AddressRefused, Resolve, allowed_addresses, resolve

ADDRESSES_TRIED = 3
"""A name may have an address that this host cannot reach (IPv6 without a route). Nothing was sent then."""
HOST_LENGTH = 253


class OutgoingFault(Exception):
    """Whoever was asked cannot be, or gave no answer that can be used. ``reason`` is for the log and never holds what
    was sent.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Bounds:
    """How much one answer may take. ``total`` runs from the look-up of the name to the last byte of at most ``cap``
    bytes. ``is_private`` lets addresses of one's own network and plain http through.
    """

    cap: int
    total: timedelta
    is_private: bool = False
    look_up: Resolve = resolve


def checked_url(url: Any, *, is_private: bool = False) -> str:
    """The address, if it is one that may be asked: https, a host and nothing that programs read differently. Raises
    ``OutgoingFault``.
    """
    if not isinstance(url, str):
        raise OutgoingFault("an address is missing")
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError as error:
        raise OutgoingFault("an address is not one") from error
    schemes = {"https", "http"} if is_private else {"https"}
    is_plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    if parts.scheme not in schemes or not parts.hostname or not has_port or not is_plain:
        raise OutgoingFault("an address is not https")
    if parts.username is not None or parts.fragment or len(parts.hostname) > HOST_LENGTH:
        raise OutgoingFault("an address holds more than an address")
    return url


async def exchange(
    method: str, url: str, headers: Mapping[str, str], content: bytes | None, bounds: Bounds
) -> tuple[int, bytes]:
    """The status and the body that answer. ``url`` was ``checked_url``'s. Raises ``OutgoingFault``."""
    headers = {
        "User-Agent": f"Lastcall/{__version__}",
        "Accept-Encoding": "identity",
        "Connection": "close",
        **headers,
    }
    try:
        async with asyncio.timeout(bounds.total.total_seconds()):
            return await _exchange(method, url, headers, content, bounds)
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise OutgoingFault("no whole answer in time") from error
    except AddressRefused as error:
        raise OutgoingFault("its address is not on the public internet") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
        raise OutgoingFault(f"no connection ({type(error).__name__})") from error


async def _exchange(
    method: str, url: str, headers: Mapping[str, str], content: bytes | None, bounds: Bounds
) -> tuple[int, bytes]:
    named = httpx2.URL(url)
    host = named.raw_host.decode("ascii")
    port = named.port or (443 if named.scheme == "https" else 80)
    addresses = await allowed_addresses(host, port, bounds.look_up, private=bounds.is_private)
    # The connection goes to an address that was judged; the name goes into the certificate's check and into
    # the Host header alone.
    headers = {"Host": named.netloc.decode("ascii"), **headers}
    for address in addresses[:ADDRESSES_TRIED]:
        target = named.copy_with(host=address)
        extensions = {"sni_hostname": host}
        request = httpx2.Request(method, target, headers=headers, content=content, extensions=extensions)
        with contextlib.suppress(httpx2.ConnectError):
            return await _exchange_once(request, bounds.cap)
    raise OutgoingFault("no connection")


async def _exchange_once(request: httpx2.Request, cap: int) -> tuple[int, bytes]:
    limits = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
    transport = httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False, limits=limits)
    try:
        response = await transport.handle_async_request(request)
        try:
            return response.status_code, await _read(response, cap)
        finally:
            await response.aclose()
    finally:
        await transport.aclose()


@cache
def _tls() -> ssl.SSLContext:
    """Reading the certificates takes a tenth of a second, once."""
    return httpx2.create_ssl_context(trust_env=False)


async def _read(response: httpx2.Response, cap: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > cap:
            raise OutgoingFault("the answer is longer than any expected one")
    return bytes(body)
