"""Reads for screens and API: the invites of a club, and one invite as whoever holds its token sees it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, select, text, tuple_

from lastcall.access.acceptance import request_of
from lastcall.access.grants import held_roles
from lastcall.access.invites import InviteKind
from lastcall.access.policy import invite_unknown, join_request_unknown, require_readable
from lastcall.access.requests import RequestStatus
from lastcall.access.tables import Invite, JoinRequest
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.clubs.tables import StaffRole
from lastcall.db.clock import NOW
from lastcall.db.cursor import Cursor
from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.people.tables import Person
from lastcall.people.tokens import token_hash


class InviteState(StrEnum):
    """What an invite is now; the first that fits, in this order."""

    REVOKED = "revoked"
    ACCEPTED = "accepted"
    EXPIRED = "expired"
    OPEN = "open"


@dataclass(frozen=True)
class InviteView:
    """An invite as those see it who manage staff. Role names are of active roles; ``accepted_by`` is a name."""

    id: UUID
    kind: InviteKind
    state: InviteState
    role_ids: tuple[UUID, ...]
    roles: tuple[str, ...]
    email: str | None
    approves: bool
    note: str | None
    invited_by: str
    accepted_by: str | None
    created_at: datetime
    expires_at: datetime

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.created_at, self.id)


@dataclass(frozen=True)
class InviteSummary:
    """An invite as whoever holds its token sees it.

    ``status`` is null while it is open; it is what became of the viewer's own acceptance after that. Anybody
    else's used invite is unknown. ``is_bound`` says that it is for one address, ``is_for_viewer`` that it is
    the viewer's, ``is_held`` that they have all its roles.
    """

    club_id: UUID
    club_name: str
    club_slug: str
    kind: InviteKind
    roles: tuple[str, ...]
    invited_by: str
    is_by_viewer: bool
    is_viewer_owner: bool
    is_held: bool
    is_bound: bool
    is_for_viewer: bool
    approves: bool
    note: str | None
    expires_at: datetime
    status: RequestStatus | None
    request_id: UUID | None
    decision_note: str | None


def state_of(invite: Row[Any], now: datetime) -> InviteState:
    """Derived from its times, never stored."""
    if invite.revoked_at is not None:
        return InviteState.REVOKED
    if invite.accepted_at is not None:
        return InviteState.ACCEPTED
    return InviteState.EXPIRED if invite.expires_at <= now else InviteState.OPEN


async def invites_page(
    tx: Reader, actor: Actor, club_id: UUID, *, after: Cursor | None = None, limit: int = 50
) -> list[InviteView]:
    """The invites of a club, newest first, at most ``limit`` behind ``after``. Needs ``manage_staff``."""
    await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.READ)
    statement = _invites(club_id).order_by(Invite.created_at.desc(), Invite.id.desc()).limit(limit)
    if after is not None:
        statement = statement.where(tuple_(Invite.created_at, Invite.id) < tuple_(after.time, after.id))
    return await _invite_views(tx, club_id, statement)


async def invite(tx: Reader, actor: Actor, club_id: UUID, invite_id: UUID) -> InviteView:
    """One invite of a club. Needs ``manage_staff``; ``NotFound`` for one of another club."""
    await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.READ)
    found = await _invite_views(tx, club_id, _invites(club_id).where(Invite.id == invite_id))
    if not found:
        raise NotFound("invite_unknown", "There is no such invitation.", advice="Load the list again.")
    return found[0]


def _invites(club_id: UUID) -> Select[*tuple[Any, ...]]:
    accepter = Person.__table__.alias("accepter")
    statement: Select[*tuple[Any, ...]] = (
        select(
            Invite.id,
            Invite.kind,
            Invite.role_ids,
            Invite.email,
            Invite.approves,
            Invite.note,
            Invite.revoked_at,
            Invite.accepted_at,
            Invite.created_at,
            Invite.expires_at,
            Person.display_name.label("inviter"),
            accepter.c.display_name.label("accepter"),
        )
        .join(Person, Person.id == Invite.invited_by)
        .outerjoin(accepter, accepter.c.id == Invite.accepted_by)
        .where(Invite.club_id == club_id)
    )
    return statement


async def _invite_views(tx: Reader, club_id: UUID, statement: Select[*tuple[Any, ...]]) -> list[InviteView]:
    rows = (await tx.execute(statement)).all()
    now = await tx.scalar(select(NOW))
    names = await _role_names(tx, club_id, {role for row in rows for role in row.role_ids})
    return [
        InviteView(
            id=row.id,
            kind=InviteKind(row.kind),
            state=state_of(row, now),
            role_ids=tuple(row.role_ids),
            roles=tuple(names[role] for role in row.role_ids if role in names),
            email=row.email,
            approves=row.approves,
            note=row.note,
            invited_by=row.inviter,
            accepted_by=row.accepter,
            created_at=row.created_at,
            expires_at=row.expires_at,
        )
        for row in rows
    ]


# One probe of the directory by its key; what the club and the inviter are now decides whether there is anything.
_SUMMARY = text("""
    select
        i.id, i.club_id, c.name as club_name, c.slug as club_slug, c.owner_id, i.kind, i.role_ids, i.email,
        i.approves, i.note, i.expires_at, i.invited_by, p.display_name as inviter, i.accepted_at, i.accepted_by
    from directory d
    join invites i on i.club_id = d.club_id and i.token_hash = decode(d.key, 'hex')
    join clubs c on c.id = i.club_id and c.state in ('active', 'paused')
    join people p on p.id = i.invited_by and p.blocked_at is null
    where d.kind = 'invite'
      and d.key = :key
      and i.revoked_at is null
      and (i.accepted_at is not null or i.expires_at > (select lastcall_now()))
