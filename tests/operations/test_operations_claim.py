"""Claim: one operation for the worker that holds the lease, lane by lane, and never one twice."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from operations_world import World, assignment, ban, invitation

from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.deadlines.signals import Signal
from lastcall.errors import LastcallError
from lastcall.operations.schedules import late_at
from lastcall.operations.services.worker import WorkerSteps
from lastcall.protocol.constants import CLAIM_LIFE, GRACE

MINUTE = timedelta(minutes=1)


@pytest.mark.clause("WRK-01")
async def test_a_claim_says_what_when_and_for_how_long(world: World) -> None:
    now = await world.clock.freeze()
    operation_id = await world.one(assignment(3), due_at=now - 5 * MINUTE)
    claimed = await world.claim()
    assert claimed.operation_id == operation_id
    assert claimed.kind == "assign_role"
    assert claimed.payload == {k: v for k, v in assignment(3).items() if k != "kind"}
    assert claimed.epoch == world.epoch
    assert claimed.execute_before == GRACE - 5 * MINUTE
    assert claimed.nonce.version == 4
    row = await world.row(operation_id)
    assert row["state"] == "claimed"
    assert row["claim_nonce"] == claimed.nonce
    assert (row["claim_account_id"], row["claim_worker_id"], row["claim_journal_id"]) == (
        world.account_id,
        world.worker_id,
        world.journal_id,
    )
    assert (row["claim_fencing_token"], row["claim_generation"]) == (1, 1)
    assert row["claim_expires_at"] == now + claimed.life


@pytest.mark.clause("WRK-17")
async def test_a_claim_lives_four_minutes_and_never_past_the_lease(world: World) -> None:
    await world.clock.freeze()
    await world.enqueue(assignment(1), assignment(2))
    await world.renew(timedelta(minutes=5))
    assert (await world.claim()).life == CLAIM_LIFE
    await world.renew(timedelta(seconds=90))
    assert (await world.claim()).life == timedelta(seconds=90)


@pytest.mark.clause("WRK-01")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("update worker_keys set revoked_at = lastcall_now()", "worker_key_refused"),
        ("update accounts set credential_generation = 2", "worker_key_refused"),
        ("update leases set fencing_token = 2", "stale_lease"),
        ("update leases set worker_id = gen_random_uuid()", "stale_lease"),
        ("update leases set expires_at = lastcall_now()", "stale_lease"),
        ("update leases set released_at = lastcall_now()", "stale_lease"),
        ("update connections set epoch = epoch + interval '1 us'", "epoch"),
        ("update connections set state = 'disconnected'", "epoch"),
        ("update connections set state = 'auth_required'", "connection_state"),
        ("update connections set kill_switch = true", "connection_switch"),
        ("update connections set frozen_at = now(), frozen_reason = 'x'", "frozen"),
        ("update accounts set kill_switch = true", "account_switch"),
        ("update accounts set state = 'quarantined'", "account_state"),
        ("update fleet_settings set kill_switch = true", "fleet_switch"),
        ("update clubs set state = 'archived', archived_at = lastcall_now()", "club_inactive"),
    ],
)
async def test_nothing_is_claimed_without_key_lease_epoch_and_open_switches(
    world: World, change: str, code: str
) -> None:
    operation_id = await world.one()
    await world.run(change)
    with pytest.raises(LastcallError) as refusal:
        await world.claim()
    assert refusal.value.code == code
    assert await world.state(operation_id) == "pending"


async def test_a_paused_club_goes_on_with_what_was_reviewed(world: World) -> None:
    operation_id, _ = await world.submitted()
    await world.run("update clubs set state = 'paused', paused_at = lastcall_now(), pause_reason = 'manual'")
    assert await world.state(await world.one(invitation())) == "pending"
    assert (await world.claim()).kind == "invite_member"
    assert await world.state(operation_id) == "submitted"


async def test_what_is_not_ready_or_already_late_is_not_claimed(world: World) -> None:
    now = await world.clock.freeze()
    await world.one(assignment(1), due_at=now + timedelta(microseconds=1))
    on_time = await world.one(assignment(2), due_at=now - GRACE)
    late = await world.one(assignment(3), due_at=now - GRACE)
    moved = timedelta(microseconds=1)
    await world.run("update operations set due_at = due_at - $2::interval where id = $1", late, moved)
    assert (await world.claim()).operation_id == on_time
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None


async def test_lanes_go_by_urgency_and_within_a_lane_by_ready_time(world: World) -> None:
    now = await world.clock.freeze()
    batch = await world.enqueue(assignment(1), assignment(2), due_at=now - 9 * MINUTE)
    late_single = await world.one(invitation(3), due_at=now - 2 * MINUTE)
    single = await world.one(invitation(4), due_at=now - 3 * MINUTE)
    urgent = await world.one(ban(5), due_at=now)
    order = [(await world.claim()).operation_id for _ in range(5)]
    # The third claim goes to whatever has waited longest: a row of the batch.
    assert order == [urgent, single, batch.operation_ids[0], late_single, batch.operation_ids[1]]


async def test_every_third_claim_keeps_a_batch_from_starving(world: World) -> None:
    """With the rule the batch gets a third; the twin without it leaves the batch to the end."""
    now = await world.clock.freeze()
    await world.renew(timedelta(hours=1))
    batch = set((await world.enqueue(*[assignment(n) for n in range(4)], due_at=now - MINUTE)).operation_ids)
    for n in range(8):
        await world.one(invitation(n), due_at=now)
    claims = [(await world.claim()).operation_id in batch for _ in range(12)]
    assert claims == [False, False, True] * 4

    await world.run(
        "update operations set state = 'pending', claim_nonce = null, claim_account_id = null,"
        " claim_worker_id = null, claim_journal_id = null, claim_fencing_token = null,"
        " claim_generation = null, claim_expires_at = null"
    )
    twin = [await _claim_by_lane_only(world) in batch for _ in range(12)]
    assert twin == [False] * 8 + [True] * 4


@pytest.mark.clause("WRK-19")
async def test_a_hundred_deferred_rows_do_not_hide_a_runnable_one(world: World) -> None:
    now = await world.clock.freeze()
    made = await world.enqueue(*[assignment(n) for n in range(100)], due_at=now - MINUTE)
    more = await world.enqueue(*[assignment(n) for n in range(100, 150)], due_at=now - MINUTE)
    await world.run("update operations set ready_at = $1", now + MINUTE)
    runnable = (await world.enqueue(assignment(1), assignment(2), due_at=now)).operation_ids
    assert {(await world.claim()).operation_id for _ in range(2)} == set(runnable)
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None
    await world.clock.advance(MINUTE)
    assert (await world.claim()).operation_id in {*made.operation_ids, *more.operation_ids}


async def test_two_claimers_never_take_one_row(world: World) -> None:
    """One holds its row's lock without having committed; the other passes it over and takes the next."""
    made = await world.enqueue(*[assignment(n) for n in range(20)])
    blocker = await world.db.connect()
    try:
        transaction = blocker.transaction()
        await transaction.start()
        first = await blocker.fetchrow(
            "select * from claim_operation($1, 1, $2, $3, $4, $5, $6, 1, false)",
            world.account_id,
            world.worker_id,
            world.journal_id,
            world.club_id,
            world.connection_id,
            world.epoch,
        )
        second = await world.claim()
        await transaction.commit()
    finally:
        await blocker.close()
    assert (first["outcome"], first["operation_id"]) == ("claimed", made.operation_ids[0])
    assert second.operation_id == made.operation_ids[1]
    rest = await asyncio.gather(*(world.claim() for _ in range(18)))
    taken = [first["operation_id"], second.operation_id, *(claimed.operation_id for claimed in rest)]
    assert sorted(taken) == sorted(made.operation_ids)
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None


