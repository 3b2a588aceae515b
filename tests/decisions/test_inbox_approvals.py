"""Approvals in the inbox: said yes or no to from the list, as they were seen, and never unread or by their asker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias
from uuid import UUID

import pytest
from tests.decisions.asks_kit import YES_NO, Desk, carrying, make_desk

from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.decisions.approvals import asking, deciding
from lastcall.decisions.inbox.acts import Outcome, Said, Ticked, act_on
from lastcall.decisions.inbox.item import Act, Item
from lastcall.decisions.inbox.queries import Wanted, inbox_page
from lastcall.decisions.inbox.reach import reach_in
from lastcall.decisions.inbox.sources.approvals import APPROVALS
from lastcall.decisions.inbox.sources.decisions import DECISIONS
from lastcall.decisions.inbox.sources.failed_runs import FAILED_RUNS
from lastcall.decisions.questions.asking import ask_decision, cancel_decision
from lastcall.decisions.questions.deciding import decide
from lastcall.decisions.registration import register
from lastcall.decisions.runs.service import Report, RunStatus, report_run
from lastcall.people.actor import Actor

Becomes: TypeAlias = Callable[[UUID], Awaitable[object]]
VERDICTS = {Act.APPROVE, Act.REJECT}


@pytest.fixture
async def desk(database: Database) -> Desk:
    register()
    return await make_desk(database)


async def listed(desk: Desk, actor: Actor) -> list[Item]:
    async with desk.db.read() as tx:
        now = await tx.raw.fetchval("select lastcall_now()")
        return list((await inbox_page(tx, await reach_in(tx, actor, desk.club_id), Wanted(now, now))).items)


async def say(desk: Desk, act: Act, *items: Item, actor: Actor | None = None) -> list[Outcome]:
    ticked = [Ticked(one.source, one.club.id, one.id, one.seen) for one in items]
    return await act_on(desk.db, actor or desk.decider, act, ticked, Said(note="As we said."))


@pytest.mark.clause("DEC-05")
async def test_many_are_approved_or_rejected_as_they_were_seen_and_one_that_changed_waits_on(
    desk: Desk,
) -> None:
    first, second, changed = [await desk.ask() for _ in range(3)]
    items = {item.id: item for item in await listed(desk, desk.decider)}
    assert all(item.actions >= VERDICTS for item in items.values())
    await asking.resubmit(
        desk.db, desk.agent, desk.club_id, changed, seen_revision=1, title="Hire two", body=""
    )
    approved = await say(desk, Act.APPROVE, items[first], items[changed])
    assert [one.problem is None for one in approved] == [True, False]
    (rejected,) = await say(desk, Act.REJECT, items[second])
    assert rejected.problem is None
    assert [await desk.status(one) for one in (first, second, changed)] == ["approved", "rejected", "pending"]
    assert (await desk.row(first))["decision_note"] == "As we said."
    (left,) = await listed(desk, desk.decider)
    assert (left.id, left.seen, left.shown.title) == (changed, 2, "Hire two")


async def test_nobody_is_offered_a_verdict_on_their_own_and_none_is_taken(desk: Desk) -> None:
    own = await desk.ask(desk.decider)
    (item,) = await listed(desk, desk.decider)
    assert not item.actions & VERDICTS
    for act in VERDICTS:
        (outcome,) = await say(desk, act, item)
        assert outcome.problem is not None
        assert outcome.problem.code == "own_approval"
    assert await desk.status(own) == "pending"
    (seen_by_another,) = await listed(desk, desk.second)
    assert seen_by_another.actions >= VERDICTS


async def test_what_does_something_is_approved_where_it_is_read_and_can_be_rejected_unread(
    desk: Desk,
) -> None:
    carries = await desk.ask(ask=carrying("a"))
    (item,) = await listed(desk, desk.decider)
    assert item.actions & VERDICTS == {Act.REJECT}
    (outcome,) = await say(desk, Act.APPROVE, item)
    assert outcome.problem is not None
    assert outcome.problem.code == "decided_on_its_page"
    (hidden,) = await say(desk, Act.APPROVE, item, actor=desk.host)
    assert hidden.problem is not None
    assert hidden.problem.code == "approval_unknown", "whoever may not see it learns nothing of it"
    assert await desk.status(carries) == "pending"
    (rejected,) = await say(desk, Act.REJECT, item)
    assert rejected.problem is None
    assert await desk.status(carries) == "rejected"


async def test_an_open_page_hears_of_all_that_becomes_of_approvals_decisions_and_runs(desk: Desk) -> None:
    """The topics that the sources name are those that the services publish."""
    heard: list[str] = []
    desk.db.bus.subscribe(Hint, lambda hint: heard.append(hint.topic))

    async def tells(topics: tuple[str, ...], act: Awaitable[object]) -> object:
        heard.clear()
        made = await act
        assert set(topics) & set(heard), (topics, heard)
        return made

    ends: tuple[Becomes, ...] = (
        lambda one: deciding.approve(desk.db, desk.decider, desk.club_id, one, seen_revision=1),
        lambda one: deciding.reject(desk.db, desk.decider, desk.club_id, one, seen_revision=1),
        lambda one: deciding.request_revision(
            desk.db, desk.decider, desk.club_id, one, seen_revision=1, note="Say when."
        ),
        lambda one: asking.withdraw(desk.db, desk.agent, desk.club_id, one),
        lambda one: asking.resubmit(
            desk.db, desk.agent, desk.club_id, one, seen_revision=1, title="Two", body=""
        ),
    )
    for act in ends:
        asked = await tells(APPROVALS.topics, desk.ask())
        assert isinstance(asked, UUID)
        await tells(APPROVALS.topics, act(asked))
    choices: tuple[Becomes, ...] = (
        lambda one: decide(desk.db, desk.decider, desk.club_id, one, "friday"),
        lambda one: cancel_decision(desk.db, desk.agent, desk.club_id, one),
    )
    for choose in choices:
        put = await tells(DECISIONS.topics, ask_decision(desk.db, desk.agent, desk.club_id, YES_NO))
        assert isinstance(put, UUID)
        await tells(DECISIONS.topics, choose(put))
    failed = Report("run-1", "door", "Look at the door", RunStatus.FAILED, error="It was closed.")
    await tells(FAILED_RUNS.topics, report_run(desk.db, desk.agent, failed))
