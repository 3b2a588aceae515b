"""Drafts of posts as their writers see them. For everybody else there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, select, tuple_

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.db.cursor import Cursor, cut
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.operations.paper_tables import PostDraft
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

DRAFTS = "post_drafts"
"""The list, in its cursors."""
PAGE = 50
"""Drafts of one page."""


@dataclass(frozen=True)
class DraftView:
    """A draft as it stands. ``fields`` are those of ``publish_post``, perhaps not all of them yet; ``schedule`` is
    when, in the words of ``Schedule.as_asked``. ``request_id`` is what it was queued as: then it does not change any
    more, and is managed among the scheduled actions.
    """

    id: UUID
    fields: Mapping[str, Any]
    schedule: Mapping[str, Any]
    revision: int
    request_id: UUID | None
    updated_at: datetime


async def post_drafts(
    tx: Reader, actor: Actor, club_id: UUID, *, after: Cursor | None = None, limit: int = PAGE
) -> tuple[Sequence[DraftView], str | None]:
    """The actor's drafts that are not queued, the last changed first, and the next page's cursor."""
    await require(tx, actor, club_id, Permission.PUBLISH_POSTS, scope=Scope.READ)
    statement = (
        _own(actor.person_id, club_id)
        .where(PostDraft.request_id.is_(None))
        .order_by(PostDraft.updated_at.desc(), PostDraft.id.desc())
        .limit(limit + 1)
    )
    if after is not None:
        place = tuple_(PostDraft.updated_at, PostDraft.id)
        statement = statement.where(place < tuple_(after.time, after.id))
    found = [_view(row) for row in (await tx.execute(statement)).all()]
    return cut(found, limit, DRAFTS, lambda one: Cursor(one.updated_at, one.id))


async def post_draft(tx: Reader, actor: Actor, club_id: UUID, draft_id: UUID) -> DraftView:
    """One of the actor's drafts, queued or not. Raises ``NotFound`` for any other."""
    await require(tx, actor, club_id, Permission.PUBLISH_POSTS, scope=Scope.READ)
    found = await own_draft(tx, actor.person_id, club_id, draft_id)
    if found is None:
        raise draft_unknown()
    return found


async def own_draft(tx: Reader, person_id: UUID, club_id: UUID, draft_id: UUID) -> DraftView | None:
    """The same for those who asked before whether that person may; None for any other."""
    row = (await tx.execute(_own(person_id, club_id).where(PostDraft.id == draft_id))).one_or_none()
    return None if row is None else _view(row)


def draft_unknown() -> NotFound:
    """The one answer for a draft that is not there and for somebody else's."""
    return NotFound("draft_unknown", "There is no such draft.", advice="Load your drafts again.")


def _own(
    person_id: UUID, club_id: UUID
) -> Select[UUID, dict[str, Any], dict[str, Any], int, UUID | None, datetime]:
    return select(
        PostDraft.id,
        PostDraft.fields,
        PostDraft.schedule,
        PostDraft.revision,
        PostDraft.request_id,
        PostDraft.updated_at,
    ).where(PostDraft.club_id == club_id, PostDraft.created_by == person_id)


def _view(row: Sequence[Any]) -> DraftView:
    return DraftView(*row)
