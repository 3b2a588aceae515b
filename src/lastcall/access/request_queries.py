"""Reads of join requests: those of a club for whoever may decide, and one's own over all clubs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, select, text

from lastcall.access.policy import join_request_unknown, require_readable
from lastcall.access.queries import role_names
from lastcall.access.requests import RequestStatus
from lastcall.access.tables import Invite, JoinRequest
from lastcall.db.cursor import Cursor
from lastcall.db.transaction import Reader
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope
from lastcall.people.tables import Person


@dataclass(frozen=True)
class JoinRequestView:
    """A join request as those see it who may decide it. ``name`` is the person's, where one stands behind it;
    ``roles`` are the names of what the invite gives, ``agent_grants`` the most that it lets an agent have."""

    id: UUID
    invite_id: UUID
    subject_kind: str
    person_id: UUID | None
    name: str | None
    email: str | None
    agent_name: str | None
    agent_description: str | None
    roles: tuple[str, ...]
    agent_grants: tuple[AgentGrant, ...]
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
    select e.id, e.invite_id, e.subject_kind, e.person_id, e.email, e.agent_name, e.agent_description,
           e.status, e.activity_at, e.decided_at, e.decision_note, e.created_at, i.role_ids, i.agent_grants,
           p.display_name as name,
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
    names = await role_names(tx, club_id, {role for row in shown for role in row.role_ids})
    return JoinRequestPage(
        tuple(_join_request(row, names) for row in shown),
        None if last is None else Cursor(last.created_at, last.id),
    )


async def join_request(tx: Reader, actor: Actor, club_id: UUID, request_id: UUID) -> JoinRequestView:
    """One request, waiting or decided; needs ``decide_access``, without which it is unknown (``NotFound``)."""
    await require_readable(tx, actor, club_id, scope=Scope.READ)
    return await join_request_in(tx, club_id, request_id)


async def join_request_in(tx: Reader, club_id: UUID, request_id: UUID) -> JoinRequestView:
    """One request. Who may see it is the caller's question."""
    row = (
        await tx.execute(
            select(
                *(JoinRequest.__table__.c[name] for name in _SHOWN),
                Invite.role_ids,
                Invite.agent_grants,
                Person.display_name.label("name"),
            )
            .join(Invite, (Invite.club_id == JoinRequest.club_id) & (Invite.id == JoinRequest.invite_id))
            .outerjoin(Person, Person.id == JoinRequest.person_id)
            .where(JoinRequest.club_id == club_id, JoinRequest.id == request_id)
        )
    ).one_or_none()
    if row is None:
        raise join_request_unknown()
    return _join_request(row, await role_names(tx, club_id, set(row.role_ids)))


_SHOWN = (
    "id",
    "invite_id",
    "subject_kind",
    "person_id",
    "email",
    "agent_name",
    "agent_description",
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
        agent_description=row.agent_description,
        agent_grants=tuple(AgentGrant(grant) for grant in row.agent_grants),
        roles=tuple(names[role] for role in row.role_ids if role in names),
        status=RequestStatus(row.status),
        activity_at=row.activity_at,
        decided_at=row.decided_at,
        decision_note=row.decision_note,
        created_at=row.created_at,
    )


@dataclass(frozen=True)
class OwnRequest:
    """A join request as whoever made it sees it. Whether it was archived is the club's business and not told."""

    id: UUID
    club_id: UUID
    club_name: str
    club_slug: str
    is_club_open: bool
    is_staff: bool
    roles: tuple[str, ...]
    status: RequestStatus
    asked_at: datetime
    decided_at: datetime | None
    decision_note: str | None

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.asked_at, self.id)


# Ids are in the order of their making.
_OWN = text("""
    select j.id, j.club_id, c.name as club_name, c.slug as club_slug, c.state in ('active', 'paused') as is_club_open,
           j.status, j.created_at, j.decided_at, j.decision_note,
           c.owner_id = j.person_id or exists (
               select from staff_assignments a join staff_roles r on r.club_id = a.club_id and r.id = a.role_id
                where a.club_id = j.club_id and a.person_id = j.person_id and r.state = 'active') as is_staff,
           array(select r.name from staff_roles r
                  where r.club_id = i.club_id and r.id = any (i.role_ids) and r.state = 'active'
                  order by r.name) as roles
      from join_requests j
      join clubs c on c.id = j.club_id and c.state <> 'deleting'
      join invites i on i.club_id = j.club_id and i.id = j.invite_id
     where j.person_id = :person_id and (cast(:after as uuid) is null or j.id < :after)
     order by j.id desc
     limit :limit
""")


async def own_requests(
    tx: Reader, actor: Actor, *, after: Cursor | None = None, limit: int = 50
) -> list[OwnRequest]:
    """The actor's join requests in every club, the newest first, at most ``limit`` behind ``after``."""
    actor.require_scope(Scope.READ)
    values = {"person_id": actor.person_id, "after": after and after.id, "limit": limit}
    return [
        OwnRequest(
            id=row.id,
            club_id=row.club_id,
            club_name=row.club_name,
            club_slug=row.club_slug,
            is_club_open=row.is_club_open,
            is_staff=row.is_staff,
            roles=tuple(row.roles),
            status=RequestStatus(row.status),
            asked_at=row.created_at,
            decided_at=row.decided_at,
            decision_note=row.decision_note,
        )
        for row in (await tx.execute(_OWN, values)).all()
    ]
