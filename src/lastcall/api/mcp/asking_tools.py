"""Tools of an agent that asks its club's staff, and that reports its runs."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from lastcall.api.mcp.tool import AgentTool, PageCursor, PageSize
from lastcall.api.v1.decision_shapes import ChangedApproval, NewApproval, NewComment, NewDecision
from lastcall.api.v1.routes import agent_asks as asks
from lastcall.api.v1.shapes import Id, Input, Shape
from lastcall.db.database import Database
from lastcall.people.actor import AgentActor
from lastcall.people.agent_grants import AgentGrant

OneId = Annotated[Id, Meta(description="The id, as the list tells it.")]


class MyPage(Input, frozen=True):
    """Which page is wanted."""

    limit: PageSize = 20
    cursor: PageCursor | None = None


class MyOne(Input, frozen=True):
    """Which one of yours is meant."""

    id: OneId


class ChangeMine(Input, frozen=True):
    """Which approval of yours, and all of what it is to say."""

    id: OneId
    change: ChangedApproval


class CommentOnMine(Input, frozen=True):
    """Which approval of yours, and what you have to say."""

    id: OneId
    comment: NewComment


async def _change(db: Database, agent: AgentActor, asked: ChangeMine) -> Shape:
    answer: Shape = await asks.resubmit_my_approval.fn(
        db=db, agent=agent, approval_id=asked.id, data=asked.change
    )
    return answer


async def _comment(db: Database, agent: AgentActor, asked: CommentOnMine) -> Shape:
    answer: Shape = await asks.comment_on_my_approval.fn(
        db=db, agent=agent, approval_id=asked.id, data=asked.comment
    )
    return answer


async def _withdraw(db: Database, agent: AgentActor, asked: MyOne) -> Shape:
    await asks.withdraw_my_approval.fn(db=db, agent=agent, approval_id=asked.id)
    answer: Shape = await asks.my_approval.fn(db=db, agent=agent, approval_id=asked.id)
    return answer


async def _cancel(db: Database, agent: AgentActor, asked: MyOne) -> Shape:
    await asks.cancel_my_decision.fn(db=db, agent=agent, decision_id=asked.id)
    answer: Shape = await asks.my_decision.fn(db=db, agent=agent, decision_id=asked.id)
    return answer


TOOLS: tuple[AgentTool[Any], ...] = (
    AgentTool(
        name="ask_approval",
        words="Ask the club's staff for a yes or a no. With an effect (`operations`: payloads and a schedule as they"
        " would be queued) it is done when somebody approves, under their authority. Send the same key again when an"
        " answer is lost.",
        asked=NewApproval,
        run=lambda db, agent, asked: asks.ask_approval.fn(db=db, agent=agent, data=asked),
        grant=AgentGrant.ASK,
    ),
    AgentTool(
        name="my_approvals",
        words="What you asked for, the latest activity first.",
        asked=MyPage,
        run=lambda db, agent, asked: asks.my_approvals.fn(
            db=db, agent=agent, limit=asked.limit, cursor=asked.cursor
        ),
        grant=AgentGrant.ASK,
        reads=True,
    ),
    AgentTool(
        name="my_approval",
        words="One approval of yours, with what was said about it.",
        asked=MyOne,
        run=lambda db, agent, asked: asks.my_approval.fn(db=db, agent=agent, approval_id=asked.id),
        grant=AgentGrant.ASK,
        reads=True,
    ),
    AgentTool(
        name="resubmit",
        words="Change what you asked for and put it to the staff again, after they asked for a change or before.",
        asked=ChangeMine,
        run=_change,
        grant=AgentGrant.ASK,
    ),
    AgentTool(
        name="comment",
        words="Say something about an approval of yours.",
        asked=CommentOnMine,
        run=_comment,
        grant=AgentGrant.ASK,
    ),
    AgentTool(
        name="withdraw",
        words="Take back an approval of yours while it can still be decided.",
        asked=MyOne,
        run=_withdraw,
        grant=AgentGrant.ASK,
        repeats=True,
    ),
    AgentTool(
        name="ask_decision",
        words="Ask the club's staff to choose one of 2 to 10 options. Undecided it expires; 50 of yours may be open.",
        asked=NewDecision,
        run=lambda db, agent, asked: asks.ask_for_my_decision.fn(db=db, agent=agent, data=asked),
        grant=AgentGrant.ASK,
    ),
    AgentTool(
        name="my_decisions",
        words="The decisions that you asked for, the latest first.",
        asked=MyPage,
        run=lambda db, agent, asked: asks.my_decisions.fn(
            db=db, agent=agent, limit=asked.limit, cursor=asked.cursor
        ),
        grant=AgentGrant.ASK,
        reads=True,
    ),
    AgentTool(
        name="cancel_decision",
        words="Call a decision of yours off while it is open.",
        asked=MyOne,
        run=_cancel,
        grant=AgentGrant.ASK,
        repeats=True,
    ),
    AgentTool(
        name="propose_archive",
        words="Ask the club's staff to archive items of your inbox that have waited long, all of them or nothing.",
        asked=asks.NewProposal,
        run=lambda db, agent, asked: asks.propose_my_archive.fn(db=db, agent=agent, data=asked),
        grant=AgentGrant.PROPOSE_ARCHIVE,
        repeats=True,
    ),
    AgentTool(
        name="report_run",
        words="Say that a run of yours began, or how it ended. A failed one is shown to the staff until a newer run on"
        " the same thread begins.",
        asked=asks.ReportedRun,
        run=lambda db, agent, asked: asks.report_my_run.fn(db=db, agent=agent, data=asked),
        grant=AgentGrant.REPORT_RUNS,
        repeats=True,
    ),
)
