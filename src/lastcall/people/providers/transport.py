"""The one way to a provider: a fresh connection, one total time, no redirect, no proxy from the environment, an
answer of bounded length, and only to addresses that may be asked (``addresses``).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
import msgspec

from lastcall import __version__
from lastcall.people.providers.addresses import AddressRefused, Resolve, allowed_addresses, resolve

BODY_CAP = 256 * 1024
"""Bytes of an answer at most; key sets and discovery documents have a few thousand."""
TOTAL_TIME = timedelta(seconds=10)
"""From the look-up of the name to the last byte: somebody waits in front of a browser."""
ADDRESSES_TRIED = 3
"""A name may have an address that this host cannot reach (IPv6 without a route). Nothing was sent then."""
HOST_LENGTH = 253


class ProviderFault(Exception):
    """The provider cannot be asked or its answer cannot be used. ``reason`` is for the log and never holds what
    was sent.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ProviderClient:
    """Asks one provider. ``private`` lets addresses of one's own network and plain http through."""

    def __init__(self, *, private: bool, look_up: Resolve = resolve, total: timedelta = TOTAL_TIME) -> None:
        self._private = private
        self._look_up = look_up
        self._total = total.total_seconds()

    def checked(self, url: Any) -> str:
        """An address from a discovery document, if it is one that may be asked. Raises ``ProviderFault``."""
        if not isinstance(url, str):
            raise ProviderFault("an address is missing")
        try:
            parts = urlsplit(url)
            has_port = parts.port is None or parts.port > 0
        except ValueError as error:
            raise ProviderFault("an address is not one") from error
        schemes = {"https", "http"} if self._private else {"https"}
        is_plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
        if parts.scheme not in schemes or not parts.hostname or not has_port or not is_plain:
            raise ProviderFault("an address is not https")
        if parts.username is not None or parts.fragment or len(parts.hostname) > HOST_LENGTH:
            raise ProviderFault("an address holds more than an address")
        return url

    async def get(self, url: str, authorization: str | None = None) -> dict[str, Any]:
        """The JSON object at ``url``. Raises ``ProviderFault`` for anything else."""
        return await self._ask("GET", url, authorization, None)

    async def post(
        self, url: str, fields: Mapping[str, str], authorization: str | None = None
    ) -> dict[str, Any]:
        """The JSON object that answers a form. Raises ``ProviderFault`` for anything else."""
        return await self._ask("POST", url, authorization, urlencode(fields).encode())

    async def _ask(
        self, method: str, url: str, authorization: str | None, form: bytes | None
    ) -> dict[str, Any]:
        headers = {
            "User-Agent": f"Lastcall/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Connection": "close",
        }
        if authorization is not None:
            headers["Authorization"] = authorization
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            async with asyncio.timeout(self._total):
                status, body = await self._exchange(method, self.checked(url), headers, form)
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise ProviderFault("no whole answer in time") from error
        except AddressRefused as error:
            raise ProviderFault("its address is not on the public internet") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            raise ProviderFault(f"no connection ({type(error).__name__})") from error
        if status != 200:
            raise ProviderFault(f"status {status}")
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProviderFault("the answer is no JSON object") from error

    async def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], form: bytes | None
    ) -> tuple[int, bytes]:
        named = httpx2.URL(url)
        host = named.raw_host.decode("ascii")
        port = named.port or (443 if named.scheme == "https" else 80)
        addresses = await allowed_addresses(host, port, self._look_up, private=self._private)
        # The connection goes to an address that was judged; the name goes into the certificate's check and into
        # the Host header alone.
        headers = {"Host": named.netloc.decode("ascii"), **headers}
        for address in addresses[:ADDRESSES_TRIED]:
            target = named.copy_with(host=address)
            extensions = {"sni_hostname": host}
            request = httpx2.Request(method, target, headers=headers, content=form, extensions=extensions)
            with contextlib.suppress(httpx2.ConnectError):
                return await self._exchange_once(request)
        raise ProviderFault("no connection")

    async def _exchange_once(self, request: httpx2.Request) -> tuple[int, bytes]:
        limits = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
        transport = httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False, limits=limits)
        try:
            response = await transport.handle_async_request(request)
            try:
                return response.status_code, await _read(response)
            finally:
                await response.aclose()
        finally:
            await transport.aclose()


@cache
def _tls() -> ssl.SSLContext:
    """Reading the certificates takes a tenth of a second, once."""
    return httpx2.create_ssl_context(trust_env=False)


async def _read(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > BODY_CAP:
            raise ProviderFault("the answer is longer than any expected one")
    return bytes(body)
