"""Reads for screens and API: the invites of a club, and one invite as whoever holds its token sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Row, select, text

from lastcall.access.acceptance import request_of
from lastcall.access.grants import held_roles
from lastcall.access.invites import InviteKind
from lastcall.access.policy import invite_unknown
from lastcall.access.requests import RequestStatus
from lastcall.access.tables import InviteUse, JoinRequest
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require, require_staff, standing, standing_of
from lastcall.clubs.tables import StaffRole
from lastcall.db.clock import NOW
from lastcall.db.cursor import Cursor
from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope
from lastcall.people.tables import Person
from lastcall.people.tokens import token_hash


class InviteState(StrEnum):
    """What an invite is now; the first that fits, in this order."""

    REVOKED = "revoked"
    USED_UP = "used_up"
    EXPIRED = "expired"
    OPEN = "open"


@dataclass(frozen=True)
class InviteView:
    """An invite as those see it who may make one of its kind. Role names are of active roles; ``accepted_by`` is the
    name of the person who used an invite that can be used once."""

    id: UUID
    kind: InviteKind
    state: InviteState
    role_ids: tuple[UUID, ...]
    roles: tuple[str, ...]
    agent_grants: tuple[AgentGrant, ...]
    email: str | None
    approves: bool
    note: str | None
    max_uses: int
    uses: int
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

    ``status`` is null for whoever did not use it; for whoever did it is what became of their request, also when
    the invite is over. To anybody else an invite that is over is unknown. ``is_bound`` says that it is for one
    address, ``is_for_viewer`` that it is the viewer's, ``is_held`` that they have all its roles.
    """

    club_id: UUID
    club_name: str
    club_slug: str
    kind: InviteKind
    roles: tuple[str, ...]
    invited_by: str
    is_by_viewer: bool
    is_viewer_owner: bool
    is_viewer_staff: bool
    is_held: bool
    is_bound: bool
    is_for_viewer: bool
    viewer_email: str | None
    agent_grants: tuple[AgentGrant, ...]
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
        return InviteState.USED_UP
    return InviteState.EXPIRED if invite.expires_at <= now else InviteState.OPEN


@dataclass(frozen=True)
class InvitePage:
    """Invites, and where the next page begins: behind the last row that was looked at."""

    invites: tuple[InviteView, ...]
    next: Cursor | None


@dataclass(frozen=True)
class UseView:
    """One use of an invite: by whom (null: an agent, an address, or a person of whom nothing is left), and what
    became of the request it led to (null: deleted)."""

    number: int
    name: str | None
    agent_name: str | None
    used_at: datetime
    request_id: UUID | None
    status: RequestStatus | None


_SHOWN = """
    select i.id, i.kind, i.role_ids, i.agent_grants, nullif(i.email, 'forgotten') as email, i.approves, i.note,
           i.max_uses, i.uses, i.revoked_at,
           i.accepted_at, i.created_at, i.expires_at, p.display_name as inviter,
           (select a.display_name from invite_uses u join people a on a.id = u.person_id
             where u.club_id = i.club_id and u.invite_id = i.id and u.number = 1 and i.max_uses = 1) as accepter
      from examined i
      join people p on p.id = i.invited_by
     order by i.created_at desc, i.id desc
"""
_INVITE = text(
    "with examined as (select * from invites where club_id = :club_id and id = :invite_id)" + _SHOWN  # noqa: S608
)
# The index gives the pages; a filter looks at a bounded part of it.
_INVITE_PAGE = text(
    """
    with examined as materialized (
        select * from invites
         where club_id = :club_id
           and (cast(:time as timestamptz) is null or (created_at, id) < (:time, cast(:id as uuid)))
         order by created_at desc, id desc
         limit :examined
    )
    """  # noqa: S608
    + _SHOWN
)
INVITES_EXAMINED = 500
"""Invites that one page of a filtered list looks at."""