async def test_another_club_or_epoch_is_never_claimed_from(world: World) -> None:
    await world.one()
    for held in (
        LeaseHeld(uuid4(), world.connection_id, world.epoch, 1),
        LeaseHeld(world.club_id, uuid4(), world.epoch, 1),
    ):
        with pytest.raises(LastcallError, match="lease"):
            await world.steps.claim(world.worker, held, world.journal_id)
    stranger = Worker(uuid4(), 1, world.worker_id, "usr_x")
    with pytest.raises(LastcallError, match="key"):
        await world.steps.claim(stranger, world.lease, world.journal_id)
    await world.run("update connections set epoch = epoch + interval '1 second'")
    held = LeaseHeld(world.club_id, world.connection_id, world.epoch + timedelta(seconds=1), 1)
    assert await world.steps.claim(world.worker, held, world.journal_id) is None


async def test_a_claim_arms_its_expiry_before_it_is_sent_and_says_the_exact_one_after(world: World) -> None:
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    now = await world.clock.freeze()
    await world.one()
    heard.clear()
    await world.renew(timedelta(seconds=90))
    steps = WorkerSteps(world.db)
    assert await steps.claim(world.worker, world.lease, world.journal_id) is not None
    before, *after = heard
    assert before.owner == "claim_expiry"
    assert before.deadline is not None
    assert abs(before.deadline - now - CLAIM_LIFE) < timedelta(seconds=30)
    assert after == [
        Signal("claim_expiry", now + timedelta(seconds=90)),
        Signal("operation_late_claimed", late_at(now)),
    ]


async def test_what_a_step_brings_back_corrects_the_time_that_the_next_one_is_armed_by(world: World) -> None:
    await world.one()
    await world.claim()
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    await world.clock.advance(-timedelta(hours=1))
    for _ in range(2):
        now = await world.clock.now()
        heard.clear()
        await world.steps.claim(world.worker, world.lease, world.journal_id)
    deadline = heard[0].deadline
    assert deadline is not None
    assert abs(deadline - now - CLAIM_LIFE) < timedelta(seconds=30)


async def _claim_by_lane_only(world: World) -> UUID:
    row = await world.db.pool.fetchrow(
        "select * from claim_operation($1, 1, $2, $3, $4, $5, $6, 1, false)",
        world.account_id,
        world.worker_id,
        world.journal_id,
        world.club_id,
        world.connection_id,
        world.epoch,
    )
    assert row is not None
    found: UUID = row["operation_id"]
    return found
