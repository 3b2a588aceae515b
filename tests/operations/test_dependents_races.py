"""What happens to a creation while an invitation is tied to it, or looked at: each waits for the other's lock, observed
in the server, and sees how it ended. Each guard has a twin without it, which leaves what must not be.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from dependents_kit import CREATION, HOUR, PLACE, Evening, friendship, invitation

from lastcall import operations
from lastcall.db.jsonb import jsonb_text
from lastcall.errors import Conflict
from lastcall.operations import dependencies
from lastcall.operations.schedules import Fixed, Immediate
from lastcall.operations.services import edit as editing
from lastcall.operations.services.edit import edit
from lastcall.protocol.outcomes import Outcome
from lastcall.testing.locks import wait_until_blocked

UNHELD = "select from operations where club_id = $1 and id = any ($2::uuid[])"
"""The twin of the lock that a new invitation takes on its creation."""

SQL = (Path(operations.__file__).parent / "sql/dependencies.sql").read_text()


@asynccontextmanager
async def uncommitted(evening: Evening, work: Callable[[], Awaitable[Any]]) -> AsyncIterator[None]:
    """``work`` is done in a transaction that commits when the block ends."""
    done, release = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        async with evening.db.transaction():
            await work()
            done.set()
            await release.wait()

    task = asyncio.ensure_future(run())
    await asyncio.wait([task, asyncio.ensure_future(done.wait())], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield
    finally:
        release.set()
        await task


async def blocked(evening: Evening, work: Awaitable[Any], statement: str) -> asyncio.Future[Any]:
    """``work``, started, once the server says that this statement of it waits for a lock."""
    task = asyncio.ensure_future(work)
    await wait_until_blocked(evening.db, statement)
    return task


async def replace(evening: Evening, function: str, change: Callable[[str], str]) -> None:
    """Put a twin in the function's place."""
    found = re.search(rf"create or replace function {function}\(.*?\n\$\$;", SQL, re.DOTALL)
    assert found is not None
    twin = change(found[0])
    assert twin != found[0]
    await evening.world.run(twin)


def completion(evening: Evening, held: Any) -> Awaitable[Any]:
    world = evening.world
    return world.steps.complete(world.worker, held, Outcome.SUCCEEDED, None, PLACE)


async def is_stuck(evening: Evening, invited: UUID) -> bool:
    """Everything has been gone through, and it waits for a creation that is over."""
    await evening.go_through()
    row = await evening.row(invited)
    return row["state"] == "pending" and row["ready_at"] is None


async def invited_by(evening: Evening) -> UUID:
    found: UUID = await evening.world.run("select id from operations where depends_on is not null")
    return found


# ----------------------------------------------------------------------- the creation ends while something waits


async def test_a_creation_that_ends_before_an_invitation_is_committed_waits_for_it_and_wakes_it(
    evening: Evening,
) -> None:
    creation = await evening.one(CREATION)
    held = await evening.submit(creation)
    async with uncommitted(evening, lambda: evening.one(invitation(creation))):
        task = await blocked(evening, completion(evening, held), "complete_operation")
    await task
    assert not await is_stuck(evening, await invited_by(evening))


async def test_an_invitation_whose_creation_is_ending_waits_and_sees_the_end(evening: Evening) -> None:
    creation = await evening.one(CREATION)
    held = await evening.submit(creation)
    async with ending(evening, held):
        task = await blocked(evening, evening.one(invitation(creation)), "for share")
    invited = await task
    row = await evening.row(invited)
    assert (row["ready_at"], row["code"]) == (row["due_at"], None)