""")


async def invite_summary(db: Database, token: str, viewer: Actor | None) -> InviteSummary:
    """What stands behind a token, for a page that asks whether to accept; ``viewer`` may be nobody.

    Raises the one ``NotFound`` for a token that was never made, was revoked, has expired, or was used by
    anybody but the viewer. Whether an acceptance would pass is judged by the acceptance.
    """
    async with db.read() as tx:
        invite = (await tx.execute(_SUMMARY, {"key": token_hash(token).hex()})).one_or_none()
        if invite is None:
            raise invite_unknown()
        made = None
        if invite.accepted_at is not None:
            if viewer is None or invite.accepted_by != viewer.person_id:
                raise invite_unknown()
            made = await request_of(tx, invite.club_id, invite.id, viewer.person_id)
        names = await _role_names(tx, invite.club_id, set(invite.role_ids))
        mine, held = None, frozenset[UUID]()
        if viewer is not None:
            held = await held_roles(tx, invite.club_id, viewer.person_id)
            mine = await tx.scalar(
                select(Person.email).where(
                    Person.id == viewer.person_id, Person.email_verified_at.is_not(None)
                )
            )
    return InviteSummary(
        club_id=invite.club_id,
        club_name=invite.club_name,
        club_slug=invite.club_slug,
        kind=InviteKind(invite.kind),
        roles=tuple(names[role] for role in invite.role_ids if role in names),
        invited_by=invite.inviter,
        is_by_viewer=viewer is not None and invite.invited_by == viewer.person_id,
        is_viewer_owner=viewer is not None and invite.owner_id == viewer.person_id,
        is_held=bool(invite.role_ids) and set(invite.role_ids) <= held,
        is_bound=invite.email is not None,
        is_for_viewer=invite.email is None or (mine is not None and mine.lower() == invite.email.lower()),
        approves=invite.approves,
        note=invite.note,
        expires_at=invite.expires_at,
        status=None if made is None else RequestStatus(made.status),
        request_id=None if made is None else made.id,
        decision_note=None if made is None else made.decision_note,
    )


async def _role_names(tx: Reader, club_id: UUID, role_ids: set[UUID]) -> dict[UUID, str]:
    if not role_ids:
        return {}
    rows = await tx.execute(
        select(StaffRole.id, StaffRole.name).where(
            StaffRole.club_id == club_id, StaffRole.id.in_(role_ids), StaffRole.state == "active"
        )
    )
    return {row.id: row.name for row in rows.all()}


@dataclass(frozen=True)
class JoinRequestView:
    """A join request as those see it who may decide it. ``name`` is the person's, where one stands behind it;
    ``roles`` are the names of what the invite gives."""

    id: UUID
    invite_id: UUID
    subject_kind: str
    person_id: UUID | None
    name: str | None
    email: str | None
    agent_name: str | None
    roles: tuple[str, ...]
    status: RequestStatus
    activity_at: datetime
    decided_at: datetime | None
    decision_note: str | None
    created_at: datetime


@dataclass(frozen=True)
class JoinRequestPage:
    """Requests, and where the next page begins: behind the last row that was looked at."""

    requests: tuple[JoinRequestView, ...]
    next: Cursor | None


# Ids are in the order of their making, so the primary key gives the pages; a filter looks at a bounded part of it.
_REQUESTS = text("""
    with examined as materialized (
        select * from join_requests j
         where j.club_id = :club_id and (cast(:after as uuid) is null or j.id < :after)
         order by j.id desc
         limit :examined
    )
    select e.id, e.invite_id, e.subject_kind, e.person_id, e.email, e.agent_name, e.status, e.activity_at,
           e.decided_at, e.decision_note, e.created_at, i.role_ids, p.display_name as name,
           cast(:status as text) is null or e.status = :status as does_fit
      from examined e
      join invites i on i.club_id = e.club_id and i.id = e.invite_id
      left join people p on p.id = e.person_id
     order by e.id desc
