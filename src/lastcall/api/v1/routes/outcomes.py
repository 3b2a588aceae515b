"""What did not end well: notices of it, and what is found out about outcomes that are unknown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.paging import CURSOR, PAGE_MOST, After, Limit
from lastcall.api.v1.routes.operations import Operation, operation_shape
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in
from lastcall.clubs.policy import require_staff
from lastcall.db.cursor import cut, read_cursor
from lastcall.db.database import Database
from lastcall.operations import notices, settling
from lastcall.operations.services.dismiss import dismiss_notices
from lastcall.operations.services.settle import settle_unknown
from lastcall.operations.settling import Verdict
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

TAGS = ["Operations"]


class Notice(Shape, frozen=True):
    """An operation of yours that failed, was missed, or whose outcome is unknown, and since when. As the owner you get
    those of people who left, too.
    """

    noticed_at: datetime
    operation: Operation


class NoticePage(Shape, frozen=True):
    """The newest first. `next` is the cursor of the next page; null at the end."""

    items: list[Notice]
    next: str | None


class Dismiss(Input, frozen=True):
    """The ids of the operations whose notices are read."""

    operation_ids: Annotated[list[Id], Meta(max_length=PAGE_MOST)]


class Evidence(Shape, frozen=True):
    """Something that was read or reported. `ref` names it in a finding. `isTelling`: it can be relied on; what was read
    before the write's window ended says nothing of it. `namesTarget`: whether the action's target is there by that
    read, and `said` is the same in words.
    """

    ref: str
    kind: str
    observed_at: datetime
    is_telling: bool
    names_target: bool | None
    said: str | None
    outcome: str | None
    code: str | None


class Finding(Shape, frozen=True):
    """What somebody found out, and the `evidence` as it was then."""

    number: int
    verdict: Verdict
    note: str
    evidence: list[dict[str, Any]]
    settled_by_name: str
    settled_at: datetime


class Findings(Shape, frozen=True):
    """What there is to rely on, the newest first, and what was found so far, the oldest first."""

    evidence: list[Evidence]
    findings: list[Finding]


class NewFinding(Input, frozen=True):
    """Say why: by a `note`, or by the `ref` of evidence. `seen` is the number of the newest finding that you read, 0
    for none.
    """

    verdict: Verdict
    note: Annotated[str, Meta(max_length=2000)] = ""
    evidence: Annotated[list[str], Meta(max_length=20)] = msgspec.field(default_factory=list)
    seen: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0


@get("/clubs/{club:str}/notices", tags=TAGS, responses=answers(404))
async def list_notices(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
) -> NoticePage:
    """What waits for you."""
    club_id, after = known(club), read_cursor(notices.NOTICES, cursor, field=CURSOR)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        found = await notices.notices(tx, standing, actor, club_id, after=after, limit=limit + 1)
    shown, behind = cut(found, limit, notices.NOTICES, lambda one: one.cursor)
    return NoticePage(
        items=[Notice(noticed_at=one.noticed_at, operation=operation_shape(one.operation)) for one in shown],
        next=behind,
    )


@post("/clubs/{club:str}/notices/dismiss", status_code=204, tags=TAGS, responses=answers(404, body=True))
async def dismiss_some_notices(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, data: JSONBody[Dismiss]
) -> None:
    """Show these notices to you no more; for others they stay."""
    ids = [known_in(each, f"operationIds.{number}") for number, each in enumerate(data.operation_ids)]
    await dismiss_notices(db, actor, known(club), ids)


@get("/clubs/{club:str}/operations/{operation_id:str}/findings", tags=TAGS, responses=answers(404))
async def list_findings(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, operation_id: PathId
) -> Findings:
    """What can be known of an operation whose outcome is unknown. Nothing is read from VRChat for it."""
    club_id, asked = known(club), known(operation_id)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        evidence = await settling.evidence_of(tx, standing, actor, club_id, asked)
        found = await settling.findings_of(tx, standing, actor, club_id, asked)
    return Findings(
        evidence=[
            Evidence(
                ref=one.ref,
                kind=one.kind,
                observed_at=one.observed_at,
                is_telling=one.is_telling,
                names_target=one.names_target,
                said=one.said,
                outcome=one.outcome,
                code=one.code,
            )
            for one in evidence
        ],
        findings=[_finding(one) for one in found],
    )


@post(
    "/clubs/{club:str}/operations/{operation_id:str}/findings",
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def record_finding(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    operation_id: PathId,
    data: JSONBody[NewFinding],
) -> Finding:
    """Record what became of it. Nothing is sent, and the operation itself stays as it is."""
    return _finding(
        await settle_unknown(
            db,
            actor,
            known(club),
            known(operation_id),
            data.verdict,
            data.note,
            data.evidence,
            seen=data.seen,
        )
    )


def _finding(one: settling.Finding) -> Finding:
    return Finding(
        number=one.number,
        verdict=one.verdict,
        note=one.note,
        evidence=list(one.evidence),
        settled_by_name=one.settled_by_name,
        settled_at=one.settled_at,
    )


HANDLERS = (list_notices, dismiss_some_notices, list_findings, record_finding)
