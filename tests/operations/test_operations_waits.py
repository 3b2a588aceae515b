"""What changes while a step waits for its lock is seen: locks first, then a new statement judges.

Each case waits for a real lock, observed in the server. The twin is the form that looks the same and is wrong: one
statement that locks and judges, with the very same predicates. It sees the world as it was before the wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from operations_world import BOT, World, assignment

from lastcall.connections.evidence import evidence_body
from lastcall.db.connect import Connection
from lastcall.errors import Conflict, LastcallError
from lastcall.operations.services.cancel import cancel
from lastcall.operations.services.worker import ClaimHeld
from lastcall.protocol.outcomes import Outcome
from lastcall.testing.locks import wait_until_blocked

CLUB = "update club_gates set generation = generation + 1"
CONNECTION = "update connection_gates set generation = generation + 1"
ACCOUNT = "select lock_account((select id from accounts))"
FLEET = "select lock_fleet()"


@dataclass(frozen=True)
class Change:
    """Authority taken away: by whom it is guarded, what changes, and how authorize answers afterwards."""

    gate: str
    statement: str
    code: str


CHANGES = {
    "role revoked": Change(CLUB, "delete from staff_assignments", "staff_permission"),
    "permission taken": Change(CLUB, "update staff_roles set permissions = '{}'", "staff_permission"),
    "allowlist emptied": Change(
        CLUB, "update staff_roles set permitted_provider_role_ids = '{}'", "role_not_assignable"
    ),
    "club archived": Change(
        CLUB, "update clubs set state = 'archived', archived_at = lastcall_now()", "club_inactive"
    ),
    "epoch changed": Change(
        CONNECTION, "update connections set epoch = epoch + interval '1 second'", "connection_changed"
    ),
    "feature switched off": Change(CONNECTION, "update connections set features = '{}'", "feature_disabled"),
    "connection switch": Change(CONNECTION, "update connections set kill_switch = true", "connection_paused"),
    "lease taken over": Change(
        CONNECTION, "update leases set fencing_token = fencing_token + 1", "stale_lease"
    ),
    "fleet switch": Change(FLEET, "update fleet_settings set kill_switch = true", "collector_disabled"),
    "account switch": Change(ACCOUNT, "update accounts set kill_switch = true", "collector_disabled"),
    "key revoked": Change(ACCOUNT, "update worker_keys set revoked_at = now()", "worker_key_refused"),
}

ONE_STATEMENT = """
    with start as materialized (select lastcall_now() as now),
    gates as materialized (select lock_fleet_and_account_shared($1) from start),
    club as materialized (
        select g.club_id from club_gates g where g.club_id = $3 and (select count(*) from gates) = 1 for share),
    connection as materialized (
        select g.connection_id from connection_gates g
         where g.connection_id = $4 and (select count(*) from club) = 1 for share)
    update operations o
       set state = 'submitted', submitted_at = start.now, claim_expires_at = start.now + submission_life()
      from start
     where o.club_id = $3 and o.id = $6 and o.state = 'claimed'
       and (select count(*) from connection) = 1
       and (select c.refusal
              from claim_refusal(is_held_by(o, $1, 1, $2, $4, $5, 1, $7, start.now),
                                 $1, 1, $2, $3, $4, 1, start.now) as c) is null
       and (select a.refusal
              from authority(o.club_id, o.connection_id, o.epoch, o.actor_id, o.due_at, o.payload,
                             $1, 'assign_vrchat_roles', 'membership_management',
                             '{group-roles-assign}', true, start.now) as a) is null
    returning o.state
