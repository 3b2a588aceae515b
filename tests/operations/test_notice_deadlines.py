"""Whatever ends an operation says when its notice is to be mailed, also when nobody hears the answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from dependents_kit import CREATION, Evening
from dependents_kit import invitation as later_invitation
from notices_kit import lose_permission, passes
from operations_world import World, invitation

from lastcall.deadlines.signals import Signal
from lastcall.operations.owners import operation_owners
from lastcall.operations.services.armed import Armer
from lastcall.operations.services.worker import WorkerSteps
from lastcall.operations.signals import MAIL_AFTER, OPERATION_MAIL
from lastcall.protocol.outcomes import Outcome

HOUR = timedelta(hours=1)


async def waiting(world: World) -> int:
    return int(await world.run("select count(*) from operation_notices where mail_at is not null"))


def heard(world: World) -> list[datetime]:
    """The deadlines that the owner of the mails is told."""
    told: list[datetime] = []

    def hear(signal: Signal) -> None:
        if signal.owner == OPERATION_MAIL and signal.deadline is not None:
            told.append(signal.deadline)

    world.db.bus.subscribe(Signal, hear)
    return told


async def test_the_database_and_the_services_wait_equally_long(world: World) -> None:
    assert await world.run("select notice_mail_delay()") == MAIL_AFTER


@pytest.mark.parametrize("owner", ["operation_late_pending", "submission_recovery"])
async def test_what_ends_by_itself_says_when_it_is_to_be_mailed(world: World, owner: str) -> None:
    if owner == "submission_recovery":
        await world.submitted(invitation())
    else:
        await world.one(invitation())
    await world.clock.advance(HOUR)
    told = heard(world)
    await passes(next(one for one in operation_owners(world.db, world.mailer) if one.name == owner))
    assert told == [await world.run("select mail_at from operation_notices")]


def lose_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is done, and its answer never arrives."""
    ask = WorkerSteps._ask

    async def lose(self: WorkerSteps, *arguments: Any) -> Any:
        await ask(self, *arguments)
        raise ConnectionResetError

    monkeypatch.setattr(WorkerSteps, "_ask", lose)


@pytest.mark.parametrize("step", ["reject", "complete", "authorize", "defer"])
async def test_a_step_whose_answer_is_lost_has_said_when_its_notice_is_to_be_mailed(
    world: World, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, held = await (world.submitted if step == "complete" else world.claimed)(invitation())
    told = heard(world)
    lose_answers(monkeypatch)
    steps, worker = world.steps, world.worker
    match step:
        case "reject":
            with pytest.raises(ConnectionResetError):
                await steps.reject(worker, held, "invalid_input")
        case "complete":
            with pytest.raises(ConnectionResetError):
                await steps.complete(worker, held, Outcome.INDETERMINATE, "timeout")
        case "authorize":
            await lose_permission(world)
            with pytest.raises(ConnectionResetError):
                await steps.authorize(worker, held, "invite_member", world.evidence())
        case _:
            await steps.defer(worker, held, "rate_limit", 82_721.0)
    assert await waiting(world) == 1
    due = await world.run("select mail_at from operation_notices")
    assert told
    assert abs(min(told) - due) < timedelta(seconds=10)


async def test_a_step_that_said_nothing_before_would_hide_its_notice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: what a step says when it is sent, and when its answer is lost, is the guard."""
    _, held = await world.claimed(invitation())
    told = heard(world)
    lose_answers(monkeypatch)

    async def silent(*_: object) -> None: ...

    monkeypatch.setattr(Armer, "arm", silent)
    monkeypatch.setattr(WorkerSteps, "_say_in_doubt", lambda *_: None)
    with pytest.raises(ConnectionResetError):
        await world.steps.reject(world.worker, held, "invalid_input")
    assert await waiting(world) == 1
    assert told == []


async def test_invitations_that_end_with_their_creation_say_it_too(evening: Evening) -> None:
    world = evening.world
    creation = await evening.one(CREATION)
    await evening.queue(*(later_invitation(creation, number) for number in (1, 2)))
    claimed = await evening.claim()
    assert claimed is not None
    await world.steps.reject(world.worker, world.held(claimed), "group_visibility")
    await world.run("update operation_notices set mail_at = null")
    told = heard(world)
    await evening.go_through()
    assert await waiting(world) == 2
    assert told == [await world.run("select min(mail_at) from operation_notices")]


async def test_what_a_claim_finds_at_its_end_says_it_too(evening: Evening) -> None:
    world = evening.world
    creation = await evening.one(CREATION)
    invited = await evening.one(later_invitation(creation))
    await evening.create(creation)
    await evening.go_through()
    await world.run("update operations set dependency_revision = 9 where id = $1", invited)
    told = heard(world)
    assert await evening.claim() is None
    assert await evening.how(invited) == ("rejected", "dependency_unavailable")
    due = await world.run("select mail_at from operation_notices")
    assert min(told) == due
