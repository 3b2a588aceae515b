"""What an agent reports of its runs. Times are the database's, whatever the agent's clock says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import insert, select, update

from lastcall.access.agents.policy import require_agent
from lastcall.clubs.activity import log
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.decisions.askers import BODY_MOST, TITLE_MOST
from lastcall.decisions.asking import hold_agent, valid_key, valid_text, valid_title
from lastcall.decisions.runs.tables import AgentRun
from lastcall.errors import Conflict, Invalid
from lastcall.people.actor import AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.data_retention import data_written

TOPIC = "runs"  # of the hints for live pages


class RunStatus(StrEnum):
    """Where a run stands; all but the first are final."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def label(self) -> str:
        """The word that pages show."""
        return self.value.capitalize()


@dataclass(frozen=True)
class Report:
    """How a run stands. ``key`` is the agent's own name for the run; ``thread`` is what it works on: a newer run on the
    same makes the failure of an older one history. ``error`` is for a failed one alone."""

    key: str
    thread: str
    title: str
    status: RunStatus
    detail: str | None = None
    error: str | None = None


async def report_run(db: Database, agent: AgentActor, report: Report) -> UUID:
    """Keep how a run stands; answers its id. A run that nobody heard of begins with this. The same report again changes
    nothing.

    Needs the grant ``report_runs``. Raises ``Conflict`` for a run that has ended otherwise (``run_ended``), and
    ``Invalid`` for what breaks a rule.
    """
    values = _valid(report)
    is_over = report.status is not RunStatus.RUNNING
    async with db.transaction() as tx:
        await require_agent(tx, agent, AgentGrant.REPORT_RUNS)
        await hold_agent(tx, agent)
        mine = (AgentRun.club_id == agent.club_id, AgentRun.agent_id == agent.agent_id)
        found = (
            await tx.execute(
                select(AgentRun.id, AgentRun.status, AgentRun.thread_key).where(
                    *mine, AgentRun.key == report.key
                )
            )
        ).one_or_none()
        if found is None:
            run_id = await _begin(tx, agent, values, is_over=is_over)
        elif found.status != RunStatus.RUNNING:
            if found.status != report.status:
                raise Conflict(
                    "run_ended",
                    f"This run was reported as {found.status} already.",
                    advice="Report a new run, with a key of its own.",
                )
            return UUID(str(found.id))
        else:
            run_id = UUID(str(found.id))
            ended = {"finished_at": NOW} if is_over else {}
            kept = {name: values[name] for name in ("title", "status", "detail", "error")}
            await tx.execute(update(AgentRun).where(*mine, AgentRun.id == run_id).values(**kept, **ended))
        if report.status is RunStatus.FAILED:
            await log(tx, agent.club_id, agent, "run.failed", "agent_run", run_id)
        if is_over:
            data_written(tx)
        tx.publish(Hint(agent.club_id, TOPIC))
    return run_id


async def _begin(tx: Transaction, agent: AgentActor, values: dict[str, Any], *, is_over: bool) -> UUID:
    """Insert the run; those on the same thread that were reported before it are history."""
    await tx.execute(
        update(AgentRun)
        .where(
            AgentRun.club_id == agent.club_id,
            AgentRun.agent_id == agent.agent_id,
            AgentRun.thread_key == values["thread_key"],
            AgentRun.superseded_at.is_(None),
        )
        .values(superseded_at=NOW)
    )
    run_id = new_id()
    now = await tx.scalar(select(NOW))
    times = {"started_at": now, "created_at": now, "finished_at": now if is_over else None}
    await tx.execute(
        insert(AgentRun).values(club_id=agent.club_id, id=run_id, agent_id=agent.agent_id, **values, **times)
    )
    return run_id


def _valid(report: Report) -> dict[str, Any]:
    if report.error is not None and report.status is not RunStatus.FAILED:
        raise Invalid(
            "error_without_failure",
            "Only a failed run has an error.",
            advice="Report it as failed, or leave the error out.",
            field="error",
        )
    return {
        "key": valid_key(report.key, "key"),
        "thread_key": valid_key(report.thread, "thread"),
        "title": valid_title(report.title, most=TITLE_MOST),
        "status": report.status.value,
        "detail": valid_text(report.detail, "detail", most=BODY_MOST) or None,
        "error": valid_text(report.error, "error", most=BODY_MOST) or None,
    }
