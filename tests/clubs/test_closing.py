"""What is under way when a club closes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.clubs.deletion_kit import close_for_good, remove_all, rows_of
from tests.clubs.house import contend
from tests.operations.operations_world import World, ban, invitation

from lastcall.access.invites import create_invite
from lastcall.clubs.life import archive_club, delete_club, pause_club, unarchive_club
from lastcall.connections.connect import connect_club
from lastcall.connections.leases import take_lease
from lastcall.connections.states import Feature
from lastcall.connections.worker import LeaseHeld
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, LastcallError
from lastcall.protocol.outcomes import Outcome


async def code_of(attempt: Any) -> str:
    """Why the attempt came to nothing, or "done"."""
    try:
        outcome = await attempt
    except LastcallError as error:
        return error.code
    return "done" if getattr(outcome, "is_authorized", True) else str(outcome.code)


async def test_a_paused_club_goes_on_with_what_was_reviewed(world: World) -> None:
    operation = await world.one(invitation(1))
    await pause_club(world.db, None, world.club_id)
    claimed = await world.claim()
    verdict = await world.steps.authorize(
        world.worker, world.held(claimed), "invite_member", world.evidence()
    )
    assert verdict.is_authorized
    assert await world.state(operation) == "submitted"


@pytest.mark.clause("WRK-06")
async def test_an_archived_club_is_disconnected_and_only_what_was_sent_is_settled(world: World) -> None:
    waiting = await world.one(invitation(1), due_at=await world.clock.now() + timedelta(hours=1))
    sent, sent_claim = await world.submitted(invitation(2))
    held, held_claim = await world.claimed(ban(3))
    await archive_club(world.db, None, world.club_id)
    await world.turn("epoch_cleanup")
    assert await world.state(waiting) == await world.state(held) == "rejected"
    assert (await world.row(held))["code"] == "connection_changed"
    assert (
        await world.run("select state from connections where club_id = $1", world.club_id) == "disconnecting"
    )
    leaving = await take_lease(world.db, world.worker, world.club_id, world.connection_id)
    assert leaving.state == "disconnecting", "its account leaves the group, and does nothing else there"
    held_now = LeaseHeld(world.club_id, world.connection_id, leaving.epoch, leaving.fencing_token)
    assert await code_of(world.steps.claim(world.worker, held_now, new_id())) == "club_inactive"
    verdict = await code_of(world.steps.authorize(world.worker, held_claim, "ban_member", world.evidence()))
    assert verdict != "done"
    assert await world.state(held) == "rejected", "a claim that was held is not sent any more"
    await world.steps.complete(world.worker, sent_claim, Outcome.SUCCEEDED, None, {})
    assert await world.state(sent) == "succeeded"
    connect = connect_club(
        world.db,
        None,
        world.club_id,
        group_id="grp_other",
        group_name="Other",
        account_id=world.account_id,
        features=[Feature.POSTS],
    )
    assert await code_of(connect) == "club_inactive"
    await unarchive_club(world.db, None, world.club_id)
    assert await code_of(world.one(invitation(4))) == "connection_inactive", "it comes back not connected"


async def test_a_club_is_not_deleted_while_the_outcome_of_something_sent_is_open(world: World) -> None:
    sent, claim = await world.submitted(invitation(1))
    await archive_club(world.db, None, world.club_id)
    with pytest.raises(Conflict) as refused:
        await delete_club(world.db, None, world.club_id, confirm_slug="club")
    assert refused.value.code == "operations_submitted"
    assert await world.run("select state from clubs where id = $1", world.club_id) == "archived"
    await world.steps.complete(world.worker, claim, Outcome.SUCCEEDED, None, {})
    assert await world.state(sent) == "succeeded"
    await delete_club(world.db, None, world.club_id, confirm_slug="club")
    await remove_all(world.db)
    assert await rows_of(world.db, world.club_id) == {}


async def test_an_authorization_that_waits_for_the_archive_is_refused(world: World) -> None:
    operation, claim = await world.claimed(invitation(1))

    async def authorize() -> Any:
        return await world.steps.authorize(world.worker, claim, "invite_member", world.evidence())

    outcome = await contend(world.db, lambda: archive_club(world.db, None, world.club_id), authorize)
    assert isinstance(outcome, LastcallError) or not outcome.is_authorized
    await world.turn("epoch_cleanup")
    assert await world.state(operation) == "rejected"


async def test_whoever_works_for_a_club_that_is_deleted_finds_nothing(world: World) -> None:
    _, claim = await world.claimed(invitation(1))
    await close_for_good(world)
    attempts = [
        take_lease(world.db, world.worker, world.club_id, world.connection_id),
        world.steps.authorize(world.worker, claim, "invite_member", world.evidence()),
        world.one(invitation(2)),
        create_invite(world.db, world.owner, world.club_id, [world.role_id]),
    ]
    assert "done" not in [await code_of(attempt) for attempt in attempts]
    assert not await world.run(
        "select person_holds($1, $2, 'manage_bans')", world.club_id, world.owner.person_id
    )
    await remove_all(world.db)
    assert await code_of(take_lease(world.db, world.worker, world.club_id, world.connection_id)) != "done"
