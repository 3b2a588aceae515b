"""A whole house of real processes that a test may kill: PostgreSQL with fsync, server, collector, simulated VRChat.

All run on one clock that the test moves. Nothing is faked but VRChat, whose ledger is the judge.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from lastcall.clubs.service import add_club
from lastcall.connections.connect import connect_club
from lastcall.connections.states import Feature
from lastcall.connections.switches import set_account_limits, set_connection_limit, set_fleet_limit
from lastcall.db.connect import connect
from lastcall.db.database import Database
from lastcall.db.embedded import EmbeddedServer
from lastcall.db.ids import encode_id
from lastcall.db.migrations import migrate
from lastcall.deadlines.wake import WakeChannel
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.enqueue import enqueue
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.schema import SCHEMA
from lastcall.testing.barriers import Barriers
from lastcall.testing.connecting import activate
from lastcall.testing.fleet import ready_account
from lastcall.testing.nursery import Child, Nursery
from lastcall.testing.shared_clock import SharedTime
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, RemoteSimulator

SOURCES = Path(__file__).parents[2] / "src"
MANY = 600
"""Requests a minute: the allowance is not what these tests are about."""

RATE = 2.0
"""How fast the clock of all processes runs: backoffs pass sooner, and a restart still fits into any window."""

WITHIN = 60.0
"""Real seconds in which a row has to come to its end."""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@dataclass(frozen=True)
class Row:
    """An operation as it stands."""

    state: str
    code: str | None
    submitted: bool


class House:
    """Start it, break it, look at its rows and at the ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.barriers = Barriers(folder / "barriers")
        self.simulator: RemoteSimulator
        self.database: Database
        self._cluster = EmbeddedServer(folder / "cluster")
        self._processes: dict[str, Child] = {}
        self._nurseries: list[Nursery] = []
        self._environment: dict[str, str] = {}
        self._targets = 0

    # --------------------------------------------------------------------------------------- up and down

    async def set_up(self) -> None:
        await self._cluster.__aenter__()
        url = self._cluster.url
        await migrate(url, SCHEMA)
        self.time = SharedTime(self.folder / "clock", url)
        await self.time.install()
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LASTCALL_")},
            "PYTHONPATH": str(SOURCES),
            "DATABASE_URL": url,
            "LASTCALL_HOME": str(self.folder / "home"),
            "LASTCALL_PORT": str(free_port()),
            "LASTCALL_SIMULATOR_PORT": str(free_port()),
            "LASTCALL_WAKE_CHANNEL": "true",
        }
        self._environment["LASTCALL_SERVER_URL"] = f"http://127.0.0.1:{self._environment['LASTCALL_PORT']}"
        self._environment["LASTCALL_VRCHAT_URL"] = (
            f"http://127.0.0.1:{self._environment['LASTCALL_SIMULATOR_PORT']}/api/1"
        )
        self.simulator = RemoteSimulator(self._environment["LASTCALL_VRCHAT_URL"])
        self._nurseries.append(self._nursery())
        await self.start("simulator")
        await self._open()
        await self._seed()
        self._nurseries.append(self._nursery())
        await self.time.run_at(RATE)
        await self.start("server")
        await self.start("collector")

    async def tear_down(self) -> None:
        for nursery in self._nurseries:
            nursery.close()
        await self._wake.stop()
        await self.database.close()
        await self._cluster.__aexit__(None, None, None)
        self.time.clock.close()

    async def _open(self) -> None:
        self.database = await Database.open(self._cluster.url, pool_size=4)
        self._wake = WakeChannel(self.database)
        await self._wake.start()
        await eventually(lambda: self._wake.is_up)

    async def _seed(self) -> None:
        self.seed = await self.simulator.seed()
        owner_id = await add_person(self.database, "owner@club.example", "Owner", operator=True)
        self.owner = Actor(owner_id, "Owner", is_operator=True)
        self.club_id = await add_club(self.database, None, "The Club", "the-club", "UTC", owner_id)
        key = await ready_account(self.database, "bot", self.seed.bot_id)
        self.connection_id = await connect_club(
            self.database,
            None,
            self.club_id,
            group_id=self.seed.group_id,
            group_name="The Club",
            account_id=key.account_id,
            features=[Feature.MEMBERSHIP_MANAGEMENT],
        )
        await activate(self.database, self.club_id, self.connection_id)
        await set_fleet_limit(self.database, None, MANY)
        await set_account_limits(self.database, None, key.account_id, requests_per_minute=MANY)
        await set_connection_limit(self.database, self.owner, self.club_id, self.connection_id, MANY)
        self._environment |= {
            "LASTCALL_ACCOUNT": encode_id(key.account_id),
            "LASTCALL_WORKER_KEY": key.key,
            "LASTCALL_VRCHAT_CONTACT": "ops@club.example",
            "LASTCALL_VRCHAT_USERNAME": BOT_USERNAME,
            "LASTCALL_VRCHAT_PASSWORD": BOT_PASSWORD,
            "LASTCALL_VRCHAT_TOTP_SECRET": BOT_TOTP_SECRET,
        }

    # ----------------------------------------------------------------------------------------- processes

    def _nursery(self) -> Nursery:
        """Where the processes come from that have the environment as it is now."""
        return Nursery(self._environment, self.folder, self.folder / "clock", self.barriers.folder)

    async def start(self, name: str) -> None:
        """Start the real entry point of this role."""
        log = self.folder / f"{name}.log"
        log.touch()
        self._processes[name] = self._nurseries[-1].start(name, log)
        if name != "collector":
            port = self._environment["LASTCALL_PORT" if name == "server" else "LASTCALL_SIMULATOR_PORT"]
            await eventually(lambda: self._answers(name, int(port)), within=WITHIN, message=self.log(name))

    def _answers(self, name: str, port: int) -> bool:
        if not self._processes[name].is_running():
            raise AssertionError(f"the {name} ended: {self.log(name)}")
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def kill(self, name: str) -> None:
        """SIGKILL, and wait for its end."""
        self._processes.pop(name).kill()

    def pause(self, name: str) -> None:
        """SIGSTOP."""
        self._processes[name].send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """SIGCONT."""
        self._processes[name].send_signal(signal.SIGCONT)

    async def kill_postgres(self) -> None:
        """SIGKILL the database server, and start it again on what was durable.

        The clock stands still meanwhile: how long the machine takes for it is no part of any reservation's minute.
        """
        await self.time.run_at(0.0)
        await self._wake.stop()
        await self.database.close()
        os.kill(self._cluster.pid, signal.SIGKILL)
        await self._cluster.__aexit__(None, None, None)
        self._cluster = EmbeddedServer(self.folder / "cluster")
        await self._cluster.__aenter__()
        await self._open()
        await self.time.run_at(RATE)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]

    # ---------------------------------------------------------------------------------------------- work

    async def enqueue(self, count: int = 1) -> list[UUID]:
        """Queue role assignments for members that were not touched yet."""
        members, roles = self.seed.members, self.seed.role_ids
        payloads = [
            {
                "kind": "assign_role",
                "targetUserId": members[number % len(members)],
                "roleId": roles[number // len(members)],
            }
            for number in range(self._targets, self._targets + count)
        ]
        self._targets += count
        queued = await enqueue(
            self.database, self.owner, self.club_id, f"kill-test-{self._targets}", payloads, Immediate()
        )
        return list(queued.operation_ids)

    async def row(self, operation_id: UUID) -> Row:
        found = await self._fetch(
            "select state, code, submitted_at is not null as submitted from operations where id = $1",
            operation_id,
        )
        assert len(found) == 1, "no row is lost"
        return Row(found[0]["state"], found[0]["code"], found[0]["submitted"])

    async def ended(self, operation_id: UUID) -> Row:
        """The row once it is at its end."""

        async def look() -> Row | None:
            row = await self.row(operation_id)
            return row if row.state not in ("pending", "claimed", "submitted") else None

        try:
            found: Row = await eventually(look, within=WITHIN)
        except AssertionError as error:
            row = await self.row(operation_id)
            raise AssertionError(f"{row}\n{self.log('collector')}\n{self.log('server')}") from error
        return found

    async def in_state(self, operation_id: UUID, state: str) -> None:
        async def look() -> bool:
            return (await self.row(operation_id)).state == state

        await eventually(look, within=WITHIN, message=f"never {state}")

    async def sent(self, operation_id: UUID) -> int:
        """How often the ledger holds this operation's write."""
        found = await self._fetch(
            "select payload ->> 'targetUserId' as target, payload ->> 'roleId' as role from operations where id = $1",
            operation_id,
        )
        path = f"/members/{found[0]['target']}/roles/{found[0]['role']}"
        return sum(1 for entry in await self.simulator.ledger() if entry.path.endswith(path))

    async def late_results(self, operation_id: UUID) -> list[str]:
        found = await self._fetch("select outcome from late_results where operation_id = $1", operation_id)
        return [row["outcome"] for row in found]

    async def has_late_results(self, operation_id: UUID, outcomes: list[str]) -> None:
        """What was reported too late is laid beside the row."""

        async def look() -> bool:
            return await self.late_results(operation_id) == outcomes

        await eventually(look, within=WITHIN, message=f"not {outcomes}: {self.log('collector')}")

    async def lock_row(self, operation_id: UUID) -> asyncpg.Connection[Any]:
        """Hold the operation's row as another transaction would; close the connection to let go."""
        connection: asyncpg.Connection[Any] = await connect(self._cluster.url)
        await connection.execute("begin")
        await connection.execute("select from operations where id = $1 for update", operation_id)
        return connection

    async def waits_for_lock(self) -> None:
        """A backend of the server waits for a lock."""

        async def look() -> bool:
            found = await self._fetch(
                "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%operation%'"
            )
            return bool(found)

        await eventually(look, within=WITHIN, message="nobody waits for the lock")

    async def advance(self, seconds: float) -> None:
        await self.time.advance(timedelta(seconds=seconds))

    async def _fetch(self, statement: str, *arguments: object) -> Sequence[Any]:
        connection = await connect(self._cluster.url)
        try:
            rows: Sequence[Any] = await connection.fetch(statement, *arguments)
        finally:
            await connection.close()
        return rows

    async def settle(self) -> None:
        """Whatever a test left behind: every process runs, nothing is armed, no row is open."""
        for path in self.barriers.folder.glob("*.armed"):
            path.unlink()
        await self.simulator.disarm()
        for name in [path.stem for path in self.barriers.folder.glob("*.reached")]:
            self.barriers.release(name)
        for name in ("server", "collector"):
            if name not in self._processes or not self._processes[name].is_running():
                await self.start(name)
            self.resume(name)

        async def look() -> bool:
            return not await self._fetch(
                "select 1 from operations where state in ('pending', 'claimed', 'submitted')"
            )

        await eventually(look, within=WITHIN, message="a row of the test before is open")

    async def start_anew(self) -> None:
        """After a failure nobody knows what the processes hold on to: others take their place, on the clock's usual
        rate."""
        for name in ("server", "collector"):
            if name in self._processes:
                self.kill(name)
        await self.time.run_at(RATE)
