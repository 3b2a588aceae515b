"""Kill and stop the real processes at every barrier: the ledger holds no action twice, no row is lost.

Each row ends where the machine says: what the journal proves is *not sent*, what it leaves open is *unknown*, and an
answer that reached it counts while the two minutes last.
"""

from __future__ import annotations

from collections import Counter

import pytest
from kill_house import House

from lastcall.protocol.steps import Step
from lastcall.vrchat.simulator import faults

pytestmark = [pytest.mark.kill, pytest.mark.asyncio(loop_scope="module")]

SENT = ("succeeded", None, 1)
NOT_SENT = ("rejected", "submission_not_attempted", 0)
UNKNOWN = "submission_outcome_unknown"
PAST_THE_CLAIM = 310.0
"""Seconds: beyond the claim, the lease and the reservation."""

PAST_THE_SUBMISSION = 125.0
"""Seconds: beyond the two minutes of a submission."""

End = tuple[str, str | None, int]


async def end_of(house: House, operation_id) -> End:
    row = await house.ended(operation_id)
    return row.state, row.code, await house.sent(operation_id)


# --- SIGKILL of the collector


@pytest.mark.clause("RCV-11")
@pytest.mark.parametrize(
    ("step", "ends"),
    [
        (Step.CLAIM_ANSWERED, {SENT}),
        (Step.PREFLIGHT_DONE, {SENT}),
        (Step.AUTHORIZE_SENT, {SENT, NOT_SENT}),
        (Step.AUTHORIZE_ANSWERED, {NOT_SENT}),
        (Step.INTENT_FSYNCED, {("indeterminate", UNKNOWN, 0)}),
        (Step.FIRST_BYTE_OUT, {("indeterminate", UNKNOWN, 0), ("indeterminate", UNKNOWN, 1)}),
        (Step.REPLY_READ, {("indeterminate", UNKNOWN, 1)}),
        (Step.ANSWER_FSYNCED, {SENT}),
        (Step.COMPLETE_SENT, {SENT}),
        (Step.COMPLETE_ANSWERED, {SENT}),
    ],
)
async def test_a_collector_killed_at_any_step_leaves_a_row_that_ends_rightly(
    house: House, step: Step, ends: set[End]
) -> None:
    house.barriers.arm(step)
    [operation] = await house.enqueue()
    await house.barriers.reached(step)
    house.kill("collector")
    await house.start("collector")
    assert await end_of(house, operation) in ends


@pytest.mark.clause("WRK-14")
async def test_a_collector_killed_after_the_write_was_applied_ends_as_unknown(house: House) -> None:
    await house.simulator.arm(faults.hold("applied", "applied"), method="PUT")
    [operation] = await house.enqueue()
    await house.simulator.reached("applied")
    house.kill("collector")
    await house.simulator.release("applied")
    await house.start("collector")
    assert await end_of(house, operation) == ("indeterminate", UNKNOWN, 1)


@pytest.mark.clause("WRK-10", "WRK-12")
async def test_an_answer_reported_after_the_two_minutes_is_kept_beside_the_row(house: House) -> None:
    house.barriers.arm(Step.ANSWER_FSYNCED)
    [operation] = await house.enqueue()
    await house.barriers.reached(Step.ANSWER_FSYNCED)
    house.kill("collector")
    await house.advance(PAST_THE_SUBMISSION)
    await house.in_state(operation, "indeterminate")
    await house.start("collector")
    await house.has_late_results(operation, ["succeeded"])
    assert await end_of(house, operation) == ("indeterminate", UNKNOWN, 1)


# --- SIGKILL of the server


@pytest.mark.parametrize(
    ("barrier", "end"),
    [
        ("claim_operation.before", SENT),
        ("claim_operation.after", SENT),
        ("authorize_operation.before", SENT),
        ("authorize_operation.after", NOT_SENT),
        ("complete_operation.before", SENT),
        ("complete_operation.after", SENT),
    ],
)
async def test_a_server_killed_around_a_step_loses_no_row_and_sends_nothing_twice(
    house: House, barrier: str, end: End
) -> None:
    house.barriers.arm(barrier)
    [operation] = await house.enqueue()
    await house.barriers.reached(barrier)
    house.kill("server")
    await house.start("server")
    assert await end_of(house, operation) == end


@pytest.mark.parametrize(
    ("step", "ends"), [(Step.PREFLIGHT_DONE, {NOT_SENT, SENT}), (Step.ANSWER_FSYNCED, {SENT})]
)
async def test_a_server_killed_inside_a_transaction_leaves_what_the_database_decides(
    house: House, step: Step, ends: set[End]
) -> None:
    """The step waits for the row's lock as its process dies; the database goes on with it alone."""
    house.barriers.arm(step)
    [operation] = await house.enqueue()
    await house.barriers.reached(step)
    lock = await house.lock_row(operation)
    house.barriers.release(step)
    await house.waits_for_lock()
    house.kill("server")
    await lock.close()
    await house.start("server")
    assert await end_of(house, operation) in ends


async def test_a_server_killed_in_a_hello_takes_the_claims_back_at_the_next(house: House) -> None:
    house.barriers.arm(Step.CLAIM_ANSWERED)
    [operation] = await house.enqueue()
    await house.barriers.reached(Step.CLAIM_ANSWERED)
    house.kill("collector")
    house.barriers.arm("return_claims.after")
    await house.start("collector")
    await house.barriers.reached("return_claims.after")
    house.kill("server")
    await house.in_state(operation, "claimed")
    await house.start("server")
    assert await end_of(house, operation) == SENT


