"""What becomes of a decision: chosen, called off, or expired when its saved deadline comes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.decisions.asks_kit import YES_NO, Desk, make_desk

from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.deadlines.owner import Done, Failed, Stop
from lastcall.deadlines.scheduler import Scheduler
from lastcall.decisions.listing import Which
from lastcall.decisions.questions import asking, deciding
from lastcall.decisions.questions.actions import offer_action
from lastcall.decisions.questions.expiry import DueDecisions, decision_expiry_owner
from lastcall.decisions.questions.queries import decisions_of_agent, decisions_page, one_decision
from lastcall.decisions.registration import register
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.waiting import eventually


@pytest.fixture
async def desk(database: Database) -> Desk:
    register()
    return await make_desk(database)


async def ask(desk: Desk, asker: Any = None, question: Any = YES_NO, *, key: str | None = None) -> UUID:
    return await asking.ask_decision(desk.db, asker or desk.agent, desk.club_id, question, key=key)


async def choose(desk: Desk, decision_id: UUID, option: str = "friday", actor: Actor | None = None) -> Any:
    return await deciding.decide(desk.db, actor or desk.decider, desk.club_id, decision_id, option)


async def status(desk: Desk, decision_id: UUID) -> str:
    return str(await desk.db.pool.fetchval("select status from decisions where id = $1", decision_id))


class Flip:
    """An action that says which option was chosen, and refuses Saturdays."""

    name = "flip"

    async def lock(self, tx: Transaction, club_id: UUID, body: Mapping[str, Any], option: str) -> None:
        await tx.raw.execute("select from clubs where id = $1 for key share", club_id)

    async def apply(
        self,
        db: Database,
        decider: Actor,
        club_id: UUID,
        decision_id: UUID,
        body: Mapping[str, Any],
        option: str,
    ) -> dict[str, Any]:
        if option == "saturday":
            raise Conflict("closed", "It is closed on Saturdays.")
        return {"chosen": option, **body}


offer_action(Flip())
WITH_ACTION = replace(YES_NO, action=("flip", {"coin": 1}))


async def test_one_option_is_chosen_and_the_asker_is_told(desk: Desk) -> None:
    decision_id = await ask(desk)
    assert await choose(desk, decision_id) is None
    async with desk.db.read() as tx:
        view = await one_decision(tx, desk.agent, desk.club_id, decision_id)
    assert (view.status, view.chosen, view.decided_by) == ("decided", "Friday", "Decider")
    assert await desk.told() == ["decision.decided"]
    assert await desk.logged() == ["decision.asked", "decision.decided"]


async def test_the_same_answer_again_is_the_same_and_another_is_refused(desk: Desk) -> None:
    decision_id = await ask(desk, question=WITH_ACTION)
    assert await choose(desk, decision_id) == {"chosen": "friday", "coin": 1}
    assert await choose(desk, decision_id) == {"chosen": "friday", "coin": 1}
    for option, actor in (("saturday", desk.decider), ("friday", desk.second)):
        with pytest.raises(Conflict) as refusal:
            await choose(desk, decision_id, option, actor)
        assert refusal.value.fresh.option == "friday"


async def test_a_refused_action_leaves_the_decision_open(desk: Desk) -> None:
    decision_id = await ask(desk, question=WITH_ACTION)
    with pytest.raises(Conflict) as refusal:
        await choose(desk, decision_id, "saturday")
    assert refusal.value.code == "closed"
    assert await status(desk, decision_id) == "open"
    assert await desk.told() == []


async def test_who_may_not_decide_finds_nothing_but_their_own(desk: Desk) -> None:
    theirs, mine = await ask(desk), await ask(desk, desk.host)
    with pytest.raises(NotFound):
        await choose(desk, theirs, actor=desk.host)
    with pytest.raises(NotAllowed):
        await choose(desk, mine, actor=desk.host)
    with pytest.raises(Invalid):
        await choose(desk, theirs, "sunday")
    with pytest.raises(NotFound):
        await asking.cancel_decision(desk.db, desk.host, desk.club_id, theirs)
    async with desk.db.read() as tx:
        with pytest.raises(NotFound):
            await decisions_page(tx, desk.host, desk.club_id, Which.WAITING)
        own = await decisions_page(tx, desk.host, desk.club_id, Which.MINE)
        waiting = await decisions_page(tx, desk.decider, desk.club_id, Which.WAITING)
        of_agent = await decisions_of_agent(tx, desk.agent)
    assert ([one.id for one in own], [one.id for one in of_agent]) == ([mine], [theirs])
    assert [(one.id, one.may_decide) for one in waiting] == [(mine, True), (theirs, True)]


async def test_its_asker_calls_it_off_and_is_not_told_of_that(desk: Desk) -> None:
    decision_id = await ask(desk)
    for _ in range(2):
        await asking.cancel_decision(desk.db, desk.agent, desk.club_id, decision_id)
    with pytest.raises(Conflict):
        await choose(desk, decision_id)
    assert await desk.told() == []
    assert await status(desk, decision_id) == "cancelled"


async def test_the_same_key_and_question_are_one_decision(desk: Desk) -> None:
    first = await ask(desk, key="night")
    assert await ask(desk, key="night") == first
    with pytest.raises(Conflict) as refusal:
        await ask(desk, question=replace(YES_NO, title="Which day?"), key="night")
    assert refusal.value.code == "idempotency_key_used"


async def test_fifty_of_an_agent_may_be_open(desk: Desk) -> None:
    decisions = [await ask(desk) for _ in range(asking.OPEN_MOST)]
    with pytest.raises(Conflict) as refusal:
        await ask(desk)
    assert refusal.value.code == "decisions_most"
    await choose(desk, decisions[0])
    await ask(desk)


async def test_two_that_ask_for_the_last_place_at_once_get_it_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await two_for_the_last_place(desk, monkeypatch) == 1


async def test_twin_without_the_agents_lock_both_get_the_last_place(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(*_: object) -> None:
        return None

    monkeypatch.setattr(asking, "hold_agent", none)
    monkeypatch.setattr(asking, "OPEN_MOST", 1)
    async with desk.db.transaction():
        await ask(desk)
        made = await asyncio.create_task(ask(desk))
    assert await status(desk, made) == "open"
    assert await desk.db.pool.fetchval("select count(*) from decisions where status = 'open'") == 2


async def two_for_the_last_place(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(asking, "OPEN_MOST", 1)
    async with desk.db.transaction() as tx:
        await ask(desk)
        second = asyncio.create_task(ask(desk))
        await wait_until_blocked(desk.db, "from agents", by=tx.raw.get_server_pid())
    with pytest.raises(Conflict):
        await second
    number: int = await desk.db.pool.fetchval("select count(*) from decisions where status = 'open'")
    return number


@pytest.mark.parametrize(
    ("question", "field"),
    [
        (replace(YES_NO, options=YES_NO.options[:1]), "options"),
        (replace(YES_NO, options=[YES_NO.options[0]] * 2), "options"),
        (replace(YES_NO, options=[replace(one, key="No word") for one in YES_NO.options]), "options"),
        (replace(YES_NO, life=timedelta(days=31)), "expiresIn"),
        (replace(YES_NO, life=timedelta(minutes=4)), "expiresIn"),
        (replace(YES_NO, title=" "), "title"),
        (replace(YES_NO, action=("unheard_of", {})), "action"),
    ],
)
async def test_what_breaks_a_rule_is_refused_by_its_field(desk: Desk, question: Any, field: str) -> None:
    with pytest.raises(LastcallError) as refusal:
        await ask(desk, question=question)
    assert refusal.value.field == field


async def expire_in(desk: Desk, decision_id: UUID, left: timedelta) -> None:
    """As if it had been asked a while ago: its time is over after ``left``."""
    await desk.db.pool.execute(
        "update decisions set created_at = lastcall_now() - interval '40 days',"
        " expires_at = lastcall_now() + $2::interval where id = $1",
        decision_id,
        left,
    )


async def test_what_nobody_decided_expires_and_the_asker_is_told(desk: Desk) -> None:
    over, open_still = await ask(desk), await ask(desk)
    await expire_in(desk, over, -timedelta(seconds=1))
    with pytest.raises(Conflict) as refusal:
        await choose(desk, over)
    assert refusal.value.code == "decision_ended", "also before the sweep has seen it"
    assert await decision_expiry_owner(desk.db).run_pass(Stop()) == Done(1)
    assert [await status(desk, one) for one in (over, open_still)] == ["expired", "open"]
    assert await desk.told() == ["decision.expired"]
    assert (await desk.logged())[-1] == "decision.expired"


@pytest.mark.clause("DEC-03")
async def test_after_a_restart_the_earliest_wake_is_the_saved_expiry(desk: Desk) -> None:
    decision_id = await ask(desk, question=replace(YES_NO, life=timedelta(days=3)))
    saved = await desk.db.pool.fetchval(
        "select ceil_to_millisecond(expires_at) from decisions where id = $1", decision_id
    )
    scheduler = Scheduler(desk.db, [decision_expiry_owner(desk.db)])
    await scheduler.start()
    try:
        await eventually(lambda: rests(scheduler, saved))
        assert abs(wake_of(scheduler) - saved) < timedelta(seconds=1)
    finally:
        await scheduler.stop()


@pytest.mark.clause("DEC-03")
async def test_after_a_restart_a_row_that_fails_does_not_put_off_the_next_expiry(desk: Desk) -> None:
    broken, soon = await ask(desk), await ask(desk)
    await expire_in(desk, broken, -timedelta(hours=1))
    await expire_in(desk, soon, timedelta(seconds=20))
    await desk.db.pool.execute(
        f"alter table decisions add constraint broken check (id <> '{broken}' or status = 'open')"
    )
    saved = await desk.db.pool.fetchval(
        "select ceil_to_millisecond(expires_at) from decisions where id = $1", soon
    )
    scheduler = Scheduler(desk.db, [decision_expiry_owner(desk.db)])
    await scheduler.start()
    try:
        await eventually(lambda: rests(scheduler, saved))
        assert abs(wake_of(scheduler) - saved) < timedelta(seconds=1)
    finally:
        await scheduler.stop()


def rests(scheduler: Scheduler, deadline: datetime) -> bool:
    """Whether it knows this deadline and has nothing in hand."""
    return [(one.deadline, one.running) for one in scheduler.status()] == [(deadline, False)]


def wake_of(scheduler: Scheduler) -> datetime:
    wake = scheduler.next_wake()
    assert wake is not None
    return wake


@pytest.mark.clause("DEC-03")
async def test_a_row_that_fails_hides_neither_the_next_one_nor_its_deadline(desk: Desk) -> None:
    broken, over, later = [await ask(desk) for _ in range(3)]
    await expire_in(desk, broken, -timedelta(hours=2))
    await expire_in(desk, over, -timedelta(hours=1))
    await desk.db.pool.execute(
        f"alter table decisions add constraint broken check (id <> '{broken}' or status = 'open')"
    )
    outcome = await decision_expiry_owner(desk.db).run_pass(Stop())
    assert isinstance(outcome, Failed)
    assert [await status(desk, one) for one in (broken, over, later)] == ["open", "expired", "open"]
    await desk.db.pool.execute("alter table decisions drop constraint broken")
    assert await decision_expiry_owner(desk.db).run_pass(Stop()) == Done(1)


@pytest.mark.clause("DEC-03")
async def test_the_next_expiry_is_found_by_its_index_and_never_early(desk: Desk) -> None:
    decision_id = await ask(desk)
    exact = await desk.db.pool.fetchval(
        "update decisions set expires_at = date_trunc('milliseconds', expires_at) + interval '1 microsecond'"
        " where id = $1 returning expires_at",
        decision_id,
    )
    reading = await DueDecisions(desk.db).next_deadline()
    assert reading.deadline is not None
    assert timedelta(0) < reading.deadline - exact < timedelta(milliseconds=1)
    async with desk.db.transaction() as tx:
        await tx.raw.execute("set local enable_seqscan to off")
        plan = await tx.raw.fetch(f"explain {DueDecisions(desk.db)._order.next_deadline}")
    assert any("decisions_expires_at_idx" in row[0] for row in plan)
