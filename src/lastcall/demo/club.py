"""The demo's club: made once in a data folder, found again the next time."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import select

from lastcall.access.invites import create_invite
from lastcall.access.requests import PersonSubject, record_join_request
from lastcall.clubs.queries import roles_of
from lastcall.clubs.service import add_club
from lastcall.clubs.tables import Club
from lastcall.connections.accounts import add_account, rotate_key, set_account_state
from lastcall.connections.connect import connect_club
from lastcall.connections.states import USABLE, AccountState, Feature
from lastcall.connections.switches import set_account_limits, set_connection_limit, set_fleet_limit
from lastcall.connections.tables import Account, Connection
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.errors import Unavailable
from lastcall.operations.schedules import Fixed, Immediate, Schedule
from lastcall.operations.services.enqueue import enqueue
from lastcall.operations.tables import OperationRequest
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.people.tables import Person
from lastcall.vrchat.simulator.seed import Seed

EMAIL = "owner@club.example"
SLUG = "night-shift"
REQUESTS_PER_MINUTE = 600
"""The demo's allowance: far above the default of 4, so that an evening fits into seconds. Nobody is throttled but
the simulator."""

RETENTION = timedelta(days=90)
_PATIENCE = 60.0
"""Seconds for the account to come into its group: the sign-in, and a window of the allowance that has to open."""


@dataclass(frozen=True)
class DemoClub:
    """What the demo works with. ``worker_key`` is new with each run."""

    owner: Actor
    club_id: UUID
    connection_id: UUID
    account_id: UUID
    worker_key: str


async def ensure_club(db: Database, seed: Seed) -> DemoClub:
    """The demo's owner, club, account and connection; whatever is there already is kept."""
    owner = await _ensure_owner(db)
    async with db.read() as tx:
        club_id = await tx.scalar(select(Club.id).where(Club.slug == SLUG))
        account_id = await tx.scalar(select(Account.id).where(Account.vrchat_user_id == seed.bot_id))
    if club_id is None:
        club_id = await add_club(db, owner, "Night Shift", SLUG, "Europe/Berlin", owner.person_id)
    if account_id is None:
        key = await add_account(db, owner, "demo", seed.bot_id)
    else:
        key = await rotate_key(db, owner, account_id)
    await set_account_state(db, None, key.account_id, AccountState.READY)
    async with db.read() as tx:
        connection_id = await tx.scalar(
            select(Connection.id).where(Connection.club_id == club_id, Connection.state != "disconnected")
        )
    if connection_id is None:
        connection_id = await connect_club(
            db,
            owner,
            club_id,
            group_id=seed.group_id,
            account_id=key.account_id,
            features=[Feature.MEMBERSHIP_MANAGEMENT],
        )
    await set_fleet_limit(db, owner, REQUESTS_PER_MINUTE)
    await set_account_limits(db, owner, key.account_id, requests_per_minute=REQUESTS_PER_MINUTE)
    await set_connection_limit(db, owner, club_id, connection_id, REQUESTS_PER_MINUTE)
    return DemoClub(owner, club_id, connection_id, key.account_id, key.key)


async def until_in_group(db: Database, club: DemoClub) -> None:
    """Return once the collector has brought the account into the group, which the server of this process is told.

    Raises ``Unavailable`` when that takes too long.
    """
    told = asyncio.Event()
    db.bus.subscribe(Hint, lambda _: told.set())
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            while not await _is_usable(db, club):
                await told.wait()
                told.clear()
            return
    raise Unavailable(
        "demo_not_connected",
        "The demo's account did not come into its group.",
        advice="Look at the end of collector.log.",
    )


async def _is_usable(db: Database, club: DemoClub) -> bool:
    async with db.read() as tx:
        state = await tx.scalar(
            select(Connection.state).where(
                Connection.club_id == club.club_id, Connection.id == club.connection_id
            )
        )
    return state in USABLE


async def _ensure_owner(db: Database) -> Actor:
    async with db.read() as tx:
        person_id = await tx.scalar(select(Person.id).where(Person.email == EMAIL))
    if person_id is None:
        person_id = await add_person(db, EMAIL, "Demo owner", operator=True)
    return Actor(person_id, "Demo owner", is_operator=True)


async def forgotten_request(db: Database, club: DemoClub, due_in: timedelta) -> tuple[UUID, datetime]:
    """A join request that nobody decided, whose ninety days are over in ``due_in``; answers its id and that moment."""
    async with db.read() as tx:
        due_at = await tx.scalar(select(NOW + due_in))
        roles = await roles_of(tx, club.club_id)
    invite = await create_invite(db, club.owner, club.club_id, [roles[-1].id], approves=False)
    visitor = PersonSubject(None, f"visitor-{invite.id.hex[-8:]}@club.example")
    request_id = await record_join_request(
        db, club.club_id, invite.id, visitor, activity_at=due_at - RETENTION
    )
    return request_id, due_at


async def plan_the_night(db: Database, club: DemoClub, seed: Seed) -> None:
    """Something to look at: a few actions for the hours to come, asked for once however often the demo starts.

    One is sent at once. For it the collector reads the group, whose roles are then offered by name.
    """
    async with db.read() as tx:
        now = await tx.scalar(select(NOW))
    regular = [
        {"kind": "assign_role", "targetUserId": who, "roleId": seed.role_ids[0]} for who in seed.members[:26]
    ]
    invited = [{"kind": "invite_member", "targetUserId": who} for who in seed.strangers[:8]]
    banned = [{"kind": "ban_member", "targetUserId": seed.members[-1]}]
    first = [{"kind": "invite_member", "targetUserId": seed.strangers[8]}]
    plans: tuple[tuple[str, list[dict[str, str]], Schedule], ...] = (
        ("demo-first", first, Immediate()),
        ("demo-regulars", regular, Fixed(now + timedelta(minutes=20))),
        ("demo-invited", invited, Fixed(now + timedelta(hours=2))),
        ("demo-banned", banned, Fixed(now + timedelta(hours=26))),
    )
    for key, payloads, schedule in plans:
        async with db.read() as tx:
            known = await tx.scalar(
                select(OperationRequest.id).where(
                    OperationRequest.club_id == club.club_id, OperationRequest.request_key == key
                )
            )
        if known is None:
            await enqueue(db, club.owner, club.club_id, key, payloads, schedule)
