"""One server and one simulated VRChat on which many clubs play, each with a group, an account and a collector of its
own: whatever befalls one of them, nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from lastcall.cli.server import bind, running_server
from lastcall.clubs.service import add_club
from lastcall.collector.config import AccountConfig, CollectorConfig
from lastcall.collector.main import serve
from lastcall.collector.opening import Ask
from lastcall.collector.runner import BREATH
from lastcall.connections.accounts import NewKey
from lastcall.connections.connect import connect_club
from lastcall.connections.states import Feature
from lastcall.connections.switches import set_account_limits, set_connection_limit, set_fleet_limit
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.enqueue import enqueue
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.protocol.constants import QUIET_LOOK
from lastcall.reads.asking import request_read
from lastcall.settings import Settings
from lastcall.testing.connecting import activate
from lastcall.testing.fleet import ready_account
from lastcall.testing.shared_clock import SharedTime
from lastcall.testing.waiting import eventually
from lastcall.vrchat.session import Credentials
from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, Simulator
from lastcall.vrchat.simulator.edits import edit
from lastcall.vrchat.simulator.faults import Fault
from lastcall.vrchat.simulator.model import Group, User, made_id
from lastcall.vrchat.simulator.seed import Seed, seed_club

MANY = 600
"""Requests a minute: the allowance is not what these tests are about."""

GRANTING = (11.0, 40.0)
"""The seconds of a minute in which the allowance grants, with some left for a case."""

CALM = 0.4
"""Real seconds without a request after which a collector on a clock that stands counts as at rest."""


async def nobody_to_ask(name: str, what: str) -> str:
    raise AssertionError(f"the collector asked for {what} of {name}")


@dataclass(frozen=True)
class Seen:
    """How it all stands: state and code of the operation that met the fault, of the one of another feature behind it,
    and of the read; the connection, why it is not well, its account, its analytics, and what the ledger holds of the
    operation's write."""

    operation: str
    behind: str
    read: str
    connection: str
    account: str
    coverage: str
    writes: int


@dataclass
class Stage:
    """``numbers`` counts the clubs."""

    database: Database
    simulator: Simulator
    time: SharedTime
    server_url: str
    folder: Path
    owner: Actor
    numbers: int = 0
    places: list[Place] = field(default_factory=list)

    async def advance(self, seconds: float) -> None:
        await self.time.advance(timedelta(seconds=seconds))

    async def granting(self) -> None:
        """Move on to where in a minute requests are granted."""
        first, last = GRANTING
        second = self.time.clock.boot() % 60
        if not first <= second < last:
            await self.advance((first - second) % 60)

    async def eventually(self, predicate: Callable[[], Any], message: str = "") -> None:
        """Wait for a state. A collector that was told of work a moment too early draws ``BREATH`` before it asks again:
        it is given that, and no more."""
        for nudges in (2, 1, 0):
            try:
                await eventually(predicate, within=8.0, message=message)
            except AssertionError:
                if nudges == 0:
                    raise
                await self.advance(BREATH * 1.3)
            else:
                return

    async def place(self, *, features: tuple[Feature, ...] = tuple(Feature)) -> Place:
        """A new club, connected and active; its collector does not run yet."""
        self.numbers += 1
        number, world = self.numbers, self.simulator.world
        seed = seed_club(world, self.time.clock.wall(), members=12, name=f"Club {number}")
        bot = User(
            made_id("usr", "bot", number), f"Bot {number}", f"bot-{number}", BOT_PASSWORD, BOT_TOTP_SECRET
        )
        world.users[bot.id] = bot
        group = world.groups[seed.group_id]
        group.members[bot.id] = replace(group.members.pop(seed.bot_id), user_id=bot.id)
        world.friendships |= {frozenset((bot.id, friend)) for friend in seed.friends}
        seed = replace(seed, bot_id=bot.id)
        slug = f"club-{number}"
        club_id = await add_club(self.database, None, slug, slug, "UTC", self.owner.person_id)
        key = await ready_account(self.database, slug, bot.id)
        connection_id = await connect_club(
            self.database,
            None,
            club_id,
            group_id=seed.group_id,
            group_name=slug,
            account_id=key.account_id,
            features=list(features),
        )
        await activate(self.database, club_id, connection_id)
        await set_account_limits(self.database, None, key.account_id, requests_per_minute=MANY)
        await set_connection_limit(self.database, self.owner, club_id, connection_id, MANY)
        place = Place(self, number, seed, group, bot, club_id, connection_id, key)
        self.places.append(place)
        return place

    async def clear(self) -> None:
        """After a test: no collector runs, nothing is armed."""
        self.simulator.faults.clear()
        for place in self.places:
            place.stop.set()
        await asyncio.gather(
            *(place.running for place in self.places if place.running), return_exceptions=True
        )
        self.places.clear()


