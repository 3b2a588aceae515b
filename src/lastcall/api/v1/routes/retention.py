"""Retention of a club's items: when one will be archived by itself, and keep, archive, revive by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.retention_shapes import RetentionState, state_shape
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.decisions.retention.explain import Explanation, Outlook, explain_item
from lastcall.decisions.retention.kind import Kind
from lastcall.decisions.retention.kinds import KINDS, kind_named
from lastcall.decisions.retention.many import MOST_ITEMS, Control, Outcome, Seen, control_many
from lastcall.decisions.retention.view import RetentionView
from lastcall.errors import Invalid, LastcallError, NotFound
from lastcall.people.actor import Actor

TAGS = ["Retention"]
_NAMES = {"enum": list(KINDS)}
PathKind = Annotated[str, PathParameter(schema_extra=_NAMES)]
PathControl = Annotated[str, PathParameter(schema_extra={"enum": list(Control)})]
"""A word in an address. Text that is none is unknown (404), so it is described and not checked."""
KindName = Annotated[str, Meta(extra_json_schema=_NAMES)]
SeenVersion = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Retention(Shape, frozen=True):
    """One item as retention sees it. `outlook` says what comes of it, in words in `explanation`; `archivesAt` is when
    it is to be archived by itself (null: never, as things stand), and its days, of 24 hours, count from `idleSince`.
    """

    kind: KindName
    id: Id
    outlook: Outlook
    explanation: str
    archives_at: datetime | None
    idle_since: datetime
    activity_at: datetime
    retention_days: int | None
    archived_by: str | None
    state: RetentionState


class SeenItem(Input, frozen=True):
    """An item, and the `version` that was seen of it: 0 for one that nobody did anything to."""

    kind: KindName
    id: Id
    version: SeenVersion


class ManyItems(Input, frozen=True):
    """What is to be changed."""

    items: Annotated[list[SeenItem], Meta(min_length=1, max_length=MOST_ITEMS)]


class Refusal(Shape, frozen=True):
    """Why an item was left as it is; `fresh` is how it stands now, where somebody was faster."""

    code: str
    title: str
    advice: str | None
    fresh: RetentionState | None


class ItemOutcome(Shape, frozen=True):
    """What became of one item: `state` afterwards, or `refusal`."""

    kind: KindName
    id: Id
    state: RetentionState | None
    refusal: Refusal | None


class Outcomes(Shape, frozen=True):
    """One outcome an item, in the order in which they were sent."""

    items: list[ItemOutcome]


@get("/clubs/{club:str}/retention/{item_kind:str}/{retained_id:str}", tags=TAGS, responses=answers(404))
async def show_retention(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    item_kind: PathKind,
    retained_id: PathId,
) -> Retention:
    """When an item will be archived by itself, or why it will not. Needs what seeing the item needs."""
    async with db.read() as tx:
        found = await explain_item(tx, actor, known(club), _known_kind(item_kind), known(retained_id))
    return retention_shape(found)


@post(
    "/clubs/{club:str}/retention/{control:str}",
    status_code=200,
    tags=TAGS,
    responses=answers(404, body=True),
)
async def control_retention(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    control: PathControl,
    data: JSONBody[ManyItems],
) -> Outcomes:
    """Keep, unkeep, archive or revive items, each by itself and as it was seen. None of it decides an item."""
    items = [
        Seen(_kind_in(item.kind, index), known_in(item.id, f"items[{index}].id"), item.version)
        for index, item in enumerate(data.items)
    ]
    outcomes = await control_many(db, actor, known(club), _known_control(control), items)
    return Outcomes(items=[_outcome(one) for one in outcomes])


def retention_shape(found: Explanation) -> Retention:
    return Retention(
        kind=found.kind.name,
        id=encode_id(found.id),
        outlook=found.outlook,
        explanation=found.outlook.words,
        archives_at=found.due_at,
        idle_since=found.idle_since,
        activity_at=found.activity_at,
        retention_days=found.retention_days,
        archived_by=found.archived_by,
        state=state_shape(found.retention),
    )


def _outcome(one: Outcome) -> ItemOutcome:
    return ItemOutcome(
        kind=one.item.kind.name,
        id=encode_id(one.item.id),
        state=None if one.retention is None else state_shape(one.retention),
        refusal=None if one.refusal is None else _refusal(one.refusal),
    )


def _refusal(error: LastcallError) -> Refusal:
    fresh = getattr(error, "fresh", None)
    return Refusal(
        code=error.code,
        title=error.sentence,
        advice=error.advice,
        fresh=state_shape(fresh) if isinstance(fresh, RetentionView) else None,
    )


def _known_kind(name: str) -> Kind:
    if name not in KINDS:
        raise NotFound("not_found", "There is nothing at this address.")
    return KINDS[name]


def _known_control(name: str) -> Control:
    if name not in set(Control):
        raise NotFound("not_found", "There is nothing at this address.")
    return Control(name)


def _kind_in(name: str, index: int) -> Kind:
    try:
        return kind_named(name)
    except Invalid as error:
        error.field = f"items[{index}].kind"
        raise


HANDLERS = (show_retention, control_retention)
