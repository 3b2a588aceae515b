"""Reads for screens and API. Nothing here writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, func, or_, select, tuple_, union

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import (
    Standing,
    club_unknown,
    require,
    require_owner_or_operator,
    require_staff,
)
from lastcall.clubs.tables import Club, StaffAssignment, StaffRole
from lastcall.db.cursor import LAST, Cursor
from lastcall.db.tables import Directory
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.people.actor import Actor
from lastcall.people.holding import require_operator_now
from lastcall.people.scopes import Scope
from lastcall.people.tables import Person

SLUG_DIRECTORY = "slug"
MY_CLUBS_LIMIT = 100  # discovery of one's own clubs stops there
STAFF_SHOWN = 500
"""Assignments that one roster shows at most; an older, fuller club is cut there and says so."""
PAGE_MOST = 200
"""Rows of one page at most."""


@dataclass(frozen=True)
class ClubView:
    """A club as its staff see it. ``zone`` is an IANA name; ``state`` is active, paused or archived."""

    id: UUID
    slug: str
    name: str
    zone: str
    state: str


@dataclass(frozen=True)
class ClubSettings:
    """All that is set about a club. ``updated_at`` is what an edit is compared with."""

    id: UUID
    slug: str
    name: str
    zone: str
    state: str
    owner_id: UUID
    owner_name: str
    retention_days: int | None
    paused_at: datetime | None
    pause_reason: str | None
    archived_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class RoleView:
    """An active role. ``holders`` is how many people hold it; ``updated_at`` is what an edit is compared with."""

    id: UUID
    name: str
    description: str
    permissions: frozenset[Permission]
    assignable_role_ids: frozenset[UUID]
    provider_role_ids: frozenset[str]
    preset_key: str | None
    holders: int
    updated_at: datetime


@dataclass(frozen=True)
class Member:
    """Somebody on the staff, and the roles they hold. ``is_blocked``: an operator took all they may do."""

    person_id: UUID
    name: str
    role_ids: tuple[UUID, ...]
    is_blocked: bool
    since: datetime


@dataclass(frozen=True)
class Roster:
    """The staff of a club by name, without its owner. ``is_cut``: there are more than are shown."""

    members: tuple[Member, ...]
    is_cut: bool


@dataclass(frozen=True)
class ClubPage:
    """Clubs, the newest first, and where the next page begins."""

    clubs: tuple[ClubSettings, ...]
    next: Cursor | None


_VIEW = (Club.id, Club.slug, Club.name, Club.zone, Club.state)
_SETTINGS: tuple[Any, ...] = (
    *_VIEW,
    Club.owner_id,
    Person.display_name.label("owner_name"),
    Club.retention_days,
    Club.paused_at,
    Club.pause_reason,
    Club.archived_at,
    Club.created_at,
    Club.updated_at,
)
_IS_THERE = Club.state != "deleting"


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
        .join(Person, (Person.id == actor.person_id) & Person.blocked_at.is_(None))
        .where(_IS_THERE)
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
            .where(Directory.kind == SLUG_DIRECTORY, Directory.key == slug, _IS_THERE)
        )
    ).one_or_none()
    if row is None:
        raise club_unknown()
    return ClubView(**row._mapping)


async def club_settings(tx: Reader, actor: Actor | None, club_id: UUID) -> ClubSettings:
    """The club's settings, for its owner, an operator or the command line (no ``actor``)."""
    await require_owner_or_operator(tx, actor, club_id, scope=Scope.READ)
    return await read_settings(tx, club_id)


async def read_settings(tx: Reader, club_id: UUID) -> ClubSettings:
    """The same where the caller has asked who may."""
    found = await tx.execute(_settings().where(Club.id == club_id, _IS_THERE))
    row = found.one_or_none()
    if row is None:
        raise club_unknown()
    return ClubSettings(**row._mapping)


