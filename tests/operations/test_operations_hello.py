"""A collector that starts anew."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from operations_world import World, assignment

from lastcall.connections.hello import Journal, Welcome, say_hello
from lastcall.connections.listeners import ReportedSubmission
from lastcall.db.bus import Hint
from lastcall.db.ids import encode_id, new_id
from lastcall.deadlines.signals import Signal
from lastcall.operations.listeners import register
from lastcall.operations.schedules import late_at
from lastcall.operations.services import cancel
from lastcall.operations.services.cancel import BatchCancelled
from lastcall.operations.services.worker import ClaimHeld
from lastcall.protocol.outcomes import Outcome
from lastcall.testing.locks import wait_until_blocked

register()


async def hello(world: World, *known: ReportedSubmission, **journal: Any) -> Welcome:
    facts = {"id": world.journal_id, "is_intact": True, **journal}
    return await say_hello(world.db, world.worker, Journal(submissions=known, **facts), "1.0")


def intent(held: ClaimHeld, *, is_answered: bool = False, **other: Any) -> ReportedSubmission:
    facts = {
        "club_id": held.club_id,
        "connection_id": held.connection_id,
        "operation_id": held.operation_id,
        "nonce": encode_id(held.nonce),
    }
    return ReportedSubmission(is_answered=is_answered, **{**facts, **other})


async def test_hello_returns_the_workers_claims_at_once_and_nobody_elses(world: World) -> None:
    await world.clock.freeze()
    first, _ = await world.claimed(assignment(1))
    second, _ = await world.claimed(assignment(2))
    other, _ = await world.claimed(assignment(3))
    await world.run("update operations set claim_worker_id = gen_random_uuid() where id = $1", other)
    heard: list[object] = []
    world.db.bus.subscribe(object, heard.append)
    welcome = await hello(world)
    assert welcome.findings.claims_returned == 2
    assert [await world.state(row) for row in (first, second, other)] == ["pending", "pending", "claimed"]
    due_at = (await world.row(first))["due_at"]
    assert Signal("operation_late_pending", late_at(due_at)) in heard
    assert Signal(f"work:{world.account_id}", due_at) in heard
    assert Hint(world.club_id, "scheduled") in heard
    # The old lease's token is passed over, so a claim of the former life is void.
    assert await world.run("select lease_generation from connections") > 0


@pytest.mark.clause("WRK-13", "RCV-11")
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("nothing known of it", "rejected"),
        ("intent", "submitted"),
        ("answer", "submitted"),
        ("another journal", "submitted"),
        ("torn journal", "submitted"),
        ("already expired", "submitted"),
        ("another worker", "submitted"),
    ],
)
async def test_only_an_intact_journal_of_the_same_id_proves_that_nothing_was_sent(
    world: World, case: str, expected: str
) -> None:
    await world.clock.freeze()
    operation_id, held = await world.submitted()
    known = {"intent": [intent(held)], "answer": [intent(held, is_answered=True)]}.get(case, [])
    journal: dict[str, Any] = {
        "another journal": {"id": uuid4()},
        "torn journal": {"is_intact": False},
    }.get(case, {})
    if case == "already expired":
        await world.clock.advance(timedelta(seconds=120))
    elif case == "another worker":
        await world.run("update operations set claim_worker_id = gen_random_uuid()")
    welcome = await hello(world, *known, **journal)
    row = await world.row(operation_id)
    assert row["state"] == expected
    assert welcome.frozen_connections == ()
    if expected == "rejected":
        assert row["code"] == "submission_not_attempted"
        assert welcome.findings.not_attempted == (operation_id,)
    elif case == "answer":
        assert (await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)).is_recorded


@pytest.mark.parametrize(
    "case", ["no such row", "another nonce", "no nonce at all", "never authorized", "unsent again"]
)
async def test_a_submission_the_database_does_not_know_freezes_the_connection(
    world: World, case: str
) -> None:
    """The database went back in time: it would let the same write out a second time."""
    waiting = await world.one(assignment(9), due_at=await world.clock.now() + timedelta(hours=1))
    _, held = await (world.claimed() if case == "never authorized" else world.submitted())
    known = {
        "no such row": intent(held, operation_id=new_id()),
        "another nonce": intent(held, nonce=encode_id(uuid4())),
        "no nonce at all": intent(held, nonce="not-one-of-ours-xx"),
    }.get(case, intent(held))
    if case == "unsent again":
        await world.run("delete from operations where id = $1", held.operation_id)
    welcome = await hello(world, known)
    assert welcome.frozen_connections == (world.connection_id,)
    assert await world.run("select frozen_reason from connections") == "unknown_submission"
    assert await world.state(waiting) == "pending"


async def test_a_submission_that_is_known_freezes_nothing_however_it_ended(world: World) -> None:
    _, held = await world.submitted()
    await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
    assert (await hello(world, intent(held, is_answered=True))).frozen_connections == ()


SENT_TOO = "select from operations where club_id = $1 and request_id = $2 order by id for no key update"
"""A batch cancel that holds what is sent, too."""


async def greeted_during_a_cancel(world: World) -> BatchCancelled:
    """A hello that settles a batch's sent action after it has returned a claimed one, while the batch is cancelled."""
    worker = (world.account_id, world.worker_id)
    made = await world.enqueue(assignment(1), assignment(2))
    held = world.held(await world.claim())
    assert (await world.steps.authorize(world.worker, held, "assign_role", world.evidence())).is_authorized
    await world.claim()
    async with world.db.transaction() as tx:
        assert len(await tx.raw.fetch("select * from return_claims($1, $2)", *worker)) == 1
        stop = cancel.cancel_request(world.db, world.moderator, world.club_id, made.request_id)
        task = asyncio.ensure_future(stop)
        await wait_until_blocked(world.db, "request_id", by=tx.raw.get_server_pid())
        settled = await tx.raw.fetch(
            "select * from settle_unattempted($1, $2, $3, '{}')", *worker, world.journal_id
        )
        assert [row["operation_id"] for row in settled] == [held.operation_id]
    return await task


async def test_a_hello_and_a_batch_cancel_do_not_wait_for_each_other(world: World) -> None:
    assert (await greeted_during_a_cancel(world)).cancelled == 1


async def test_twin_a_batch_cancel_that_holds_what_was_sent_and_a_hello_wait_for_each_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancel, "_LOCK_ALL", SENT_TOO)
    with pytest.raises(asyncpg.DeadlockDetectedError):
        await greeted_during_a_cancel(world)
