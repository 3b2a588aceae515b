"""Terminal is terminal: all steps against all states, at three times."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from operations_world import World

from lastcall.errors import LastcallError
from lastcall.operations.machine import State, moves
from lastcall.operations.services.cancel import cancel
from lastcall.operations.services.worker import ClaimHeld
from lastcall.protocol.outcomes import Outcome

Step = Callable[[World, UUID, ClaimHeld], Awaitable[Any]]


def _expire(routine: str) -> Step:
    async def step(world: World, operation_id: UUID, held: ClaimHeld) -> Any:
        row = await world.row(operation_id)
        expires_at = row["claim_expires_at"]
        statement = f"select {routine}($1, $2, $3, $4)"
        return await world.run(statement, world.club_id, operation_id, held.nonce, expires_at)

    return step


STEPS: dict[str, Step] = {
    "claim": lambda world, _, held: world.steps.claim(world.worker, world.lease, world.journal_id),
    "authorize": lambda world, _, held: world.steps.authorize(
        world.worker, held, "assign_role", world.evidence()
    ),
    "authorize refused": lambda world, _, held: world.steps.authorize(
        world.worker, held, "assign_role", world.evidence(permissions=())
    ),
    "complete succeeded": lambda world, _, held: world.steps.complete(world.worker, held, Outcome.SUCCEEDED),
    "complete rejected": lambda world, _, held: world.steps.complete(
        world.worker, held, Outcome.REJECTED, "timeout"
    ),
    "complete unknown": lambda world, _, held: world.steps.complete(
        world.worker, held, Outcome.INDETERMINATE, "timeout"
    ),
    "reject": lambda world, _, held: world.steps.reject(world.worker, held, "role_scope"),
    "defer": lambda world, _, held: world.steps.defer(world.worker, held, "timeout", 1.0),
    "defer too long": lambda world, _, held: world.steps.defer(world.worker, held, "timeout", 1e9),
    "cancel": lambda world, operation_id, held: cancel(
        world.db, world.moderator, world.club_id, operation_id, 1
    ),
    "expire claim": _expire("expire_claim"),
    "recover submission": _expire("recover_submission"),
    "miss": lambda world, operation_id, held: world.run(
        "select count(*) from miss_late($1, $2)", [world.club_id], [operation_id]
    ),
    "return claims": lambda world, _, held: world.run(
        "select count(*) from return_claims($1, $2)", world.account_id, world.worker_id
    ),
    "settle unattempted": lambda world, _, held: world.run(
        "select count(*) from settle_unattempted($1, $2, $3, '{}')",
        world.account_id,
        world.worker_id,
        world.journal_id,
    ),
    "epoch ended": lambda world, _, held: world.run(
        "select clean_up_epoch(e.club_id, e.connection_id, e.epoch, 50)"
        "  from (select $1::uuid, $2::uuid, $3::timestamptz,"
        "               note_ended_epoch($1, $2, $3, 'connection_changed')) as e (club_id, connection_id, epoch)",
        world.club_id,
        world.connection_id,
        world.epoch,
    ),
}

BEFORE_DUE = timedelta(0)
PAST_EVERYTHING = timedelta(minutes=16)


@pytest.mark.clause("WRK-10", "WRK-12")
@pytest.mark.parametrize(
    "later", [BEFORE_DUE, timedelta(seconds=241), PAST_EVERYTHING], ids=["now", "expired", "late"]
)
async def test_every_step_from_every_state_moves_as_the_machine_says(world: World, later: timedelta) -> None:
    """All steps against all states at three times: what they do is allowed, and a terminal row never changes."""
    now = await world.clock.freeze()
    await world.renew(timedelta(hours=2))
    seen: set[tuple[State, State]] = set()
    for state in State:
        for name, step in STEPS.items():
            await world.run("delete from late_results")
            await world.run("delete from operations")
            await world.clock.set(now)
            await world.run("delete from evidence")
            operation_id, held = await _row_in(world, state)
            await world.clock.advance(later)
            before = await world.row(operation_id)
            try:
                await step(world, operation_id, held)
            except LastcallError as error:
                assert error.status == 409, (state, name)  # noqa: PT017 - the answer of a cancel that came too late
            after = await world.row(operation_id)
            if state.is_terminal:
                assert after == before, (state, name)
            elif after != before:
                seen.add((state, State(after["state"])))
    assert seen <= moves()
    expected = {
        BEFORE_DUE: {
            (State.PENDING, State.CLAIMED),
            (State.PENDING, State.CANCELLED),
            (State.PENDING, State.REJECTED),
            (State.CLAIMED, State.SUBMITTED),
            (State.CLAIMED, State.PENDING),
            (State.CLAIMED, State.REJECTED),
            (State.CLAIMED, State.MISSED),
            (State.CLAIMED, State.CANCELLED),
            *((State.SUBMITTED, end) for end in (State.SUCCEEDED, State.REJECTED, State.INDETERMINATE)),
        },
        timedelta(seconds=241): {(State.CLAIMED, State.PENDING), (State.SUBMITTED, State.INDETERMINATE)},
        PAST_EVERYTHING: {(State.PENDING, State.MISSED), (State.CLAIMED, State.MISSED)},
    }[later]
    assert expected <= seen


async def _row_in(world: World, state: State) -> tuple[UUID, ClaimHeld]:
    """An operation in that state, and the claim it had, if only a moment ago."""
    key = f"request-{uuid4()}"
    if state is State.PENDING:
        operation_id = await world.one(key=key)
        nobody = ClaimHeld(world.club_id, world.connection_id, world.epoch, 1, operation_id, uuid4())
        return operation_id, nobody
    if state in {State.CLAIMED, State.MISSED, State.CANCELLED}:
        operation_id, held = await world.claimed(key=key)
        if state is State.MISSED:
            await world.steps.defer(world.worker, held, "timeout", 1e9)
        elif state is State.CANCELLED:
            await cancel(world.db, world.moderator, world.club_id, operation_id, 1)
        return operation_id, held
    operation_id, held = await world.submitted(key=key)
    if state.is_terminal:
        await world.steps.complete(world.worker, held, Outcome(state.value), "timeout")
    return operation_id, held
