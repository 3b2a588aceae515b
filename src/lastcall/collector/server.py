"""The collector's side of the worker API: one call at a time, each with one total timeout."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TypeVar

import msgspec

from lastcall import __version__
from lastcall.errors import LastcallError
from lastcall.protocol.calls import CALLS
from lastcall.protocol.constants import BODY_BYTES_MOST, CALL_TIMEOUT, PROTOCOL_VERSION, WAIT_LIFE
from lastcall.protocol.messages import Call, Message, Problem
from lastcall.wire import AnswerTooLong, OnSent, WireFault, Wires

Answered = TypeVar("Answered", bound=Message)

KEPT = (11, 1.0)
"""How many connections wait for the next call, a pass's and the long poll's each, and for how many seconds. The server
keeps an idle one for five, proxies for longer: a call hardly ever meets one that is being closed."""

ALONE = frozenset({"authorize", "complete"})
"""Calls that go out on a connection of their own. One that was kept and that the server closed meanwhile would look
like an answer that was lost, and a lost authorization costs an operation its outcome (WRK-14)."""


class Unreachable(LastcallError):
    """No answer, or none that means anything: the call may or may not have been carried out."""

    status = 503

    def __init__(self, call: str, why: str) -> None:
        super().__init__(
            "server_unreachable",
            f"The server did not answer {call}: {why}.",
            advice="Check the server's address and that it is running; the collector tries again by itself.",
        )


class Refused(LastcallError):
    """The server's definite no. ``status``: 401 key or identity, 409 stale, 422 malformed, 423 disabled."""

    def __init__(self, call: str, problem: Problem) -> None:
        super().__init__(
            problem.code or "refused",
            problem.detail or problem.title or f"The server refused {call}.",
            advice=problem.advice,
            field=problem.field,
        )
        self.status = problem.status


class Server:
    """Calls of one account. None is ever repeated here: a kept connection that is lost under a call is
    ``Unreachable`` as a new one is. Proxies of the environment are not used.
    """

    def __init__(self, base_url: str, worker_key: str, account_id: str) -> None:
        self._wires = Wires(base_url, keep=KEPT)
        self._headers = [
            ("User-Agent", f"Lastcall/{__version__}"),
            ("Accept-Encoding", "identity"),
            ("Authorization", f"Bearer {worker_key}"),
            ("Lastcall-Account", account_id),
            ("Lastcall-Protocol", str(PROTOCOL_VERSION)),
            ("Content-Type", "application/json"),
        ]

    async def call(
        self,
        sent: Call,
        answered: type[Answered],
        *,
        on_sent: OnSent | None = None,
    ) -> Answered:
        """Send ``sent`` and read its answer. Raises ``Refused`` or ``Unreachable``."""
        name = _NAMES[type(sent)]
        limit = CALL_TIMEOUT + (WAIT_LIFE if name == "wait" else timedelta())
        try:
            async with asyncio.timeout(limit.total_seconds()):
                reply = await self._wires.exchange(
                    "POST",
                    f"/worker/v1/{name}",
                    self._headers,
                    msgspec.json.encode(sent),
                    BODY_BYTES_MOST,
                    is_first=name in ALONE,
                    on_sent=on_sent,
                )
        except TimeoutError as error:
            raise Unreachable(name, "it took too long") from error
        except WireFault as error:
            raise Unreachable(name, str(error)) from error
        except AnswerTooLong as error:
            raise Unreachable(name, "its answer is too long") from error
        status = reply.status
        if status == 200:
            try:
                return msgspec.json.decode(reply.body, type=answered)
            except msgspec.MsgspecError as error:
                raise Unreachable(name, "its answer is not one of this protocol") from error
        try:
            problem = msgspec.json.decode(reply.body, type=Problem)
        except msgspec.MsgspecError as error:
            raise Unreachable(name, f"something answered with status {status}") from error
        if problem.status != status or not 400 <= status < 500:
            raise Unreachable(name, problem.detail or f"it answered with status {status}")
        raise Refused(name, problem)

    async def close(self) -> None:
        """End calls that are under way, the long poll for one."""
        self._wires.close()


_NAMES = {sent: name for name, (sent, _answered) in CALLS.items()}
