"""Reads for screens and API."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select, union

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, club_unknown, require_staff
from lastcall.clubs.service import SLUG_DIRECTORY
from lastcall.clubs.tables import Club, StaffAssignment, StaffRole
from lastcall.db.tables import Directory
from lastcall.db.transaction import Reader
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

MY_CLUBS_LIMIT = 100  # discovery of one's own clubs stops there


@dataclass(frozen=True)
class ClubView:
    """A club as its staff see it. ``zone`` is an IANA name; ``state`` is active, paused or archived."""

    id: UUID
    slug: str
    name: str
    zone: str
    state: str


@dataclass(frozen=True)
class RoleView:
    """An active role."""

    id: UUID
    name: str
    permissions: frozenset[Permission]
    provider_role_ids: frozenset[str]
    preset_key: str | None


_VIEW = (Club.id, Club.slug, Club.name, Club.zone, Club.state)


async def clubs_of(tx: Reader, actor: Actor) -> list[ClubView]:
    """The clubs the actor owns or works for, by name; at most ``MY_CLUBS_LIMIT``."""
    actor.require_scope(Scope.READ)
    mine = union(
        select(Club.id).where(Club.owner_id == actor.person_id),
        select(StaffAssignment.club_id)
        .join(
            StaffRole,
            (StaffRole.club_id == StaffAssignment.club_id) & (StaffRole.id == StaffAssignment.role_id),
        )
        .where(StaffAssignment.person_id == actor.person_id, StaffRole.state == "active"),
    ).subquery()
    rows = await tx.execute(
        select(*_VIEW)
        .join(mine, mine.c.id == Club.id)
        .where(Club.state != "deleting")
        .order_by(Club.name, Club.id)
        .limit(MY_CLUBS_LIMIT)
    )
    return [ClubView(**row._mapping) for row in rows.all()]


async def club_by_slug(tx: Reader, actor: Actor, slug: str) -> tuple[ClubView, Standing]:
    """The club at ``slug`` and what the actor is there. ``NotFound`` for a club they are not on the staff of."""
    club = await club_at(tx, slug)
    return club, await require_staff(tx, actor, club.id, scope=Scope.READ)


async def club_at(tx: Reader, slug: str) -> ClubView:
    """The club at ``slug`` for the host's command line, which sees every club. Raises ``NotFound``."""
    if not slug.isprintable():
        raise club_unknown()  # the database refuses to look for some of that, a zero character for one
    row = (
        await tx.execute(
            select(*_VIEW)
            .join(Directory, Directory.club_id == Club.id)
            .where(Directory.kind == SLUG_DIRECTORY, Directory.key == slug)
        )
    ).one_or_none()
    if row is None:
        raise club_unknown()
    return ClubView(**row._mapping)


async def roles_of(tx: Reader, club_id: UUID) -> list[RoleView]:
    """The active roles of a club, oldest first. Who may see them is the caller's question."""
    rows = await tx.execute(
        select(
            StaffRole.id,
            StaffRole.name,
            StaffRole.permissions,
            StaffRole.permitted_provider_role_ids,
            StaffRole.preset_key,
        )
        .where(StaffRole.club_id == club_id, StaffRole.state == "active")
        .order_by(StaffRole.id)
    )
    return [
        RoleView(
            id=row.id,
            name=row.name,
            permissions=frozenset(p for p in Permission if p in row.permissions),
            provider_role_ids=frozenset(row.permitted_provider_role_ids),
            preset_key=row.preset_key,
        )
        for row in rows.all()
    ]
