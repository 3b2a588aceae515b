"""What an agent asks of its club's staff with its own key, and what it reports of its runs."""

from __future__ import annotations

from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.decision_shapes import (
    ApprovalPage,
    ApprovalStory,
    ChangedApproval,
    Decision,
    DecisionPage,
    Made,
    NewApproval,
    NewComment,
    NewDecision,
    approval_page,
    ask_of,
    decision_page,
    decision_shape,
    question_of,
    story_shape,
)
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.requests import FOR_AGENTS
from lastcall.api.v1.routes.approvals import Resubmitted
from lastcall.api.v1.shapes import Id, Input, PathId, known
from lastcall.db.cursor import read_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.decisions.approvals import asking
from lastcall.decisions.approvals import queries as approvals
from lastcall.decisions.questions import queries as decisions
from lastcall.decisions.questions.asking import ask_decision, cancel_decision
from lastcall.decisions.retention.kinds import kind_named
from lastcall.decisions.retention.proposals import Proposed, propose_archive
from lastcall.decisions.runs.service import Report, RunStatus, report_run
from lastcall.people.actor import AgentActor

TAGS = ["For agents"]
_APPROVAL = "/agent/approvals/{approval_id:str}"
_DECISION = "/agent/decisions/{decision_id:str}"


class ReportedRun(Input, frozen=True):
    """`key` is your own name for the run, `thread` what it works on: a newer run on the same makes an older failure
    history. `error` is for a failed one.
    """

    key: str
    thread: str
    title: str
    status: RunStatus
    detail: str | None = None
    error: str | None = None


class ProposedItem(Input, frozen=True):
    """One item of your inbox: `retentionVersion` is the version of its `retention` there."""

    kind: str
    id: Id
    retention_version: Annotated[int, Meta(ge=0)]
    reason: str = ""


class NewProposal(Input, frozen=True):
    """1 to 100 items, each idle for 30 days or for half of the club's days where that is less."""

    items: list[ProposedItem]


@get("/agent/approvals", tags=TAGS, opt=FOR_AGENTS, responses=answers(409))
async def my_approvals(
    db: NamedDependency[Database],
    agent: NamedDependency[AgentActor],
    limit: Limit = 50,
    cursor: After = None,
) -> ApprovalPage:
    """What you asked for, the latest activity first."""
    after = read_cursor(approvals.LISTING, cursor, field=CURSOR)
    async with db.read() as tx:
        found = await approvals.approvals_of_agent(tx, agent, after=after, limit=limit + 1)
    return approval_page(found, limit)


@post("/agent/approvals", tags=TAGS, opt=FOR_AGENTS, responses=answers(409, body=True))
async def ask_approval(
    db: NamedDependency[Database], agent: NamedDependency[AgentActor], data: JSONBody[NewApproval]
) -> Made:
    """Put a question to the staff. With an effect it is done when somebody approves, under their authority."""
    made = await asking.ask_approval(db, agent, agent.club_id, ask_of(data), key=data.key)
    return Made(id=encode_id(made))


@get(_APPROVAL, tags=TAGS, opt=FOR_AGENTS, responses=answers(404, 409))
async def my_approval(
    db: NamedDependency[Database], agent: NamedDependency[AgentActor], approval_id: PathId
) -> ApprovalStory:
    """One approval of yours, with what was said about it."""
    async with db.read() as tx:
        return story_shape(await approvals.approval_story(tx, agent, agent.club_id, known(approval_id)))


@post(
    f"{_APPROVAL}/resubmit",
    status_code=200,
    tags=TAGS,
    opt=FOR_AGENTS,
    responses=answers(404, 409, body=True),
)
async def resubmit_my_approval(
    db: NamedDependency[Database],
    agent: NamedDependency[AgentActor],
    approval_id: PathId,
    data: JSONBody[ChangedApproval],
) -> Resubmitted:
    """Change what you asked for and put it to the staff again."""
    revision = await asking.resubmit(
        db,
        agent,
        agent.club_id,
        known(approval_id),
        seen_revision=data.seen_revision,
        title=data.title,
        body=data.body,
        effect_body=data.effect_body,
    )
    return Resubmitted(revision=revision)