# --- SIGKILL of PostgreSQL


@pytest.mark.parametrize(
    ("step", "ends"),
    [
        (Step.PREFLIGHT_DONE, {SENT}),
        (Step.AUTHORIZE_ANSWERED, {SENT}),
        (Step.INTENT_FSYNCED, {SENT}),
        (Step.ANSWER_FSYNCED, {SENT}),
    ],
)
async def test_a_database_killed_in_between_forgets_no_authorization(
    house: House, step: Step, ends: set[End]
) -> None:
    house.barriers.arm(step)
    [operation] = await house.enqueue()
    await house.barriers.reached(step)
    await house.kill_postgres()
    house.barriers.release(step)
    assert await end_of(house, operation) in ends


async def test_a_database_killed_inside_authorize_has_authorized_nothing(house: House) -> None:
    house.barriers.arm(Step.PREFLIGHT_DONE)
    [operation] = await house.enqueue()
    await house.barriers.reached(Step.PREFLIGHT_DONE)
    lock = await house.lock_row(operation)
    house.barriers.release(Step.PREFLIGHT_DONE)
    await house.waits_for_lock()
    await house.kill_postgres()
    lock.terminate()
    assert await end_of(house, operation) == SENT


# --- SIGSTOP, SIGCONT


async def test_a_collector_stopped_past_claim_and_lease_starts_over(house: House) -> None:
    house.barriers.arm(Step.PREFLIGHT_DONE)
    [operation] = await house.enqueue()
    await house.barriers.reached(Step.PREFLIGHT_DONE)
    house.pause("collector")
    await house.advance(PAST_THE_CLAIM)
    await house.in_state(operation, "pending")
    house.resume("collector")
    house.barriers.release(Step.PREFLIGHT_DONE)
    assert await end_of(house, operation) == SENT


@pytest.mark.clause("WRK-13")
@pytest.mark.parametrize("step", [Step.AUTHORIZE_ANSWERED, Step.INTENT_FSYNCED])
async def test_a_collector_stopped_past_the_window_sends_nothing_when_it_wakes(
    house: House, step: Step
) -> None:
    house.barriers.arm(step)
    [operation] = await house.enqueue()
    await house.barriers.reached(step)
    house.pause("collector")
    await house.advance(PAST_THE_SUBMISSION)
    await house.in_state(operation, "indeterminate")
    house.resume("collector")
    house.barriers.release(step)
    await house.has_late_results(operation, ["rejected"])
    assert await end_of(house, operation) == ("indeterminate", UNKNOWN, 0)


@pytest.mark.clause("WRK-10")
async def test_a_collector_stopped_on_the_wire_reports_late_and_changes_nothing(house: House) -> None:
    house.barriers.arm(Step.REPLY_READ)
    [operation] = await house.enqueue()
    await house.barriers.reached(Step.REPLY_READ)
    house.pause("collector")
    await house.advance(PAST_THE_SUBMISSION)
    await house.in_state(operation, "indeterminate")
    house.resume("collector")
    house.barriers.release(Step.REPLY_READ)
    await house.has_late_results(operation, ["succeeded"])
    assert await end_of(house, operation) == ("indeterminate", UNKNOWN, 1)


async def test_a_server_stopped_after_the_authorization_leads_to_no_late_write(house: House) -> None:
    house.barriers.arm("authorize_operation.after")
    [operation] = await house.enqueue()
    await house.barriers.reached("authorize_operation.after")
    house.pause("server")
    await house.advance(PAST_THE_SUBMISSION)
    house.resume("server")
    house.barriers.release("authorize_operation.after")
    assert await end_of(house, operation) in {("indeterminate", UNKNOWN, 0), NOT_SENT}


async def test_a_server_stopped_past_the_claim_it_gave_leads_to_a_new_claim(house: House) -> None:
    house.barriers.arm("claim_operation.after")
    [operation] = await house.enqueue()
    await house.barriers.reached("claim_operation.after")
    house.pause("server")
    await house.advance(PAST_THE_CLAIM)
    house.resume("server")
    house.barriers.release("claim_operation.after")
    assert await end_of(house, operation) == SENT


# --- at last


async def test_a_batch_survives_a_collector_that_is_killed_again_and_again(house: House) -> None:
    operations = await house.enqueue(12)
    for step in (Step.INTENT_FSYNCED, Step.CLAIM_ANSWERED, Step.ANSWER_FSYNCED, Step.AUTHORIZE_ANSWERED):
        house.barriers.arm(step)
        await house.barriers.reached(step)
        house.kill("collector")
        await house.start("collector")
    ends = Counter([await end_of(house, operation) for operation in operations])
    assert ends == {SENT: 10, NOT_SENT: 1, ("indeterminate", UNKNOWN, 0): 1}


@pytest.mark.clause("WRK-15")
async def test_in_all_that_the_ledger_holds_no_action_twice(house: House) -> None:
    ledger = await house.simulator.ledger()
    twice = [
        what for what, count in Counter((entry.method, entry.path) for entry in ledger).items() if count > 1
    ]
    assert len(ledger) > 20
    assert twice == []
