"""What an agent proposes to archive: all of it as it was seen, or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.decisions.conftest import Desk, Door, open_door
from tests.decisions.test_by_hand import staff

from lastcall.clubs.permissions import Permission
from lastcall.db.database import Database
from lastcall.deadlines.signals import Signal
from lastcall.decisions.questions.deciding import decide
from lastcall.decisions.registration import register
from lastcall.decisions.retention import proposals
from lastcall.decisions.retention.controls import keep
from lastcall.decisions.retention.proposals import ARCHIVE, LEAVE, Proposed, propose_archive
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.people.actor import AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.testing.agents import let_in_agent
from lastcall.testing.locks import wait_until_blocked

OLD = timedelta(days=60)


@pytest.fixture
async def door(database: Database) -> Door:
    register()
    return await open_door(database)


@pytest.fixture
def desk(door: Door) -> Desk:
    """Approvals of the same club."""
    return Desk(door.db, door.owner, door.club_id)


@pytest.fixture
async def agent(door: Door) -> AgentActor:
    return (await let_in_agent(door.db, door.club_id, door.owner.person_id))[0]


async def both(door: Door, desk: Desk) -> tuple[Proposed, Proposed]:
    """One item of each kind that nobody has touched for long."""
    request, approval = await door.waits_since(OLD), await desk.waits_since(OLD)
    return Proposed(door.kind, request, 0, "Old."), Proposed(desk.kind, approval, 0, "")


async def propose(door: Door, agent: AgentActor, *items: Proposed) -> UUID:
    return await propose_archive(door.db, agent, door.club_id, items)


async def answer(door: Door, decision_id: UUID, option: str = ARCHIVE) -> Any:
    return await decide(door.db, door.owner, door.club_id, decision_id, option)


async def status(door: Door, decision_id: UUID) -> str:
    return str(await door.db.pool.fetchval("select status from decisions where id = $1", decision_id))


@pytest.mark.clause("DEC-04", "ACC-08")
async def test_an_accepted_proposal_archives_both_kinds_and_signals_each(
    door: Door, desk: Desk, agent: AgentActor
) -> None:
    items = await both(door, desk)
    decision_id = await propose(door, agent, *items)
    signals: list[Signal] = []
    door.db.bus.subscribe(Signal, signals.append)
    assert await answer(door, decision_id) == {"archived": 2}
    assert {door.kind.owner, desk.kind.owner} <= {signal.owner for signal in signals}
    rows = await door.db.pool.fetch("select archived_reason, archived_by_person_id from retention")
    assert [tuple(row) for row in rows] == [("accepted_proposal", door.owner.person_id)] * 2
    assert [await door.due_at(items[0].id), await desk.due_at(items[1].id)] == [None, None]


async def test_a_proposal_that_is_declined_changes_nothing(door: Door, desk: Desk, agent: AgentActor) -> None:
    decision_id = await propose(door, agent, *await both(door, desk))
    assert await answer(door, decision_id, LEAVE) == {"archived": 0}
    assert await door.archived() == 0


@pytest.mark.clause("DEC-04")
@pytest.mark.parametrize("what", ["moved", "decided", "kept"])
async def test_when_one_item_is_not_as_it_was_none_is_archived_and_the_question_stays(
    door: Door, desk: Desk, agent: AgentActor, what: str
) -> None:
    items = await both(door, desk)
    decision_id = await propose(door, agent, *items)
    match what:
        case "moved":
            await desk.move(items[1].id)
        case "decided":
            await desk.decide(items[1].id)
        case _:
            await keep(door.db, door.owner, door.club_id, desk.kind, items[1].id, seen_version=0)
    with pytest.raises(Conflict) as refusal:
        await answer(door, decision_id)
    assert refusal.value.code == "archive_proposal_stale"
    assert await door.archived() == 0
    assert await status(door, decision_id) == "open"


@pytest.mark.clause("DEC-04")
@pytest.mark.parametrize("change", ["grants = '{ask,propose_archive}'", "status = 'blocked'"])
async def test_an_agent_that_may_no_longer_propose_archives_nothing(
    door: Door, desk: Desk, agent: AgentActor, change: str
) -> None:
    decision_id = await propose(door, agent, *await both(door, desk))
    await door.db.pool.execute(f"update agents set {change} where id = $1", agent.agent_id)
    with pytest.raises(Conflict) as refusal:
        await answer(door, decision_id)
    assert refusal.value.code == "archive_proposal_authority_changed"
    assert await door.archived() == 0
    assert await status(door, decision_id) == "open"


@pytest.mark.clause("DEC-04", "RET-19")
@pytest.mark.parametrize("missing", [Permission.MANAGE_RETENTION, Permission.DECIDE_ACCESS])
async def test_whoever_may_not_archive_each_item_by_hand_accepts_nothing(
    door: Door, desk: Desk, agent: AgentActor, missing: Permission
) -> None:
    needed = {Permission.DECIDE_APPROVALS, Permission.DECIDE_ACCESS, Permission.MANAGE_RETENTION}
    who = await staff(door.db, door, *needed - {missing})
    decision_id = await propose(door, agent, *await both(door, desk))
    with pytest.raises(Conflict) as refusal:
        await decide(door.db, who, door.club_id, decision_id, ARCHIVE)
    assert refusal.value.code == "archive_proposal_authority_changed"
    assert await door.archived() == 0
    assert await status(door, decision_id) == "open"
    assert await decide(door.db, who, door.club_id, decision_id, LEAVE) == {"archived": 0}


async def test_the_same_proposal_of_an_agent_is_one(door: Door, desk: Desk, agent: AgentActor) -> None:
    first, second = await both(door, desk)
    decision_id = await propose(door, agent, first, second)
    assert await propose(door, agent, second, first) == decision_id
    other, _ = await let_in_agent(door.db, door.club_id, door.owner.person_id)
    assert await propose(door, other, first, second) != decision_id


async def test_only_what_waits_long_and_as_it_was_seen_is_proposed(
    door: Door, desk: Desk, agent: AgentActor
) -> None:
    fresh = await door.waits_since(timedelta(days=3))
    old, _ = await both(door, desk)
    with pytest.raises(Invalid) as refusal:
        await propose(door, agent, old, Proposed(door.kind, fresh, 0, ""))
    assert refusal.value.code == "item_not_ageing"
    with pytest.raises(Conflict):
        await propose(door, agent, replace(old, version=7))
    with pytest.raises(NotFound):
        await propose(door, agent, replace(old, kind=desk.kind))
    for items in ((), (old, old)):
        with pytest.raises(Invalid):
            await propose(door, agent, *items)
    assert await door.db.pool.fetchval("select count(*) from decisions") == 0


@pytest.mark.parametrize("missing", [AgentGrant.READ_INBOX, AgentGrant.PROPOSE_ARCHIVE])
async def test_an_agent_proposes_with_both_grants_only(door: Door, desk: Desk, missing: AgentGrant) -> None:
    grants = set(AgentGrant) - {missing}
    agent, _ = await let_in_agent(door.db, door.club_id, door.owner.person_id, grants)
    with pytest.raises(NotAllowed):
        await propose(door, agent, *await both(door, desk))


Act = Callable[[Desk, UUID], Awaitable[Any]]


async def moves(desk: Desk, item_id: UUID) -> None:
    await desk.move(item_id)


async def keeps(desk: Desk, item_id: UUID) -> None:
    await keep(desk.db, desk.owner, desk.club_id, desk.kind, item_id, seen_version=0)


ACTS: dict[str, Act] = {"activity": moves, "keep": keeps}


@pytest.mark.clause("DEC-04")
@pytest.mark.parametrize("act", ACTS)
async def test_a_proposal_accepted_behind_a_change_waits_for_it_and_is_stale(
    door: Door, desk: Desk, agent: AgentActor, act: str
) -> None:
    items = await both(door, desk)
    decision_id = await propose(door, agent, *items)
    async with door.db.transaction() as tx:
        await ACTS[act](desk, items[1].id)
        waiting = asyncio.create_task(answer(door, decision_id))
        await wait_until_blocked(door.db, "from approvals", by=tx.raw.get_server_pid())
    with pytest.raises(Conflict) as refusal:
        await waiting
    assert refusal.value.code == "archive_proposal_stale"
    assert await door.archived() == 0


@pytest.mark.clause("DEC-04")
async def test_of_two_proposals_that_share_an_item_accepted_at_once_the_later_is_stale_as_a_whole(
    door: Door, desk: Desk, agent: AgentActor
) -> None:
    first_request, shared = await both(door, desk)
    second_request, _ = await both(door, desk)
    first = await propose(door, agent, first_request, shared)
    second = await propose(door, agent, shared, second_request)
    async with door.db.transaction() as tx:
        assert await answer(door, first) == {"archived": 2}
        waiting = asyncio.create_task(answer(door, second))
        await wait_until_blocked(door.db, "from approvals", by=tx.raw.get_server_pid())
    with pytest.raises(Conflict) as refusal:
        await waiting
    assert refusal.value.code == "archive_proposal_stale"
    assert await door.archived_at(second_request.id) is None
    assert await door.archived() == 2
    assert [await status(door, one) for one in (first, second)] == ["decided", "open"]


async def test_twin_without_the_items_lock_what_just_moved_is_archived(
    door: Door, desk: Desk, agent: AgentActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_lock(*_: Any) -> None:
        return None

    monkeypatch.setattr(proposals, "lock_proposed", no_lock)
    items = await both(door, desk)
    decision_id = await propose(door, agent, *items)
    async with door.db.transaction() as tx:
        await desk.move(items[1].id)
        waiting = asyncio.create_task(answer(door, decision_id))
        await wait_until_blocked(door.db, "approvals", by=tx.raw.get_server_pid())
    assert await waiting == {"archived": 2}