@pytest.mark.parametrize("first", ["invitation", "end"])
async def test_twin_without_the_hold_an_invitation_waits_for_ever(
    evening: Evening, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.setattr(dependencies, "_HOLD", UNHELD)
    creation = await evening.one(CREATION)
    held = await evening.submit(creation)
    if first == "invitation":
        async with uncommitted(evening, lambda: evening.one(invitation(creation))):
            await completion(evening, held)
    else:
        async with ending(evening, held):
            await evening.one(invitation(creation))
    assert await is_stuck(evening, await invited_by(evening))


@asynccontextmanager
async def ending(evening: Evening, held: Any) -> AsyncIterator[None]:
    """The creation's success is recorded, and committed when the block ends."""
    world = evening.world
    connection = await evening.db.connect()
    try:
        async with connection.transaction():
            row = await connection.fetchrow(
                "select * from complete_operation($1, 1, $2, $3, $4, $5, 1, $6, $7, 'succeeded', null, $8, $6)",
                world.account_id, world.worker_id, evening.club_id, world.connection_id, world.epoch,
                held.operation_id, held.nonce, jsonb_text(PLACE),
            )  # fmt: skip
            assert row["outcome"] == "recorded"
            yield
    finally:
        await connection.close()


async def ready_while_creating(evening: Evening) -> tuple[UUID, UUID, Any]:
    """A creation that was sent, and an invitation that looks as if it could go, as an older release leaves it."""
    creation = await evening.one(CREATION)
    held = await evening.submit(creation)
    invited = await evening.one(invitation(creation))
    await evening.world.run("update operations set ready_at = due_at, code = null where id = $1", invited)
    return creation, invited, held


@asynccontextmanager
async def claiming(evening: Evening) -> AsyncIterator[None]:
    """A claim that puts the invitation back to wait, committed when the block ends."""
    world = evening.world
    connection = await evening.db.connect()
    try:
        async with connection.transaction():
            row = await connection.fetchrow(
                "select * from claim_operation($1, 1, $2, $3, $4, $5, $6, 1, false)",
                world.account_id, world.worker_id, world.journal_id, evening.club_id, world.connection_id,
                world.epoch,
            )  # fmt: skip
            assert (row["outcome"], row["has_settled"]) == ("nothing", True)
            yield
    finally:
        await connection.close()


async def test_an_invitation_that_is_just_put_to_wait_is_woken_by_the_end_of_its_creation(
    evening: Evening,
) -> None:
    _, invited, held = await ready_while_creating(evening)
    async with claiming(evening):
        await completion(evening, held)
        task = await blocked(evening, evening.go_through(), "fan_out_creation")
    await task
    assert not await is_stuck(evening, invited)
    claimed = await evening.claim()
    assert claimed is not None
    assert claimed.operation_id == invited


async def test_twin_a_page_that_passes_over_what_is_held_leaves_the_invitation_waiting(
    evening: Evening,
) -> None:
    await replace(
        evening,
        "dependents_page",
        lambda text: text.replace("o.completed_at is null", "o.completed_at is null and o.ready_at is null"),
    )
    _, invited, held = await ready_while_creating(evening)
    async with claiming(evening):
        await completion(evening, held)
        await evening.go_through()
    assert await is_stuck(evening, invited)


async def later(evening: Evening, invited: UUID, creation: UUID) -> Callable[[], Awaitable[Any]]:
    """An edit of the invitation to an hour later."""
    due_at = await evening.world.clock.now() + HOUR
    return lambda: edit(
        evening.db, evening.world.owner, evening.club_id, invited, 1, invitation(creation), Fixed(due_at)
    )


async def test_an_edit_of_the_invitation_outlives_the_end_of_its_creation(evening: Evening) -> None:
    creation = await evening.one(CREATION)
    held = await evening.submit(creation)
    invited = await evening.one(invitation(creation))
    before = (await evening.row(invited))["due_at"]
    async with waking_while_edited(evening, creation, invited, held):
        pass
    row = await evening.row(invited)
    assert row["due_at"] > before + timedelta(minutes=59)
    assert row["ready_at"] == row["due_at"]


async def test_twin_judged_before_the_lock_the_edit_is_lost(evening: Evening) -> None:
    await replace(
        evening,
        "fan_out_creation",
        lambda text: re.sub(r"perform from operations o\n +where [^;]*?for no key update;", "", text),
    )
    creation = await evening.one(CREATION)
    held = await evening.submit(creation)
    invited = await evening.one(invitation(creation))
    before = (await evening.row(invited))["due_at"]
    async with waking_while_edited(evening, creation, invited, held):
        pass
    assert (await evening.row(invited))["due_at"] == before


@asynccontextmanager
async def waking_while_edited(
    evening: Evening, creation: UUID, invited: UUID, held: Any
) -> AsyncIterator[None]:
    """The creation is over and its invitations are woken while an edit of one is not committed yet."""
    await completion(evening, held)
    async with uncommitted(evening, await later(evening, invited, creation)):
        task = await blocked(evening, evening.go_through(), "fan_out_creation")
    await task
    yield


# ------------------------------------------------------------------------- the creation is edited while something looks


def reviewed_anew(evening: Evening, creation: UUID) -> Callable[[], Awaitable[Any]]:
    """An edit of the creation. What it does stays the same: another target would be a new key, for which the reference
    of an invitation waits in any case."""
    return lambda: edit(evening.db, evening.world.owner, evening.club_id, creation, 1, CREATION, Immediate())


async def test_an_invitation_to_a_creation_that_is_being_edited_waits_and_is_refused(
    evening: Evening,
) -> None:
    creation = await evening.one(CREATION)
    async with uncommitted(evening, reviewed_anew(evening, creation)):
        task = await blocked(evening, evening.one(invitation(creation)), "for share")
    with pytest.raises(Conflict) as refused:
        await task
    assert refused.value.code == "creation_changed"


async def test_twin_without_the_hold_a_revision_that_is_gone_is_approved(
    evening: Evening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "_HOLD", UNHELD)
    creation = await evening.one(CREATION)
    async with uncommitted(evening, reviewed_anew(evening, creation)):
        invited = await evening.one(invitation(creation))
    assert (await evening.row(invited))["dependency_revision"] == 1
    assert (await evening.row(creation))["revision"] == 2


async def waiting_by_claim(evening: Evening) -> tuple[UUID, UUID]:
    """A pending creation due in an hour, and an invitation that a claim finds ready."""
    creation = await evening.one(CREATION, Fixed(await evening.world.clock.now() + HOUR))
    invited = await evening.one(invitation(creation), Fixed(await evening.world.clock.now() + HOUR))
    await evening.world.run("update operations set due_at = due_at - interval '1 hour'")
    await evening.world.run(
        "update operations set ready_at = case when id = $1 then due_at else due_at + interval '1 hour' end",
        invited,
    )
    return creation, invited


async def test_an_edit_of_the_creation_while_an_invitation_is_claimed_rejects_it(evening: Evening) -> None:
    creation, invited = await waiting_by_claim(evening)
    async with claiming(evening):
        await reviewed_anew(evening, creation)()
        task = await blocked(evening, evening.go_through(), "fan_out_creation")
    await task
    assert await evening.how(invited) == ("rejected", "dependency_unavailable")


async def test_twin_an_edit_that_notes_nothing_leaves_the_invitation_waiting(
    evening: Evening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        editing,
        "_NOTE_DEPENDENTS",
        "select null::timestamptz where $1 <> $2::uuid or $3::timestamptz is null",
    )
    creation, invited = await waiting_by_claim(evening)
    async with claiming(evening):
        await reviewed_anew(evening, creation)()
        await evening.go_through()
    assert await evening.how(invited) == ("pending", "awaiting_instance_creation")


CHANGE = "update operations set revision = revision + 1 where id = $1"


async def authorized_while_changing(evening: Evening, *, waits: bool) -> tuple[str, str | None]:
    creation = await evening.one(CREATION)
    await evening.create(creation)
    invited = await evening.one(invitation(creation))
    claimed = await evening.claim()
    assert claimed is not None
    connection = await evening.db.connect()
    try:
        async with connection.transaction():
            await connection.execute(CHANGE, creation)
            if waits:
                task = await blocked(evening, evening.authorize(claimed, friendship()), "authorize_operation")
            else:
                await evening.authorize(claimed, friendship())
        if waits:
            await task
    finally:
        await connection.close()
    assert (await evening.row(creation))["revision"] == 2
    return await evening.how(invited)


@pytest.mark.clause("DEP-09")
async def test_authorize_waits_for_whoever_changes_the_creation(evening: Evening) -> None:
    assert await authorized_while_changing(evening, waits=True) == ("rejected", "dependency_unavailable")


async def test_twin_without_the_creations_lock_another_revision_is_sent(evening: Evening) -> None:
    await replace(
        evening,
        "lock_with_creation",
        lambda text: re.sub(r"perform [^;]*?for share;", "", text),
    )
    assert await authorized_while_changing(evening, waits=False) == ("submitted", None)
