"""Commands against the worker and against events, with real transactions and waits that the server reports.

Each race has its twin: the same with one named guard taken away, and what goes wrong then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from event_kit import HOUR, make_event, queue_one, relative
from operations_world import World, assignment
from test_operations_waits import another, authorize, waiting

from lastcall.db.connect import Connection
from lastcall.errors import Conflict, LastcallError
from lastcall.operations.schedules import Immediate, Schedule
from lastcall.operations.services import basis, cancel, edit, enqueue
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.waiting import eventually

NO_LOCK = "select where $1::uuid is null and $2::uuid is null"
"""Instead of a statement that holds a row: it finds nothing and holds nothing."""
NO_LOCKS = "select where $1::uuid is null and $2::uuid[] is null"


def edit_it(world: World, operation_id: UUID, schedule: Schedule | None = None) -> Awaitable[Any]:
    return edit.edit(
        world.db, world.moderator, world.club_id, operation_id, 1, assignment(7), schedule or Immediate()
    )


async def claim_on(world: World, other: Connection) -> UUID:
    """Claimed in the transaction of another session, which is not over."""
    row = await other.fetchrow(
        "select * from claim_operation($1, 1, $2, $3, $4, $5, $6, 1, false)",
        *(
            world.account_id,
            world.worker_id,
            world.journal_id,
            world.club_id,
            world.connection_id,
            world.epoch,
        ),
    )
    assert row is not None
    operation_id: UUID = row["operation_id"]
    return operation_id


@pytest.mark.clause("EDT-01")
async def test_what_is_claimed_while_an_edit_waits_is_not_edited(world: World) -> None:
    operation_id = await world.one()
    async with another(world) as other:
        assert await claim_on(world, other) == operation_id
        task = await waiting(world, edit_it(world, operation_id), other)
    with pytest.raises(Conflict) as refusal:
        await task
    assert refusal.value.code == "operation_not_editable"
    row = await world.row(operation_id)
    assert (row["state"], row["revision"]) == ("claimed", 1)
    assert await world.run("select count(*) from operation_revisions") == 0


async def test_twin_an_edit_that_does_not_hold_the_row_changes_what_a_worker_has(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker goes on with what it was given, and the ledger says that something else was sent."""
    monkeypatch.setattr(edit, "_LOCK", NO_LOCK)
    monkeypatch.setattr(
        edit, "_CHANGE", edit._CHANGE.replace("state = 'pending' and revision = $3", "$3::int > 0")
    )
    operation_id = await world.one()
    async with another(world) as other:
        await claim_on(world, other)
        task = asyncio.ensure_future(edit_it(world, operation_id))
        await wait_until_blocked(world.db, "update operations", by=other.get_server_pid())
    await task
    row = await world.row(operation_id)
    assert (row["state"], row["revision"]) == ("claimed", 2)


@pytest.mark.clause("EDT-01")
async def test_what_is_being_edited_is_passed_over_by_claims(world: World) -> None:
    """And goes out afterwards as it was edited."""
    operation_id = await world.one()
    async with another(world) as other:
        await other.execute("lock table activity_log in exclusive mode")
        task = asyncio.ensure_future(edit_it(world, operation_id))
        await wait_until_blocked(world.db, "activity_log", by=other.get_server_pid())
        assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None
    view = await task
    claimed = await world.claim()
    assert claimed.payload == view.payload


@pytest.mark.clause("EDT-02")
async def test_of_two_edits_at_one_revision_the_second_is_refused(world: World) -> None:
    operation_id = await world.one()
    async with another(world) as other:
        await other.execute("lock table activity_log in exclusive mode")
        first = asyncio.ensure_future(edit_it(world, operation_id))
        await wait_until_blocked(world.db, "activity_log", by=other.get_server_pid())
        second = asyncio.ensure_future(edit_it(world, operation_id))
        await wait_until_blocked(world.db, "lock_with_creation")
    assert (await first).revision == 2
    with pytest.raises(Conflict, match=r"Refresh to continue\."):
        await second
    assert await world.run("select count(*) from operation_revisions") == 1


