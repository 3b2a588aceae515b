"""The way of one action from a reviewed request to VRChat and back: server, database, collector and simulator."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from collector_bench import nobody_to_ask

from lastcall.clubs.service import add_club
from lastcall.collector.config import AccountConfig, CollectorConfig
from lastcall.collector.main import serve
from lastcall.connections.accounts import NewKey
from lastcall.connections.connect import connect_club
from lastcall.connections.states import Feature
from lastcall.connections.switches import set_account_limits, set_connection_limit, set_fleet_limit
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.operations.schedules import Immediate, Schedule
from lastcall.operations.services.enqueue import enqueue
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.testing.connecting import activate
from lastcall.testing.fleet import ready_account
from lastcall.testing.shared_clock import SharedTime
from lastcall.testing.waiting import eventually
from lastcall.vrchat.session import Credentials
from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Simulator

MANY = 600
"""Requests a minute where the allowance is not what a test is about."""


@dataclass
class Vertical:
    """A club whose owner queues actions, and everything that carries them out."""

    database: Database
    simulator: Simulator
    time: SharedTime
    server_url: str
    owner: Actor
    club_id: UUID
    connection_id: UUID
    key: NewKey
    folder: Path
    numbers: int = 0
    collectors: list[tuple[asyncio.Event, asyncio.Task[int]]] = field(default_factory=list)

    def start_collector(self, folder: Path | None = None) -> None:
        config = CollectorConfig(
            server_url=self.server_url,
            state_folder=folder or self.folder,
            contact="ops@club.example",
            accounts=(
                AccountConfig(
                    encode_id(self.key.account_id),
                    self.key.key,
                    Credentials(BOT_USERNAME, BOT_PASSWORD, BOT_TOTP_SECRET),
                ),
            ),
            vrchat_url=self.simulator.url,
        )
        stop = asyncio.Event()
        running = asyncio.create_task(serve(config, nobody_to_ask, stop, clock=self.time.clock))
        self.collectors.append((stop, running))

    async def stop_collectors(self) -> None:
        for stop, _running in self.collectors:
            stop.set()
        await asyncio.wait_for(asyncio.gather(*(running for _stop, running in self.collectors)), 30)
        self.collectors.clear()

    async def enqueue(self, *payloads: dict[str, Any], schedule: Schedule | None = None) -> list[UUID]:
        self.numbers += 1
        queued = await enqueue(
            self.database,
            self.owner,
            self.club_id,
            f"request-{self.numbers}",
            payloads,
            schedule or Immediate(),
        )
        return list(queued.operation_ids)

    def role(self, member: int) -> dict[str, str]:
        seed = self.simulator.seed
        return {"kind": "assign_role", "targetUserId": seed.members[member], "roleId": seed.role_ids[0]}

    def creation(self) -> dict[str, str]:
        world_id = self.simulator.seed.world_ids[0]
        return {"kind": "create_instance", "worldId": world_id, "access": "members", "region": "eu"}

    def invitation(self, creation: UUID, user_id: str) -> dict[str, Any]:
        return {
            "kind": "invite_to_created_instance",
            "targetUserId": user_id,
            "creationOperationId": encode_id(creation),
            "creationRevision": 1,
        }

    async def row(self, operation_id: UUID) -> Any:
        return await self.database.pool.fetchrow("select * from operations where id = $1", operation_id)

    async def ended(self, operation_id: UUID, within: float = 20.0) -> tuple[str, str | None]:
        async def look() -> tuple[str, str | None] | None:
            row = await self.row(operation_id)
            return (row["state"], row["code"]) if row["completed_at"] is not None else None

        end: tuple[str, str | None] = await eventually(look, within=within)
        return end

    async def advance(self, seconds: float) -> None:
        await self.time.advance(timedelta(seconds=seconds))


async def seed_club(database: Database, simulator: Simulator, limit: int) -> tuple[Actor, UUID, UUID, NewKey]:
    """An owner, their club, its connection through one account; at most ``limit`` requests a minute."""
    owner_id = await add_person(database, "owner@club.example", "Owner", operator=True)
    owner = Actor(owner_id, "Owner", is_operator=True, is_recent=True)
    club_id = await add_club(database, None, "The Club", "the-club", "UTC", owner_id)
    key = await ready_account(database, "bot", simulator.seed.bot_id)
    connection_id = await connect_club(
        database,
        None,
        club_id,
        group_id=simulator.seed.group_id,
        group_name="The Club",
        account_id=key.account_id,
        features=[Feature.MEMBERSHIP_MANAGEMENT, Feature.INSTANCES],
    )
    await activate(database, club_id, connection_id)
    await set_fleet_limit(database, None, limit)
    await set_account_limits(database, None, key.account_id, requests_per_minute=limit)
    await set_connection_limit(database, owner, club_id, connection_id, limit)
    return owner, club_id, connection_id, key
