"""Functions on approvals, decisions and the runs of agents."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.matrix.cases import Who, row
from tests.matrix.world import World

from lastcall.clubs.permissions import Permission
from lastcall.decisions.approvals import asking, deciding, queries
from lastcall.decisions.approvals.asking import Ask
from lastcall.decisions.listing import Which
from lastcall.decisions.questions import asking as questions
from lastcall.decisions.questions import deciding as answers
from lastcall.decisions.questions import queries as question_queries
from lastcall.decisions.questions.asking import Option, Question
from lastcall.decisions.runs import queries as runs
from lastcall.decisions.runs.service import Report, RunStatus, report_run
from lastcall.people.scopes import Scope

P = Permission
ASK = Ask("hire", "Hire")
QUESTION = Question("Which?", [Option("a", "A"), Option("b", "B")])
NO_APPROVAL: dict[str, Any] = {"hides": (P.DECIDE_APPROVALS,), "hidden": "approval_unknown"}
NO_DECISION: dict[str, Any] = {"hides": (P.DECIDE_APPROVALS,), "hidden": "decision_unknown"}


async def asked(w: World, tx: Any, asker: Any) -> UUID:
    return await asking.ask_in(tx, asker, w.club_id, ASK)


async def questioned(w: World, tx: Any, asker: Any) -> UUID:
    return await questions.ask_in(tx, asker, w.club_id, QUESTION)


def on_own(function: Any, *arguments: Any, **named: Any) -> Any:
    """On what the caller asked for."""

    async def call(w: World, tx: Any, actor: Any) -> Any:
        return await function(w.db, actor, w.club_id, await asked(w, tx, actor), *arguments, **named)

    return call


def on_agents(function: Any, *arguments: Any, **named: Any) -> Any:
    """On what the agent asked for."""

    async def call(w: World, tx: Any, actor: Any) -> Any:
        return await function(w.db, actor, w.club_id, await asked(w, tx, w.agent), *arguments, **named)

    return call


async def story(w: World, tx: Any, actor: Any) -> Any:
    return await queries.approval_story(tx, actor, w.club_id, await asked(w, tx, w.agent))


async def one(w: World, tx: Any, actor: Any) -> Any:
    return await question_queries.one_decision(tx, actor, w.club_id, await questioned(w, tx, w.agent))


async def cancel(w: World, tx: Any, actor: Any) -> None:
    await questions.cancel_decision(w.db, actor, w.club_id, await questioned(w, tx, actor))


async def decide(w: World, tx: Any, actor: Any) -> Any:
    return await answers.decide(w.db, actor, w.club_id, await questioned(w, tx, w.agent), "a")


def page(function: Any, which: Which) -> Any:
    return lambda w, tx, actor: function(tx, actor, w.club_id, which)


async def run(w: World, tx: Any, actor: Any) -> Any:
    report = Report("1", "door", "Look", RunStatus.RUNNING)
    return await runs.one_run(tx, actor, w.club_id, await report_run(w.db, w.agent, report))


DECISIONS = [
    row(
        asking.ask_approval,
        Who.STAFF,
        Scope.DECISIONS,
        lambda w, _, actor: asking.ask_approval(w.db, actor, w.club_id, ASK),
    ),
    row(
        asking.resubmit,
        Who.STAFF,
        Scope.DECISIONS,
        on_own(asking.resubmit, seen_revision=1, title="Hire two", body=""),
    ),
    row(asking.withdraw, Who.STAFF, Scope.DECISIONS, on_own(asking.withdraw)),
    row(
        asking.comment, Who.STAFF, Scope.DECISIONS, on_own(asking.comment, "Please."), variant="by its asker"
    ),
    row(
        asking.comment,
        Who.STAFF,
        Scope.DECISIONS,
        on_agents(asking.comment, "Why?"),
        variant="by another",
        **NO_APPROVAL,
    ),
    row(
        deciding.approve,
        Who.STAFF,
        Scope.DECISIONS,
        on_agents(deciding.approve, seen_revision=1),
        **NO_APPROVAL,
    ),
    row(
        deciding.reject,
        Who.STAFF,
        Scope.DECISIONS,
        on_agents(deciding.reject, seen_revision=1),
        **NO_APPROVAL,
    ),
    row(
        deciding.request_revision,
        Who.STAFF,
        Scope.DECISIONS,
        on_agents(deciding.request_revision, seen_revision=1, note="More."),
        **NO_APPROVAL,
    ),
    row(queries.approval_story, Who.STAFF, Scope.READ, story, **NO_APPROVAL),
    row(
        queries.approvals_page,
        Who.STAFF,
        Scope.READ,
        page(queries.approvals_page, Which.WAITING),
        **NO_APPROVAL,
    ),
    row(
        queries.approvals_page,
        Who.STAFF,
        Scope.READ,
        page(queries.approvals_page, Which.MINE),
        variant="one's own",
    ),
    row(
        questions.ask_decision,
        Who.STAFF,
        Scope.DECISIONS,
        lambda w, _, actor: questions.ask_decision(w.db, actor, w.club_id, QUESTION),
    ),
    row(questions.cancel_decision, Who.STAFF, Scope.DECISIONS, cancel),
    row(answers.decide, Who.STAFF, Scope.DECISIONS, decide, **NO_DECISION),
    row(question_queries.one_decision, Who.STAFF, Scope.READ, one, **NO_DECISION),
    row(
        question_queries.decisions_page,
        Who.STAFF,
        Scope.READ,
        page(question_queries.decisions_page, Which.ALL),
        **NO_DECISION,
    ),
    row(runs.one_run, Who.STAFF, Scope.READ, run, P.MANAGE_AGENTS),
    row(
        runs.runs_page,
        Who.STAFF,
        Scope.READ,
        lambda w, tx, actor: runs.runs_page(tx, actor, w.club_id),
        P.MANAGE_AGENTS,
    ),
]
