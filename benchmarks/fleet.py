"""A fleet for the benchmarks: server, simulated VRChat, and one collector process that serves hundreds of connections
through several accounts, over loopback."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import asyncpg

from benchmarks.harness import database, server
from benchmarks.role import ACCOUNTS, GROUPS, PASSWORD, target, user_name
from benchmarks.world import ACCOUNT, add_clubs, add_operations, loader, row_id
from lastcall.cli.server import bind, running_server
from lastcall.clock import SYSTEM_CLOCK
from lastcall.connections.signals import work
from lastcall.connections.tables import ALLOWANCE_MOST
from lastcall.db.connect import connect
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.demo.children import Child
from lastcall.settings import Settings
from lastcall.testing.shared_clock import SharedTime
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import RemoteSimulator

CONNECTIONS = 500
FLEET_ACCOUNTS = 5
"""A hundred connections each, as many as an account takes unless an operator says more."""

ROOT = Path(__file__).resolve().parents[1]

ROLE_MODULE = "benchmarks.role"

PATIENCE = 240.0
"""Seconds for one round of all connections on a busy machine."""

_READY = f"""
update fleet_settings set requests_per_minute = {ALLOWANCE_MOST};
update accounts set requests_per_minute = {ALLOWANCE_MOST};
update connections set requests_per_minute = {ALLOWANCE_MOST};
delete from leases;
"""
"""The limits are raised so that requests flow, and nobody holds a connection yet."""

_BEHIND = """
select count(*) from connections c
where coalesce(c.last_attempt_at < $1, true)
   or exists (select from leases l where l.connection_id = c.id and l.released_at is null)
