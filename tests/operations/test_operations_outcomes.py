"""Complete and reject: how an operation ends."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from operations_world import ROLE, World, assignment

from lastcall.connections.worker import Worker
from lastcall.errors import Disabled, Invalid, NotSignedIn
from lastcall.operations.machine import State
from lastcall.protocol.messages import RoleSeen
from lastcall.protocol.outcomes import Outcome

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
