"""Authorize: everything is judged again at the last moment, and only then does the row say submitted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from operations_world import BOT, GROUP_OWNER, World, assignment, ban, invitation

from lastcall.connections.worker import Worker
from lastcall.db.database import Database
from lastcall.deadlines.signals import Signal
from lastcall.errors import Disabled, NotSignedIn
from lastcall.operations.machine import REFUSALS, State
from lastcall.operations.services.worker import WorkerSteps
from lastcall.protocol.constants import GRACE, SUBMISSION_LIFE
from lastcall.testing.fake_clock import FakeClock

EVERYTHING = {
    "assign_role": ("group-roles-assign", "group-members-manage"),
    "invite_member": ("group-invites-manage",),
    "ban_member": ("group-bans-manage", "group-members-manage"),
}
PAYLOADS = {"assign_role": assignment(), "invite_member": invitation(), "ban_member": ban()}


@pytest.mark.clause("WRK-03")
@pytest.mark.parametrize("kind", list(PAYLOADS))
async def test_authorized_means_submitted_for_two_minutes_with_exactly_the_grants(
    world: World, kind: str
) -> None:
    now = await world.clock.freeze()
    operation_id, held = await world.claimed(PAYLOADS[kind])
    evidence = world.evidence(permissions=EVERYTHING[kind])
    verdict = await world.steps.authorize(world.worker, held, kind, evidence)
    assert (verdict.is_authorized, verdict.state) == (True, State.SUBMITTED)
    assert (verdict.life, verdict.execute_before) == (SUBMISSION_LIFE, GRACE)
    row = await world.row(operation_id)
    assert (row["state"], row["submitted_at"]) == ("submitted", now)
    assert row["claim_expires_at"] == now + SUBMISSION_LIFE
    assert row["claim_nonce"] == held.nonce


@pytest.mark.parametrize("kind", list(PAYLOADS))
async def test_each_grant_of_a_kind_is_needed(world: World, kind: str) -> None:
    await world.renew(timedelta(hours=1))
    for n, missing in enumerate(EVERYTHING[kind]):
        payload = {**PAYLOADS[kind], "targetUserId": f"usr_00000000-0000-4000-8000-{n:012d}"}
        operation_id, held = await world.claimed(payload)
        grants = tuple(grant for grant in EVERYTHING[kind] if grant != missing)
        verdict = await world.steps.authorize(world.worker, held, kind, world.evidence(permissions=grants))
        assert (verdict.code, verdict.state) == ("provider_permissions", State.REJECTED)
        assert await world.state(operation_id) == "rejected"


@pytest.mark.clause("WRK-03")
@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("connection_changed", "update connections set epoch = epoch + interval '1 us'"),
        ("connection_changed", "update connections set state = 'disconnected'"),
        ("connection_inactive", "update connections set state = 'auth_required'"),
        ("connection_paused", "update connections set kill_switch = true"),
        ("connection_paused", "update connections set frozen_at = now(), frozen_reason = 'x'"),
        ("club_inactive", "update clubs set state = 'archived', archived_at = lastcall_now()"),
        ("staff_permission", "delete from staff_assignments"),
        ("staff_permission", "update staff_roles set permissions = '{manage_bans}'"),
        ("staff_permission", "update staff_roles set state = 'deleted'"),
        ("staff_permission", "update people set blocked_at = now() where display_name = 'Moderator'"),
        ("feature_disabled", "update connections set features = '{posts}'"),
        ("role_not_assignable", "update staff_roles set permitted_provider_role_ids = '{}'"),
    ],
)
async def test_what_was_taken_away_since_the_claim_refuses(world: World, code: str, change: str) -> None:
    operation_id, held = await world.claimed()
    await world.run(change)
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert (verdict.is_authorized, verdict.code, verdict.state) == (False, code, REFUSALS[code])
    row = await world.row(operation_id)
    assert (row["state"], row["code"]) == (REFUSALS[code], code)
    assert (row["claim_nonce"], row["submitted_at"]) == (None, None)


@pytest.mark.clause("WRK-03")
@pytest.mark.parametrize(
    ("code", "facts"),
    [
        ("provider_authority", {"age_ms": 60_001}),
        ("provider_authority", {"group_id": "grp_other"}),
        ("provider_authority", {"user_id": "usr_other"}),
        ("membership", {"member_status": "banned"}),
        ("provider_permissions", {"permissions": ()}),
        ("protected_target", {"owner_id": assignment()["targetUserId"].upper().replace("USR", "usr")}),
        ("role_scope", {"roles": ()}),
    ],
)
async def test_evidence_that_is_old_foreign_or_lacks_something_refuses(
    world: World, code: str, facts: dict[str, Any]
) -> None:
    await world.clock.freeze()
    operation_id, held = await world.claimed()
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence(**facts))
    assert (verdict.code, verdict.state) == (code, State.REJECTED)
    assert (await world.row(operation_id))["code"] == code


async def test_the_account_itself_is_no_target_but_may_be_invited(world: World) -> None:
    for target in (BOT, GROUP_OWNER):
        _, held = await world.claimed({**ban(), "targetUserId": target})
        verdict = await world.steps.authorize(world.worker, held, "ban_member", world.evidence())
        assert verdict.code == "protected_target"
    _, held = await world.claimed({**invitation(), "targetUserId": GROUP_OWNER})
    assert (await world.steps.authorize(world.worker, held, "invite_member", world.evidence())).is_authorized


async def test_evidence_is_good_for_exactly_sixty_seconds(world: World) -> None:
    await world.clock.freeze()
    _, held = await world.claimed()
    steps = WorkerSteps(world.db, FakeClock())  # on which the call takes no time
    assert (
        await steps.authorize(world.worker, held, "assign_role", world.evidence(age_ms=60_000))
    ).is_authorized


@pytest.mark.parametrize(
    ("waited", "ends"), [(timedelta(0), (True, None)), (timedelta(seconds=31), (False, "provider_authority"))]
)
async def test_evidence_grows_older_while_the_call_waits_for_a_connection(
    world: World, database_url: str, waited: timedelta, ends: tuple[bool, str | None]
) -> None:
    """The first row is the twin: what would be answered if the wait did not count."""
    await world.clock.freeze()
    _, held = await world.claimed()
    clock, narrow = FakeClock(), await Database.open(database_url, pool_size=1)
    steps = WorkerSteps(narrow, clock)
    await steps.claim(world.worker, world.lease, world.journal_id)  # and so it knows the database's time
    async with narrow.pool.acquire():
        call = asyncio.create_task(
            steps.authorize(world.worker, held, "assign_role", world.evidence(age_ms=30_000))
        )
        await clock.advance(waited)
    verdict = await call
    await narrow.close()
    assert (verdict.is_authorized, verdict.code) == ends


async def test_the_newest_read_decides_not_the_one_that_was_sent(world: World) -> None:
    """An older read that shows more does not undo a newer one that shows less."""
    await world.clock.freeze()
    _, held = await world.claimed(assignment(1))
    fresh = world.evidence(permissions=("group-roles-assign",))
    assert (
        await world.steps.authorize(world.worker, held, "assign_role", fresh)
    ).code == "provider_permissions"
    _, held = await world.claimed(assignment(2))
    older = world.evidence(age_ms=20_000)
    assert (
        await world.steps.authorize(world.worker, held, "assign_role", older)
    ).code == "provider_permissions"


async def test_after_the_database_clock_was_set_back_a_fresh_read_replaces_the_one_from_the_future(
    world: World,
) -> None:
    await world.clock.freeze()
    await world.submitted()
    await world.clock.advance(-timedelta(seconds=30))
    _, held = await world.claimed(assignment(2))
    assert (await world.steps.authorize(world.worker, held, "assign_role", world.evidence())).is_authorized


async def test_evidence_of_an_earlier_epoch_is_none(world: World) -> None:
    await world.submitted(assignment(1))
    operation_id, _ = await world.claimed(assignment(2))
    where = (operation_id, world.account_id)
    fresh = """
        select a.body is not null
          from operations o
         cross join authority(
               o.club_id, o.connection_id, o.epoch, o.actor_id, o.due_at, o.payload,
               $2, 'assign_vrchat_roles', 'membership_management', '{}', true, lastcall_now()) as a
         where o.id = $1
    """
    assert await world.run(fresh, *where)
    await world.run("update evidence set epoch = epoch - interval '1 second'")
    assert not await world.run(fresh, *where)


@pytest.mark.clause("RCV-04")
async def test_the_exact_end_of_the_grace_is_in_time_and_a_microsecond_later_is_missed(world: World) -> None:
    now = await world.clock.freeze()
    for late, expected in ((timedelta(0), "submitted"), (timedelta(microseconds=1), "missed")):
        operation_id, held = await world.claimed(invitation(late.microseconds), due_at=now - GRACE)
        await world.run(
            "update operations set due_at = due_at - $2::interval where id = $1", operation_id, late
        )
        verdict = await world.steps.authorize(world.worker, held, "invite_member", world.evidence())
        assert await world.state(operation_id) == expected
        assert verdict.is_authorized == (expected == "submitted")
    assert (verdict.code, verdict.state) == ("late_window_elapsed", State.MISSED)


@pytest.mark.clause("WRK-03")
@pytest.mark.parametrize(
    "wrong",
    [
        "nonce",
        "fencing_token",
        "epoch",
        "connection_id",
        "operation_id",
        "club_id",
        "worker",
        "kind",
        "expired",
    ],
)
async def test_any_other_claim_is_no_claim_and_leaves_the_row_alone(world: World, wrong: str) -> None:
    await world.clock.freeze()
    operation_id, held = await world.claimed()
    worker, kind = world.worker, "assign_role"
    if wrong == "worker":
        worker = replace(worker, worker_id=uuid4())
    elif wrong == "kind":
        kind = "invite_member"
    elif wrong == "expired":
        await world.renew(timedelta(hours=1))
        await world.run("update operations set claim_expires_at = lastcall_now()")
    else:
        other = {"fencing_token": 2, "epoch": world.epoch + timedelta(microseconds=1)}.get(wrong, uuid4())
        held = replace(held, **{wrong: other})
    before = await world.row(operation_id)
    verdict = await world.steps.authorize(worker, held, kind, world.evidence())
    assert (verdict.is_authorized, verdict.code, verdict.state) == (False, "claim_unavailable", None)
    assert await world.row(operation_id) == before


@pytest.mark.parametrize(
    "change",
    [
        "update leases set fencing_token = 2",
        "update leases set expires_at = lastcall_now()",
        "update leases set released_at = lastcall_now()",
    ],
)
async def test_without_the_current_lease_nothing_is_authorized(world: World, change: str) -> None:
    operation_id, held = await world.claimed()
    await world.run(change)
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert (verdict.code, verdict.state) == ("stale_lease", None)
    assert await world.state(operation_id) == "claimed"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("update fleet_settings set kill_switch = true", Disabled),
        ("update accounts set kill_switch = true", Disabled),
        ("update accounts set state = 'degraded'", Disabled),
        ("update worker_keys set revoked_at = lastcall_now()", NotSignedIn),
        ("update accounts set credential_generation = 2", NotSignedIn),
    ],
)
async def test_a_stopped_account_or_old_key_is_shut_out_and_the_row_stays(
    world: World, change: str, error: type[Exception]
) -> None:
    operation_id, held = await world.claimed()
    await world.run(change)
    before = await world.row(operation_id)
    with pytest.raises(error):
        await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert await world.row(operation_id) == before
    assert await world.run("select count(*) from evidence") == 0 or error is Disabled


async def test_a_paused_connection_puts_the_row_back_and_says_when_it_is_late(world: World) -> None:
    operation_id, held = await world.claimed()
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    await world.run("update connections set kill_switch = true")
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert verdict.state is State.PENDING
    assert [signal.owner for signal in heard] == [
        "submission_recovery",
        "operation_late_pending",
        f"work:{world.account_id}",
    ]
    await world.run("update connections set kill_switch = false")
    assert (await world.claim()).operation_id == operation_id


@pytest.mark.clause("RCV-01")
async def test_the_recovery_is_armed_before_the_authorization_is_sent(world: World) -> None:
    """Whatever happens to the answer, somebody knows that there may be a submission."""
    await world.clock.freeze()
    _, held = await world.claimed()
    now = await world.clock.now()
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    real = world.db.pool.fetchrow

    async def lost(*arguments: object) -> object:
        assert [signal.owner for signal in heard] == ["submission_recovery"]
        await real(*arguments)
        raise ConnectionError("the answer was lost")

    world.steps._db = _With(fetchrow=lost, bus=world.db.bus)
    with pytest.raises(ConnectionError):
        await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert await world.state(held.operation_id) == "submitted"
    deadline = heard[0].deadline
    assert deadline is not None
    assert abs(deadline - now - SUBMISSION_LIFE) < timedelta(seconds=30)
    # Had it put the row back, somebody would have to look when that is late, and ready; or told that it was refused.
    assert [signal.owner for signal in heard[1:]] == [
        "operation_late_pending",
        "operation_fanout",
        "operation_mail",
        f"work:{world.account_id}",
    ]
    assert all(signal.deadline is not None and signal.deadline > now for signal in heard[1:])


class _With:
    """A database whose pool loses an answer."""

    def __init__(self, fetchrow: Any, bus: Any) -> None:
        self.pool = self
        self.fetchrow = fetchrow
        self.bus = bus

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[_With]:
        yield self


@pytest.mark.parametrize("routine", ["authorize", "complete"])
async def test_a_step_that_counts_is_on_disk_before_it_is_answered(world: World, routine: str) -> None:
    _, held = await (world.claimed() if routine == "authorize" else world.submitted())
    keys = (world.account_id, world.worker_id, *(held.club_id, held.connection_id, held.epoch))
    call = {
        "authorize": "authorize_operation($1, 1, $2, $3, $4, $5, 1, $6, $7, 'assign_role', 'x', 'x', true,"
        " '{\"userId\": \"x\"}', '0', false, null, false, null)",
        "complete": "complete_operation($1, 1, $2, $3, $4, $5, 1, $6, $7, 'succeeded', null, null, gen_random_uuid())",
    }[routine]
    for setting, expected in (("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")):
        async with world.db.pool.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            await connection.execute(f"set local synchronous_commit = {setting}")
            await connection.fetchrow(f"select * from {call}", *keys, held.operation_id, held.nonce)
            assert await connection.fetchval("show synchronous_commit") == expected
            await transaction.rollback()


async def test_another_account_never_acts_on_the_claim(world: World) -> None:
    operation_id, held = await world.claimed()
    other = uuid4()
    await world.run(
        "insert into accounts (id, alias, vrchat_user_id, state, credential_generation)"
        " values ($1, 'other', 'usr_other', 'ready', 1)",
        other,
    )
    await world.run(
        "insert into worker_keys (account_id, generation, key_hash) values ($1, 1, $2)", other, b"o" * 32
    )
    verdict = await world.steps.authorize(
        Worker(other, 1, world.worker_id, "usr_other"), held, "assign_role", world.evidence()
    )
    assert verdict.code == "claim_unavailable"
    assert await world.state(operation_id) == "claimed"