@dataclass
class Place:
    """A club on the stage. ``passes``: how many were made when it was last looked, with that of ``activate``."""

    stage: Stage
    number: int
    seed: Seed
    group: Group
    bot: User
    club_id: UUID
    connection_id: UUID
    key: NewKey
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    running: asyncio.Task[int] | None = None
    queued: int = 0
    passes: int = 1

    def start(
        self,
        ask: Ask = nobody_to_ask,
        *,
        password: str = BOT_PASSWORD,
        totp: str | None = BOT_TOTP_SECRET,
        metrics_port: int | None = None,
    ) -> None:
        """Start its collector, with these credentials."""
        config = CollectorConfig(
            server_url=self.stage.server_url,
            state_folder=self.stage.folder / f"state-{self.number}",
            contact="ops@club.example",
            accounts=(
                AccountConfig(
                    encode_id(self.key.account_id),
                    self.key.key,
                    Credentials(self.bot.username, password, totp),
                ),
            ),
            vrchat_url=self.stage.simulator.url,
            metrics_port=metrics_port,
        )
        self.running = asyncio.create_task(serve(config, ask, self.stop, clock=self.stage.time.clock))

    async def warm(self) -> None:
        """Start its collector, let it make a first look, and let the proof of who it is grow old."""
        await self.look_due()
        self.start()
        await self.rested()
        await self.stage.advance(61)

    async def look_due(self) -> None:
        """Move on to where the group is to be looked at, work or not."""
        await self.stage.advance(QUIET_LOOK[1].total_seconds() + 1)
        await self.stage.granting()

    def arm(self, fault: Fault, *, method: str = "*", path: str = "*", times: int = 1) -> None:
        self.stage.simulator.arm(fault, method=method, path=path, times=times)

    def edit(self, name: str, **arguments: str) -> None:
        """Make a change of ``edits.py`` in its group."""
        simulator = self.stage.simulator
        edit(simulator.clock, simulator.world, self.seed.group_id, name, **arguments)

    def open_instance(self, access: str = "members") -> dict[str, str]:
        """Open one; where it is, as payloads say it."""
        self.edit("open_instance", world_id=self.seed.world_ids[0], number=f"{self.number}", access=access)
        world_id, _, instance_id = next(reversed(self.stage.simulator.world.instances)).partition(":")
        return {"worldId": world_id, "instanceId": instance_id}

    async def enqueue(self, *payloads: dict[str, Any]) -> list[UUID]:
        self.queued += 1
        queued = await enqueue(
            self.stage.database,
            self.stage.owner,
            self.club_id,
            f"request-{self.queued}",
            payloads,
            Immediate(),
        )
        return list(queued.operation_ids)

    async def ask_read(self, kind: str = "members", **params: Any) -> UUID:
        read = await request_read(self.stage.database, self.stage.owner, self.club_id, kind, params)
        return read.id

    async def fetch(self, statement: str, *arguments: object) -> Any:
        return await self.stage.database.pool.fetchrow(statement, *arguments)

    async def seen(self, operation: UUID, behind: UUID, read: UUID) -> Seen:
        row = await self.fetch(_SEEN, self.club_id, operation, behind, read, self.key.account_id)
        return Seen(writes=self.writes(), **dict(row))

    def writes(self, action: str = "*") -> int:
        """How many writes the group's ledger holds, but those of the operation behind."""
        return sum(
            entry.group == self.seed.group_id and entry.action != BEHIND and action in ("*", entry.action)
            for entry in self.stage.simulator.ledger.entries
        )

    async def rested(self) -> None:
        """A pass was begun and every one is over."""

        async def is_over() -> bool:
            row = await self.fetch(_RESTED, self.club_id, self.passes)
            return bool(row and row["is_over"])

        await self.stage.eventually(is_over, f"no pass of club {self.number} is over")
        row = await self.fetch("select lease_generation from connections where club_id = $1", self.club_id)
        self.passes = row["lease_generation"]

    async def comes_to(self, operation: UUID, expected: str) -> None:
        """State and code of the operation become these."""
        last = ""

        async def look() -> bool:
            nonlocal last
            row = await self.fetch(
                "select concat_ws(' ', state, code) as standing from operations where id = $1", operation
            )
            last = row["standing"]
            return bool(last == expected)

        try:
            await self.stage.eventually(look)
        except AssertionError as error:
            raise AssertionError(f"{last}, and not {expected}") from error

    async def settled(self) -> None:
        """Everything that the clock has begun is over: nobody asked VRChat anything for ``CALM``."""
        loop, arrivals = asyncio.get_running_loop(), self.stage.simulator.arrivals
        seen, since = len(arrivals), loop.time()

        def is_calm() -> bool:
            nonlocal seen, since
            if len(arrivals) != seen:
                seen, since = len(arrivals), loop.time()
            return loop.time() - since >= CALM

        await eventually(is_calm)


