"""Recipient lists as their readers see them (ENQ-14). They exist for whoever may invite somebody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, select, tuple_

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing
from lastcall.db.cursor import Cursor, cut
from lastcall.db.transaction import Reader
from lastcall.errors import NotAllowed, NotFound
from lastcall.operations.paper_tables import RecipientList
from lastcall.people.tables import Person

LISTS = "recipient_lists"
"""The list, in its cursors."""
PAGE = 50
"""Lists of one page."""

INVITING = (Permission.INVITE_GROUP_MEMBERS, Permission.MANAGE_INSTANCES)
"""Either is enough: both send invitations to people."""


@dataclass(frozen=True)
class ListView:
    """A list as it stands. ``revision`` is what a change of it names."""

    id: UUID
    name: str
    user_ids: Sequence[str]
    revision: int
    updated_by_name: str
    updated_at: datetime


def require_inviting(standing: Standing) -> None:
    """Raises ``NotAllowed`` for staff who may invite nobody."""
    if not any(standing.holds(permission) for permission in INVITING):
        first, second = (permission.label for permission in INVITING)
        raise NotAllowed(
            "permission_missing",
            f"This needs the permission “{first}” or “{second}”, and none of your roles has either.",
            advice="Ask the owner of the club for a role that has one.",
        )


async def recipient_lists(
    tx: Reader, standing: Standing, club_id: UUID, *, after: Cursor | None = None, limit: int = PAGE
) -> tuple[Sequence[ListView], str | None]:
    """A page of the lists, the last changed first, and the next page's cursor."""
    require_inviting(standing)
    statement = (
        _lists(club_id).order_by(RecipientList.updated_at.desc(), RecipientList.id.desc()).limit(limit + 1)
    )
    if after is not None:
        place = tuple_(RecipientList.updated_at, RecipientList.id)
        statement = statement.where(place < tuple_(after.time, after.id))
    found = [_view(row) for row in (await tx.execute(statement)).all()]
    return cut(found, limit, LISTS, lambda one: Cursor(one.updated_at, one.id))


async def recipient_list(tx: Reader, standing: Standing, club_id: UUID, list_id: UUID) -> ListView:
    """One list. Raises ``NotFound`` for one that is not there."""
    require_inviting(standing)
    row = (await tx.execute(_lists(club_id).where(RecipientList.id == list_id))).one_or_none()
    if row is None:
        raise NotFound("list_unknown", "There is no such list.", advice="Load the lists again.")
    return _view(row)


def _lists(club_id: UUID) -> Select[UUID, str, list[str], int, str, datetime]:
    return (
        select(
            RecipientList.id,
            RecipientList.name,
            RecipientList.user_ids,
            RecipientList.revision,
            Person.display_name,
            RecipientList.updated_at,
        )
        .join(Person, Person.id == RecipientList.updated_by)
        .where(RecipientList.club_id == club_id)
    )


def _view(row: Sequence[Any]) -> ListView:
    return ListView(*row)
