"""Named places where a test stops a real process, looks around, and kills it or lets it go on.

The folder of the barriers is shared by the test and the processes. A barrier is armed by a file; whoever comes to it
first takes the file, says that it is there, and waits for another. Nothing but ``lastcall.testing.run`` looks for
such a folder, so the product has no switch for it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg

from lastcall.protocol.steps import Step
from lastcall.testing.waiting import eventually

_LOOK_AGAIN = 0.01
_FUNCTION = re.compile(r"\bfrom\s+(\w+)\s*\(", re.IGNORECASE)


class Barriers:
    """The test's side. ``name`` is a step of the collector, or ``<SQL function>.before`` or ``.after``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def arm(self, name: str) -> None:
        """Stop the next process that comes there."""
        self.clear(name)
        (self.folder / f"{name}.armed").touch()

    async def reached(self, name: str, within: float = 20.0) -> int:
        """The pid of the process that stands there."""
        there = self.folder / f"{name}.reached"
        await eventually(there.exists, within=within, message=f"nobody came to {name}")
        return int(there.read_text().split()[0])

    def about(self, name: str) -> str:
        """The id of the operation at whose step the process stands."""
        return (self.folder / f"{name}.reached").read_text().split()[1]

    def is_reached(self, name: str) -> bool:
        """Whether a process stands, or stood, there."""
        return (self.folder / f"{name}.reached").exists()

    def release(self, name: str) -> None:
        """Let the process that stands there go on."""
        (self.folder / f"{name}.released").touch()

    def clear(self, name: str) -> None:
        """Forget the barrier, whatever became of it."""
        for state in ("armed", "reached", "released"):
            (self.folder / f"{name}.{state}").unlink(missing_ok=True)


async def stand(folder: Path, name: str, about: str = "") -> None:
    """A process's side: stop here if the barrier is armed, once. ``about``: the operation in its hand."""
    armed = folder / f"{name}.armed"
    taken = folder / f"{name}.{os.getpid()}"
    try:
        armed.rename(taken)
    except FileNotFoundError:
        return
    taken.write_text(f"{os.getpid()} {about}")
    taken.rename(folder / f"{name}.reached")
    released = folder / f"{name}.released"
    while not released.exists():  # noqa: ASYNC110 - the test that releases it is another process
        await asyncio.sleep(_LOOK_AGAIN)


def observer(folder: Path) -> Callable[[Step, str], Awaitable[None]]:
    """The collector's observer that stops at its steps."""

    async def observe(step: Step, operation_id: str) -> None:
        await stand(folder, step.value, operation_id)

    return observe


def stop_around_hot_steps(folder: Path) -> None:
    """Make this process stop before each call of an SQL function, and after it before its answer is used.

    A hot step is one such call and its own transaction: after it means committed and not yet answered.
    """
    for method in ("fetch", "fetchrow", "fetchval"):
        setattr(asyncpg.Connection, method, _stopping(folder, getattr(asyncpg.Connection, method)))


def _stopping(folder: Path, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def stopping(self: Any, query: str, *arguments: Any, **options: Any) -> Any:
        found = _FUNCTION.search(query)
        if found is None:
            return await method(self, query, *arguments, **options)
        await stand(folder, f"{found[1]}.before")
        answer = await method(self, query, *arguments, **options)
        await stand(folder, f"{found[1]}.after")
        return answer

    return stopping