async def two_edits_of_a_batch(world: World) -> list[Any]:
    """Two rows of one batch, edited at once to the same recipient; what either came to."""
    made = await world.enqueue(assignment(1), assignment(2))
    async with another(world) as other:
        await other.execute("lock table activity_log in exclusive mode")
        first = asyncio.ensure_future(edit_it(world, made.operation_ids[0]))
        await wait_until_blocked(world.db, "activity_log", by=other.get_server_pid())
        second = asyncio.ensure_future(edit_it(world, made.operation_ids[1]))
        await eventually(lambda: world.run(TWO_WAIT))
    return await asyncio.gather(first, second, return_exceptions=True)


TWO_WAIT = """
    select count(*) = 2 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
"""


@pytest.mark.clause("EDT-11")
async def test_two_recipients_of_a_batch_that_become_one_at_once_are_refused(world: World) -> None:
    first, second = await two_edits_of_a_batch(world)
    assert first.revision == 2
    assert isinstance(second, LastcallError)
    assert second.code == "duplicate_recipient"
    assert await world.run("select count(distinct target) from operations") == 2


async def test_twin_without_the_unique_target_somebody_is_in_a_batch_twice(world: World) -> None:
    await world.run("alter table operations drop constraint operations_club_id_request_id_target_key")
    first, second = await two_edits_of_a_batch(world)
    assert (first.revision, second.revision) == (2, 2)
    assert await world.run("select count(distinct target) from operations") == 1


async def authorize_first(
    world: World, operation_id: UUID, held: Any, stop: Awaitable[Any]
) -> asyncio.Future[Any]:
    """Authorized in a transaction that is not over, while ``stop`` waits for the row."""
    async with another(world) as other:
        await other.execute(
            "update operations set state = 'submitted', submitted_at = lastcall_now() where id = $1",
            operation_id,
        )
        task = asyncio.ensure_future(stop)
        await wait_until_blocked(world.db, "operations", by=other.get_server_pid())
    return task


@pytest.mark.clause("EDT-07", "EDT-08")
@pytest.mark.parametrize("how", ["one", "request"])
async def test_what_is_submitted_while_a_cancel_waits_stays_submitted(world: World, how: str) -> None:
    operation_id, held = await world.claimed()
    request_id = (await world.row(operation_id))["request_id"]
    if how == "one":
        stop: Awaitable[Any] = cancel.cancel(world.db, world.moderator, world.club_id, operation_id, 1)
    else:
        stop = cancel.cancel_request(world.db, world.moderator, world.club_id, request_id)
    task = await authorize_first(world, operation_id, held, stop)
    if how == "one":
        with pytest.raises(Conflict):
            await task
    else:
        assert await task == cancel.BatchCancelled(request_id, cancelled=0, left=1)
    assert await world.state(operation_id) == "submitted"


CARELESS = """
    update operations set state = 'cancelled', code = 'cancelled_by_staff', completed_at = lastcall_now(),
           claim_nonce = null, claim_account_id = null, claim_worker_id = null, claim_journal_id = null,
           claim_fencing_token = null, claim_generation = null, claim_expires_at = null, submitted_at = null
     where club_id = $1 and id = any ($2::uuid[])
    returning cardinality($2::uuid[])
"""
"""A cancel that relies on what it read and names no state that it may leave."""


async def test_twin_a_cancel_that_holds_nothing_says_cancelled_of_what_was_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancel, "_LOCK_ALL", NO_LOCK)
    monkeypatch.setattr(cancel, "_CANCEL_ALL", CARELESS)
    operation_id, held = await world.claimed()
    request_id = (await world.row(operation_id))["request_id"]
    stop = cancel.cancel_request(world.db, world.moderator, world.club_id, request_id)
    await (await authorize_first(world, operation_id, held, stop))
    assert await world.state(operation_id) == "cancelled"


