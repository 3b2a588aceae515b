"""Complete, reject and defer: how an operation ends, and that nothing overwrites an end."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from operations_world import ROLE, World, assignment

from lastcall.connections.worker import Worker
from lastcall.db.database import Database
from lastcall.deadlines.signals import Signal
from lastcall.errors import Disabled, Invalid, LastcallError, NotSignedIn, Unavailable
from lastcall.operations.machine import State, moves
from lastcall.operations.schedules import late_at
from lastcall.operations.services.cancel import cancel
from lastcall.operations.services.worker import ClaimHeld, WorkerSteps
from lastcall.protocol.constants import GRACE
from lastcall.protocol.messages import RoleSeen
from lastcall.protocol.outcomes import Outcome
from lastcall.testing.proxy import Cut, CuttingProxy

MINUTE = timedelta(minutes=1)


@pytest.mark.clause("WRK-04")
@pytest.mark.parametrize(
    ("outcome", "code"),
    [(Outcome.SUCCEEDED, None), (Outcome.REJECTED, "already_banned"), (Outcome.INDETERMINATE, "timeout")],
)
async def test_complete_records_the_outcome_of_exactly_that_claim(
    world: World, outcome: Outcome, code: str | None
) -> None:
    now = await world.clock.freeze()
    operation_id, held = await world.submitted()
    settled = await world.steps.complete(world.worker, held, outcome, code, {"roleId": "grol_x"})
    assert (settled.is_recorded, settled.state, settled.code) == (True, State(outcome.value), code)
    row = await world.row(operation_id)
    assert (row["state"], row["code"], json.loads(row["result"])) == (
        outcome.value,
        code,
        {"roleId": "grol_x"},
    )
    assert row["completed_at"] == now
    assert row["claim_nonce"] == held.nonce


@pytest.mark.clause("WRK-04")
async def test_a_result_is_bounded(world: World) -> None:
    operation_id, held = await world.submitted()
    for result in ({"x": "y" * 601}, {str(n): "" for n in range(11)}, {"n" * 101: ""}):
        with pytest.raises(Invalid) as refusal:
            await world.steps.complete(world.worker, held, Outcome.SUCCEEDED, result=result)
        assert refusal.value.field == "result"
    for code in (None, "No Code", "x" * 101):
        with pytest.raises(Invalid) as refusal:
            await world.steps.complete(world.worker, held, Outcome.REJECTED, code)
        assert refusal.value.field == "code"
    assert await world.state(operation_id) == "submitted"
    full = {str(n): "\N{SNOWMAN}" * 600 for n in range(4)}
    assert (await world.steps.complete(world.worker, held, Outcome.SUCCEEDED, result=full)).is_recorded


async def test_a_reason_this_version_does_not_know_is_no_lost_result(world: World) -> None:
    operation_id, held = await world.submitted()
    await world.steps.complete(world.worker, held, Outcome.REJECTED, "reason_of_tomorrow")
    assert (await world.row(operation_id))["code"] == "unrecognized"


@pytest.mark.clause("WRK-05")
@pytest.mark.parametrize(
    "wrong", ["nonce", "fencing_token", "epoch", "connection_id", "worker", "account", "claimed"]
)
async def test_complete_is_judged_by_every_field_of_the_claim(world: World, wrong: str) -> None:
    operation_id, held = await (world.claimed() if wrong == "claimed" else world.submitted())
    worker = world.worker
    if wrong == "worker":
        worker = replace(worker, worker_id=uuid4())
    elif wrong == "account":
        worker = await _other_account(world)
    elif wrong != "claimed":
        other = {"fencing_token": 2, "epoch": world.epoch + MINUTE}.get(wrong, uuid4())
        held = replace(held, **{wrong: other})
    before = await world.row(operation_id)
    settled = await world.steps.complete(worker, held, Outcome.SUCCEEDED)
    assert (settled.is_recorded, settled.state, settled.code) == (False, None, "claim_unavailable")
    assert await world.row(operation_id) == before


EVERYTHING_CHANGED = [
    "update connections set state = 'disconnected'",
    "update connections set epoch = epoch + interval '1 day'",
    "update connections set kill_switch = true",
    "update connections set frozen_at = now(), frozen_reason = 'x'",
    "update fleet_settings set kill_switch = true",
    "update accounts set kill_switch = true",
    *(
        f"update accounts set state = '{state}', cooldown_until = now() + interval '1 day'"
        for state in (
            "provisioning",
            "degraded",
            "cooldown",
            "auth_required",
            "quarantined",
            "retiring",
            "retired",
        )
    ),
    "update leases set expires_at = lastcall_now()",
    "update leases set released_at = lastcall_now()",
    "update leases set fencing_token = 9, worker_id = gen_random_uuid()",
    "update operations set claim_expires_at = lastcall_now() - interval '1 hour'",
    "delete from staff_assignments",
]


@pytest.mark.clause("WRK-06", "WRK-07")
@pytest.mark.parametrize("change", EVERYTHING_CHANGED)
async def test_an_authenticated_result_is_kept_whatever_changed_and_nothing_else_passes(
    world: World, change: str
) -> None:
    operation_id, held = await world.submitted(assignment(1))
    unsent_id, unsent = await world.claimed(assignment(2))
    await world.run(change)
    for step in (
        world.steps.reject(world.worker, unsent, "role_scope"),
        world.steps.defer(world.worker, unsent, "timeout", 1.0),
    ):
        if change == "delete from staff_assignments":
            step.close()
        else:
            assert not await _is_recorded(step)
            assert await world.state(unsent_id) == "claimed"
    assert (await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)).is_recorded
    assert await world.state(operation_id) == "succeeded"


@pytest.mark.clause("WRK-08", "WRK-20")
async def test_the_newest_key_reports_the_original_claim_and_no_other_does(world: World) -> None:
    operation_id, held = await world.submitted()
    await world.run("update accounts set credential_generation = 2")
    await world.run(
        "insert into worker_keys (account_id, generation, key_hash) values ($1, 2, $2)",
        world.account_id,
        b"2" * 32,
    )
    with pytest.raises(NotSignedIn):
        await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
    assert await world.state(operation_id) == "submitted"
    newer = replace(world.worker, generation=2)
    assert (await world.steps.complete(newer, held, Outcome.SUCCEEDED)).is_recorded
    row = await world.row(operation_id)
    assert (row["state"], row["claim_generation"]) == ("succeeded", 1)

    _, held = await world.submitted_by(newer, assignment(2))
    await world.run("update worker_keys set revoked_at = lastcall_now() where generation = 2")
    with pytest.raises(NotSignedIn):
        await world.steps.complete(newer, held, Outcome.SUCCEEDED)


@pytest.mark.clause("WRK-09", "WRK-10")
async def test_a_duplicate_or_late_result_changes_nothing_and_lets_nothing_out(world: World) -> None:
    operation_id, held = await world.submitted()
    assert (await world.steps.complete(world.worker, held, Outcome.REJECTED, "already_banned")).is_recorded
    before = await world.row(operation_id)
    for outcome in Outcome:
        again = await world.steps.complete(world.worker, held, outcome, "timeout")
        assert (again.is_recorded, again.state, again.code) == (False, State.REJECTED, "already_banned")
        assert not again.is_kept_as_evidence
    assert await world.row(operation_id) == before
    assert (
        await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    ).code == "claim_unavailable"
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None


@pytest.mark.clause("WRK-10")
async def test_a_result_after_the_expiry_counts_while_the_row_is_submitted_and_is_evidence_afterwards(
    world: World,
) -> None:
    await world.clock.freeze()
    in_time, first = await world.submitted(assignment(1))
    unknown, second = await world.submitted(assignment(2))
    await world.clock.advance(timedelta(hours=1))
    assert (await world.steps.complete(world.worker, first, Outcome.SUCCEEDED)).is_recorded
    assert await world.state(in_time) == "succeeded"

    row = await world.row(unknown)
    assert await world.run(
        "select recover_submission($1, $2, $3, $4)",
        world.club_id,
        unknown,
        second.nonce,
        row["claim_expires_at"],
    )
    before = await world.row(unknown)
    for outcome, is_kept in (
        (Outcome.INDETERMINATE, False),
        (Outcome.SUCCEEDED, True),
        (Outcome.REJECTED, False),
    ):
        late = await world.steps.complete(world.worker, second, outcome, "timeout", {"roleId": "x"})
        assert (late.is_recorded, late.state, late.is_kept_as_evidence) == (
            False,
            State.INDETERMINATE,
            is_kept,
        )
    assert await world.row(unknown) == before
    kept = await world.db.pool.fetchrow("select * from late_results where operation_id = $1", unknown)
    assert kept is not None
    assert (kept["outcome"], kept["code"], json.loads(kept["result"])) == ("succeeded", None, {"roleId": "x"})


@pytest.mark.clause("WRK-13")
async def test_authorized_but_not_sent_ends_as_rejected_and_is_not_queued_again(world: World) -> None:
    operation_id, held = await world.submitted()
    await world.steps.complete(world.worker, held, Outcome.REJECTED, "submission_not_attempted")
    row = await world.row(operation_id)
    assert (row["state"], row["code"]) == ("rejected", "submission_not_attempted")
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None


@pytest.mark.clause("WRK-04", "WRK-14")
async def test_reject_is_for_what_was_never_submitted(world: World) -> None:
    operation_id, held = await world.claimed(assignment(1))
    settled = await world.steps.reject(world.worker, held, "operation_budget_too_low")
    assert (settled.is_recorded, settled.state) == (True, State.REJECTED)
    row = await world.row(operation_id)
    assert (row["code"], row["claim_nonce"], row["submitted_at"]) == ("operation_budget_too_low", None, None)

    # The answer to authorize was lost; the worker rejects, and that settles nothing.
    operation_id, held = await world.submitted(assignment(2))
    settled = await world.steps.reject(world.worker, held, "preflight_failed")
    assert (settled.is_recorded, settled.code) == (False, "claim_unavailable")
    assert await world.state(operation_id) == "submitted"


# --- defer --------------------------------------------------------------------------------------------------


@pytest.mark.clause("WRK-18", "RCV-09")
@pytest.mark.parametrize(
    ("delay", "waits"),
    [
        (None, 60.0),
        (0.0, 1.0),
        (0.5, 1.0),
        (1.0, 1.0),
        (90.5, 90.5),
        (60.0000001, 60.000001),
        (900.0, 900.0),
    ],
)
async def test_a_deferral_waits_in_full_and_may_end_exactly_at_the_deadline(
    world: World, delay: float | None, waits: float
) -> None:
    now = await world.clock.freeze()
    operation_id, held = await world.claimed()
    settled = await world.steps.defer(world.worker, held, "rate_limit", delay)
    assert (settled.is_recorded, settled.state, settled.code) == (True, State.PENDING, "rate_limit")
    row = await world.row(operation_id)
    assert row["ready_at"] == now + timedelta(seconds=waits)
    assert row["due_at"] == now
    assert row["preflight_failures"] == 1
    await world.renew(timedelta(hours=1))
    await world.clock.advance(timedelta(seconds=waits) - timedelta(microseconds=1))
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None
    await world.clock.advance(timedelta(microseconds=1))
    claimed = await world.claim()
    assert (claimed.operation_id, claimed.nonce != held.nonce) == (operation_id, True)


@pytest.mark.clause("RCV-09")
@pytest.mark.parametrize("delay", [900.001, 1800.0, 3600.0, 1e18, 1.7976931348623157e308])
async def test_a_delay_beyond_the_grace_is_missed_at_once(world: World, delay: float) -> None:
    await world.clock.freeze()
    operation_id, held = await world.claimed()
    settled = await world.steps.defer(world.worker, held, "rate_limit", delay)
    assert (settled.state, settled.code) == (State.MISSED, "late_window_elapsed")
    row = await world.row(operation_id)
    assert (row["state"], row["claim_nonce"], row["preflight_failures"]) == ("missed", None, 0)
    again = await world.steps.defer(world.worker, held, "rate_limit", delay)
    assert (again.is_recorded, again.code) == (False, "claim_unavailable")
    assert await world.row(operation_id) == row


@pytest.mark.clause("RCV-09")
@pytest.mark.parametrize("delay", [-1.0, -1e-9, math.nan, math.inf, -math.inf])
async def test_a_delay_that_is_no_delay_is_refused_and_leaves_the_claim(world: World, delay: float) -> None:
    operation_id, held = await world.claimed()
    before = await world.row(operation_id)
    with pytest.raises(Invalid) as refusal:
        await world.steps.defer(world.worker, held, "timeout", delay)
    assert refusal.value.field == "delayMs"
    assert await world.row(operation_id) == before


@pytest.mark.clause("WRK-18")
async def test_the_third_transient_failure_ends_it(world: World) -> None:
    await world.clock.freeze()
    await world.renew(timedelta(hours=1))
    operation_id, held = await world.claimed()
    for expected in (State.PENDING, State.PENDING, State.REJECTED):
        settled = await world.steps.defer(world.worker, held, "timeout", 1.0)
        assert settled.state is expected
        await world.clock.advance(timedelta(seconds=1))
        if expected is State.PENDING:
            held = world.held(await world.claim())
    assert (await world.row(operation_id))["code"] == "preflight_retries_exhausted"


@pytest.mark.clause("WRK-18")
async def test_submitted_work_is_never_deferred(world: World) -> None:
    operation_id, held = await world.submitted()
    settled = await world.steps.defer(world.worker, held, "timeout", 1.0)
    assert not settled.is_recorded
    assert await world.state(operation_id) == "submitted"


@pytest.mark.clause("RCV-09")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    delay=st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 1000),
    used=st.integers(0, 15 * 60 * 1_000_000),
)
async def test_any_delay_is_compared_in_full_and_never_shortened(
    world: World, delay: float, used: int
) -> None:
    """Whatever the number, the row waits at least that long or not at all."""
    now = await world.clock.freeze()
    await world.run("delete from operations")
    await world.renew(timedelta(hours=1))
    due_at = now - timedelta(microseconds=used)
    operation_id, held = await world.claimed(due_at=due_at)
    if not math.isfinite(delay) or delay < 0:
        with pytest.raises(Invalid):
            await world.steps.defer(world.worker, held, "timeout", delay)
        assert await world.state(operation_id) == "claimed"
        return
    await world.steps.defer(world.worker, held, "timeout", delay)
    row = await world.row(operation_id)
    left = (due_at + GRACE - now) / timedelta(microseconds=1)
    wanted = max(delay, 1.0) * 1e6
    if row["state"] == "pending":
        waited = (row["ready_at"] - now) / timedelta(microseconds=1)
        assert wanted <= waited + 1e-3
        assert waited <= left
    else:
        assert row["state"] == "missed"
        assert wanted == math.inf or math.ceil(wanted) > left - 1


async def test_a_deferral_says_when_the_row_is_ready_and_when_it_is_late(world: World) -> None:
    now = await world.clock.freeze()
    _, held = await world.claimed()
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    await world.steps.defer(world.worker, held, "timeout", 5.0)
    assert heard == [
        Signal("operation_late_pending", late_at(now)),
        Signal(f"work:{world.account_id}", now + timedelta(seconds=5)),
    ]


async def test_a_deferral_whose_commit_is_unclear_is_still_missed_in_time(world: World) -> None:
    """Due ten minutes ago, it is late in five: that must be armed although the answer never came."""
    await world.clock.freeze()
    due_at = await world.clock.now() - 10 * MINUTE
    operation_id, held = await world.claimed(due_at=due_at)
    async with CuttingProxy(world.db.url) as proxy:
        through = await Database.open(proxy.url)
        unclear: list[object] = []
        through.bus.subscribe_unclear(lambda messages, _xid: unclear.extend(messages))
        proxy.arm(Cut.AFTER)
        with pytest.raises(Unavailable):
            await WorkerSteps(through).defer(world.worker, held, "timeout", 5.0)
        await through.close()
    assert await world.state(operation_id) == "pending"
    assert Signal("operation_late_pending", late_at(due_at)) in unclear
    assert f"work:{world.account_id}" in {message.owner for message in unclear if isinstance(message, Signal)}


async def test_what_vrchat_said_never_costs_an_outcome(world: World) -> None:
    operation_id, held = await world.submitted()
    result = {f"message{n}": "\x00" + "\u3042" * 599 for n in range(10)}
    settled = await world.steps.complete(world.worker, held, Outcome.REJECTED, "provider_error", result)
    assert settled.is_recorded
    stored = json.loads((await world.row(operation_id))["result"])
    assert set(stored) == set(result)
    assert all(text.startswith("\ufffd\u3042") for text in stored.values())


async def test_a_role_name_with_a_zero_character_is_evidence_all_the_same(world: World) -> None:
    _, held = await world.claimed()
    roles = (RoleSeen(id=ROLE, name="Re\x00gular"),)
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence(roles=roles))
    assert verdict.is_authorized


# --- terminal is terminal ------------------------------------------------------------------------------------

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
    "reject unsent": lambda world, _, held: world.run(
        "select reject_unsent($1, $2, $3, 'connection_changed')",
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


async def _is_recorded(step: Awaitable[Any]) -> bool:
    try:
        return bool((await step).is_recorded)
    except (Disabled, NotSignedIn):
        return False


async def _other_account(world: World) -> Worker:
    other = uuid4()
    await world.run(
        "insert into accounts (id, alias, vrchat_user_id, state, credential_generation)"
        " values ($1, 'other', 'usr_other', 'ready', 1)",
        other,
    )
    await world.run(
        "insert into worker_keys (account_id, generation, key_hash) values ($1, 1, $2)", other, b"o" * 32
    )
    return Worker(other, 1, world.worker_id, "usr_other")
