"""The collector's side of the worker API: one call at a time, each with one total timeout."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, TypeVar

import httpx2
import msgspec

from lastcall.errors import LastcallError
from lastcall.protocol.calls import CALLS
from lastcall.protocol.constants import BODY_BYTES_MOST, CALL_TIMEOUT, PROTOCOL_VERSION, WAIT_LIFE
from lastcall.protocol.messages import Call, Message, Problem

Answered = TypeVar("Answered", bound=Message)


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
    """Calls of one account. Every call goes out on a connection of its own and is never repeated here.

    A kept connection that the server closed meanwhile would look like an answer that was lost, and a lost
    authorization costs an operation its outcome (WRK-14). Proxies of the environment are not used.
    """

    def __init__(self, base_url: str, worker_key: str, account_id: str) -> None:
        self._client = httpx2.AsyncClient(
            base_url=base_url.rstrip("/"),
            headers={
                "Authorization": f"Bearer {worker_key}",
                "Lastcall-Account": account_id,
                "Lastcall-Protocol": str(PROTOCOL_VERSION),
                "Content-Type": "application/json",
            },
            trust_env=False,
            follow_redirects=False,
            timeout=None,
            limits=httpx2.Limits(max_keepalive_connections=0),
        )

    async def call(
        self,
        sent: Call,
        answered: type[Answered],
        *,
        extensions: dict[str, Any] | None = None,
    ) -> Answered:
        """Send ``sent`` and read its answer. Raises ``Refused`` or ``Unreachable``."""
        name = _NAMES[type(sent)]
        limit = CALL_TIMEOUT + (WAIT_LIFE if name == "wait" else timedelta())
        try:
            async with asyncio.timeout(limit.total_seconds()):
                status, body = await self._exchange(name, sent, extensions)
        except TimeoutError as error:
            raise Unreachable(name, "it took too long") from error
        except httpx2.TransportError as error:
            raise Unreachable(name, str(error) or type(error).__name__) from error
        if status == 200:
            try:
                return msgspec.json.decode(body, type=answered)
            except msgspec.MsgspecError as error:
                raise Unreachable(name, "its answer is not one of this protocol") from error
        try:
            problem = msgspec.json.decode(body, type=Problem)
        except msgspec.MsgspecError as error:
            raise Unreachable(name, f"something answered with status {status}") from error
        if problem.status != status or not 400 <= status < 500:
            raise Unreachable(name, problem.detail or f"it answered with status {status}")
        raise Refused(name, problem)

    async def _exchange(self, name: str, sent: Call, extensions: dict[str, Any] | None) -> tuple[int, bytes]:
        request = self._client.build_request(
            "POST", f"/worker/v1/{name}", content=msgspec.json.encode(sent), extensions=extensions
        )
        response = await self._client.send(request, stream=True)
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > BODY_BYTES_MOST:
                    raise Unreachable(name, "its answer is too long")
        finally:
            await response.aclose()
        return response.status_code, bytes(body)

    async def close(self) -> None:
        """End calls that are under way, the long poll for one."""
        await self._client.aclose()


_NAMES = {sent: name for name, (sent, _answered) in CALLS.items()}