""")
REQUESTS_EXAMINED = 500
"""Requests that one page of a filtered list looks at."""


async def join_requests_page(
    tx: Reader,
    actor: Actor,
    club_id: UUID,
    *,
    status: RequestStatus | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> JoinRequestPage:
    """The join requests of a club, the newest first; needs ``decide_access``, without which there are none to
    see (``NotFound``, RET-19). A page of a filtered list may be short, even empty, and yet have a next one.
    """
    await require_readable(tx, actor, club_id, scope=Scope.READ)
    examined = limit + 1 if status is None else REQUESTS_EXAMINED
    values = {"club_id": club_id, "after": after and after.id, "status": status, "examined": examined}
    rows = (await tx.execute(_REQUESTS, values)).all()
    fitting = [row for row in rows if row.does_fit]
    shown = fitting[:limit]
    is_cut = len(rows) == REQUESTS_EXAMINED
    last = shown[-1] if len(fitting) > limit else rows[-1] if is_cut else None
    names = await _role_names(tx, club_id, {role for row in shown for role in row.role_ids})
    return JoinRequestPage(
        tuple(_join_request(row, names) for row in shown),
        None if last is None else Cursor(last.created_at, last.id),
    )


async def join_request(tx: Reader, actor: Actor, club_id: UUID, request_id: UUID) -> JoinRequestView:
    """One request, waiting or decided; needs ``decide_access``, without which it is unknown (``NotFound``)."""
    await require_readable(tx, actor, club_id, scope=Scope.READ)
    row = (
        await tx.execute(
            select(
                *(JoinRequest.__table__.c[name] for name in _SHOWN),
                Invite.role_ids,
                Person.display_name.label("name"),
            )
            .join(Invite, (Invite.club_id == JoinRequest.club_id) & (Invite.id == JoinRequest.invite_id))
            .outerjoin(Person, Person.id == JoinRequest.person_id)
            .where(JoinRequest.club_id == club_id, JoinRequest.id == request_id)
        )
    ).one_or_none()
    if row is None:
        raise join_request_unknown()
    return _join_request(row, await _role_names(tx, club_id, set(row.role_ids)))


_SHOWN = (
    "id",
    "invite_id",
    "subject_kind",
    "person_id",
    "email",
    "agent_name",
    "status",
    "activity_at",
    "decided_at",
    "decision_note",
    "created_at",
)


def _join_request(row: Row[Any], names: dict[UUID, str]) -> JoinRequestView:
    return JoinRequestView(
        id=row.id,
        invite_id=row.invite_id,
        subject_kind=row.subject_kind,
        person_id=row.person_id,
        name=row.name,
        email=row.email,
        agent_name=row.agent_name,
        roles=tuple(names[role] for role in row.role_ids if role in names),
        status=RequestStatus(row.status),
        activity_at=row.activity_at,
        decided_at=row.decided_at,
        decision_note=row.decision_note,
        created_at=row.created_at,
    )
