"""What can be made to go wrong, and the barriers at which a request can be held."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

Reply = Literal[
    "normal",
    "drop",
    "reset",
    "noise",
    "garbage",
    "proxy_page",
    "drip",
    "status",
    "redirect",
    "refuse",
    "said",
]
Stage = Literal["arrived", "applied", "half_sent"]


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One thing to go wrong, for the next ``times`` requests that match ``method`` and ``path`` (a glob;
    ``*`` = any).

    ``delay`` seconds pass before anything happens. ``applies`` says whether the request takes effect.
    ``hold`` names a barrier where the request waits at ``stage`` until it is released. ``only_reused``
    leaves the first request of a connection alone. A ``refuse`` meets a connection as it is accepted, so
    its method and path mean nothing.
    """

    method: str = "*"
    path: str = "*"
    times: int = 1
    delay: float = 0.0
    applies: bool = True
    reply: Reply = "normal"
    status: int = 503
    retry_after: str | None = None
    location: str | None = None
    body: str = ""
    interval: float = 0.2
    hold: str | None = None
    stage: Stage = "arrived"
    only_reused: bool = False

    def meets(self, method: str, path: str, *, is_reused: bool) -> bool:
        """Whether this request is one of those meant."""
        return (
            self.reply != "refuse"
            and self.method in ("*", method)
            and fnmatchcase(path, self.path)
            and (is_reused or not self.only_reused)
        )


def slow(seconds: float) -> Fault:
    """Everything happens, ``seconds`` later."""
    return Fault(delay=seconds)


def drop(*, applied: bool) -> Fault:
    """The connection closes without a byte of answer, before the effect or after it."""
    return Fault(reply="drop", applies=applied)


def garbage(*, applied: bool) -> Fault:
    """200 with a body that means nothing."""
    return Fault(reply="garbage", applies=applied)


def noise(*, applied: bool) -> Fault:
    """Bytes that are not HTTP at all."""
    return Fault(reply="noise", applies=applied)


def proxy_page(status: int = 502, *, applied: bool) -> Fault:
    """An HTML page from something in front of VRChat."""
    return Fault(reply="proxy_page", status=status, applies=applied)


def answer(status: int, *, retry_after: str | None = None, applied: bool = False) -> Fault:
    """VRChat's own envelope with ``status`` (429, 503, 401, …) and perhaps a ``Retry-After``."""
    return Fault(reply="status", status=status, retry_after=retry_after, applies=applied)


def refuse() -> Fault:
    """The next connection is closed as it is accepted."""
    return Fault(reply="refuse", applies=False)


def drip(interval: float = 0.2) -> Fault:
    """The effect happens; the answer's body comes one byte every ``interval`` seconds."""
    return Fault(reply="drip", interval=interval)


def say(body: str, status: int = 200) -> Fault:
    """Nothing happens, and this is answered: JSON that VRChat would not have sent."""
    return Fault(reply="said", status=status, body=body, applies=False)


def redirect(status: int, location: str, *, applied: bool = False) -> Fault:
    """301, 302, 307 or 308 to ``location``."""
    return Fault(reply="redirect", status=status, location=location, applies=applied)


def reset(*, applied: bool, only_reused: bool = False) -> Fault:
    """TCP reset instead of an answer; with ``only_reused`` only on a connection that has answered before."""
    return Fault(reply="reset", applies=applied, only_reused=only_reused)


def hold(name: str, stage: Stage) -> Fault:
    """The request waits at ``stage`` until barrier ``name`` is released; then it goes on as if nothing had
    been."""
    return Fault(hold=name, stage=stage)


class Barrier:
    """A named place to wait. ``arrived`` is set once a request stands there."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.released = asyncio.Event()

    async def wait(self) -> None:
        self.arrived.set()
        await self.released.wait()


class Faults:
    """What is armed. The first armed fault that matches a request is used, once for each of its ``times``."""

    def __init__(self) -> None:
        self._armed: list[tuple[Fault, list[int]]] = []
        self.barriers: dict[str, Barrier] = {}

    def arm(self, fault: Fault, *, method: str = "*", path: str = "*", times: int = 1) -> Fault:
        """Arm ``fault``; ``method``, ``path`` and ``times`` narrow a ready-made one."""
        if (method, path, times) != ("*", "*", 1):
            fault = msgspec.structs.replace(fault, method=method, path=path, times=times)
        self._armed.append((fault, [fault.times]))
        if fault.hold is not None:
            self.barrier(fault.hold)
        return fault

    def barrier(self, name: str) -> Barrier:
        """The barrier of this name, made when it is first asked for."""
        return self.barriers.setdefault(name, Barrier())

    def take(self, method: str, path: str, *, is_reused: bool) -> Fault | None:
        """The fault for this request, used up by one."""
        return self._take(lambda fault: fault.meets(method, path, is_reused=is_reused))

    def take_refusal(self) -> bool:
        """Whether the connection being accepted is to be closed."""
        return self._take(lambda fault: fault.reply == "refuse") is not None

    def clear(self) -> None:
        """Disarm everything and let go of every request that is held."""
        self._armed.clear()
        for barrier in self.barriers.values():
            barrier.released.set()
        self.barriers.clear()

    def _take(self, is_meant: Callable[[Fault], bool]) -> Fault | None:
        for fault, left in self._armed:
            if left[0] > 0 and is_meant(fault):
                left[0] -= 1
                return fault
        return None
