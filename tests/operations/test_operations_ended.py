"""However an operation ends, what depends on it is gone through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from events_world import HOUR, an_event, depend, following, owner_named
from operations_world import World, assignment

from lastcall.connections.listeners import HelloFacts
from lastcall.deadlines.owner import Stop
from lastcall.deadlines.signals import Signal
from lastcall.events.services.write import cancel_event
from lastcall.operations.listeners import hello
from lastcall.operations.services.worker import ClaimHeld
from lastcall.protocol.outcomes import Outcome


async def _claim(world: World) -> ClaimHeld:
    return world.held(await world.claim())


async def _submit(world: World) -> ClaimHeld:
    """The steps need a payload of its kind, so it becomes a creation only when it is submitted."""
    held = await _claim(world)
    await world.run("update operations set kind = 'assign_role' where id = $1", held.operation_id)
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert verdict.is_authorized, verdict
    await world.run("update operations set kind = 'create_instance' where id = $1", held.operation_id)
    return held


def _completed(outcome: Outcome) -> Callable[[World, UUID], Awaitable[Any]]:
    async def end(world: World, _: UUID) -> None:
        await world.steps.complete(world.worker, await _submit(world), outcome, "timeout")

    return end


async def _rejected(world: World, _: UUID) -> None:
    await world.steps.reject(world.worker, await _claim(world), "provider_error")


async def _deferred_too_long(world: World, _: UUID) -> None:
    await world.steps.defer(world.worker, await _claim(world), "rate_limit", 82_721.0)


async def _missed(world: World, _: UUID) -> None:
    await world.clock.advance(timedelta(minutes=16))
    await _pass(world, "operation_late_pending")


async def _recovered(world: World, _: UUID) -> None:
    await _submit(world)
    await world.clock.advance(timedelta(minutes=2))
    await _pass(world, "submission_recovery")


async def _not_attempted(world: World, _: UUID) -> None:
    await _submit(world)
    async with world.db.transaction() as tx:
        await hello(
            tx,
            HelloFacts(
                account_id=world.account_id,
                worker_id=world.worker_id,
                journal_id=world.journal_id,
                is_journal_intact=True,
                submissions=(),
            ),
        )


async def _pass(world: World, name: str) -> None:
    await owner_named(world, name).run_pass(Stop())


ENDS = {
    "succeeded": _completed(Outcome.SUCCEEDED),
    "rejected by VRChat": _completed(Outcome.REJECTED),
    "unknown": _completed(Outcome.INDETERMINATE),
    "rejected": _rejected,
    "deferred beyond the grace": _deferred_too_long,
    "missed": _missed,
    "recovered": _recovered,
    "not attempted": _not_attempted,
}


@pytest.mark.parametrize("end", list(ENDS))
async def test_however_a_creation_ends_its_dependents_are_noted_at_once(world: World, end: str) -> None:
    await world.clock.freeze()
    creation_id = await world.one()
    dependent_id = await world.one(assignment(2), due_at=await world.clock.now() + HOUR)
    await depend(world, dependent_id, creation_id)
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    await ENDS[end](world, creation_id)
    assert (await world.row(creation_id))["completed_at"] is not None
    note = await world.db.pool.fetchrow("select subject_kind, subject_id, created_at from operation_fanouts")
    assert note is not None
    assert (note["subject_kind"], note["subject_id"]) == ("creation", creation_id)
    assert Signal("operation_fanout", note["created_at"]) in heard


async def test_an_event_that_ends_a_creation_notes_its_dependents(world: World) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now)
    (creation_id,) = await following(world, event_id)
    dependent_id = await world.one(assignment(2), due_at=now + HOUR)
    await depend(world, dependent_id, creation_id)
    await world.run(
        "update operations set event_id = null, event_cancel_generation = null,"
        " event_tba_generation = null where id = $1",
        dependent_id,
    )
    await cancel_event(world.db, world.owner, world.club_id, event_id)
    await world.run("select * from fan_out_event($1, $2, 100)", world.club_id, event_id)
    assert await world.run("select subject_id from operation_fanouts") == creation_id


@pytest.mark.parametrize("kind", ["assign_role", "create_instance"])
async def test_what_nothing_depends_on_leaves_no_note(world: World, kind: str) -> None:
    operation_id, held = await world.submitted()
    await world.run("update operations set kind = $1 where id = $2", kind, operation_id)
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
    assert await world.run("select count(*) from operation_fanouts") == 0
    assert heard == []
