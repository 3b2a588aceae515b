"""When each request to VRChat leaves its process, on the clock that the process counts by.

When a request arrives is no measure for a limit of the sender: a clock that runs twenty times as fast makes a
second of every delay of 50 ms on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from lastcall.testing.shared_clock import SharedClock
from lastcall.vrchat import transport
from lastcall.wire import Reply, Wires

_FILE = "departures"


class Departure(msgspec.Struct):
    """One request as its first byte goes out; ``agent`` is its User-Agent."""

    at: datetime
    agent: str
    path: str


def record_departures(folder: Path, clock: SharedClock) -> None:
    """From now on this process writes each of its requests to VRChat down in ``folder``."""

    class RecordedWires(Wires):
        async def exchange(
            self,
            method: str,
            target: str,
            headers: list[tuple[str, str]],
            *arguments: Any,
            may_send: Callable[[], bool] | None = None,
            **options: Any,
        ) -> Reply:
            def departs() -> bool:
                if may_send is not None and not may_send():
                    return False
                it = Departure(clock.wall(), dict(headers)["User-Agent"], target.partition("?")[0])
                with (folder / _FILE).open("ab") as file:
                    file.write(msgspec.json.encode(it) + b"\n")
                return True

            return await super().exchange(method, target, headers, *arguments, may_send=departs, **options)

    transport.Wires = RecordedWires  # type: ignore[attr-defined]


def departures(folder: Path) -> list[Departure]:
    """What all processes of ``folder`` have sent."""
    lines = (folder / _FILE).read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Departure) for line in lines]