@pytest.mark.clause("EDT-08")
async def test_a_batch_cancel_waits_for_the_claim_and_takes_it_too(world: World) -> None:
    made = await world.enqueue(assignment(1), assignment(2))
    async with another(world) as other:
        await claim_on(world, other)
        stop = cancel.cancel_request(world.db, world.moderator, world.club_id, made.request_id)
        task = asyncio.ensure_future(stop)
        await wait_until_blocked(world.db, "request_id", by=other.get_server_pid())
    assert (await task).cancelled == 2
    assert (
        await world.run("select count(*) from operations where state = 'cancelled' and claim_nonce is null")
        == 2
    )


ONLY_WHAT_IS_FREE = """
    with free as materialized (
        select id from operations where club_id = $1 and id = any ($2::uuid[]) for no key update skip locked),
    settled as materialized (
        select settle_unsent($1, free.id, 'cancelled', 'cancelled_by_staff', (select lastcall_now())) from free)
    select cardinality($2::uuid[]) + 0 * (select count(*) from settled)
"""
"""A cancel that waits for nobody, as claims do."""


async def test_twin_a_batch_cancel_that_does_not_wait_leaves_a_part_to_be_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancel, "_LOCK_ALL", NO_LOCK)
    monkeypatch.setattr(cancel, "_CANCEL_ALL", ONLY_WHAT_IS_FREE)
    made = await world.enqueue(assignment(1), assignment(2))
    async with another(world) as other:
        claimed = await claim_on(world, other)
        said = await cancel.cancel_request(world.db, world.moderator, world.club_id, made.request_id)
    assert said.cancelled == 2
    assert await world.state(claimed) == "claimed"


@pytest.mark.clause("EDT-08")
async def test_what_a_batch_cancel_holds_is_passed_over_by_claims(world: World) -> None:
    made = await world.enqueue(assignment(1), assignment(2))
    async with another(world) as other:
        await other.execute("lock table activity_log in exclusive mode")
        stop = cancel.cancel_request(world.db, world.moderator, world.club_id, made.request_id)
        task = asyncio.ensure_future(stop)
        await wait_until_blocked(world.db, "activity_log", by=other.get_server_pid())
        assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None
    assert (await task).cancelled == 2


MOVE = "update events set starts_at = starts_at + $1, sort_at = sort_at + $1, over_at = over_at + $1"


async def while_moving(world: World, work: Awaitable[Any], waits_for: str) -> asyncio.Future[Any]:
    """``work``, done while an event is being moved by an hour in a transaction that is not over."""
    async with another(world) as other:
        await other.execute(MOVE, timedelta(hours=1))
        task = asyncio.ensure_future(work)
        await wait_until_blocked(world.db, waits_for, by=other.get_server_pid())
    return task


@pytest.mark.clause("ENQ-09", "EDT-10")
@pytest.mark.parametrize("how", ["enqueue", "edit"])
async def test_an_event_that_moves_while_the_command_waits_is_seen(world: World, how: str) -> None:
    event = await make_event(world)
    if how == "enqueue":
        work: Awaitable[Any] = queue_one(world, relative(event))
    else:
        work = edit_it(world, await world.one(), relative(event))
    task = await while_moving(world, work, "from events")
    with pytest.raises(Conflict) as refusal:
        await task
    assert refusal.value.code == "event_moved"
    assert await world.run("select count(*) from operations where event_id is not null") == 0


