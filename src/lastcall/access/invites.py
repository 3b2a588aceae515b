"""Commands on invites: make one, take it back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from sqlalchemy import func, insert, select, update

from lastcall.access.mails import send_invitation
from lastcall.access.policy import handed_on
from lastcall.access.tables import Invite
from lastcall.clubs.activity import log
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require, require_open, require_staff
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
from lastcall.people.data_retention import data_written
from lastcall.people.scopes import Scope
from lastcall.people.tokens import new_token, token_hash

INVITE_LIFE = timedelta(days=7)  # a replay ends well inside the ninety days (ACC-14)
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


async def create_invite(
    db: Database,
    actor: Actor,
    club_id: UUID,
    role_ids: Collection[UUID],
    *,
    kind: InviteKind = InviteKind.PERSON,
    email: str | None = None,
    approves: bool = True,
    note: str | None = None,
    mailer: Mailer | None = None,
    source: str = "",
) -> NewInvite:
    """Make an invite that lives ``INVITE_LIFE`` and can be used once; with an ``email`` and a ``mailer`` it is
    mailed there, asked for from ``source``.

    Needs ``manage_staff``, for agents ``manage_agents``, and each role must be one that the actor may hand on.
    With ``email`` only a person with that address, verified, can accept. ``approves`` (people only) lets the
    acceptance be approved by the actor's authority as it is then; otherwise it waits for a decision.
    Raises ``Invalid`` for no role, a malformed address or note, and too many open invites, and ``Conflict`` in an
    archived club.
    """
    email = valid_address(email) if email is not None and email.strip() else None
    note = valid_note(note, most=NOTE_LENGTH)
    roles = sorted(set(role_ids))
    if kind is InviteKind.AGENT:
        approves = False
    elif not roles:
        raise Invalid(
            "roles_missing", "An invitation gives at least one role.", advice="Choose a role.", field="roles"
        )
    invite_id, token = new_id(), new_token()
    async with db.transaction() as tx:
        await _require(tx, actor, club_id, kind)
        await require_open(tx, club_id)
        await _require_handed_on(tx, actor, club_id, roles)
        await _require_room(tx, club_id)
        data_written(tx)
        hashed = token_hash(token)
        await tx.execute(insert(Directory).values(kind=INVITE_DIRECTORY, key=hashed.hex(), club_id=club_id))
        await tx.execute(
            insert(Invite).values(
                club_id=club_id,
                id=invite_id,
                kind=kind,
                token_hash=hashed,
                role_ids=roles,
                email=email,
                approves=approves,
                note=note,
                invited_by=actor.person_id,
                expires_at=NOW + INVITE_LIFE,
            )
        )
        details = {"roles": [str(role) for role in roles], "kind": kind, "approves": approves}
        await log(tx, club_id, actor, "invite.created", "invite", invite_id, details)
        if email is not None and mailer is not None:
            await send_invitation(tx, mailer, actor, club_id, email, token, source)
        tx.publish(Hint(club_id, TOPIC))
    return NewInvite(invite_id, token)


async def revoke_invite(db: Database, actor: Actor, club_id: UUID, invite_id: UUID) -> None:
    """Close an open invite. The request it turned into goes on living (RET-03), so this is no signal (ACC-13).

    It needs the permission that making it needs. The owner closes any, others those whose roles they may hand on
    and their own. Revoking twice is once; one that was used is a ``Conflict``.
    """
    async with db.transaction() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.ACCESS)
        mine = (Invite.club_id == club_id, Invite.id == invite_id)
        invite = (
            await tx.execute(
                select(Invite.kind, Invite.invited_by, Invite.role_ids, Invite.accepted_at, Invite.revoked_at)
                .where(*mine)
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
        if invite.revoked_at is None:
            await tx.execute(update(Invite).where(*mine).values(revoked_at=NOW))
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
