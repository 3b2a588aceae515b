"""Decisions of a club and the runs of its agents, for people."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import FromQuery, JSONBody

from lastcall.api.v1.answers import answers
from lastcall.api.v1.decision_shapes import (
    Decision,
    DecisionPage,
    Made,
    NewDecision,
    decision_page,
    decision_shape,
    question_of,
)
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in
from lastcall.db.cursor import cut, read_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.decisions.listing import Which
from lastcall.decisions.questions.asking import ask_decision, cancel_decision
from lastcall.decisions.questions.deciding import decide
from lastcall.decisions.questions.queries import LISTING, decisions_page, one_decision
from lastcall.decisions.runs import queries as runs
from lastcall.decisions.runs.service import RunStatus
from lastcall.people.actor import Actor

TAGS = ["Decisions"]
_ONE = "/clubs/{club:str}/decisions/{decision_id:str}"


class Answer(Input, frozen=True):
    """The key of the option that you choose; `note` is for whoever asked."""

    option: str
    note: str | None = None


class Answered(Shape, frozen=True):
    """What choosing it did; null where it does nothing by itself."""

    result: dict[str, Any] | None


class Run(Shape, frozen=True):
    """A run that an agent reported. `isCurrent`: it reported no newer one on the same `thread`."""

    id: Id
    agent_id: Id
    agent: str
    key: str
    thread: str
    title: str
    status: RunStatus
    detail: str | None
    error: str | None
    started_at: datetime
    finished_at: datetime | None
    is_current: bool


class RunPage(Shape, frozen=True):
    """The latest first. `next` is the cursor of the next page; null at the end."""

    items: list[Run]
    next: str | None


@get("/clubs/{club:str}/decisions", tags=TAGS, responses=answers(404))
async def list_decisions(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
    which: FromQuery[Which] = Which.WAITING,
) -> DecisionPage:
    """What waits for a decision, what you asked, or all. Whoever may not decide sees their own only."""
    after = read_cursor(LISTING, cursor, field=CURSOR)
    async with db.read() as tx:
        found = await decisions_page(tx, actor, known(club), which, after=after, limit=limit + 1)
    return decision_page(found, limit)


@post("/clubs/{club:str}/decisions", tags=TAGS, responses=answers(404, 409, body=True))
async def ask_for_decision(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, data: JSONBody[NewDecision]
) -> Made:
    """Put a question with options to the staff. Undecided it expires."""
    made = await ask_decision(db, actor, known(club), question_of(data), key=data.key)
    return Made(id=encode_id(made))


@get(_ONE, tags=TAGS, responses=answers(404))
async def read_decision(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, decision_id: PathId
) -> Decision:
    """One decision."""
    async with db.read() as tx:
        return decision_shape(await one_decision(tx, actor, known(club), known(decision_id)))


@post(f"{_ONE}/decide", status_code=200, tags=TAGS, responses=answers(404, 409, body=True))
async def decide_one(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    decision_id: PathId,
    data: JSONBody[Answer],
) -> Answered:
    """Choose an option, and do what it does under your own authority. Refused, it stays open."""
    return Answered(
        result=await decide(db, actor, known(club), known(decision_id), data.option, note=data.note)
    )


@post(f"{_ONE}/cancel", status_code=204, tags=TAGS, responses=answers(404, 409))
async def cancel_one(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, decision_id: PathId
) -> None:
    """Call your own open question off."""
    await cancel_decision(db, actor, known(club), known(decision_id))


@get("/clubs/{club:str}/runs", tags=["Agents"], responses=answers(404))
async def list_runs(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
    agent_id: FromQuery[Id | None] = None,
) -> RunPage:
    """What the club's agents reported of their runs, or one of them did."""
    after = read_cursor(runs.LISTING, cursor, field=CURSOR)
    agent = None if agent_id is None else known_in(agent_id, "agentId")
    async with db.read() as tx:
        found = await runs.runs_page(tx, actor, known(club), agent_id=agent, after=after, limit=limit + 1)
    shown, behind = cut(found, limit, runs.LISTING, lambda one: one.cursor)
    return RunPage(items=[_run(one) for one in shown], next=behind)


def _run(view: runs.RunView) -> Run:
    return Run(
        id=encode_id(view.id),
        agent_id=encode_id(view.agent_id),
        agent=view.agent,
        key=view.key,
        thread=view.thread,
        title=view.title,
        status=view.status,
        detail=view.detail,
        error=view.error,
        started_at=view.started_at,
        finished_at=view.finished_at,
        is_current=view.is_current,
    )


HANDLERS = (list_decisions, ask_for_decision, read_decision, decide_one, cancel_one, list_runs)