BEHIND = "group.member.role.assign"
"""The ledger's word for what the operation behind does."""

_RESTED = """
    select l.fencing_token > $2 and (l.released_at is not null or l.expires_at <= lastcall_now()) as is_over
      from leases l where l.club_id = $1
"""
_SEEN = """
    select (select concat_ws(' ', o.state, o.code) from operations o where o.id = $2) as operation,
           (select concat_ws(' ', o.state, o.code) from operations o where o.id = $3) as behind,
           coalesce((select concat_ws(' ', s.state, s.code)
                       from provider_reads r cross join lateral read_standing(r, lastcall_now()) as s
                      where r.id = $4), 'gone') as read,
           (select concat_ws(' ', c.state, c.last_fault) from connections c
             where c.club_id = $1 and c.state <> 'disconnected') as connection,
           (select case when a.state = 'cooldown' and a.cooldown_until <= lastcall_now() then 'ready' else a.state end
              from accounts a where a.id = $5) as account,
           coalesce((select w.state from telemetry_coverage w where w.club_id = $1 and w.ended_at is null), 'none')
               as coverage
"""


@asynccontextmanager
async def open_stage(url: str, folder: Path) -> AsyncIterator[Stage]:
    """All of it, on a clock that stands where no test moves it."""
    database = await Database.open(url)
    time = SharedTime(folder / "clock", url)
    await time.install()
    settings = Settings(home=folder / "home")
    with contextlib.closing(bind("127.0.0.1", 0)) as taken:
        server_url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with (
            Simulator(clock=time.clock) as simulator,
            running_server(settings, database, clock=time.clock, taken=taken),
        ):
            owner_id = await add_person(database, "owner@club.example", "Owner", operator=True)
            owner = Actor(owner_id, "Owner", is_operator=True, is_recent=True)
            await set_fleet_limit(database, None, MANY * 10)
            stage = Stage(database, simulator, time, server_url, folder, owner)
            await time.run_at(0)
            yield stage
            await stage.clear()
    await database.close()
    time.clock.close()