"""


@dataclass
class Fleet:
    """What runs. ``collector`` is the process that is measured."""

    db: Database
    simulator: RemoteSimulator
    collector: Child
    watcher: asyncpg.Connection[asyncpg.Record]
    """A connection of the benchmark's own, whose statements are not the server's."""
    rounds: int = 0

    def cpu(self) -> float:
        """Seconds of CPU that the collector has used, its own and the system's for it."""
        fields = Path(f"/proc/{self.collector.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """The most megabytes (10⁶ bytes) that the collector ever held in memory at a time."""
        lines = Path(f"/proc/{self.collector.pid}/status").read_text().splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024 / 1e6

    async def requests(self) -> int:
        """How many requests have reached the simulated VRChat."""
        return len(await self.simulator.arrivals())

    async def counts(self) -> int:
        """How often a group's people were counted."""
        found: int = await self.watcher.fetchval("select count(*) from telemetry_samples")
        return found

    async def look_everywhere(self) -> None:
        """Let every group be looked at now, and return when all were."""
        began = await self.watcher.fetchval("select lastcall_now()")
        await self.watcher.execute("update connections set next_look_at = $1", began)
        self._tell()
        await self._all_worked_on(began)

    async def act_everywhere(self) -> None:
        """Queue one action in every club, and return when all are done."""
        began = await self.watcher.fetchval("select lastcall_now()")
        self.rounds += 1
        async with loader(self.db) as connection:
            for club in range(1, CONNECTIONS + 1):
                await add_operations(connection, club, target(club, self.rounds), 1)
        self._tell()
        await self._all_worked_on(began)
        undone = await self.watcher.fetchval("select count(*) from operations where state <> 'succeeded'")
        if undone:
            raise RuntimeError(f"{undone} actions were not done")

    async def switch(self, features: str) -> None:
        """Give every connection these features, comma-separated."""
        await self.watcher.execute(
            "update connections set features = string_to_array($1, ','), next_look_at = null", features
        )
        self._tell()

    def _tell(self) -> None:
        self.db.bus.deliver([work(row_id(ACCOUNT, account)) for account in range(1, FLEET_ACCOUNTS + 1)])

    async def _all_worked_on(self, since: datetime) -> None:
        async def is_over() -> bool:
            return bool(await self.watcher.fetchval(_BEHIND, since) == 0)

        await eventually(is_over, within=PATIENCE, message="not every connection was worked on")


@asynccontextmanager
async def fleet(rate: float | None = None) -> AsyncIterator[Fleet]:
    """All of it, up: the collector has said hello for each account. ``rate``: on one clock for all processes and the
    database, which runs so many times as fast as the host's from then on."""
    async with server() as on, database(on) as db:
        await add_clubs(db, CONNECTIONS, FLEET_ACCOUNTS)
        await db.pool.execute(_READY)
        with tempfile.TemporaryDirectory(prefix="lastcall-bench-") as name:
            folder = Path(name)
            time = None if rate is None else SharedTime(folder / "clock", db.url)
            if time is not None:
                await time.install()
            async with _simulated(folder, time) as url, _served(db, time) as server_url:
                collector = await _collector(folder, time, _settings(folder, server_url, url))
                watcher = await connect(db.url)
                try:
                    await eventually(lambda: _all_known(watcher), within=PATIENCE, message="no hello")
                    if time is not None and rate is not None:
                        await time.run_at(rate)
                    yield Fleet(db, RemoteSimulator(url), collector, watcher)
                finally:
                    await watcher.close()
                    await collector.stop()


async def _collector(folder: Path, time: SharedTime | None, settings: dict[str, str]) -> Child:
    """The product's own, or its entry on the clock."""
    log = folder / "collector.log"
    if time is None:
        return await Child.start("collector", environment=settings, log=log)
    arguments = ("collector", str(folder / "clock"))
    return await Child.start(*arguments, environment=_importable() | settings, log=log, module=ROLE_MODULE)


@asynccontextmanager
async def _simulated(folder: Path, time: SharedTime | None) -> AsyncIterator[str]:
    settings = {"LASTCALL_SIMULATOR_PORT": "0", GROUPS: str(CONNECTIONS), ACCOUNTS: str(FLEET_ACCOUNTS)}
    child = await Child.start(
        *("simulator", *([] if time is None else [str(folder / "clock")])),
        environment=_importable() | settings,
        log=folder / "simulator.log",
        module=ROLE_MODULE,
    )
    try:
        yield await child.address()
    finally:
        await child.stop()


def _importable() -> dict[str, str]:
    """The children run in another folder."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), *sys.path)))}


@asynccontextmanager
async def _served(db: Database, time: SharedTime | None) -> AsyncIterator[str]:
    with contextlib.closing(bind("127.0.0.1", 0)) as taken:
        host, port = taken.getsockname()[:2]
        clock = SYSTEM_CLOCK if time is None else time.clock
        async with running_server(Settings(port=port), db, clock=clock, taken=taken):
            yield f"http://{host}:{port}"


def _settings(home: Path, server_url: str, vrchat_url: str) -> dict[str, str]:
    """What the collector is told, an account a table."""
    settings = {
        "LASTCALL_HOME": str(home),
        "LASTCALL_SERVER_URL": server_url,
        "LASTCALL_VRCHAT_URL": vrchat_url,
        "LASTCALL_VRCHAT_CONTACT": "bench@club.example",
    }
    for number in range(1, FLEET_ACCOUNTS + 1):
        account_id = row_id(ACCOUNT, number)
        settings |= {
            f"LASTCALL_ACCOUNT_A{number}_ID": encode_id(account_id),
            f"LASTCALL_ACCOUNT_A{number}_WORKER_KEY": str(account_id),
            f"LASTCALL_ACCOUNT_A{number}_USERNAME": user_name(number),
            f"LASTCALL_ACCOUNT_A{number}_PASSWORD": PASSWORD,
        }
    return settings


async def _all_known(watcher: asyncpg.Connection[asyncpg.Record]) -> bool:
    return bool(await watcher.fetchval("select count(*) from collectors") == FLEET_ACCOUNTS)
