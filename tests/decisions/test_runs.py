"""What agents report of their runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.decisions.asks_kit import Desk, make_desk

from lastcall.db.database import Database
from lastcall.decisions.registration import register
from lastcall.decisions.runs import service
from lastcall.decisions.runs.queries import one_run, runs_page
from lastcall.decisions.runs.service import Report, RunStatus, report_run
from lastcall.errors import Conflict, Invalid, NotAllowed
from lastcall.people.agent_grants import AgentGrant
from lastcall.testing.agents import let_in_agent
from lastcall.testing.locks import wait_until_blocked

RUN = Report("run-1", "door", "Look at the door", RunStatus.RUNNING)
FAILED = replace(RUN, status=RunStatus.FAILED, error="It was closed.")
WAITING = "select key from agent_runs where status = 'failed' and superseded_at is null order by key"


@pytest.fixture
async def desk(database: Database) -> Desk:
    register()
    return await make_desk(database)


async def waiting(desk: Desk) -> list[str]:
    """The failures that people are shown."""
    return [row["key"] for row in await desk.db.pool.fetch(WAITING)]


async def test_a_run_begins_ends_and_the_same_report_again_changes_nothing(desk: Desk) -> None:
    run_id = await report_run(desk.db, desk.agent, RUN)
    assert await report_run(desk.db, desk.agent, FAILED) == run_id
    async with desk.db.read() as tx:
        before = await one_run(tx, desk.owner, desk.club_id, run_id)
    assert await report_run(desk.db, desk.agent, FAILED) == run_id
    with pytest.raises(Conflict) as refusal:
        await report_run(desk.db, desk.agent, replace(RUN, status=RunStatus.SUCCEEDED))
    assert refusal.value.code == "run_ended"
    async with desk.db.read() as tx:
        assert await runs_page(tx, desk.owner, desk.club_id, agent_id=desk.agent.agent_id) == [before]
    assert (before.status, before.error, before.is_current) == ("failed", "It was closed.", True)
    assert await desk.logged() == ["run.failed"]


async def test_a_failure_is_history_once_a_newer_run_on_the_same_thing_begins(desk: Desk) -> None:
    await report_run(desk.db, desk.agent, FAILED)
    await report_run(desk.db, desk.agent, replace(FAILED, key="run-2", thread="bar"))
    assert await waiting(desk) == ["run-1", "run-2"]
    await report_run(desk.db, desk.agent, replace(RUN, key="run-3"))
    assert await waiting(desk) == ["run-2"]
    other, _ = await let_in_agent(desk.db, desk.club_id, desk.owner.person_id)
    await report_run(desk.db, other, replace(RUN, thread="bar"))
    assert await waiting(desk) == ["run-2"], "another agent's run is none of its"


async def two_at_once(desk: Desk, waits_for: str) -> None:
    async with desk.db.transaction() as tx:
        await report_run(desk.db, desk.agent, FAILED)
        second = asyncio.create_task(report_run(desk.db, desk.agent, replace(FAILED, key="run-2")))
        if waits_for:
            await wait_until_blocked(desk.db, waits_for, by=tx.raw.get_server_pid())
        else:
            await second
    await second


async def test_of_two_reported_at_once_one_is_the_newest(desk: Desk) -> None:
    await two_at_once(desk, "from agents")
    assert await waiting(desk) == ["run-2"]


async def test_twin_without_the_agents_lock_both_are(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*_: object) -> None:
        return None

    monkeypatch.setattr(service, "hold_agent", none)
    await two_at_once(desk, "")
    assert await waiting(desk) == ["run-1", "run-2"]


async def test_it_takes_the_grant_and_an_error_is_a_failed_runs(desk: Desk) -> None:
    bare, _ = await let_in_agent(desk.db, desk.club_id, desk.owner.person_id, [AgentGrant.ASK])
    with pytest.raises(NotAllowed):
        await report_run(desk.db, bare, RUN)
    with pytest.raises(Invalid) as refusal:
        await report_run(desk.db, desk.agent, replace(RUN, error="What?"))
    assert refusal.value.field == "error"
