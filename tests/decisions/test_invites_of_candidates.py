"""What a join request's invite has to do with its retention: it is of the same club, and nothing else."""

from __future__ import annotations

from uuid import UUID

import asyncpg
import pytest
from tests.decisions.conftest import NINETY_DAYS, Door, agent_invite, open_door
from tests.decisions.test_candidates import next_deadline, sweep

from lastcall.access.requests import AgentSubject, record_join_request
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.decisions.inbox.item import Shelf
from lastcall.decisions.inbox.queries import Wanted, inbox_page
from lastcall.decisions.inbox.reach import reach_in


@pytest.mark.clause("RET-01")
async def test_no_request_can_carry_the_invite_of_another_club(database: Database, door: Door) -> None:
    elsewhere = await open_door(database, "cellar", type(door))
    invite_id = await agent_invite(database, elsewhere.owner, elsewhere.club_id)
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await database.pool.execute(
            "insert into join_requests (club_id, id, invite_id, subject_kind, agent_name)"
            " values ($1, $2, $3, 'agent', 'x')",
            door.club_id,
            new_id(),
            invite_id,
        )


async def in_the_inbox(door: Door, shelf: Shelf) -> set[UUID]:
    """What the club's owner sees there."""
    async with door.db.read() as tx:
        now = await tx.raw.fetchval("select lastcall_now()")
        reach = await reach_in(tx, door.owner, door.club_id)
        return {item.id for item in (await inbox_page(tx, reach, Wanted(now, now, shelf))).items}


@pytest.mark.clause("RET-03")
async def test_an_invites_expiry_and_revocation_take_nothing_from_the_inbox_and_stop_no_retention(
    database: Database, door: Door
) -> None:
    now = await database.pool.fetchval("select lastcall_now()")
    requests = []
    for end in ("revoked_at", "expires_at"):
        invite_id = await agent_invite(database, door.owner, door.club_id)
        requests.append(
            await record_join_request(
                database,
                door.club_id,
                invite_id,
                AgentSubject("agent"),
                activity_at=now - NINETY_DAYS,
            )
        )
        if end == "revoked_at":
            await database.pool.execute(
                "update invites set revoked_at = lastcall_now() where id = $1", invite_id
            )
        else:
            await database.pool.execute(
                "update invites set expires_at = lastcall_now() - interval '1 day' where id = $1", invite_id
            )
    assert await next_deadline(door) is not None
    assert await in_the_inbox(door, Shelf.WAITING) == set(requests)
    await sweep(door)
    for request_id in requests:
        assert await door.archived_at(request_id) is not None
    assert await in_the_inbox(door, Shelf.ARCHIVED) == set(requests)