async def invites_page(
    tx: Reader,
    actor: Actor,
    club_id: UUID,
    *,
    state: InviteState | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> InvitePage:
    """The invites of a club, newest first, at most ``limit`` behind ``after``. Needs ``manage_staff``; whoever only
    has ``manage_agents`` sees those that agents can use. A page of a filtered list may be short, even empty, and
    yet have a next one.
    """
    kinds = await _kinds_shown(tx, actor, club_id)
    is_filtered = state is not None or len(kinds) < len(InviteKind)
    examined = INVITES_EXAMINED if is_filtered else limit + 1
    values = {"club_id": club_id, "examined": examined}
    values |= {"time": after and after.time, "id": after and after.id}
    rows = (await tx.execute(_INVITE_PAGE, values)).all()
    now = await tx.scalar(select(NOW))
    fitting = [row for row in rows if row.kind in kinds and state in {None, state_of(row, now)}]
    shown = fitting[:limit]
    is_cut = len(rows) == INVITES_EXAMINED
    last = shown[-1] if len(fitting) > limit else rows[-1] if is_cut else None
    return InvitePage(
        await _invite_views(tx, club_id, shown, now),
        None if last is None else Cursor(last.created_at, last.id),
    )


async def invite(tx: Reader, actor: Actor, club_id: UUID, invite_id: UUID) -> InviteView:
    """One invite of a club; permissions as for the page. ``NotFound`` for one of another club."""
    kinds = await _kinds_shown(tx, actor, club_id)
    rows = (await tx.execute(_INVITE, {"club_id": club_id, "invite_id": invite_id})).all()
    if not rows or rows[0].kind not in kinds:
        raise NotFound("invite_unknown", "There is no such invitation.", advice="Load the list again.")
    (found,) = await _invite_views(tx, club_id, rows, await tx.scalar(select(NOW)))
    return found


async def uses_of_invite(tx: Reader, actor: Actor, club_id: UUID, invite_id: UUID) -> list[UseView]:
    """Every use of an invite, the latest first, at most ``MOST_USES``. What became of the requests is only said to
    those who may see them (RET-19)."""
    await invite(tx, actor, club_id, invite_id)
    found = await standing_of(tx, actor, club_id, scope=Scope.READ)
    may_see = found.holds(Permission.DECIDE_ACCESS)
    rows = await tx.execute(
        select(
            InviteUse.number,
            InviteUse.used_at,
            Person.display_name,
            JoinRequest.id,
            JoinRequest.agent_name,
            JoinRequest.status,
        )
        .outerjoin(Person, Person.id == InviteUse.person_id)
        .outerjoin(
            JoinRequest,
            (JoinRequest.club_id == InviteUse.club_id) & (JoinRequest.id == InviteUse.request_id),
        )
        .where(InviteUse.club_id == club_id, InviteUse.invite_id == invite_id)
        .order_by(InviteUse.number.desc())
    )
    return [
        UseView(
            number=row.number,
            name=row.display_name,
            agent_name=row.agent_name,
            used_at=row.used_at,
            request_id=row.id if may_see else None,
            status=RequestStatus(row.status) if may_see and row.status else None,
        )
        for row in rows.all()
    ]


async def _kinds_shown(tx: Reader, actor: Actor, club_id: UUID) -> frozenset[str]:
    """The kinds of invites that the actor may look at: all, or those for agents too."""
    found = await require_staff(tx, actor, club_id, scope=Scope.READ)
    if found.holds(Permission.MANAGE_STAFF):
        return frozenset(InviteKind)
    if found.holds(Permission.MANAGE_AGENTS):
        return frozenset({InviteKind.AGENT, InviteKind.BOTH})
    await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.READ)
    return frozenset()


async def _invite_views(
    tx: Reader, club_id: UUID, rows: Sequence[Row[Any]], now: datetime
) -> tuple[InviteView, ...]:
    names = await role_names(tx, club_id, {role for row in rows for role in row.role_ids})
    return tuple(
        InviteView(
            id=row.id,
            kind=InviteKind(row.kind),
            state=state_of(row, now),
            role_ids=tuple(row.role_ids),
            roles=tuple(names[role] for role in row.role_ids if role in names),
            agent_grants=tuple(AgentGrant(grant) for grant in row.agent_grants),
            email=row.email,
            approves=row.approves,
            note=row.note,
            max_uses=row.max_uses,
            uses=row.uses,
            invited_by=row.inviter,
            accepted_by=row.accepter,
            created_at=row.created_at,
            expires_at=row.expires_at,
        )
        for row in rows
    )