"""
"""The twin of ``authorize_operation``: locks and judges in one statement."""


@asynccontextmanager
async def another(world: World) -> AsyncIterator[Connection]:
    """A second session, with a transaction open."""
    connection = await world.db.connect()
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield connection
        await transaction.commit()
    finally:
        await connection.close()


async def waiting(world: World, work: Awaitable[Any], holder: Connection) -> asyncio.Future[Any]:
    """``work``, started, once the server says that it waits for what ``holder`` holds."""
    task = asyncio.ensure_future(work)
    await wait_until_blocked(world.db, "select", by=holder.get_server_pid())
    return task


def authorize(world: World, held: ClaimHeld) -> Awaitable[Any]:
    return world.steps.authorize(world.worker, held, "assign_role", world.evidence())


async def twin(world: World, held: ClaimHeld) -> Any:
    return await world.run(
        ONE_STATEMENT,
        world.account_id,
        world.worker_id,
        world.club_id,
        world.connection_id,
        world.epoch,
        held.operation_id,
        held.nonce,
    )


async def give_evidence(world: World) -> None:
    """What authorize brings with it and the twin must find."""
    await world.submitted(assignment(99))


ALSO_ON_15 = ("role revoked", "lease taken over", "fleet switch")
"""One change behind each sort of gate is tried on the oldest server too."""


async def authorize_while(world: World, change: Change) -> str | None:
    """Start to authorize, take authority away while it waits, and answer the code of the refusal."""
    operation_id, held = await world.claimed()
    async with another(world) as other:
        await other.execute(change.gate)
        task = await waiting(world, authorize(world, held), other)
        await other.execute(change.statement)
    try:
        code: str | None = (await task).code
    except LastcallError as error:
        code = error.code
    assert await world.state(operation_id) != "submitted"
    return code


async def twin_while(world: World, change: Change) -> str:
    """The same with the twin; the row's state afterwards."""
    await give_evidence(world)
    operation_id, held = await world.claimed()
    async with another(world) as other:
        await other.execute(change.gate)
        task = await waiting(world, twin(world, held), other)
        await other.execute(change.statement)
    await task
    return await world.state(operation_id)


@pytest.mark.clause("WRK-03")
@pytest.mark.parametrize("name", sorted(set(CHANGES) - set(ALSO_ON_15)))
async def test_what_is_taken_away_while_authorize_waits_is_refused(world: World, name: str) -> None:
    assert await authorize_while(world, CHANGES[name]) == CHANGES[name].code


@pytest.mark.postgres15
@pytest.mark.clause("WRK-03")
@pytest.mark.parametrize("name", ALSO_ON_15)
async def test_what_is_taken_away_during_the_wait_is_refused_by_every_server(world: World, name: str) -> None:
    assert await authorize_while(world, CHANGES[name]) == CHANGES[name].code


@pytest.mark.parametrize("name", sorted(set(CHANGES) - set(ALSO_ON_15)))
async def test_twin_in_one_statement_authorizes_what_was_taken_away(world: World, name: str) -> None:
    assert await twin_while(world, CHANGES[name]) == "submitted"


@pytest.mark.postgres15
@pytest.mark.parametrize("name", ALSO_ON_15)
async def test_twin_in_one_statement_is_wrong_on_every_server(world: World, name: str) -> None:
    assert await twin_while(world, CHANGES[name]) == "submitted"


@pytest.mark.postgres15
@pytest.mark.clause("WRK-17")
async def test_a_claim_that_expires_while_authorize_waits_is_refused(world: World) -> None:
    await world.clock.freeze()
    await world.renew(timedelta(hours=1))
    operation_id, held = await world.claimed()
    async with another(world) as other:
        await other.execute(CONNECTION)
        task = await waiting(world, authorize(world, held), other)
        await world.clock.advance(timedelta(seconds=240))
    assert (await task).code == "claim_unavailable"
    assert await world.state(operation_id) == "claimed"


@pytest.mark.postgres15
async def test_twin_in_one_statement_authorizes_a_claim_that_expired(world: World) -> None:
    await world.clock.freeze()
    await world.renew(timedelta(hours=1))
    await give_evidence(world)
    operation_id, held = await world.claimed()
    async with another(world) as other:
        await other.execute(CONNECTION)
        task = await waiting(world, twin(world, held), other)
        await world.clock.advance(timedelta(seconds=240))
    assert await task == "submitted"
    assert await world.state(operation_id) == "submitted"


