"""Each list of approvals, decisions and runs walks an index and no more rows than it shows."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.decisions.asks_kit import Desk, make_desk

from lastcall.db.cursor import LAST
from lastcall.db.database import Database
from lastcall.decisions.approvals.queries import APPROVALS
from lastcall.decisions.listing import Which
from lastcall.decisions.questions.queries import DECISIONS
from lastcall.decisions.runs import queries as runs
from lastcall.testing.agents import let_in_agent

MADE = """
insert into approvals (club_id, id, type, title, body, status, decided_at, decided_by, requested_by_kind,
                       requested_by_person_id, requested_by_agent_id, activity_at)
select $1, gen_random_uuid(), 'hire', 'Hire', '', case when n % 500 = 0 then 'pending' else 'rejected' end,
       case when n % 500 <> 0 then lastcall_now() end, case when n % 500 <> 0 then $2::uuid end,
       case when n % 2 = 0 then 'agent' else 'person' end, case when n % 2 = 1 then $2::uuid end,
       case when n % 2 = 0 then $3::uuid end, lastcall_now() - n * interval '1 minute'
from generate_series(1, 4000) n
"""
DECIDED = """
insert into decisions (club_id, id, title, body, options, status, decided_at, requested_by_kind,
                       requested_by_person_id, requested_by_agent_id, activity_at, created_at, expires_at)
select $1, gen_random_uuid(), 'Which?', '', '[{"key": "a"}, {"key": "b"}]',
       case when n % 500 = 0 then 'open' else 'expired' end, case when n % 500 <> 0 then lastcall_now() end,
       case when n % 2 = 0 then 'agent' else 'person' end, case when n % 2 = 1 then $2::uuid end,
       case when n % 2 = 0 then $3::uuid end, lastcall_now() - n * interval '1 minute', lastcall_now(),
       lastcall_now() + interval '7 days'
from generate_series(1, 4000) n
"""
RAN = """
insert into agent_runs (club_id, id, agent_id, key, thread_key, title, status, started_at, finished_at, superseded_at)
select $1, gen_random_uuid(), case when n % 40 = 0 then $3::uuid else $4::uuid end, $2::text || n,
       'door', 'Look', 'failed', lastcall_now() - n * interval '1 minute',
       lastcall_now(), lastcall_now()
from generate_series(1, 4000) n
"""
PLANS = {
    "approvals that wait": (APPROVALS.of(Which.WAITING), None, "approvals_inbox_idx"),
    "all approvals": (APPROVALS.of(Which.ALL), None, "approvals_club_id_activity_at_id_idx"),
    "one's own approvals": (APPROVALS.of(Which.MINE), "person", "approvals_of_person_idx"),
    "an agent's approvals": (APPROVALS.of_agent, "agent", "approvals_of_agent_idx"),
    "open decisions": (DECISIONS.of(Which.WAITING), None, "decisions_open_idx"),
    "all decisions": (DECISIONS.of(Which.ALL), None, "decisions_club_id_activity_at_id_idx"),
    "one's own decisions": (DECISIONS.of(Which.MINE), "person", "decisions_of_person_idx"),
    "an agent's decisions": (DECISIONS.of_agent, "agent", "decisions_of_agent_idx"),
    "all runs": (runs._ALL, None, "agent_runs_club_id_started_at_id_idx"),
    "an agent's runs": (runs._OF_AGENT, "agent", "agent_runs_club_id_agent_id_started_at_id_idx"),
}


@pytest.fixture
async def desk(database: Database) -> Desk:
    desk = await make_desk(database)
    for statement in (MADE, DECIDED):
        await database.pool.execute(statement, desk.club_id, desk.owner.person_id, desk.agent.agent_id)
    other, _ = await let_in_agent(database, desk.club_id, desk.owner.person_id)
    await database.pool.execute(RAN, desk.club_id, "run-", desk.agent.agent_id, other.agent_id)
    await database.pool.execute("analyze approvals, decisions, agent_runs")
    return desk


async def test_each_list_is_served_by_its_index(desk: Desk) -> None:
    whose: dict[str | None, UUID | None] = {
        None: None,
        "person": desk.owner.person_id,
        "agent": desk.agent.agent_id,
    }
    wrong = []
    for name, (statement, who, index) in PLANS.items():
        # A generic plan, as a connection makes it that has run the statement a few times.
        async with desk.db.pool.acquire() as connection:
            await connection.execute("set plan_cache_mode to force_generic_plan")
            rows = await connection.fetch(
                f"explain {statement}", desk.club_id, LAST.time, LAST.id, 21, whose[who]
            )
            await connection.execute("reset plan_cache_mode")
        plan = "\n".join(row[0] for row in rows)
        if index not in plan or "Seq Scan on approvals" in plan or "Seq Scan on decisions" in plan:
            wrong.append(f"{name}:\n{plan}")
    assert not wrong, "\n\n".join(wrong)
