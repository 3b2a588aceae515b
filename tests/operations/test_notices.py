"""Who is told of what did not end well, and until when."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from notices_kit import another_moderator, failed, failed_batch, leave, lose_permission, shown_to
from operations_world import World, invitation

import lastcall.operations
from lastcall.clubs.policy import require_staff
from lastcall.connections.connect import disconnect_club
from lastcall.deadlines.owner import More, Stop
from lastcall.errors import NotFound
from lastcall.operations.listeners import register
from lastcall.operations.notices import notices
from lastcall.operations.owners import operation_owners
from lastcall.operations.services.cancel import cancel
from lastcall.operations.services.dismiss import dismiss_notices
from lastcall.people.scopes import Scope
from lastcall.protocol.constants import GRACE, SUBMISSION_LIFE
from lastcall.protocol.outcomes import Outcome

register()

NOTICES_SQL = Path(lastcall.operations.__file__).parent / "sql" / "notices.sql"
SECOND = timedelta(seconds=1)


async def noted(world: World) -> list[tuple[UUID, int, str]]:
    rows = await world.db.pool.fetch("select id, revision, outcome from operation_notices")
    return [(row["id"], row["revision"], row["outcome"]) for row in rows]


async def run(world: World, name: str) -> None:
    owner = next(one for one in operation_owners(world.db, world.mailer) if one.name == name)
    while isinstance(await owner.run_pass(Stop()), More):
        pass


async def completed(world: World, outcome: Outcome) -> UUID:
    operation_id, held = await world.submitted(invitation())
    await world.steps.complete(world.worker, held, outcome, "provider_error")
    return operation_id


async def deferred_too_long(world: World) -> UUID:
    operation_id, held = await world.claimed(invitation())
    await world.steps.defer(world.worker, held, "rate_limit", 82_721.0)
    return operation_id


async def refused(world: World) -> UUID:
    operation_id, held = await world.claimed(invitation())
    await lose_permission(world)
    verdict = await world.steps.authorize(world.worker, held, "invite_member", world.evidence())
    assert verdict.code == "staff_permission"
    return operation_id


async def never_reported(world: World) -> UUID:
    operation_id, _ = await world.submitted(invitation())
    await world.clock.advance(SUBMISSION_LIFE + SECOND)
    await run(world, "submission_recovery")
    return operation_id


async def late(world: World) -> UUID:
    operation_id = await world.one(invitation())
    await world.clock.advance(GRACE + SECOND)
    await run(world, "operation_late_pending")
    return operation_id


async def epoch_over(world: World) -> UUID:
    operation_id = await world.one(invitation())
    await disconnect_club(world.db, None, world.club_id, world.connection_id)
    await run(world, "epoch_cleanup")
    return operation_id


async def not_attempted(world: World) -> UUID:
    operation_id, _ = await world.submitted(invitation())
    await world.run(
        "select settle_unattempted($1, $2, $3, '{}')", world.account_id, world.worker_id, world.journal_id
    )
    return operation_id


async def cancelled(world: World) -> UUID:
    operation_id = await world.one(invitation())
    await cancel(world.db, world.moderator, world.club_id, operation_id, 1)
    return operation_id


ENDS: dict[str, tuple[Callable[[World], Awaitable[UUID]], str | None]] = {
    "rejected before it was sent": (failed, "rejected"),
    "refused by authorize": (refused, "rejected"),
    "refused by the provider": (lambda world: completed(world, Outcome.REJECTED), "rejected"),
    "not attempted": (not_attempted, "rejected"),
    "of an epoch that ended": (epoch_over, "rejected"),
    "reported as unknown": (lambda world: completed(world, Outcome.INDETERMINATE), "indeterminate"),
    "never reported": (never_reported, "indeterminate"),
    "late": (late, "missed"),
    "put off beyond its grace": (deferred_too_long, "missed"),
    "succeeded": (lambda world: completed(world, Outcome.SUCCEEDED), None),
    "cancelled": (cancelled, None),
}


@pytest.mark.clause("RCV-05")
@pytest.mark.parametrize("end", list(ENDS))
async def test_what_did_not_end_well_makes_one_notice_and_nothing_else_does(world: World, end: str) -> None:
    bring_about, outcome = ENDS[end]
    operation_id = await bring_about(world)
    assert (await world.row(operation_id))["completed_at"] is not None
    assert await noted(world) == ([] if outcome is None else [(operation_id, 1, outcome)])


async def test_an_end_that_is_told_twice_makes_one_notice(world: World) -> None:
    operation_id = await failed(world)
    await world.run("select note_outcomes($1, $2, lastcall_now())", world.club_id, [operation_id])
    assert await noted(world) == [(operation_id, 1, "rejected")]


async def test_without_its_key_an_end_told_twice_would_make_two_notices(world: World) -> None:
    """The twin: the key is the guard."""
    await world.run("alter table operation_notices drop constraint operation_notices_pkey cascade")
    body = NOTICES_SQL.read_text()
    without = re.sub(r"\n\s+on conflict \(club_id, id\) do nothing", "", body)
    assert without != body
    await world.db.pool.execute(without)
    operation_id = await failed(world)
    await world.run("select note_outcomes($1, $2, lastcall_now())", world.club_id, [operation_id])
    assert await noted(world) == [(operation_id, 1, "rejected")] * 2


async def test_a_notice_is_for_whoever_authorized_it_while_they_may(world: World) -> None:
    operation_id = await failed(world)
    other = await another_moderator(world)
    assert [one.id for one in await shown_to(world, world.moderator)] == [operation_id]
    assert [one.outcome for one in await shown_to(world, world.moderator)] == ["rejected"]
    assert await shown_to(world, other) == []
    assert await shown_to(world, world.owner) == []
    await lose_permission(world)
    for nobody in (world.moderator, other, world.owner):
        assert await shown_to(world, nobody) == []


@pytest.mark.parametrize("end", ["left", "blocked"])
async def test_a_notice_of_somebody_off_the_staff_is_for_the_owner(world: World, end: str) -> None:
    first, own = await failed(world), await failed(world, 2, actor=world.owner)
    other = await another_moderator(world)
    assert [one.id for one in await shown_to(world, world.owner)] == [own]
    if end == "left":
        await leave(world, world.moderator)
    else:
        await world.run(
            "update people set blocked_at = lastcall_now() where id = $1", world.moderator.person_id
        )
    assert [one.id for one in await shown_to(world, world.owner)] == [own, first]
    assert await shown_to(world, other) == []


async def test_a_notice_is_shown_only_of_the_revision_and_the_outcome_that_stand(world: World) -> None:
    await failed(world)
    await world.run("update operation_notices set revision = 2")
    assert await shown_to(world, world.moderator) == []
    await world.run("update operation_notices set revision = 1, outcome = 'missed'")
    assert await shown_to(world, world.moderator) == []


async def test_notices_come_newest_first_and_page_by_page(world: World) -> None:
    made = [await failed(world, n) for n in range(5)]
    async with world.db.read() as tx:
        standing = await require_staff(tx, world.moderator, world.club_id, scope=Scope.READ)
        page = await notices(tx, standing, world.moderator, world.club_id, limit=3)
        rest = await notices(tx, standing, world.moderator, world.club_id, after=page[-1].cursor, limit=3)
    assert [one.id for one in [*page, *rest]] == made[::-1]


async def test_dismissing_is_for_oneself_alone(world: World) -> None:
    first, second = await failed_batch(world, 2)
    for _ in range(2):
        await dismiss_notices(world.db, world.moderator, world.club_id, [first])
    assert [one.id for one in await shown_to(world, world.moderator)] == [second]
    await leave(world, world.moderator)
    assert {one.id for one in await shown_to(world, world.owner)} == {first, second}


async def test_nobody_dismisses_what_is_not_for_them(world: World) -> None:
    mine, theirs = await failed(world, 1, actor=world.owner), await failed(world, 2)
    with pytest.raises(NotFound) as refusal:
        await dismiss_notices(world.db, world.owner, world.club_id, [mine, theirs])
    assert refusal.value.code == "notice_unknown"
    assert [one.id for one in await shown_to(world, world.owner)] == [mine]
