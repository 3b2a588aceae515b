"""Commands on invites."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import insert, update

from lastcall.access.tables import Invite
from lastcall.clubs.activity import log
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.errors import NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

INVITE_LIFE = timedelta(hours=72)  # replays end well inside the ninety days (ACC-14)


async def create_invite(db: Database, actor: Actor, club_id: UUID) -> UUID:
    """Make an invite that lives ``INVITE_LIFE``; answers its id. Needs ``manage_staff``."""
    invite_id = new_id()
    async with db.transaction() as tx:
        await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.ACCESS)
        await tx.execute(
            insert(Invite).values(
                club_id=club_id, id=invite_id, invited_by=actor.person_id, expires_at=NOW + INVITE_LIFE
            )
        )
        await log(tx, club_id, actor, "invite.created", "invite", invite_id)
    return invite_id


async def revoke_invite(db: Database, actor: Actor, club_id: UUID, invite_id: UUID) -> None:
    """Close an invite. The request it turned into goes on living (RET-03), so this is no signal (ACC-13)."""
    async with db.transaction() as tx:
        await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.ACCESS)
        revoked = await tx.scalar(
            update(Invite)
            .where(Invite.club_id == club_id, Invite.id == invite_id, Invite.revoked_at.is_(None))
            .values(revoked_at=NOW)
            .returning(Invite.id)
        )
        if revoked is None:
            raise NotFound("invite_unknown", "There is no such open invite.", advice="Load the list again.")
        await log(tx, club_id, actor, "invite.revoked", "invite", invite_id)