# One probe of the directory by its key; what the club and the inviter are now decides whether there is anything.
_SUMMARY = text("""
    select
        i.id, i.club_id, c.name as club_name, c.slug as club_slug, c.owner_id, i.kind, i.role_ids, i.agent_grants,
        nullif(i.email, 'forgotten') as email, i.approves, i.note, i.expires_at, i.invited_by,
        p.display_name as inviter,
        i.revoked_at is null and i.accepted_at is null and i.expires_at > (select lastcall_now())
            and p.blocked_at is null as is_open
    from directory d
    join invites i on i.club_id = d.club_id and i.token_hash = decode(d.key, 'hex')
    join clubs c on c.id = i.club_id and c.state in ('active', 'paused')
    join people p on p.id = i.invited_by
    where d.kind = 'invite' and d.key = :key
""")


async def invite_summary(db: Database, token: str, viewer: Actor | None) -> InviteSummary:
    """What stands behind a token, for a page that asks whether to accept; ``viewer`` may be nobody.

    Raises the one ``NotFound`` for a token that was never made, and to anybody who did not use the invite for one
    that was revoked, has expired or is used up. Whether an acceptance would pass is judged by the acceptance.
    """
    async with db.read() as tx:
        invite = (await tx.execute(_SUMMARY, {"key": token_hash(token).hex()})).one_or_none()
        if invite is None:
            raise invite_unknown()
        made = None
        if viewer is not None:
            made = await request_of(tx, invite.club_id, invite.id, viewer.person_id)
        if made is None and not invite.is_open:
            raise invite_unknown()
        if made is not None and made.id is None:
            raise invite_unknown()
        names = await role_names(tx, invite.club_id, set(invite.role_ids))
        mine, held, is_staff = None, frozenset[UUID](), False
        if viewer is not None:
            is_staff = (await standing(tx, invite.club_id, viewer.person_id)).is_staff
            held = await held_roles(tx, invite.club_id, viewer.person_id)
            mine = (await tx.execute(_ADDRESS, {"person_id": viewer.person_id})).one()
    return InviteSummary(
        club_id=invite.club_id,
        club_name=invite.club_name,
        club_slug=invite.club_slug,
        kind=InviteKind(invite.kind),
        roles=tuple(names[role] for role in invite.role_ids if role in names),
        invited_by=invite.inviter,
        is_by_viewer=viewer is not None and invite.invited_by == viewer.person_id,
        is_viewer_owner=viewer is not None and invite.owner_id == viewer.person_id,
        is_viewer_staff=is_staff,
        is_held=bool(invite.role_ids) and set(invite.role_ids) <= held,
        is_bound=invite.email is not None,
        is_for_viewer=invite.email is None
        or (mine is not None and mine.is_shown and mine.email.lower() == invite.email.lower()),
        viewer_email=None if mine is None else mine.email,
        agent_grants=tuple(AgentGrant(grant) for grant in invite.agent_grants),
        approves=invite.approves,
        note=invite.note,
        expires_at=invite.expires_at,
        status=None if made is None else RequestStatus(made.status),
        request_id=None if made is None else made.id,
        decision_note=None if made is None else made.decision_note,
    )


_ADDRESS = text(
    "select email, email_verified_at is not null as is_shown from people where id = cast(:person_id as uuid)"
)


async def role_names(tx: Reader, club_id: UUID, role_ids: set[UUID]) -> dict[UUID, str]:
    """The names of those of the roles that are active."""
    if not role_ids:
        return {}
    rows = await tx.execute(
        select(StaffRole.id, StaffRole.name).where(
            StaffRole.club_id == club_id, StaffRole.id.in_(role_ids), StaffRole.state == "active"
        )
    )
    return {row.id: row.name for row in rows.all()}
