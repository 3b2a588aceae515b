"""One client's connection to the server, which is cut when the client takes its time to ask.

uvicorn waits for ever for the head of a request, so that a few thousand half-open ones would keep everybody else
out. The body has its own limit, in ``api.intake``.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_TIMEOUT = timedelta(seconds=30)
"""From the connection, or from the first byte after an answer, to the end of the next request's head."""

HEAD_LIMIT = 32 * 1024  # bytes of a request's head


class Connection(H11Protocol):
    """h11's parser, because it limits the head's size and refuses what proxies may read differently."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_a_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering:
            self._stop_waiting()
        else:
            self._wait_for_a_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _wait_for_a_request(self) -> None:
        """Begin to count, unless that has begun: a byte now and then does not buy more time."""
        if self._patience is None:
            self._patience = self.loop.call_later(HEAD_TIMEOUT.total_seconds(), self._give_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        # A pipelined request may have begun without a byte of its own.
        if not self._is_answering:
            self.transport.close()
