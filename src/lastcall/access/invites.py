"""Commands on invites: make one, make one again, take one or all of them back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, insert, select, update

from lastcall.access.mails import send_invitation
from lastcall.access.policy import handed_on
from lastcall.access.tables import FORGOTTEN, MOST_USES, Invite
from lastcall.clubs.activity import log
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, require, require_open, require_staff
from lastcall.clubs.tables import StaffRole
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.tables import Directory
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.mail.addresses import valid_address
from lastcall.mail.mailer import Mailer
from lastcall.names import valid_note
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.data_retention import data_written
from lastcall.people.scopes import Scope
from lastcall.people.tokens import new_token, token_hash

INVITE_LIFE = timedelta(days=7)  # unless its maker chooses another
SHORTEST_LIFE = timedelta(hours=1)
LONGEST_LIFE = timedelta(days=30)  # a replay ends well inside the ninety days (ACC-14)
INVITE_DIRECTORY = "invite"
MOST_OPEN_INVITES = 200  # a club; a local limit against floods
NOTE_LENGTH = 500  # characters
TOPIC = "invites"  # of the hints for live pages


class InviteKind(StrEnum):
    """Whom an invite lets in."""

    PERSON = "person"
    AGENT = "agent"
    BOTH = "both"


@dataclass(frozen=True)
class NewInvite:
    """An invite as it is shown this once: its token is stored nowhere."""

    id: UUID
    token: str


@dataclass(frozen=True)
class _Terms:
    """What an invite says, judged but for what only the club knows."""

    kind: InviteKind
    role_ids: tuple[UUID, ...]
    agent_grants: tuple[AgentGrant, ...]
    email: str | None
    approves: bool
    note: str | None
    life: timedelta
    max_uses: int


async def create_invite(
    db: Database,
    actor: Actor,
    club_id: UUID,
    role_ids: Collection[UUID],
    *,
    kind: InviteKind = InviteKind.PERSON,
    agent_grants: Collection[AgentGrant] = (),
    email: str | None = None,
    approves: bool = True,
    note: str | None = None,
    life: timedelta = INVITE_LIFE,
    max_uses: int = 1,
    mailer: Mailer | None = None,
    source: str = "",
) -> NewInvite:
    """Make an invite that lives for ``life`` and can be used ``max_uses`` times; with an ``email`` and a
    ``mailer`` it is mailed there, asked for from ``source``.

    Needs ``manage_staff``, for agents ``manage_agents``, and each role must be one that the actor may hand on.
    With ``email`` only a person with that address, verified, can accept, once. ``approves`` (people only) lets
    the acceptance be approved by the actor's authority as it is then; otherwise it waits for a decision.
    ``agent_grants`` are the most that an agent may be given when it is approved. Raises ``Invalid`` for no
    role, a malformed address or note, a life or number of uses out of bounds, and too many open invites, and
    ``Conflict`` in an archived club.
    """
    terms = _terms(kind, role_ids, agent_grants, email, approves, note, life, max_uses)
    async with db.transaction() as tx:
        return await _make(tx, actor, club_id, terms, mailer, source)


async def renew_invite(
    db: Database,
    actor: Actor,
    club_id: UUID,
    invite_id: UUID,
    *,
    mailer: Mailer | None = None,
    source: str = "",
) -> NewInvite:
    """Make an invite again that says the same and lives as long, for the uses that are left, under a new token;
    the old one is closed. It is mailed where the old one was for an address.

    Needs what making and revoking it needs; what it gives is handed on by the actor from now on. ``Conflict`` for
    one that is used up and for one that was for an address which is forgotten: without it, anybody could use it.
    """
    async with db.transaction() as tx:
        old = await _held(tx, actor, club_id, invite_id)
        if old.email == FORGOTTEN:
            raise Conflict(
                "invite_address_forgotten",
                "The address that this invitation was for is not kept any more.",
                advice="Make a new invitation.",
            )
        if old.revoked_at is None:
            await _close(tx, actor, club_id, invite_id)
        terms = _terms(
            InviteKind(old.kind),
            old.role_ids,
            [AgentGrant(grant) for grant in old.agent_grants],
            old.email,
            old.approves,
            old.note,
            old.expires_at - old.created_at,
            old.max_uses - old.uses,
        )
        return await _make(tx, actor, club_id, terms, mailer, source)


def _terms(
    kind: InviteKind,
    role_ids: Collection[UUID],
    agent_grants: Collection[AgentGrant],
    email: str | None,
    approves: bool,
    note: str | None,
    life: timedelta,
    max_uses: int,
) -> _Terms:
    email = valid_address(email) if email is not None and email.strip() else None
    note = valid_note(note, most=NOTE_LENGTH)
    roles = tuple(sorted(set(role_ids)))
    if kind is not InviteKind.AGENT and not roles:
        raise Invalid(
            "roles_missing", "An invitation gives at least one role.", advice="Choose a role.", field="roles"
        )
    if kind is InviteKind.PERSON and agent_grants:
        raise Invalid(
            "grants_for_people",
            "An invitation for people gives no grants to agents.",
            advice="Make it for agents, or for both.",
            field="agent_grants",
        )
    if not SHORTEST_LIFE <= life <= LONGEST_LIFE:
        raise Invalid(
            "life_out_of_bounds",
            "An invitation lives for one hour to thirty days.",
            advice="Choose a time between these.",
            field="life",
        )
    if not 1 <= max_uses <= MOST_USES or (email is not None and max_uses > 1):
        raise Invalid(
            "uses_out_of_bounds",
            f"An invitation can be used 1 to {MOST_USES} times, and one for an address once.",
            advice="Choose another number, or leave the address out.",
            field="max_uses",
        )
    grants = tuple(sorted(set(agent_grants)))
    is_approving = approves and kind is not InviteKind.AGENT
    return _Terms(kind, roles, grants, email, is_approving, note, life, max_uses)


async def _make(
    tx: Transaction, actor: Actor, club_id: UUID, terms: _Terms, mailer: Mailer | None, source: str
) -> NewInvite:
    invite_id, token = new_id(), new_token()
    await _require(tx, actor, club_id, terms.kind)
    await require_open(tx, club_id)
    await _require_handed_on(tx, actor, club_id, terms.role_ids)
    await _require_room(tx, club_id)
    data_written(tx)
    hashed = token_hash(token)
    await tx.execute(insert(Directory).values(kind=INVITE_DIRECTORY, key=hashed.hex(), club_id=club_id))
    await tx.execute(
        insert(Invite).values(
            club_id=club_id,
            id=invite_id,
            kind=terms.kind,
            token_hash=hashed,
            role_ids=list(terms.role_ids),
            agent_grants=list(terms.agent_grants),
            email=terms.email,
            approves=terms.approves,
            note=terms.note,
            invited_by=actor.person_id,
            expires_at=NOW + terms.life,
            max_uses=terms.max_uses,
        )
    )
    details = {
        "roles": [str(role) for role in terms.role_ids],
        "grants": list(terms.agent_grants),
        "kind": terms.kind,
        "approves": terms.approves,
        "uses": terms.max_uses,
    }
    await log(tx, club_id, actor, "invite.created", "invite", invite_id, details)
    if terms.email is not None and mailer is not None:
        await send_invitation(tx, mailer, actor, club_id, terms.email, token, terms.life, source)
    tx.publish(Hint(club_id, TOPIC))
    return NewInvite(invite_id, token)


async def revoke_invite(db: Database, actor: Actor, club_id: UUID, invite_id: UUID) -> None:
    """Close an open invite. The requests it turned into go on living (RET-03), so this is no signal (ACC-13).

    It needs the permission that making it needs. The owner closes any, others those whose roles they may hand on
    and their own. Revoking twice is once; one that was used up is a ``Conflict``.
    """
    async with db.transaction() as tx:
        invite = await _held(tx, actor, club_id, invite_id)
        if invite.revoked_at is None:
            await _close(tx, actor, club_id, invite_id)


async def revoke_all_invites(db: Database, actor: Actor, club_id: UUID) -> int:
    """Close every open invite that the actor may close one by one; answers how many were. Needs ``manage_staff`` or
    ``manage_agents``."""
    async with db.transaction() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.ACCESS)
        if not standing.holds(Permission.MANAGE_AGENTS):
            await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.ACCESS)
        rows = await tx.execute(
            select(Invite.id, Invite.kind, Invite.invited_by, Invite.role_ids)
            .where(
                Invite.club_id == club_id,
                Invite.revoked_at.is_(None),
                Invite.accepted_at.is_(None),
                Invite.expires_at > NOW,
            )
            .order_by(Invite.id)
            .with_for_update(key_share=True)
        )
        closed = [row for row in rows.all() if _may_close(standing, actor, row)]
        for row in closed:
            await _close(tx, actor, club_id, row.id)
    return len(closed)


def _may_close(standing: Standing, actor: Actor, invite: Row[Any]) -> bool:
    kind = InviteKind(invite.kind)
    return (
        (kind is InviteKind.AGENT or standing.holds(Permission.MANAGE_STAFF))
        and (kind is InviteKind.PERSON or standing.holds(Permission.MANAGE_AGENTS))
        and (
            invite.invited_by == actor.person_id
            or all(standing.may_hand_on(role_id) for role_id in invite.role_ids)
        )
    )


async def _held(tx: Transaction, actor: Actor, club_id: UUID, invite_id: UUID) -> Row[Any]:
    """The invite under its lock, for somebody who may close it."""
    standing = await require_staff(tx, actor, club_id, scope=Scope.ACCESS)
    invite = (
        await tx.execute(
            select(*Invite.__table__.columns)
            .where(Invite.club_id == club_id, Invite.id == invite_id)
            .with_for_update(key_share=True)
        )
    ).one_or_none()
    await _require(tx, actor, club_id, InviteKind.PERSON if invite is None else InviteKind(invite.kind))
    if invite is None:
        raise NotFound("invite_unknown", "There is no such invitation.", advice="Load the list again.")
    if not standing.is_owner and invite.invited_by != actor.person_id:
        await _require_handed_on(tx, actor, club_id, invite.role_ids)
    if invite.accepted_at is not None:
        raise Conflict("invite_used", "This invitation was used already.", advice="Load the list again.")
    return invite


async def _close(tx: Transaction, actor: Actor, club_id: UUID, invite_id: UUID) -> None:
    await tx.execute(
        update(Invite).where(Invite.club_id == club_id, Invite.id == invite_id).values(revoked_at=NOW)
    )
    await log(tx, club_id, actor, "invite.revoked", "invite", invite_id)
    tx.publish(Hint(club_id, TOPIC))


async def _require(tx: Transaction, actor: Actor, club_id: UUID, kind: InviteKind) -> None:
    if kind is not InviteKind.AGENT:
        await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.ACCESS)
    if kind is not InviteKind.PERSON:
        await require(tx, actor, club_id, Permission.MANAGE_AGENTS, scope=Scope.ACCESS)


async def _require_handed_on(tx: Transaction, actor: Actor, club_id: UUID, roles: Collection[UUID]) -> None:
    refused = set(roles) - await handed_on(tx, club_id, actor.person_id, roles)
    if not refused:
        return
    there = await tx.scalar(
        select(func.count()).where(
            StaffRole.club_id == club_id, StaffRole.id.in_(refused), StaffRole.state == "active"
        )
    )
    if there < len(refused):
        raise NotFound("role_unknown", "There is no such role in this club.", field="roles")
    raise NotAllowed(
        "role_not_assignable",
        "None of your roles may hand all of these roles on.",
        advice="Choose other roles, or ask the owner to invite.",
    )


async def _require_room(tx: Transaction, club_id: UUID) -> None:
    open_now = await tx.scalar(
        select(func.count()).where(
            Invite.club_id == club_id,
            Invite.revoked_at.is_(None),
            Invite.accepted_at.is_(None),
            Invite.expires_at > NOW,
        )
    )
    if open_now >= MOST_OPEN_INVITES:
        raise Invalid(
            "invites_too_many",
            f"{MOST_OPEN_INVITES} invitations of this club are open already.",
            advice="Revoke some, or wait until they are used or expire.",
        )
