"""What the tests of the collector share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from collector_bench import Bench
from scripted_server import ScriptedServer

from lastcall.testing.shared_clock import SharedTime
from lastcall.vrchat.simulator import Simulator


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    time = SharedTime(tmp_path / "clock")
    async with Simulator(clock=time.clock) as simulator, ScriptedServer(simulator.seed.group_id) as server:
        bench = Bench(server, simulator, time, tmp_path / "state")
        bench.start()
        yield bench
        if not bench.running.done():
            await bench.end()
    time.clock.close()
