"""Two at one approval at once. Each race is seen waiting for a lock, and has its twin without the guard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest
from tests.decisions.asks_kit import ANY, Desk, carrying, make_desk, only_one
from tests.decisions.test_questions import ask as ask_question

from lastcall.clubs import policy
from lastcall.clubs.staff import revoke_role
from lastcall.db.database import Database
from lastcall.deadlines.owner import Position
from lastcall.deadlines.poison import Candidate
from lastcall.decisions.approvals import asking, deciding, rows
from lastcall.decisions.approvals.asking import Ask
from lastcall.decisions.questions import asking as questions
from lastcall.decisions.questions import deciding as answers
from lastcall.decisions.questions import expiry
from lastcall.decisions.questions.expiry import DueDecisions
from lastcall.decisions.registration import register
from lastcall.errors import Conflict, LastcallError, NotFound
from lastcall.people.actor import Actor
from lastcall.testing.locks import wait_until_blocked

Act = Callable[[Desk, UUID], Awaitable[Any]]


@pytest.fixture
async def desk(database: Database) -> Desk:
    register()
    return await make_desk(database)


async def approve(desk: Desk, approval_id: UUID, actor: Actor | None = None) -> Any:
    return await deciding.approve(desk.db, actor or desk.decider, desk.club_id, approval_id, seen_revision=1)


async def second_approves(desk: Desk, approval_id: UUID) -> Any:
    return await approve(desk, approval_id, desk.second)


async def second_rejects(desk: Desk, approval_id: UUID) -> None:
    await deciding.reject(desk.db, desk.second, desk.club_id, approval_id, seen_revision=1)


async def withdraw(desk: Desk, approval_id: UUID) -> None:
    await asking.withdraw(desk.db, desk.agent, desk.club_id, approval_id)


async def resubmit(desk: Desk, approval_id: UUID) -> None:
    await asking.resubmit(
        desk.db, desk.agent, desk.club_id, approval_id, seen_revision=1, title="Hire two", body=""
    )


async def behind(desk: Desk, first: Act, second: Act, approval_id: UUID, waits_for: str) -> Any:
    """What ``second`` ends with, begun while ``first`` has done its work and not yet committed."""
    async with desk.db.transaction() as tx:
        await first(desk, approval_id)
        waiting = asyncio.create_task(_of(second, desk, approval_id))
        await wait_until_blocked(desk.db, waits_for, by=tx.raw.get_server_pid())
    return (await asyncio.gather(waiting, return_exceptions=True))[0]


async def _of(act: Act, desk: Desk, approval_id: UUID) -> Any:
    return await act(desk, approval_id)


RACES: dict[str, tuple[Act, Act, str, str]] = {
    "two approve": (approve, second_approves, "approval_decided", "approved"),
    "one approves, one rejects": (approve, second_rejects, "approval_decided", "approved"),
    "approved, then withdrawn": (approve, withdraw, "approval_decided", "approved"),
    "withdrawn, then approved": (withdraw, approve, "approval_decided", "withdrawn"),
    "changed, then approved": (resubmit, approve, "approval_moved", "pending"),
    "approved, then changed": (approve, resubmit, "approval_decided", "approved"),
}


@pytest.mark.parametrize("race", RACES)
async def test_who_comes_second_sees_what_the_first_did(desk: Desk, race: str) -> None:
    first, second, code, status = RACES[race]
    approval_id = await desk.ask(ask=carrying("a"))
    outcome = await behind(desk, first, second, approval_id, "from approvals")
    assert isinstance(outcome, Conflict), outcome
    assert outcome.code == code
    assert await desk.status(approval_id) == status
    done = await desk.db.pool.fetchval("select count(*) from directory where kind = 'ledger'")
    assert done == (1 if status == "approved" else 0)


@pytest.mark.parametrize("race", ["withdrawn, then approved", "changed, then approved"])
async def test_twin_without_the_rows_lock_a_decision_is_about_what_is_gone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, race: str
) -> None:
    """The effect is done though the approval was withdrawn, or for words that nobody has before them any more."""
    first, second, _, _ = RACES[race]
    approval_id = await desk.ask(ask=carrying("a"))
    monkeypatch.setattr(deciding, "hold", rows.read)
    await behind(desk, first, second, approval_id, "update approvals")
    assert await desk.db.pool.fetchval("select count(*) from directory where kind = 'ledger'") == 1


async def revoke(desk: Desk, _: UUID) -> None:
    await revoke_role(desk.db, desk.owner, desk.club_id, desk.decider_role, desk.decider.person_id)


async def test_a_role_that_is_taken_away_meanwhile_approves_nothing(desk: Desk) -> None:
    approval_id = await desk.ask()
    outcome = await behind(desk, revoke, approve, approval_id, "held_club_standing")
    assert isinstance(outcome, NotFound)
    assert await desk.status(approval_id) == "pending"


async def test_twin_without_the_gate_a_role_that_is_taken_away_still_approves(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "_HOLD_AND_LOOK", policy._LOOK)
    approval_id = await desk.ask()
    async with desk.db.transaction():
        await revoke(desk, approval_id)
        await asyncio.create_task(approve(desk, approval_id))
    assert await desk.status(approval_id) == "approved"


SAME, OTHER = ANY, Ask("hire", "Hire somebody else")


async def second_ask(desk: Desk, ask: Ask, key: str | None = None) -> Any:
    """What a second ask ends with, begun while a first of the same agent is not yet committed."""
    async with desk.db.transaction() as tx:
        first = await desk.ask(ask=ask if key is None else SAME, key=key)
        waiting = asyncio.create_task(desk.ask(ask=ask, key=key))
        await wait_until_blocked(desk.db, "insert into approvals", by=tx.raw.get_server_pid())
    (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
    return first, outcome


async def test_two_same_asks_under_one_key_are_one(desk: Desk) -> None:
    first, outcome = await second_ask(desk, SAME, "weekend")
    assert outcome == first
    assert await desk.db.pool.fetchval("select count(*) from approvals") == 1


async def test_of_two_different_asks_under_one_key_the_second_is_refused(desk: Desk) -> None:
    _, outcome = await second_ask(desk, OTHER, "weekend")
    assert isinstance(outcome, LastcallError)
    assert outcome.code == "idempotency_key_used"
    assert await desk.db.pool.fetchval("select title from approvals") == SAME.title


async def test_of_two_about_one_subject_the_second_is_refused(desk: Desk) -> None:
    first, outcome = await second_ask(desk, only_one("door"))
    assert isinstance(outcome, Conflict)
    assert (outcome.code, outcome.fresh.id) == ("approval_waiting", first)


async def test_the_second_about_a_subject_gets_in_when_the_first_is_undone(desk: Desk) -> None:
    class UndoneError(Exception):
        pass

    with pytest.raises(UndoneError):
        async with desk.db.transaction() as tx:
            await desk.ask(ask=only_one("door"))
            waiting = asyncio.create_task(desk.ask(ask=only_one("door")))
            await wait_until_blocked(desk.db, "insert into approvals", by=tx.raw.get_server_pid())
            raise UndoneError
    assert await desk.status(await waiting) == "pending"


@pytest.mark.parametrize(
    "index", ["approvals_only_one_key", "approvals_club_id_requested_by_agent_id_idempotency_key_key"]
)
async def test_twin_without_its_index_a_second_ask_is_a_second_approval(desk: Desk, index: str) -> None:
    is_key = index.endswith("_key_key")
    drop = f"alter table approvals drop constraint {index}" if is_key else f"drop index {index}"
    await desk.db.pool.execute(drop)
    ask, key = (SAME, "weekend") if is_key else (only_one("door"), None)
    async with desk.db.transaction() as tx:
        await desk.ask(ask=ask, key=key)
        second = asyncio.create_task(desk.ask(ask=ask, key=key))
        # What it waits for now is the club's reminder of that day, and no index of approvals.
        await wait_until_blocked(desk.db, "refresh_approval", by=tx.raw.get_server_pid())
    await second
    assert await desk.db.pool.fetchval("select count(*) from approvals") == 2


async def due(desk: Desk) -> tuple[UUID, Candidate]:
    """An open decision whose time ends while somebody decides it."""
    decision_id = await ask_question(desk)
    expires_at = await desk.db.pool.fetchval("select expires_at from decisions where id = $1", decision_id)
    return decision_id, Candidate(desk.club_id, decision_id, Position(expires_at, decision_id))


async def end_time(desk: Desk, decision_id: UUID) -> None:
    await desk.db.pool.execute(
        "update decisions set created_at = lastcall_now() - interval '1 day',"
        " expires_at = lastcall_now() where id = $1",
        decision_id,
    )


async def choose(desk: Desk, decision_id: UUID) -> Any:
    return await answers.decide(desk.db, desk.decider, desk.club_id, decision_id, "friday")


async def test_what_is_decided_in_time_does_not_expire(desk: Desk) -> None:
    decision_id, candidate = await due(desk)
    async with desk.db.transaction() as tx:
        await choose(desk, decision_id)
        settling = asyncio.create_task(DueDecisions(desk.db).settle(candidate))
        await wait_until_blocked(desk.db, "from decisions", by=tx.raw.get_server_pid())
    await settling
    assert await desk.db.pool.fetchval("select status from decisions") == "decided"
    assert await desk.told() == ["decision.decided"]


async def test_twin_without_the_rows_lock_it_is_told_as_decided_and_as_expired(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    decision_id, candidate = await due(desk)
    monkeypatch.setattr(expiry, "hold", questions.read)
    await end_time(desk, decision_id)
    async with desk.db.transaction() as tx:
        row = await questions.hold(tx, desk.club_id, decision_id)
        decided = {"decided_option": "friday", "decided_by": desk.decider.person_id}
        await questions.end(tx, desk.decider, row, questions.DecisionStatus.DECIDED, decided)
        settling = asyncio.create_task(DueDecisions(desk.db).settle(candidate))
        await wait_until_blocked(desk.db, "update decisions", by=tx.raw.get_server_pid())
    await settling
    assert await desk.told() == ["decision.decided", "decision.expired"]


async def test_what_has_expired_meanwhile_is_not_decided(desk: Desk) -> None:
    decision_id, candidate = await due(desk)
    await end_time(desk, decision_id)
    async with desk.db.transaction() as tx:
        await DueDecisions(desk.db).settle(candidate)
        choosing = asyncio.create_task(choose(desk, decision_id))
        await wait_until_blocked(desk.db, "from decisions", by=tx.raw.get_server_pid())
    with pytest.raises(Conflict) as refusal:
        await choosing
    assert refusal.value.fresh.status == "expired"


async def test_twin_without_the_rows_lock_what_has_expired_is_told_as_decided_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    decision_id, _ = await due(desk)
    monkeypatch.setattr(answers, "hold", questions.read)
    async with desk.db.transaction() as tx:
        row = await questions.hold(tx, desk.club_id, decision_id)
        await questions.end(tx, expiry.EXPIRY, row, questions.DecisionStatus.EXPIRED, {})
        choosing = asyncio.create_task(choose(desk, decision_id))
        await wait_until_blocked(desk.db, "update decisions", by=tx.raw.get_server_pid())
    await choosing
    assert await desk.told() == ["decision.expired", "decision.decided"]