@post(f"{_APPROVAL}/withdraw", status_code=204, tags=TAGS, opt=FOR_AGENTS, responses=answers(404, 409))
async def withdraw_my_approval(
    db: NamedDependency[Database], agent: NamedDependency[AgentActor], approval_id: PathId
) -> None:
    """Take back what you asked for."""
    await asking.withdraw(db, agent, agent.club_id, known(approval_id))


@post(f"{_APPROVAL}/comments", tags=TAGS, opt=FOR_AGENTS, responses=answers(404, 409, body=True))
async def comment_on_my_approval(
    db: NamedDependency[Database],
    agent: NamedDependency[AgentActor],
    approval_id: PathId,
    data: JSONBody[NewComment],
) -> Made:
    """Say something about it."""
    made = await asking.comment(db, agent, agent.club_id, known(approval_id), data.body)
    return Made(id=encode_id(made))


@get("/agent/decisions", tags=TAGS, opt=FOR_AGENTS, responses=answers(409))
async def my_decisions(
    db: NamedDependency[Database],
    agent: NamedDependency[AgentActor],
    limit: Limit = 50,
    cursor: After = None,
) -> DecisionPage:
    """What you asked, the latest first."""
    after = read_cursor(decisions.LISTING, cursor, field=CURSOR)
    async with db.read() as tx:
        found = await decisions.decisions_of_agent(tx, agent, after=after, limit=limit + 1)
    return decision_page(found, limit)


@post("/agent/decisions", tags=TAGS, opt=FOR_AGENTS, responses=answers(409, body=True))
async def ask_for_my_decision(
    db: NamedDependency[Database], agent: NamedDependency[AgentActor], data: JSONBody[NewDecision]
) -> Made:
    """Put a question with options to the staff. Undecided it expires; 50 of yours may be open."""
    made = await ask_decision(db, agent, agent.club_id, question_of(data), key=data.key)
    return Made(id=encode_id(made))


@get(_DECISION, tags=TAGS, opt=FOR_AGENTS, responses=answers(404, 409))
async def my_decision(
    db: NamedDependency[Database], agent: NamedDependency[AgentActor], decision_id: PathId
) -> Decision:
    """One decision of yours."""
    async with db.read() as tx:
        return decision_shape(await decisions.one_decision(tx, agent, agent.club_id, known(decision_id)))


@post(f"{_DECISION}/cancel", status_code=204, tags=TAGS, opt=FOR_AGENTS, responses=answers(404, 409))
async def cancel_my_decision(
    db: NamedDependency[Database], agent: NamedDependency[AgentActor], decision_id: PathId
) -> None:
    """Call your own open question off."""
    await cancel_decision(db, agent, agent.club_id, known(decision_id))


@post("/agent/archive-proposals", tags=TAGS, opt=FOR_AGENTS, responses=answers(404, 409, body=True))
async def propose_my_archive(
    db: NamedDependency[Database], agent: NamedDependency[AgentActor], data: JSONBody[NewProposal]
) -> Made:
    """Ask the staff to archive what has waited long, all of it or nothing, as you saw it in the inbox. Needs the grants
    `read_inbox` and `propose_archive`. The answer is the id of a decision; the same proposal again is the same one.
    """
    items = [
        Proposed(kind_named(one.kind), known(one.id), one.retention_version, one.reason) for one in data.items
    ]
    return Made(id=encode_id(await propose_archive(db, agent, agent.club_id, items)))


@post("/agent/runs", status_code=200, tags=TAGS, opt=FOR_AGENTS, responses=answers(409, body=True))
async def report_my_run(
    db: NamedDependency[Database], agent: NamedDependency[AgentActor], data: JSONBody[ReportedRun]
) -> Made:
    """Say how a run of yours stands: that it began, or how it ended. A failed one is shown to the staff until a newer
    run on the same thread begins."""
    report = Report(data.key, data.thread, data.title, data.status, data.detail, data.error)
    return Made(id=encode_id(await report_run(db, agent, report)))


HANDLERS = (
    my_approvals,
    ask_approval,
    my_approval,
    resubmit_my_approval,
    withdraw_my_approval,
    comment_on_my_approval,
    my_decisions,
    ask_for_my_decision,
    my_decision,
    cancel_my_decision,
    propose_my_archive,
    report_my_run,
)
