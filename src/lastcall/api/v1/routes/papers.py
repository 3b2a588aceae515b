"""What staff keep before anything is queued: lists of recipients, and drafts of posts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from litestar import delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.idempotency import Key, called, once
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.requests import ApiRequest
from lastcall.api.v1.routes.requests import QueuedRequest, queued_shape
from lastcall.api.v1.schedules import AtOnce, When, schedule_of
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, spelled, utc
from lastcall.clubs.policy import require_staff
from lastcall.db.cursor import read_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.operations import drafts, lists
from lastcall.operations.drafts import DraftView
from lastcall.operations.lists import ListView
from lastcall.operations.paper_tables import RECIPIENTS_MOST
from lastcall.operations.services.drafts import discard_draft, queue_draft, save_draft
from lastcall.operations.services.lists import create_list, delete_list, edit_list
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

TAGS = ["Lists and drafts"]

Revision = Annotated[int, Meta(ge=1, le=2**31 - 1)]
SeenAsked = Annotated[
    int, QueryParameter(ge=1, le=2**31 - 1, description="The `revision` that it was read with.")
]


class RecipientList(Shape, frozen=True):
    """VRChat user ids under a name. `revision` is what a change names."""

    id: Id
    name: str
    user_ids: list[str]
    revision: int
    updated_by_name: str
    updated_at: datetime


class RecipientLists(Shape, frozen=True):
    """The last changed first. `next` is the cursor of the next page; null at the end."""

    items: list[RecipientList]
    next: str | None


class NewList(Input, frozen=True):
    """A list; an id that comes twice is kept once."""

    name: str
    user_ids: Annotated[list[str], Meta(max_length=RECIPIENTS_MOST)]


class ListEdit(Input, frozen=True):
    """All that a list says. `seen` is the `revision` that was read."""

    name: str
    user_ids: Annotated[list[str], Meta(max_length=RECIPIENTS_MOST)]
    seen: Revision


class PostDraft(Shape, frozen=True):
    """A draft of a post, for its writer only. `fields` are those of `publish_post`, perhaps not all of them yet.
    `requestId` is what it was queued as; then it does not change any more.
    """

    id: Id
    fields: dict[str, Any]
    schedule: dict[str, Any]
    revision: int
    request_id: str | None
    updated_at: datetime


class PostDrafts(Shape, frozen=True):
    """The last changed first. `next` is the cursor of the next page; null at the end."""

    items: list[PostDraft]
    next: str | None


class DraftSave(Input, frozen=True):
    """All of a draft. `seen` is the `revision` that it was made from, 0 for a new one."""

    fields: dict[str, Any]
    schedule: When = AtOnce()
    seen: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0


class DraftQueue(Input, frozen=True):
    """The `revision` that was reviewed. `reviewedDueAt` is needed when its time follows an event."""

    revision: Revision
    reviewed_due_at: datetime | None = None


@get("/clubs/{club:str}/recipient-lists", tags=TAGS, responses=answers(404))
async def list_recipient_lists(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
) -> RecipientLists:
    """The lists of a club, for whoever may invite somebody, as everything about them."""
    club_id, after = known(club), read_cursor(lists.LISTS, cursor, field=CURSOR)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        found, behind = await lists.recipient_lists(tx, standing, club_id, after=after, limit=limit)
    return RecipientLists(items=[list_shape(one) for one in found], next=behind)


@get("/clubs/{club:str}/recipient-lists/{list_id:str}", tags=TAGS, responses=answers(404))
async def show_recipient_list(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, list_id: PathId
) -> RecipientList:
    """One list."""
    club_id = known(club)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        return list_shape(await lists.recipient_list(tx, standing, club_id, known(list_id)))


@post("/clubs/{club:str}/recipient-lists", tags=TAGS, responses=answers(404, 409, body=True))
async def create_recipient_list(
    request: ApiRequest,
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    data: JSONBody[NewList],
    key: Key = None,
) -> RecipientList:
    """Make a list."""
    club_id = known(club)

    async def make() -> RecipientList:
        return list_shape(await create_list(db, actor, club_id, data.name, data.user_ids))

    return await once(db, actor, called(request), key, data, make, RecipientList)


@put("/clubs/{club:str}/recipient-lists/{list_id:str}", tags=TAGS, responses=answers(404, 409, body=True))
async def edit_recipient_list(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    list_id: PathId,
    data: JSONBody[ListEdit],
) -> RecipientList:
    """Set what a list says."""
    return list_shape(
        await edit_list(db, actor, known(club), known(list_id), data.name, data.user_ids, data.seen)
    )


@delete("/clubs/{club:str}/recipient-lists/{list_id:str}", tags=TAGS, responses=answers(404, 409))
async def delete_recipient_list(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    list_id: PathId,
    seen: SeenAsked,
) -> None:
    """Delete a list. What was queued with it stays."""
    await delete_list(db, actor, known(club), known(list_id), seen)


@get("/clubs/{club:str}/post-drafts", tags=TAGS, responses=answers(404))
async def list_post_drafts(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
) -> PostDrafts:
    """Your drafts that are not queued; needs `publish_posts`, as everything about them."""
    club_id, after = known(club), read_cursor(drafts.DRAFTS, cursor, field=CURSOR)
    async with db.read() as tx:
        found, behind = await drafts.post_drafts(tx, actor, club_id, after=after, limit=limit)
    return PostDrafts(items=[draft_shape(one) for one in found], next=behind)


@get("/clubs/{club:str}/post-drafts/{draft_id:str}", tags=TAGS, responses=answers(404))
async def show_post_draft(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, draft_id: PathId
) -> PostDraft:
    """One of your drafts."""
    async with db.read() as tx:
        return draft_shape(await drafts.post_draft(tx, actor, known(club), known(draft_id)))


@put("/clubs/{club:str}/post-drafts/{draft_id:str}", tags=TAGS, responses=answers(404, 409, body=True))
async def save_post_draft(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    draft_id: PathId,
    data: JSONBody[DraftSave],
) -> PostDraft:
    """Keep a draft under an id that you choose."""
    return draft_shape(
        await save_draft(
            db,
            actor,
            known(club),
            known(draft_id),
            data.fields,
            schedule_of(data.schedule),
            seen=data.seen,
        )
    )


@delete("/clubs/{club:str}/post-drafts/{draft_id:str}", tags=TAGS, responses=answers(404, 409))
async def discard_post_draft(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    draft_id: PathId,
    seen: SeenAsked,
) -> None:
    """Throw a draft away that is not queued."""
    await discard_draft(db, actor, known(club), known(draft_id), seen)


@post("/clubs/{club:str}/post-drafts/{draft_id:str}/queue", tags=TAGS, responses=answers(404, 409, body=True))
async def queue_post_draft(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    draft_id: PathId,
    data: JSONBody[DraftQueue],
) -> QueuedRequest:
    """Queue a draft as it was reviewed. The same call again is answered with the same request."""
    reviewed = None if data.reviewed_due_at is None else utc(data.reviewed_due_at, "reviewedDueAt")
    return queued_shape(await queue_draft(db, actor, known(club), known(draft_id), data.revision, reviewed))


def list_shape(view: ListView) -> RecipientList:
    return RecipientList(
        id=encode_id(view.id),
        name=view.name,
        user_ids=list(view.user_ids),
        revision=view.revision,
        updated_by_name=view.updated_by_name,
        updated_at=view.updated_at,
    )


_SCHEDULE_FIELDS = {"kind": "kind", "due_at": "dueAt", "event_id": "eventId", "offset_ms": "offsetMs"}


def draft_shape(view: DraftView) -> PostDraft:
    return PostDraft(
        id=encode_id(view.id),
        fields=dict(view.fields),
        schedule={_SCHEDULE_FIELDS[name]: value for name, value in view.schedule.items()},
        revision=view.revision,
        request_id=spelled(view.request_id),
        updated_at=view.updated_at,
    )


HANDLERS = (
    list_recipient_lists,
    show_recipient_list,
    create_recipient_list,
    edit_recipient_list,
    delete_recipient_list,
    list_post_drafts,
    show_post_draft,
    save_post_draft,
    discard_post_draft,
    queue_post_draft,
)
