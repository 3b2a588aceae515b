"""Approvals that nobody decides: as join requests, and the agent that asked is told, once an archive."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from tests.decisions.conftest import Desk, Door, open_door
from tests.decisions.test_candidates import sweep

from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.deadlines.owner import Failed, Stop
from lastcall.decisions.deliveries.signals import for_agent
from lastcall.decisions.retention.controls import archive, revive
from lastcall.decisions.retention.due import refresh
from lastcall.decisions.retention.kinds.approval import APPROVAL
from lastcall.decisions.retention.sweep import retention_owner
from lastcall.people.actor import AgentActor
from lastcall.testing.agents import let_in_agent

TOLD = (
    "select agent_id, approval_id, data, state from deliveries where kind = 'approval.archived' order by id"
)


@pytest.fixture
async def desk(database: Database, door: Door) -> Desk:
    """In the same club as ``door``."""
    return Desk(database, door.owner, door.club_id)


@pytest.fixture
async def agent(database: Database, desk: Desk) -> AgentActor:
    actor, _ = await let_in_agent(database, desk.club_id, desk.owner.person_id)
    return actor


async def asked_by(agent: AgentActor, desk: Desk) -> UUID:
    """An overdue approval that this agent asked for."""
    item = await desk.overdue()
    await desk.db.pool.execute(
        "update approvals set requested_by_kind = 'agent', requested_by_person_id = null,"
        " requested_by_agent_id = $2 where id = $1",
        item,
        agent.agent_id,
    )
    return item


@pytest.mark.clause("RET-18", "DEC-02")
async def test_the_agent_that_asked_is_told_once_an_archive_and_nobody_else_is(
    database: Database, door: Door, desk: Desk, agent: AgentActor
) -> None:
    hints: list[Hint] = []
    database.bus.subscribe(Hint, hints.append)
    item, by_a_person = await asked_by(agent, desk), await desk.overdue()
    request = await door.overdue()
    assert await sweep(desk) == 2
    assert await sweep(door) == 1
    assert [
        await one.archived_at(i) is None for one, i in ((desk, item), (desk, by_a_person), (door, request))
    ] == [False] * 3
    (told,) = await database.pool.fetch(TOLD)
    assert tuple(told)[:2] == (agent.agent_id, item)
    assert '"archiveVersion": 1' in told["data"]
    assert hints.count(for_agent(desk.club_id, agent.agent_id)) == 1
    await revive(database, desk.owner, desk.club_id, APPROVAL, item, seen_version=1)
    await database.pool.execute("update retention set revived_at = lastcall_now() - interval '91 days'")
    async with database.transaction() as tx:
        await refresh(tx, desk.club_id, [item], kind=APPROVAL)
    assert await sweep(desk) == 1
    assert len(await database.pool.fetch(TOLD)) == 2, "a second archive is told anew"


@pytest.mark.clause("RET-18")
async def test_what_somebody_archives_by_hand_is_told_to_no_agent(
    database: Database, desk: Desk, agent: AgentActor
) -> None:
    item = await asked_by(agent, desk)
    await archive(database, desk.owner, desk.club_id, APPROVAL, item, seen_version=0)
    assert await database.pool.fetch(TOLD) == []


async def test_an_archive_that_cannot_be_told_does_not_happen(
    database: Database, desk: Desk, agent: AgentActor
) -> None:
    item = await asked_by(agent, desk)
    await database.pool.execute(
        "alter table deliveries add constraint broken check (kind <> 'approval.archived')"
    )
    result = await retention_owner(database, APPROVAL).run_pass(Stop())
    assert isinstance(result, Failed)
    assert await desk.archived_at(item) is None
    assert await database.pool.fetchval("select count(*) from activity_log where entity_id = $1", item) == 0


@pytest.mark.clause("DEC-02")
async def test_one_that_was_sent_back_for_revision_waits_for_its_asker_and_is_not_archived(
    database: Database, desk: Desk
) -> None:
    item = await desk.overdue()
    await desk._write(item, "status = 'revision_requested'")
    assert await desk.due_at(item) is None
    assert await sweep(desk) == 0
    await desk._write(item, "status = 'pending', activity_at = lastcall_now()")
    due = await desk.due_at(item)
    assert due is not None
    assert due - await database.pool.fetchval("select lastcall_now()") > timedelta(days=89)


async def test_retention_of_one_club_is_none_of_anothers(database: Database, desk: Desk) -> None:
    elsewhere = await open_door(database, "cellar", Desk)
    item = await elsewhere.overdue()
    async with database.transaction() as tx:
        await refresh(tx, desk.club_id, [item], kind=APPROVAL)
    assert await elsewhere.due_at(item) is not None
