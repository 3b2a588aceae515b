"""An acceptance that is sent again: the same answer, no further use, and a sign of life while the invite is valid."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.access.conftest import Door, open_door

from lastcall.access.acceptance import accept_invite
from lastcall.access.deciding import approve_join_request
from lastcall.access.invites import LONGEST_LIFE
from lastcall.access.requests import RequestStatus
from lastcall.db.database import Database
from lastcall.deadlines.signals import Signal
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.errors import NotFound


@pytest.mark.clause("ACC-02", "ACC-14")
async def test_the_same_person_accepting_again_gets_the_same_answer_and_counts_as_active(
    db: Database, door: Door
) -> None:
    invite = await door.invite(approves=False, max_uses=3)
    first = await accept_invite(db, door.guest, invite.token)
    (before,) = await door.requests()
    heard: list[Signal] = []
    db.bus.subscribe(Signal, heard.append)
    assert await accept_invite(db, door.guest, invite.token) == first
    (after,) = await door.requests()
    assert after["activity_at"] > before["activity_at"]
    assert after["archive_due_at"] == after["activity_at"] + timedelta(days=90)
    assert JOIN_REQUEST.owner in {signal.owner for signal in heard}
    assert len(await door.uses(invite)) == (await door.state(invite))["uses"] == 1, "no further use"
    await approve_join_request(db, door.owner, door.club_id, first.request_id)
    (decided,) = await door.requests()
    assert (await accept_invite(db, door.guest, invite.token)).status is RequestStatus.APPROVED
    assert await door.requests() == [decided], "a decided one is answered and not touched"


@pytest.mark.clause("ACC-14")
async def test_a_replay_ends_with_its_invite(db: Database, door: Door) -> None:
    for end in ("revoked_at", "expires_at"):
        invite = await door.invite(approves=False, max_uses=2)
        await accept_invite(db, door.guest, invite.token)
        before = await door.requests()
        await db.pool.execute(f"update invites set {end} = lastcall_now() where id = $1", invite.id)
        with pytest.raises(NotFound):
            await accept_invite(db, door.guest, invite.token)
        assert await door.requests() == before
        door = await open_door(db)
    assert timedelta(days=90) > LONGEST_LIFE


@pytest.mark.clause("ACC-12", "ACC-14")
async def test_a_replay_of_an_acceptance_that_found_a_request_leaves_it_untouched(
    db: Database, door: Door
) -> None:
    await accept_invite(db, door.guest, (await door.invite(approves=False)).token)
    (before,) = await door.requests()
    second = await door.invite(role="moderator", approves=False)
    for _ in range(2):
        await accept_invite(db, door.guest, second.token)
    assert await door.requests() == [before]
