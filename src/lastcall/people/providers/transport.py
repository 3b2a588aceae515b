"""The one way to a provider: JSON over the house's guarded requests (``outgoing.exchange``)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec

from lastcall.outgoing.addresses import Resolve, resolve
from lastcall.outgoing.exchange import Bounds, OutgoingFault, checked_url, exchange

BODY_CAP = 256 * 1024
"""Bytes of an answer at most; key sets and discovery documents have a few thousand."""
TOTAL_TIME = timedelta(seconds=10)
"""From the look-up of the name to the last byte: somebody waits in front of a browser."""


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
        self._bounds = Bounds(BODY_CAP, total, is_private=private, look_up=look_up)

    def checked(self, url: Any) -> str:
        """An address from a discovery document, if it is one that may be asked. Raises ``ProviderFault``."""
        try:
            return checked_url(url, is_private=self._bounds.is_private)
        except OutgoingFault as fault:
            raise ProviderFault(fault.reason) from fault

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
        headers = {"Accept": "application/json"}
        if authorization is not None:
            headers["Authorization"] = authorization
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        url = self.checked(url)
        try:
            status, body = await exchange(method, url, headers, form, self._bounds)
        except OutgoingFault as fault:
            raise ProviderFault(fault.reason) from fault
        if status != 200:
            raise ProviderFault(f"status {status}")
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProviderFault("the answer is no JSON object") from error