@pytest.mark.clause("RCV-04")
async def test_what_becomes_late_while_authorize_waits_is_missed(world: World) -> None:
    now = await world.clock.freeze()
    operation_id, held = await world.claimed(due_at=now - timedelta(minutes=14))
    async with another(world) as other:
        await other.execute(CLUB)
        task = await waiting(world, authorize(world, held), other)
        await world.clock.advance(timedelta(seconds=61))
    assert (await task).code == "late_window_elapsed"
    assert await world.state(operation_id) == "missed"


async def test_evidence_grows_older_while_authorize_waits(world: World) -> None:
    """Its age was true when the call arrived; the twin takes it from the moment after the wait."""
    await world.clock.freeze()
    for kept, code in ((True, "provider_authority"), (False, None)):
        if not kept:
            source = await world.run("select pg_get_functiondef('authorize_operation'::regproc)")
            await world.run(source.replace("v_observed_at);", "judged_at - p_evidence_age);"))
        _, held = await world.claimed(assignment(int(kept)))
        async with another(world) as other:
            await other.execute(CLUB)
            evidence = world.evidence(age_ms=50_000)
            task = await waiting(
                world, world.steps.authorize(world.worker, held, "assign_role", evidence), other
            )
            await world.clock.advance(timedelta(seconds=11))
        assert (await task).code == code


async def test_a_claim_that_expires_while_authorize_waits_to_store_its_evidence_is_refused(
    world: World,
) -> None:
    """Another authorization of the connection is storing the first evidence of this epoch."""
    await world.clock.freeze()
    await world.renew(timedelta(hours=1))
    operation_id, held = await world.claimed()
    async with another(world) as other:
        await other.execute(
            """
            insert into evidence
                   (club_id, connection_id, kind, subject, epoch, body, observed_at, account_id, worker_id)
            values ($1, $2, 'own_member', $3, $4, '{}', lastcall_now(), $5, $6)
            """,
            world.club_id,
            world.connection_id,
            BOT,
            world.epoch,
            world.account_id,
            world.worker_id,
        )
        task = await waiting(world, authorize(world, held), other)
        await world.clock.advance(timedelta(seconds=240))
    assert (await task).code == "claim_unavailable"
    assert await world.state(operation_id) == "claimed"


async def test_two_authorizations_of_one_claim_submit_once(world: World) -> None:
    operation_id, held = await world.claimed()
    async with another(world) as other:
        await other.fetch("select from operations where id = $1 for no key update", operation_id)
        first = await waiting(world, authorize(world, held), other)
        second = asyncio.ensure_future(authorize(world, held))
    verdicts = [await first, await second]
    assert sorted((verdict.is_authorized, verdict.code) for verdict in verdicts) == [
        (False, "claim_unavailable"),
        (True, None),
    ]


async def test_cancel_before_authorize_leaves_nothing_to_send(world: World) -> None:
    operation_id, held = await world.claimed()
    async with another(world) as other:
        await other.execute(
            "select settle_unsent($1, $2, 'cancelled', 'cancelled_by_staff', lastcall_now())",
            world.club_id,
            operation_id,
        )
        task = await waiting(world, authorize(world, held), other)
    assert (await task).code == "claim_unavailable"
    assert await world.state(operation_id) == "cancelled"


