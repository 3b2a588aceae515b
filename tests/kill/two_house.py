"""Two collector processes on one account that serves several clubs: real processes on one clock, and witnesses in the
database that write down every grant and every end of an operation."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from lastcall.clubs.service import add_club
from lastcall.connections.connect import connect_club
from lastcall.connections.states import Feature
from lastcall.connections.switches import set_account_limits, set_connection_limit, set_fleet_limit
from lastcall.db.database import Database
from lastcall.db.ids import decode_id, encode_id
from lastcall.deadlines.wake import WakeChannel
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.enqueue import enqueue
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.reads.asking import request_read
from lastcall.testing.barriers import Barriers
from lastcall.testing.connecting import activate
from lastcall.testing.database import TestServer
from lastcall.testing.departures import Departure, departures
from lastcall.testing.fleet import ready_account
from lastcall.testing.nursery import Child, Nursery
from lastcall.testing.shared_clock import SharedTime
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Simulator
from lastcall.vrchat.simulator.seed import Seed, seed_club

SOURCES = Path(__file__).parents[2] / "src"
RATE = 20.0
"""How fast the clock of all processes runs."""

CLUBS = 4
FLEET, ACCOUNT, CONNECTION = 26, 24, 8
"""Requests a minute: the account's bind the two together, and a club's the club."""

WITHIN = 30.0
"""Real seconds in which something that is waited for has to happen."""

WITNESSES = """
create table lastcall_testing.grants (at timestamptz, scope text, window_start timestamptz, amount integer);
create table lastcall_testing.ends (operation_id uuid, state text);
alter function allowance_charge(text, integer, timestamptz) rename to allowance_charge_itself;
create function allowance_charge(p_scope text, p_amount integer, p_now timestamptz) returns void
language plpgsql as $$
begin
    -- The grant is of the moment it was judged at; how long its statement takes after that is no part of it.
    perform set_config('lastcall_testing.judged_at', p_now::text, true);
    perform allowance_charge_itself(p_scope, p_amount, p_now);
end
$$;
create function lastcall_testing.see_grant() returns trigger language plpgsql as $$
declare
    v_before constant integer := case when new.window_start = old.window_start then old.granted else 0 end;
begin
    if (new.window_start, new.granted) is distinct from (old.window_start, old.granted) then
        insert into lastcall_testing.grants
        values (current_setting('lastcall_testing.judged_at')::timestamptz, new.scope, new.window_start,
                new.granted - v_before);
    end if;
    return null;
end
$$;
create function lastcall_testing.see_end() returns trigger language plpgsql as $$
begin
    insert into lastcall_testing.ends values (new.id, new.state);
    return null;
end
$$;
create trigger see_grant after update on allowances for each row execute function lastcall_testing.see_grant();
create trigger see_end after update on operations for each row
    when (new.state <> old.state and new.state not in ('pending', 'claimed', 'submitted'))
    execute function lastcall_testing.see_end();
