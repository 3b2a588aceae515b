"""The deadlines: claims that run out, submissions nobody reported, work that is late."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from operations_world import World, assignment, invitation

from lastcall.deadlines.owner import Done, Failed, More, Owner, Position, Stop
from lastcall.deadlines.scheduler import Scheduler
from lastcall.deadlines.signals import Signal
from lastcall.operations.owners import operation_owners
from lastcall.operations.schedules import late_at
from lastcall.operations.services.worker import WorkerSteps
from lastcall.protocol.constants import GRACE, SUBMISSION_LIFE
from lastcall.protocol.outcomes import Outcome
from lastcall.testing.shared_clock import SharedTime
from lastcall.testing.waiting import eventually

MICROSECOND = timedelta(microseconds=1)


def owner(world: World, name: str) -> Owner:
    return next(owner for owner in operation_owners(world.db, world.mailer) if owner.name == name)


async def run(owner: Owner) -> list[object]:
    """Passes until the cycle is over."""
    results: list[object] = []
    while not results or isinstance(results[-1], More):
        results.append(await owner.run_pass(Stop()))
    return results


async def states(world: World) -> dict[str, int]:
    rows = await world.db.pool.fetch("select state, count(*) from operations group by state")
    return {row["state"]: row["count"] for row in rows}


# --- claim expiry --------------------------------------------------------------------------------------------


@pytest.mark.clause("WRK-12")
async def test_an_expired_claim_goes_back_and_is_claimed_anew_with_another_nonce(world: World) -> None:
    await world.clock.freeze()
    operation_id, held = await world.claimed()
    expiry = owner(world, "claim_expiry")
    deadline = (await expiry.next_deadline()).deadline
    row = await world.row(operation_id)
    assert deadline == row["claim_expires_at"]
    await world.clock.advance(timedelta(seconds=240) - MICROSECOND)
    assert await run(expiry) == [Done(0)]
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    await world.clock.advance(MICROSECOND)
    assert await run(expiry) == [Done(1)]
    assert heard == [
        Signal("operation_late_pending", late_at(row["due_at"])),
        Signal(f"work:{world.account_id}", row["due_at"]),
    ]
    assert (await world.row(operation_id))["claim_nonce"] is None
    assert (await expiry.next_deadline()).deadline is None
    claimed = await world.claim()
    assert claimed.operation_id == operation_id
    assert claimed.nonce != held.nonce
    late = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert late.code == "claim_unavailable"


async def test_expiry_of_an_older_claim_never_touches_a_newer_one(world: World) -> None:
    await world.clock.freeze()
    await world.renew(timedelta(hours=1))
    operation_id, held = await world.claimed()
    old = (await world.row(operation_id))["claim_expires_at"]
    await world.steps.defer(world.worker, held, "timeout", 1.0)
    await world.clock.advance(timedelta(seconds=1))
    newer = await world.claim()
    await world.clock.advance(timedelta(seconds=300))
    for nonce, expires_at in ((held.nonce, old), (newer.nonce, old)):
        row = await world.db.pool.fetchrow(
            "select * from expire_claim($1, $2, $3, $4)", world.club_id, operation_id, nonce, expires_at
        )
        assert row is not None
        assert not row["is_done"]
    assert await world.state(operation_id) == "claimed"


# --- submission recovery -------------------------------------------------------------------------------------


@pytest.mark.clause("RCV-01", "RCV-11")
async def test_a_submission_nobody_reported_is_unknown_at_two_minutes_and_never_sent_again(
    world: World,
) -> None:
    now = await world.clock.freeze()
    operation_id, held = await world.submitted()
    recovery = owner(world, "submission_recovery")
    assert (await recovery.next_deadline()).deadline == now + SUBMISSION_LIFE
    await world.clock.advance(SUBMISSION_LIFE - MICROSECOND)
    assert await run(recovery) == [Done(0)]
    assert await world.state(operation_id) == "submitted"
    await world.clock.advance(MICROSECOND)
    assert await run(recovery) == [Done(1)]
    row = await world.row(operation_id)
    assert (row["state"], row["code"]) == ("indeterminate", "submission_outcome_unknown")
    assert row["claim_nonce"] == held.nonce
    assert (await recovery.next_deadline()).deadline is None
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None


@pytest.mark.clause("RCV-01")
async def test_recovery_asks_state_nonce_and_exact_expiry(world: World) -> None:
    await world.clock.freeze()
    operation_id, held = await world.submitted(assignment(1))
    claimed_id, claimed = await world.claimed(assignment(2))
    expires_at = (await world.row(operation_id))["claim_expires_at"]
    claimed_until = (await world.row(claimed_id))["claim_expires_at"]
    await world.clock.advance(timedelta(hours=1))
    wrong: Sequence[tuple[UUID, UUID, datetime]] = (
        (operation_id, claimed.nonce, expires_at),
        (operation_id, held.nonce, expires_at + MICROSECOND),
        (claimed_id, claimed.nonce, claimed_until),
        (world.club_id, held.nonce, expires_at),
    )
    recover = "select recover_submission($1, $2, $3, $4)"
    for arguments in wrong:
        assert await world.run(recover, world.club_id, *arguments) is False
    assert (await world.state(operation_id), await world.state(claimed_id)) == ("submitted", "claimed")
    assert await world.run(recover, world.club_id, operation_id, held.nonce, expires_at) is True
    assert await world.run(recover, world.club_id, operation_id, held.nonce, expires_at) is False


EVERYTHING_IS_ILL = [
    "update accounts set state = 'retired', kill_switch = true",
    "update fleet_settings set kill_switch = true",
    "update connections set state = 'disconnected', kill_switch = true, frozen_at = now(), frozen_reason = 'x'",
    "update worker_keys set revoked_at = now()",
    "delete from leases",
    "delete from staff_assignments",
]


@pytest.mark.clause("RCV-02", "RCV-06")
async def test_recovery_and_lateness_need_nothing_that_is_healthy(world: World) -> None:
    await world.clock.freeze()
    submitted, _ = await world.submitted(assignment(1))
    claimed, _ = await world.claimed(assignment(2))
    pending = await world.one(assignment(3))
    for statement in EVERYTHING_IS_ILL:
        await world.run(statement)
    await world.clock.advance(GRACE + MICROSECOND)
    for name in ("submission_recovery", "operation_late_claimed", "operation_late_pending"):
        assert await run(owner(world, name)) == [Done(1)]
    assert [await world.state(row) for row in (submitted, claimed, pending)] == [
        "indeterminate",
        "missed",
        "missed",
    ]


# --- lateness ------------------------------------------------------------------------------------------------


@pytest.mark.clause("RCV-04", "RCV-06")
@pytest.mark.parametrize("state", ["pending", "claimed"])
async def test_unsent_work_is_missed_after_the_grace_and_not_at_its_end(world: World, state: str) -> None:
    now = await world.clock.freeze()
    late = owner(world, f"operation_late_{state}")
    tail = await world.enqueue(*[assignment(n) for n in range(3)], due_at=now)
    later = await world.one(invitation(9), due_at=now + timedelta(seconds=1))
    if state == "claimed":
        await world.clock.advance(timedelta(seconds=1))
        for _ in range(4):
            await world.claim()
    assert (await late.next_deadline()).deadline == now + GRACE + MICROSECOND
    await world.clock.set(now + GRACE)
    assert await run(late) == [Done(0)]
    assert await states(world) == {state: 4}
    await world.clock.advance(MICROSECOND)
    assert await run(late) == [Done(3)]
    assert await states(world) == {"missed": 3, state: 1}
    row = await world.row(tail.operation_ids[0])
    assert (row["code"], row["completed_at"], row["claim_nonce"]) == (
        "late_window_elapsed",
        now + GRACE + MICROSECOND,
        None,
    )
    assert await world.state(later) == state
    assert (await late.next_deadline()).deadline == now + timedelta(seconds=1) + GRACE + MICROSECOND


@pytest.mark.clause("RCV-06")
async def test_an_overdue_tail_is_walked_in_pages_to_a_boundary_that_new_work_does_not_move(
    world: World,
) -> None:
    now = await world.clock.freeze()
    for batch in range(3):
        await world.enqueue(*[assignment(100 * batch + n) for n in range(80)], due_at=now)
    await world.enqueue(*[assignment(1000 + n) for n in range(100)], due_at=now + timedelta(days=3))
    await world.clock.advance(GRACE + timedelta(seconds=1))
    late = owner(world, "operation_late_pending")
    assert await late.run_pass(Stop()) == More(100)
    # What becomes late while the cycle runs waits for the next one.
    newer = await world.one(assignment(2000), due_at=now + timedelta(seconds=2))
    await world.clock.advance(timedelta(seconds=2))
    assert await run(late) == [More(100), Done(40)]
    assert await states(world) == {"missed": 240, "pending": 101}
    deadline = (await late.next_deadline()).deadline
    assert deadline is not None
    assert deadline < await world.clock.now()
    assert await run(late) == [Done(1)]
    assert await world.state(newer) == "missed"


@pytest.mark.clause("RCV-06")
async def test_twin_without_the_boundary_is_prolonged_by_new_work(world: World) -> None:
    """With the boundary read anew for each page, a cycle goes on as long as work keeps falling due."""
    now = await world.clock.freeze()
    await world.enqueue(*[assignment(n) for n in range(100)], due_at=now)
    await world.clock.advance(GRACE + timedelta(seconds=1))
    late: Any = owner(world, "operation_late_pending")
    assert await late.run_pass(Stop()) == More(100)
    for _ in range(3):
        await world.enqueue(*[assignment(n) for n in range(100)], due_at=await world.clock.now() - GRACE)
        await world.clock.advance(timedelta(seconds=1))
        late._boundary = await late._rows.boundary()
        assert await late.run_pass(Stop()) == More(100)


@pytest.mark.clause("RCV-13")
async def test_the_current_row_decides_not_the_time_it_was_found_by(world: World) -> None:
    """An edit that moved the due time needs no re-arming, and rows of an older release are found alike."""
    now = await world.clock.freeze()
    moved = await world.one(assignment(1), due_at=now)
    legacy = await world.one(assignment(2), due_at=now)
    await world.run(
        "update operations set schedule_kind = null, created_at = now() - interval '2 years' where id = $1",
        legacy,
    )
    await world.clock.advance(GRACE + MICROSECOND)
    late: Any = owner(world, "operation_late_pending")
    boundary = await late._rows.boundary()
    page = await late._rows.page(None, boundary, 100)
    assert {candidate.id for candidate in page} == {moved, legacy}
    await world.run(
        "update operations set due_at = due_at + interval '1 h', ready_at = ready_at + interval '1 h' where id = $1",
        moved,
    )
    await late._rows.settle(page)
    assert (await world.state(moved), await world.state(legacy)) == ("pending", "missed")
    assert (await late.next_deadline()).deadline == now + timedelta(hours=1) + GRACE + MICROSECOND


@pytest.mark.clause("RCV-08")
async def test_lateness_passes_over_what_was_submitted_and_what_is_over(world: World) -> None:
    await world.clock.freeze()
    submitted, _ = await world.submitted(assignment(1))
    done, held = await world.submitted(assignment(2))
    await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
    before = [await world.row(submitted), await world.row(done)]
    await world.clock.advance(timedelta(days=1))
    for state in ("pending", "claimed"):
        late = owner(world, f"operation_late_{state}")
        assert (await late.next_deadline()).deadline is None
        assert await run(late) == [Done(0)]
    async with locked(world, submitted), short_lock_timeout(world):
        # Nor is one waited for: hello locks returned rows before submitted ones, and the two would deadlock.
        missed = await world.run(
            "select count(*) from miss_late($1, $2)", [world.club_id] * 2, [submitted, done]
        )
    assert missed == 0
    assert [await world.row(submitted), await world.row(done)] == before


@pytest.mark.clause("RCV-06")
async def test_one_row_that_cannot_be_locked_costs_only_itself(world: World) -> None:
    now = await world.clock.freeze()
    made = await world.enqueue(*[assignment(n) for n in range(5)], due_at=now)
    await world.clock.advance(GRACE + MICROSECOND)
    late = owner(world, "operation_late_pending")
    async with locked(world, made.operation_ids[2]), short_lock_timeout(world):
        result = (await run(late))[-1]
        assert isinstance(result, Failed)
        assert [row.id for row in result.poison] == [made.operation_ids[2]]
        assert result.beyond == Position(now, made.operation_ids[4])
        assert await states(world) == {"missed": 4, "pending": 1}
    assert (await run(late))[-1] == Done(1)


@pytest.mark.clause("SCH-01", "RCV-12")
async def test_the_scheduler_keeps_all_four_deadlines_from_signals_alone(
    world: World, tmp_path: Path
) -> None:
    """Nothing polls: each step says its deadline, and at that moment the owner runs."""
    time = SharedTime(tmp_path / "clock", world.db.url)
    await time.install()
    clock = time.clock
    world.steps = WorkerSteps(world.db, clock)
    scheduler = Scheduler(world.db, operation_owners(world.db, world.mailer, clock), clock)
    overdue = await world.one(assignment(4))
    await world.run("update operations set due_at = due_at - interval '16 min'")
    await scheduler.start()
    try:
        await eventually(lambda: _is_state(world, overdue, "missed"))
        await world.renew(timedelta(hours=10))
        submitted, _ = await world.submitted(assignment(1))
        claimed, _ = await world.claimed(assignment(2))
        pending = await world.one(assignment(3))
        await time.run_at(200.0)
        await eventually(lambda: _is_state(world, submitted, "indeterminate"), within=20)
        await eventually(lambda: _is_state(world, claimed, "pending"), within=20)
        await eventually(lambda: _is_state(world, claimed, "missed"), within=20)
        await eventually(lambda: _is_state(world, pending, "missed"), within=20)
    finally:
        await scheduler.stop()
        clock.close()
    for operation_id in (claimed, pending):
        row = await world.row(operation_id)
        assert row["completed_at"] > row["due_at"] + GRACE


@pytest.mark.clause("RCV-12")
def test_no_page_promises_how_soon_lateness_is_recorded() -> None:
    """Eventual is what is said: promptly, later under a backlog."""
    page = (Path(__file__).parents[2] / "docs/explanation/operations.md").read_text()
    about = " ".join(page.partition("## Being late")[2].partition("\n## ")[0].split())
    assert "normally within a minute; with a very large backlog later" in about
    assert "No hard bound is promised." in about


async def _is_state(world: World, operation_id: UUID, state: str) -> bool:
    return await world.state(operation_id) == state


@asynccontextmanager
async def locked(world: World, operation_id: UUID) -> AsyncIterator[None]:
    """Somebody else holds the row."""
    holder = await world.db.connect()
    try:
        async with holder.transaction():
            await holder.fetch("select from operations where id = $1 for update", operation_id)
            yield
    finally:
        await holder.close()


@asynccontextmanager
async def short_lock_timeout(world: World) -> AsyncIterator[None]:
    """Sessions of the pool give up waiting sooner; the five seconds of every day would only slow this down."""
    async with AsyncExitStack() as stack:
        for _ in range(3):
            connection = await stack.enter_async_context(world.db.pool.acquire())
            await connection.execute("set lock_timeout = '50ms'")
    yield
