"""Events that change while a step waits for its lock, and the twins that show what the locks are for.

Every wait is a real one, observed in the server.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from events_world import HOUR, MINUTE, an_event, following, states
from operations_world import World
from test_operations_waits import another, authorize, waiting

from lastcall.operations.machine import State
from lastcall.operations.services.worker import ClaimHeld
from lastcall.protocol.outcomes import Outcome
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.routines import replace_routine

CANCEL = """
update events set status = 'cancelled', cancel_generation = cancel_generation + 1, revision = revision + 1
 where club_id = $1 and id = $2
"""
REINSTATE = "update events set status = 'scheduled', revision = revision + 1 where club_id = $1 and id = $2"
MOVE = """
update events set starts_at = starts_at + interval '1 hour', sort_at = sort_at + interval '1 hour',
       over_at = over_at + interval '1 hour', revision = revision + 1
 where club_id = $1 and id = $2
"""
MISS = "select count(*) from miss_late($1, $2)"
NOTE = "select note_event_fanout($1, $2)"
PAGE = "select * from fan_out_event($1, $2, 100)"
PENDING, CANCELLED = ("pending", None), ("cancelled", "event_cancelled")

JUDGED_FIRST = (
    "v_is_locked := found or lock_linked(p_club, p_connection, p_operation);",
    """
    select v.code, v.due_at into v_verdict, v_due_at from event_verdict(p_club, p_operation) as v;
    v_is_locked := lock_linked(p_club, p_connection, p_operation);
    v_is_linked := false;
    """,
)
"""The twin of authorize: the event is judged before the locks."""

UNLOCKED = (
    "perform from events e where e.club_id = v_seen.club_id and e.id = v_seen.event_id for share;",
    "",
)
"""The twin of every step that locks events: it names them only."""


async def a_claimed_follower(world: World, offset: timedelta = timedelta(0)) -> tuple[UUID, UUID]:
    """An event and what follows it, which is claimed."""
    event_id = await an_event(world, await world.clock.freeze())
    await world.renew(HOUR)
    (operation_id,) = await following(world, event_id, offset=offset)
    return event_id, operation_id


@pytest.mark.postgres15
@pytest.mark.clause("EVT-09")
@pytest.mark.parametrize(
    ("change", "code", "state"),
    [(CANCEL, "event_cancelled", State.CANCELLED), (MOVE, "event_rescheduled", State.PENDING)],
    ids=["cancelled", "moved"],
)
async def test_what_happens_to_the_event_while_authorize_waits_for_it_is_judged(
    world: World, change: str, code: str, state: State
) -> None:
    event_id, operation_id = await a_claimed_follower(world)
    held = world.held(await world.claim())
    async with another(world) as other:
        await other.execute(change, world.club_id, event_id)
        task = await waiting(world, authorize(world, held), other)
    verdict = await task
    assert (verdict.code, verdict.state) == (code, state)
    assert await world.state(operation_id) == state


@pytest.mark.postgres15
@pytest.mark.parametrize("change", [CANCEL, MOVE], ids=["cancelled", "moved"])
async def test_twin_that_judges_the_event_before_its_lock_sends_what_the_event_stopped(
    world: World, change: str
) -> None:
    await replace_routine(world.db, "authorize_operation", *JUDGED_FIRST)
    event_id, operation_id = await a_claimed_follower(world)
    held = world.held(await world.claim())
    async with another(world) as other:
        await other.execute(change, world.club_id, event_id)
        task = await waiting(world, authorize(world, held), other)
    assert (await task).is_authorized
    assert await world.state(operation_id) == "submitted"


@pytest.mark.clause("EVT-09")
async def test_an_event_that_changes_while_authorize_waits_for_the_row_waits_for_authorize(
    world: World,
) -> None:
    """The event is held before the row, so what is authorized is authorized by the event as it is."""
    event_id, operation_id = await a_claimed_follower(world)
    held = world.held(await world.claim())
    async with another(world) as row:
        await row.fetch("select from operations where id = $1 for no key update", operation_id)
        task = await waiting(world, authorize(world, held), row)
        cancel = await waiting_update(world, CANCEL, event_id)
    assert (await task).is_authorized
    await cancel
    await world.run(NOTE, world.club_id, event_id)
    await world.run(PAGE, world.club_id, event_id)
    assert await world.state(operation_id) == "submitted"


async def waiting_update(world: World, statement: str, event_id: UUID) -> asyncio.Future[object]:
    """A change of the event that waits for whoever holds it."""
    task = asyncio.ensure_future(world.run(statement, world.club_id, event_id))
    await wait_until_blocked(world.db, "update events")
    return task


# --- event move and claim --------------------------------------------------------------------------------------


@pytest.mark.postgres15
@pytest.mark.clause("EVT-03")
async def test_a_fan_out_that_waits_for_a_claim_takes_it_back(world: World) -> None:
    event_id, operation_id = await a_claimed_follower(world)
    await world.run(MOVE, world.club_id, event_id)
    await world.run(NOTE, world.club_id, event_id)
    held = await claimed_while_the_fan_out_waits(world, event_id, operation_id)
    row = await world.row(operation_id)
    assert (row["state"], row["claim_nonce"]) == ("pending", None)
    assert (await authorize(world, held)).code == "claim_unavailable"


async def test_twin_fan_out_that_passes_claims_over_leaves_a_worker_preparing_what_moved(
    world: World,
) -> None:
    event_id, operation_id = await a_claimed_follower(world)
    await replace_routine(
        world.db,
        "fan_out_event",
        "o.state in ('pending', 'claimed') and o.submitted_at is null",
        "o.state = 'pending'",
    )
    await world.run(MOVE, world.club_id, event_id)
    await world.run(NOTE, world.club_id, event_id)
    held = await claimed_while_the_fan_out_waits(world, event_id, operation_id)
    row = await world.row(operation_id)
    assert (row["state"], row["claim_nonce"]) == ("claimed", held.nonce)
    # Not even that is sent: authorize asks the event.
    assert (await authorize(world, held)).code == "event_rescheduled"


async def claimed_while_the_fan_out_waits(world: World, event_id: UUID, operation_id: UUID) -> ClaimHeld:
    """A claim from before the event moved is committed only when a page already waits for its row."""
    nonce = uuid4()
    async with another(world) as other:
        await other.execute(
            """
            update operations
               set state = 'claimed', claim_nonce = $2, claim_account_id = $3, claim_worker_id = $4,
                   claim_journal_id = $5, claim_fencing_token = 1, claim_generation = 1,
                   claim_expires_at = lastcall_now() + interval '240 s'
             where id = $1
            """,
            *(operation_id, nonce, world.account_id, world.worker_id, world.journal_id),
        )
        page = await waiting(world, world.run(PAGE, world.club_id, event_id), other)
    await page
    return ClaimHeld(world.club_id, world.connection_id, world.epoch, world.token, operation_id, nonce)


@pytest.mark.clause("EVT-09")
async def test_a_claim_does_not_wait_for_an_event_and_authorize_does(world: World) -> None:
    event_id, operation_id = await a_claimed_follower(world)
    async with another(world) as other:
        await other.execute(MOVE, world.club_id, event_id)
        held = world.held(await world.claim())
        task = await waiting(world, authorize(world, held), other)
    assert ((await task).code, await world.state(operation_id)) == ("event_rescheduled", "pending")


# --- event cancel and reinstate and fan-out --------------------------------------------------------------------


@pytest.mark.postgres15
@pytest.mark.clause("EVT-05")
async def test_a_page_that_waits_for_the_reinstating_still_cancels(world: World) -> None:
    assert await reinstated_while_a_page_waits(world) == [CANCELLED] * 3


async def test_twin_page_that_asks_only_how_the_event_stands_revives_what_was_cancelled(world: World) -> None:
    await replace_routine(world.db, "was_cancelled", "OR (p_generation <> p_reviewed)", "")
    assert await reinstated_while_a_page_waits(world) == [PENDING] * 3


async def reinstated_while_a_page_waits(world: World) -> list[tuple[str, str | None]]:
    event_id = await an_event(world, await world.clock.now() + HOUR)
    ids = await following(world, event_id, 3, offset=timedelta(0))
    await world.run(CANCEL, world.club_id, event_id)
    await world.run(NOTE, world.club_id, event_id)
    async with another(world) as other:
        await other.execute(REINSTATE, world.club_id, event_id)
        page = await waiting(world, world.run(PAGE, world.club_id, event_id), other)
    await page
    return await states(world, ids)


# --- event move and lateness -----------------------------------------------------------------------------------


@pytest.mark.postgres15
@pytest.mark.clause("RCV-07")
async def test_an_event_moved_while_lateness_waits_for_it_is_not_missed(world: World) -> None:
    event_id, operation_id = await a_late_follower(world)
    async with another(world) as other:
        await other.execute(MOVE, world.club_id, event_id)
        task = await waiting(world, world.run(MISS, [world.club_id], [operation_id]), other)
    assert await task == 1
    row = await world.row(operation_id)
    assert (row["state"], row["due_at"] - await world.clock.now()) == ("pending", 44 * MINUTE)


@pytest.mark.postgres15
async def test_twin_lateness_without_the_lock_misses_what_was_being_moved(world: World) -> None:
    await replace_routine(world.db, "lock_events_of", *UNLOCKED)
    event_id, operation_id = await a_late_follower(world)
    async with another(world) as other:
        await other.execute(MOVE, world.club_id, event_id)
        assert await world.run(MISS, [world.club_id], [operation_id]) == 1
    assert await world.state(operation_id) == "missed"
    assert await world.run("select starts_at > lastcall_now() from events where id = $1", event_id)


async def a_late_follower(world: World) -> tuple[UUID, UUID]:
    event_id = await an_event(world, await world.clock.freeze())
    (operation_id,) = await following(world, event_id, offset=timedelta(0))
    await world.clock.advance(16 * MINUTE)
    return event_id, operation_id


async def test_what_an_edit_ties_to_another_event_while_lateness_waits_is_left_for_the_next_cycle(
    world: World,
) -> None:
    _, operation_id = await a_late_follower(world)
    other_id = await an_event(world, await world.clock.now() + HOUR)
    async with another(world) as other:
        await other.execute("update operations set event_id = $1 where id = $2", other_id, operation_id)
        task = await waiting(world, world.run(MISS, [world.club_id], [operation_id]), other)
    assert await task == 0
    assert await world.state(operation_id) == "pending"
    assert await world.run(MISS, [world.club_id], [operation_id]) == 1
    assert (await states(world, [operation_id])) == [PENDING]


# --- authorize and lateness ------------------------------------------------------------------------------------

NO_STATE = ("o.state in ('pending', 'claimed')", "true")


@pytest.mark.postgres15
@pytest.mark.clause("RCV-08")
async def test_lateness_that_waits_for_an_authorization_leaves_what_was_submitted(world: World) -> None:
    assert await authorized_while_lateness_waits(world) == "submitted"


async def test_twin_lateness_without_the_states_it_may_leave_misses_what_was_sent(world: World) -> None:
    """The table itself would refuse it; without that too, the outcome of a write that left is lost."""
    await replace_routine(world.db, "miss_late", *NO_STATE)
    source: str = await world.run("select pg_get_functiondef('settle_unsent'::regproc)")
    await world.run(source.replace(NO_STATE[0], "true").replace("and o.submitted_at is null", ""))
    await world.run("alter table operations drop constraint operations_whole_check")
    assert await authorized_while_lateness_waits(world) == "missed"


async def authorized_while_lateness_waits(world: World) -> str:
    now = await world.clock.freeze()
    operation_id, held = await world.claimed(due_at=now - 14 * MINUTE)
    async with another(world) as other:
        await other.execute(
            "update operations set state = 'submitted', submitted_at = lastcall_now() where id = $1",
            operation_id,
        )
        await world.clock.advance(2 * MINUTE)
        task = await waiting(world, world.run(MISS, [world.club_id], [operation_id]), other)
    await task
    settled = await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
    state = await world.state(operation_id)
    assert settled.is_recorded == (state == "succeeded")
    return "submitted" if state == "succeeded" else state


# --- complete and recovery -------------------------------------------------------------------------------------


async def test_twin_recovery_that_reads_before_it_locks_forgets_a_known_outcome(world: World) -> None:
    """The form with its guards is in ``test_operations_waits``: complete and recovery cannot both win."""
    source: str = await world.run("select pg_get_functiondef('recover_submission'::regproc)")
    for guard in (" for no key update", "and o.state = 'submitted'"):
        assert guard in source
        source = source.replace(guard, "")
    await world.run(source)
    await world.clock.freeze()
    operation_id, held = await world.submitted()
    expires_at = (await world.row(operation_id))["claim_expires_at"]
    await world.clock.advance(timedelta(seconds=120))
    async with another(world) as other:
        await other.execute(
            "update operations set state = 'succeeded', completed_at = lastcall_now() where id = $1",
            operation_id,
        )
        recovery = world.run(
            "select recover_submission($1, $2, $3, $4)", world.club_id, operation_id, held.nonce, expires_at
        )
        task = await waiting(world, recovery, other)
    assert await task is True
    assert await world.state(operation_id) == "indeterminate"