"""


@dataclass(frozen=True)
class Club:
    club_id: UUID
    connection_id: UUID
    seed: Seed
    targets: count[int] = field(default_factory=count)


class TwoHouse:
    """Server and collectors as processes; the simulated VRChat in this one. ``a`` and ``b`` are the collectors' names,
    each with a folder of its own; every start of one has a User-Agent of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.barriers = Barriers(folder / "barriers")
        self.clubs: list[Club] = []
        self.operations: list[UUID] = []
        self.key = ""
        self._processes: dict[str, Child] = {}
        self._starts = count(1)
        self._requests = count(1)

    @contextlib.asynccontextmanager
    async def standing(self) -> AsyncIterator[TwoHouse]:
        """Everything but the collectors runs; nothing is queued."""
        self.time = SharedTime(self.folder / "clock", self.url)
        await self.time.install()
        self.database = await Database.open(self.url, pool_size=4)
        self._wake = WakeChannel(self.database)  # what is queued here, the server has to hear of
        await self.database.pool.execute(WITNESSES)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LASTCALL_")},
            "PYTHONPATH": str(SOURCES),
            "DATABASE_URL": self.url,
            "LASTCALL_HOME": str(self.folder / "home"),
            "LASTCALL_PORT": str(port),
            "LASTCALL_SERVER_URL": f"http://127.0.0.1:{port}",
            "LASTCALL_WAKE_CHANNEL": "true",
        }
        async with Simulator(clock=self.time.clock) as self.simulator:
            self.nursery = Nursery(environment, self.folder, self.folder / "clock", self.barriers.folder)
            try:
                await self._seed()
                await self._wake.start()
                await eventually(lambda: self._wake.is_up)
                self._processes["server"] = self.nursery.start("server", self._log("server"))
                await eventually(lambda: _answers(port), within=WITHIN, message=self.log("server"))
                await self.time.run_at(RATE)
                yield self
            finally:
                self.nursery.close()
                await self._wake.stop()
        await self.database.close()
        self.time.clock.close()

    async def _seed(self) -> None:
        db, simulator = self.database, self.simulator
        owner_id = await add_person(db, "owner@club.example", "Owner", operator=True)
        self.owner = Actor(owner_id, "Owner", is_operator=True, is_recent=True)
        account = await ready_account(db, "bot", simulator.seed.bot_id)
        self.account_id, self.key = account.account_id, account.key
        await set_fleet_limit(db, None, FLEET)
        await set_account_limits(db, None, self.account_id, requests_per_minute=ACCOUNT)
        seeds = [simulator.seed]
        while len(seeds) < CLUBS:
            seeds.append(seed_club(simulator.world, self.time.clock.wall(), name=f"Club {len(seeds) + 1}"))
        for number, seed in enumerate(seeds, 1):
            slug = f"club-{number}"
            club_id = await add_club(db, None, slug, slug, "UTC", owner_id)
            connection_id = await connect_club(
                db, None, club_id, group_id=seed.group_id, group_name=slug, account_id=self.account_id,
                features=list(Feature),
            )  # fmt: skip
            await activate(db, club_id, connection_id)
            await set_connection_limit(db, self.owner, club_id, connection_id, CONNECTION)
            self.clubs.append(Club(club_id, connection_id, seed))

    # --- processes

    def start(self, name: str, key: str | None = None) -> None:
        """Start the collector of this name, with the account's key or another."""
        own = {
            "LASTCALL_HOME": str(self.folder / name),
            "LASTCALL_VRCHAT_URL": self.simulator.url,
            "LASTCALL_ACCOUNT": encode_id(self.account_id),
            "LASTCALL_WORKER_KEY": key or self.key,
            "LASTCALL_VRCHAT_CONTACT": f"{name}-{next(self._starts)}@club.example",
            "LASTCALL_VRCHAT_USERNAME": BOT_USERNAME,
            "LASTCALL_VRCHAT_PASSWORD": BOT_PASSWORD,
            "LASTCALL_VRCHAT_TOTP_SECRET": BOT_TOTP_SECRET,
        }
        self._processes[name] = self.nursery.start("collector", self._log(name), own)

    def kill(self, name: str) -> None:
        """SIGKILL."""
        self._processes[name].kill()

    def pause(self, name: str) -> None:
        """SIGSTOP."""
        self._processes[name].send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """SIGCONT."""
        self._processes[name].send_signal(signal.SIGCONT)

    def is_running(self, name: str) -> bool:
        return self._processes[name].is_running()

    def lose_journal(self, name: str) -> None:
        """The disk of this collector forgets what was sent, and nothing else."""
        journal = self.folder / name / "collector" / "journal"
        assert journal.is_file()
        journal.unlink()

    async def caught_at(self, barrier: str) -> tuple[str, UUID]:
        """The collector that comes to this barrier first and stands there, and the operation in its hand."""
        self.barriers.arm(barrier)
        pid = await self.barriers.reached(barrier, WITHIN)
        name = next(name for name, process in self._processes.items() if process.pid == pid)
        return name, decode_id(self.barriers.about(barrier))

    def log(self, name: str) -> str:
        return self._log(name).read_text(errors="replace")[-2000:]

    def _log(self, name: str) -> Path:
        log = self.folder / f"{name}.log"
        log.touch()
        return log

    # --- work

    async def queue(self, each: int) -> None:
        """So many role assignments in each club, and what ``ask`` asks for."""
        for club in self.clubs:
            payloads = []
            for number in (next(club.targets) for _ in range(each)):
                role, member = divmod(number, len(club.seed.members))
                payloads.append(
                    {
                        "kind": "assign_role",
                        "targetUserId": club.seed.members[member],
                        "roleId": club.seed.role_ids[role],
                    }
                )
            queued = await enqueue(
                self.database,
                self.owner,
                club.club_id,
                f"request-{next(self._requests)}",
                payloads,
                Immediate(),
            )
            self.operations += queued.operation_ids
        await self.ask()

    async def ask(self) -> list[UUID]:
        """A list of each club for somebody at a screen."""
        asked = [
            await request_read(self.database, self.owner, club.club_id, "members", {"n": 25})
            for club in self.clubs
        ]
        return [read.id for read in asked]

    async def pass_time(self, seconds: float) -> None:
        """Let so much of the clock's time go by."""
        await self.time.clock.sleep(timedelta(seconds=seconds))

    async def until_all_ended(self) -> None:
        async def look() -> bool:
            left = await self.database.pool.fetchval(
                "select count(*) from operations where state in ('pending', 'claimed', 'submitted')"
            )
            return bool(left == 0)

        await eventually(look, within=WITHIN, message=f"{self.log('a')}\n{self.log('b')}")

    async def until_all_read(self, reads: Sequence[UUID]) -> None:
        async def look() -> bool:
            states = await self.fetch("select state from provider_reads where id = any($1)", reads)
            return [row["state"] for row in states] == ["succeeded"] * len(reads)

        await eventually(look, within=WITHIN, message=f"{self.log('a')}\n{self.log('b')}")

    # --- what the witnesses say

    async def fetch(self, statement: str, *arguments: object) -> Sequence[Any]:
        return await self.database.pool.fetch(statement, *arguments)

    def limit_of(self, scope: str) -> int:
        return {"fleet": FLEET, "account": ACCOUNT, "connection": CONNECTION}[scope.partition(":")[0]]

    def departures(self) -> list[Departure]:
        """Every request to VRChat that a collector sent."""
        return departures(self.barriers.folder)

    async def row(self, operation_id: UUID) -> tuple[str, str | None]:
        (row,) = await self.fetch("select state, code from operations where id = $1", operation_id)
        return row["state"], row["code"]

    async def sent(self) -> Counter[UUID]:
        """How often the ledger holds each operation's write."""
        rows = await self.fetch(
            "select id, payload ->> 'targetUserId' as target, payload ->> 'roleId' as role from operations"
        )
        of_target = {(row["target"], row["role"]): row["id"] for row in rows}
        sent: Counter[UUID] = Counter()
        for entry in self.simulator.ledger.entries:
            member, _, role = entry.path.partition("/members/")[2].partition("/roles/")
            sent[of_target[member, role]] += 1
        return sent


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.asynccontextmanager
async def two_house(folder: Path, server: TestServer) -> AsyncIterator[TwoHouse]:
    async with TwoHouse(folder, await server.create()).standing() as house:
        yield house
    await asyncio.to_thread(shutil.rmtree, folder / "home", ignore_errors=True)
