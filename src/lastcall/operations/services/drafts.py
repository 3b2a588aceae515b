"""Write a post in peace, and queue it once.

The content and the time belong together: a draft has a revision of both, and the request it is queued as is named by
it. So whoever does not know whether their post was queued asks again, and gets the same one (ENQ-11).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta
from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require, require_open
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict
from lastcall.operations.drafts import DraftView, draft_unknown, own_draft
from lastcall.operations.kinds import publish_post
from lastcall.operations.kinds.fields import FileId, RoleIds, Visibility
from lastcall.operations.kinds.kind import Payload, fields_of, read_fields
from lastcall.operations.paper_tables import PostDraft
from lastcall.operations.schedules import Schedule, check_form, read_schedule
from lastcall.operations.services.enqueue import Enqueued, enqueue
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

DRAFTS_MOST = 100
"""Drafts of one person in a club that are not queued, at most: a local limit against floods."""


class _Fields(Payload, frozen=True):
    """Those of ``publish_post``, with texts that may still be empty. Nobody is notified unless somebody says so."""

    title: Annotated[str, Meta(max_length=200)] = ""
    text: Annotated[str, Meta(max_length=10_000)] = ""
    visibility: Visibility = "group"
    send_notification: bool = False
    image_id: FileId | None = None
    role_ids: RoleIds = ()


async def save_draft(
    db: Database,
    actor: Actor,
    club_id: UUID,
    draft_id: UUID,
    fields: Mapping[str, Any],
    schedule: Schedule,
    *,
    seen: int,
) -> DraftView:
    """Keep what the actor has written so far; answers the draft as it is then.

    ``draft_id`` is the browser's choice and ``seen`` the revision it was made from, 0 for a new one. Saving the same
    again changes nothing, whatever was seen. Raises ``Invalid`` with the field, ``NotFound`` for a draft that is not
    the actor's, and ``Conflict`` with the draft as it is when it moved on or is queued, or at ``DRAFTS_MOST``.
    """
    check_form(schedule)
    kept, when = fields_of(read_fields(dict(fields), _Fields, "fields")), schedule.as_asked()
    async with db.transaction() as tx:
        await require(tx, actor, club_id, Permission.PUBLISH_POSTS, scope=Scope.OPERATIONS)
        if seen == 0:
            await _make(tx, actor, club_id, draft_id, kept, when)
        found = await _locked(tx, actor, club_id, draft_id)
        if (found.fields, found.schedule) == (kept, when):
            return found
        require_changeable(found, seen)
        await tx.execute(
            update(PostDraft)
            .where(PostDraft.club_id == club_id, PostDraft.id == draft_id)
            .values(fields=kept, schedule=when, revision=PostDraft.revision + 1, updated_at=NOW)
        )
        return await _locked(tx, actor, club_id, draft_id)


async def discard_draft(db: Database, actor: Actor, club_id: UUID, draft_id: UUID, seen: int) -> None:
    """Throw the draft away. Errors as for ``save_draft``."""
    async with db.transaction() as tx:
        await require(tx, actor, club_id, Permission.PUBLISH_POSTS, scope=Scope.OPERATIONS)
        require_changeable(await _locked(tx, actor, club_id, draft_id), seen)
        await tx.execute(delete(PostDraft).where(PostDraft.club_id == club_id, PostDraft.id == draft_id))


async def queue_draft(
    db: Database,
    actor: Actor,
    club_id: UUID,
    draft_id: UUID,
    revision: int,
    reviewed_due_at: datetime | None = None,
) -> Enqueued:
    """Queue the reviewed revision as it is, and freeze the draft. The same again is the same request: a second post
    cannot come of it.

    ``reviewed_due_at`` is for a draft whose time follows an event. Raises what ``enqueue`` does, ``NotFound`` for a
    draft that is not the actor's, and ``Conflict`` with the draft as it is when that is not its newest revision.
    """
    async with db.transaction() as tx:
        await require(tx, actor, club_id, Permission.PUBLISH_POSTS, scope=Scope.OPERATIONS)
        draft = await _locked(tx, actor, club_id, draft_id)
        if draft.revision != revision:
            raise _stale(draft)
        # Chosen already or not written yet, a field that the kind needs is named.
        payload = {"kind": publish_post.KIND.name, "sendNotification": False, "visibility": "group"}
        made = await enqueue(
            db,
            actor,
            club_id,
            f"post_{encode_id(draft_id)}_{revision}",
            [{**payload, **draft.fields}],
            read_schedule(draft.schedule, reviewed_due_at),
        )
        await tx.execute(
            update(PostDraft)
            .where(PostDraft.club_id == club_id, PostDraft.id == draft_id)
            .values(request_id=made.request_id)
        )
        return made


async def _make(
    tx: Transaction, actor: Actor, club_id: UUID, draft_id: UUID, fields: dict[str, Any], when: dict[str, Any]
) -> None:
    """A new draft, unless there is one of that id."""
    await require_open(tx, club_id)
    made = await tx.execute(
        insert(PostDraft)
        .values(
            club_id=club_id,
            id=draft_id,
            created_by=actor.person_id,
            fields=fields,
            schedule=when,
            revision=1,
        )
        .on_conflict_do_nothing()
        .returning(PostDraft.id)
    )
    if made.first() is not None:
        await _require_room(tx, actor, club_id)


async def _require_room(tx: Transaction, actor: Actor, club_id: UUID) -> None:
    """Once the new one is there; what raises takes it away again."""
    own = (
        PostDraft.club_id == club_id,
        PostDraft.created_by == actor.person_id,
        PostDraft.request_id.is_(None),
    )
    there = select(PostDraft.id).where(*own).limit(DRAFTS_MOST + 1).subquery()
    if await tx.scalar(select(func.count()).select_from(there)) > DRAFTS_MOST:
        raise Conflict(
            "drafts_full",
            f"You have {DRAFTS_MOST} drafts of posts, which is as many as are kept.",
            advice="Queue or discard one first.",
        )


async def _locked(tx: Transaction, actor: Actor, club_id: UUID, draft_id: UUID) -> DraftView:
    await tx.execute(
        select(PostDraft.id)
        .where(PostDraft.club_id == club_id, PostDraft.id == draft_id)
        .with_for_update(key_share=True)
    )
    found = await own_draft(tx, actor.person_id, club_id, draft_id)
    if found is None:
        raise draft_unknown()
    return found


def require_changeable(draft: DraftView, seen: int) -> None:
    """Raises ``Conflict`` for a draft that was queued, and for one that is not at the revision ``seen`` any more."""
    if draft.request_id is not None:
        raise Conflict(
            "draft_queued",
            "This post is queued already.",
            advice="Edit or cancel it among the scheduled actions, or begin a new post.",
            fresh=draft,
        )
    if draft.revision != seen:
        raise _stale(draft)


def _stale(draft: DraftView) -> Conflict:
    return Conflict(
        "revision_stale",
        "Refresh to continue.",
        advice="The draft was changed since you opened it.",
        fresh=draft,
    )
