"""What the tests of the collector share."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from collector_bench import Bench
from scripted_server import ScriptedServer
from vertical import MANY, Vertical, seed_club

from lastcall.cli.server import bind, running_server
from lastcall.db.database import Database
from lastcall.settings import Settings
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


@pytest.fixture
async def vertical(database: Database, tmp_path: Path) -> AsyncIterator[Vertical]:
    time = SharedTime(tmp_path / "clock", database.url)
    await time.install()
    settings = Settings(home=tmp_path / "home")
    with contextlib.closing(bind("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with (
            Simulator(clock=time.clock) as simulator,
            running_server(settings, database, clock=time.clock, taken=taken),
        ):
            owner, club_id, connection_id, key = await seed_club(database, simulator, MANY)
            vertical = Vertical(
                database, simulator, time, url, owner, club_id, connection_id, key, tmp_path / "state"
            )
            vertical.start_collector()
            yield vertical
            await vertical.stop_collectors()
    time.clock.close()
