"""A simulator in another process, as its tests and the demo see it: the same acts as on ``Simulator``, by
HTTP."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec

from lastcall.vrchat.simulator.control import CONTROL, LONGEST_WAIT
from lastcall.vrchat.simulator.faults import Fault
from lastcall.vrchat.simulator.ledger import Arrival, Entry
from lastcall.vrchat.simulator.seed import Seed


class RemoteSimulator:
    """``url`` is what the process printed, base path or not. Each call opens a connection of its own."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._control = f"{parts.scheme}://{parts.netloc}{CONTROL}"

    async def arm(self, fault: Fault, *, method: str = "*", path: str = "*", times: int = 1) -> None:
        if (method, path, times) != ("*", "*", 1):
            fault = msgspec.structs.replace(fault, method=method, path=path, times=times)
        await self._call("POST", "faults", msgspec.json.encode(fault))

    async def disarm(self) -> None:
        await self._call("DELETE", "faults")

    async def reached(self, barrier: str, timeout: float = 10.0) -> None:
        """Return once a request stands at the barrier; ``TimeoutError`` after ``timeout`` seconds."""
        answer = await self._call("GET", f"barriers/{barrier}?wait={round(timeout)}")
        if not msgspec.json.decode(answer)["reached"]:
            raise TimeoutError(f"no request reached {barrier}")

    async def release(self, barrier: str) -> None:
        await self._call("POST", f"barriers/{barrier}")

    async def edit(self, name: str, **arguments: str) -> None:
        """Make a change of ``edits.py`` in the seeded group."""
        await self._call("POST", "edits", msgspec.json.encode({"name": name, "arguments": arguments}))

    async def reset(self) -> None:
        await self._call("POST", "reset")

    async def ledger(self) -> list[Entry]:
        return msgspec.json.decode(await self._call("GET", "ledger"), type=list[Entry])

    async def arrivals(self) -> list[Arrival]:
        return msgspec.json.decode(await self._call("GET", "arrivals"), type=list[Arrival])

    async def seed(self) -> Seed:
        return msgspec.json.decode(await self._call("GET", "seed"), type=Seed)

    async def _call(self, method: str, path: str, content: bytes | None = None) -> bytes:
        timeout = httpx2.Timeout(LONGEST_WAIT + 10)
        async with httpx2.AsyncClient(trust_env=False, timeout=timeout) as client:
            answer: Any = await client.request(method, self._control + path, content=content)
        if answer.status_code != 200:
            raise ValueError(msgspec.json.decode(answer.content)["message"])
        body: bytes = answer.content
        return body