async def test_authorize_before_cancel_makes_the_cancel_too_late(world: World) -> None:
    operation_id, held = await world.claimed()
    async with another(world) as other:
        row = await other.fetchrow(
            "select * from authorize_operation($1, 1, $2, $3, $4, $5, 1, $6, $7, 'assign_role',"
            " 'assign_vrchat_roles', 'membership_management', true, $8, '0', false, null, false, null)",
            world.account_id,
            world.worker_id,
            world.club_id,
            world.connection_id,
            world.epoch,
            operation_id,
            held.nonce,
            _stored(world),
        )
        assert row["outcome"] == "authorized"
        task = await waiting(
            world, cancel(world.db, world.moderator, world.club_id, operation_id, revision=1), other
        )
    with pytest.raises(Conflict) as refusal:
        await task
    assert refusal.value.code == "operation_not_cancellable"
    assert refusal.value.fresh.state == "submitted"
    assert await world.state(operation_id) == "submitted"


@pytest.mark.clause("WRK-10", "RCV-08")
@pytest.mark.parametrize("first", ["complete", "recovery"])
async def test_complete_and_recovery_cannot_both_win(world: World, first: str) -> None:
    await world.clock.freeze()
    operation_id, held = await world.submitted()
    row = await world.row(operation_id)
    await world.clock.advance(timedelta(seconds=120))
    recover = ("select recover_submission($1, $2, $3, $4)", world.club_id, operation_id, held.nonce)
    async with another(world) as other:
        if first == "recovery":
            assert await other.fetchval(*recover, row["claim_expires_at"])
            work: Awaitable[Any] = world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
        else:
            await other.fetch("select from operations where id = $1 for no key update", operation_id)
            await other.execute(
                "select complete_operation($1, 1, $2, $3, $4, $5, 1, $6, $7, 'succeeded', null, null, $6)",
                world.account_id,
                world.worker_id,
                world.club_id,
                world.connection_id,
                world.epoch,
                operation_id,
                held.nonce,
            )
            work = world.run(*recover, row["claim_expires_at"])
        task = await waiting(world, work, other)
    if first == "recovery":
        settled = await task
        assert not settled.is_recorded
        assert settled.state == "indeterminate"
        assert settled.is_kept_as_evidence
        assert await world.state(operation_id) == "indeterminate"
    else:
        assert await task is False
        assert await world.state(operation_id) == "succeeded"


@pytest.mark.clause("WRK-05")
async def test_a_key_revoked_while_complete_waits_records_nothing(world: World) -> None:
    operation_id, held = await world.submitted()
    async with another(world) as other:
        await other.execute(ACCOUNT)
        task = await waiting(world, world.steps.complete(world.worker, held, Outcome.SUCCEEDED), other)
        await other.execute("update worker_keys set revoked_at = now()")
    with pytest.raises(LastcallError) as refusal:
        await task
    assert refusal.value.code == "worker_key_refused"
    assert await world.state(operation_id) == "submitted"


@pytest.mark.clause("RCV-08")
async def test_submission_and_lateness_cannot_both_win(world: World) -> None:
    """Whichever holds the row first decides; the other finds nothing left to do."""
    now = await world.clock.freeze()
    operation_id, _ = await world.claimed(due_at=now - timedelta(minutes=14))
    miss = ("select count(*) from miss_late($1, $2)", [world.club_id], [operation_id])
    async with another(world) as other:
        await other.execute(
            "update operations set state = 'submitted', submitted_at = lastcall_now() where id = $1",
            operation_id,
        )
        await world.clock.advance(timedelta(minutes=2))
        task = await waiting(world, world.run(*miss), other)
    assert await task == 0
    assert await world.state(operation_id) == "submitted"

    await world.renew(timedelta(hours=1))
    late_id, late_held = await world.claimed(assignment(2), due_at=now - timedelta(minutes=12))
    await world.clock.advance(timedelta(minutes=2))
    async with another(world) as other:
        assert await other.fetchval(miss[0], [world.club_id], [late_id]) == 1
        task = await waiting(world, authorize(world, late_held), other)
    assert (await task).code == "claim_unavailable"
    assert await world.state(late_id) == "missed"


def _stored(world: World) -> str:
    return evidence_body(world.evidence())