@pytest.mark.parametrize("how", ["enqueue", "edit"])
async def test_twin_without_holding_the_event_a_time_is_stored_that_it_no_longer_has(
    world: World, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The move has looked for what follows the event already, so nothing comes by to set it right."""
    monkeypatch.setattr(basis, "_HOLD_EVENTS", NO_LOCKS)
    event = await make_event(world)
    operation_id = await world.one() if how == "edit" else None
    async with another(world) as other:
        await other.execute(MOVE, timedelta(hours=1))
        if operation_id is None:
            operation_id = await queue_one(world, relative(event))
        else:
            await edit_it(world, operation_id, relative(event))
    row = await world.row(operation_id)
    starts_at = await world.run("select starts_at from events")
    assert row["due_at"] == starts_at - 2 * HOUR


@pytest.mark.clause("EVT-03")
async def test_an_event_is_not_moved_while_something_is_linked_to_it(world: World) -> None:
    """So the move that waits finds the row when it looks for what follows the event."""
    event = await make_event(world)
    async with another(world) as other:
        await other.execute("lock table operations in exclusive mode")
        queued = asyncio.ensure_future(queue_one(world, relative(event)))
        await wait_until_blocked(world.db, "insert into operations", by=other.get_server_pid())
        moved = asyncio.ensure_future(world.run(f"{MOVE} returning id", timedelta(hours=1)))
        await wait_until_blocked(world.db, "update events")
    row = await world.row(await queued)
    assert row["due_at"] == event.starts_at - HOUR if event.starts_at else False
    assert await moved == event.id


@pytest.mark.clause("ENQ-03")
async def test_two_at_once_under_one_request_id_are_told_apart_by_their_content(world: World) -> None:
    """The second waits for the first's key; the same content gets its ids, another is refused."""
    event = await make_event(world)
    for n, (schedule, is_same) in enumerate(
        ((relative(event), True), (relative(event, -2 * HOUR), False), (Immediate(event.id), False))
    ):
        first, second = await two_at_once(world, f"request-{n}", relative(event), schedule)
        made = await first
        if is_same:
            assert await second == made
        else:
            with pytest.raises(LastcallError, match=r"Request ID already used\."):
                await second
        assert await world.run("select count(*) from operation_requests") == n + 1


async def two_at_once(
    world: World, key: str, first: Schedule, second: Schedule
) -> tuple[asyncio.Future[UUID], asyncio.Future[UUID]]:
    async with another(world) as other:
        await other.execute("lock table operations in exclusive mode")
        one = asyncio.ensure_future(queue_one(world, first, key=key))
        await wait_until_blocked(world.db, "insert into operations", by=other.get_server_pid())
        two = asyncio.ensure_future(queue_one(world, second, key=key))
        await wait_until_blocked(world.db, "insert into operation_requests")
    return one, two


BOTH_WAIT = """
    select count(*) = 2 from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and query ilike '%insert into operations%'
"""


@pytest.mark.parametrize("is_same", [True, False], ids=["identical", "different"])
async def test_twin_without_the_unique_request_id_both_are_queued(
    world: World, is_same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look before the insert finds nothing, because the first is not committed yet."""
    await world.run(
        "alter table operation_requests drop constraint operation_requests_club_id_request_key_key"
    )
    monkeypatch.setattr(
        enqueue,
        "_INSERT_REQUEST",
        enqueue._INSERT_REQUEST.replace("on conflict (club_id, request_key) do nothing", ""),
    )
    event = await make_event(world)
    schedule = relative(event) if is_same else Immediate()
    async with another(world) as other:
        await other.execute("lock table operations in exclusive mode")
        tasks = [
            asyncio.ensure_future(queue_one(world, one, key="request-1"))
            for one in (relative(event), schedule)
        ]
        await eventually(lambda: world.run(BOTH_WAIT))
    assert len({await task for task in tasks}) == 2
    assert await world.run("select count(*) from operation_requests where request_key = 'request-1'") == 2


@pytest.mark.clause("EDT-04")
async def test_an_edit_waits_for_a_role_that_is_taken_and_is_refused(world: World) -> None:
    operation_id = await world.one()
    async with another(world) as other:
        await other.execute("update club_gates set generation = generation + 1")
        task = await waiting(world, edit_it(world, operation_id), other)
        await other.execute("update staff_roles set permissions = '{invite_group_members}'")
    with pytest.raises(LastcallError) as refusal:
        await task
    assert refusal.value.code == "operation_unknown"
    assert (await world.row(operation_id))["revision"] == 1


async def test_an_edit_is_what_authorize_then_judges(world: World) -> None:
    """That a role taken away stops authorize is in ``test_operations_waits``; here it is the editor's that counts."""
    operation_id = await world.one()
    await edit_it(world, operation_id)
    held = world.held(await world.claim())
    async with another(world) as other:
        await other.execute("update club_gates set generation = generation + 1")
        task = await waiting(world, authorize(world, held), other)
        await other.execute("delete from staff_assignments")
    assert (await task).code == "staff_permission"