async def clubs_page(
    tx: Reader, actor: Actor | None, *, search: str = "", after: Cursor | None = None, limit: int = 50
) -> ClubPage:
    """Every club of this server with those that are being deleted, the newest first; operators only.

    ``search`` is found anywhere in name or short name, in any case.
    """
    await require_operator_now(tx, actor)
    start = after or LAST
    limit = min(limit, PAGE_MOST)
    statement = _settings().where(tuple_(Club.created_at, Club.id) < tuple_(start.time, start.id))
    if search:
        statement = statement.where(
            or_(Club.name.icontains(search, autoescape=True), Club.slug.icontains(search, autoescape=True))
        )
    found = await tx.execute(statement.order_by(Club.created_at.desc(), Club.id.desc()).limit(limit + 1))
    clubs = [ClubSettings(**row._mapping) for row in found.all()]
    last = clubs[limit - 1] if len(clubs) > limit else None
    return ClubPage(tuple(clubs[:limit]), None if last is None else Cursor(last.created_at, last.id))


async def staff_roles(tx: Reader, actor: Actor, club_id: UUID) -> list[RoleView]:
    """The active roles of a club, oldest first; needs ``manage_staff``."""
    await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.READ)
    return await roles_of(tx, club_id)


async def roles_of(tx: Reader, club_id: UUID) -> list[RoleView]:
    """The same where the caller has asked who may."""
    rows = await tx.execute(_roles().where(StaffRole.club_id == club_id).order_by(StaffRole.id))
    return [_role(row) for row in rows.all()]


async def role(tx: Reader, actor: Actor, club_id: UUID, role_id: UUID) -> RoleView:
    """One active role; needs ``manage_staff``. ``NotFound`` for one of another club and a deleted one."""
    await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.READ)
    return await read_role(tx, club_id, role_id)


async def read_role(tx: Reader, club_id: UUID, role_id: UUID) -> RoleView:
    """The same where the caller has asked who may."""
    found = await tx.execute(_roles().where(StaffRole.club_id == club_id, StaffRole.id == role_id))
    row = found.one_or_none()
    if row is None:
        raise role_unknown()
    return _role(row)


async def roster(tx: Reader, actor: Actor, club_id: UUID) -> Roster:
    """Who works for the club, with their roles; needs ``manage_staff``."""
    await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.READ)
    rows = (
        await tx.execute(
            select(
                StaffAssignment.person_id,
                StaffAssignment.role_id,
                StaffAssignment.created_at,
                Person.display_name,
                Person.blocked_at,
            )
            .join(Person, Person.id == StaffAssignment.person_id)
            .where(StaffAssignment.club_id == club_id)
            .order_by(Person.display_name, Person.id, StaffAssignment.role_id)
            .limit(STAFF_SHOWN + 1)
        )
    ).all()
    by_person: dict[UUID, list[Row[Any]]] = {}
    for row in rows[:STAFF_SHOWN]:
        by_person.setdefault(row.person_id, []).append(row)
    members = tuple(
        Member(
            person_id=person_id,
            name=held[0].display_name,
            role_ids=tuple(row.role_id for row in held),
            is_blocked=held[0].blocked_at is not None,
            since=min(row.created_at for row in held),
        )
        for person_id, held in by_person.items()
    )
    return Roster(members, is_cut=len(rows) > STAFF_SHOWN)


def role_unknown() -> NotFound:
    """The one answer for a role that is not there, is deleted or is another club's."""
    return NotFound("role_unknown", "There is no such role in this club.", field="role_id")


def _settings() -> Select[Any]:
    return select(*_SETTINGS).join(Person, Person.id == Club.owner_id)


def _roles() -> Select[Any]:
    holders = (
        select(func.count())
        .where(StaffAssignment.club_id == StaffRole.club_id, StaffAssignment.role_id == StaffRole.id)
        .scalar_subquery()
    )
    return select(
        StaffRole.id,
        StaffRole.name,
        StaffRole.description,
        StaffRole.permissions,
        StaffRole.assignable_role_ids,
        StaffRole.permitted_provider_role_ids,
        StaffRole.preset_key,
        holders.label("holders"),
        StaffRole.updated_at,
    ).where(StaffRole.state == "active")


def _role(row: Row[Any]) -> RoleView:
    return RoleView(
        id=row.id,
        name=row.name,
        description=row.description,
        permissions=frozenset(p for p in Permission if p in row.permissions),
        assignable_role_ids=frozenset(row.assignable_role_ids),
        provider_role_ids=frozenset(row.permitted_provider_role_ids),
        preset_key=row.preset_key,
        holders=row.holders,
        updated_at=row.updated_at,
    )
