"""A connection whose account is a member of its group, as a collector reports one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import select

from lastcall.connections.leases import release_lease, take_lease
from lastcall.connections.membership import report_membership
from lastcall.connections.states import ConnectionState
from lastcall.connections.tables import Account, Connection
from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.protocol.membership import GroupSeen
from lastcall.protocol.messages import OwnMemberEvidence, RoleSeen

LONG_AGO = timedelta(hours=1)


async def activate(
    db: Database,
    club_id: UUID,
    connection_id: UUID,
    *,
    grants: Sequence[str] = ("*",),
    roles: Sequence[RoleSeen] = (),
    age: timedelta = LONG_AGO,
) -> None:
    """Let a collector of the connection's account find it a member, and go again. ``age``: how old what it saw is; by
    default too old to be evidence of anything."""
    async with db.read() as tx:
        row = (
            await tx.execute(
                select(
                    Account.id,
                    Account.credential_generation,
                    Account.vrchat_user_id,
                    Connection.group_id,
                    Connection.group_name,
                )
                .join(Connection, Connection.account_id == Account.id)
                .where(Connection.club_id == club_id, Connection.id == connection_id)
            )
        ).one()
    worker = Worker(row.id, row.credential_generation, new_id(), row.vrchat_user_id)
    given = await take_lease(db, worker, club_id, connection_id)
    held = LeaseHeld(club_id, connection_id, given.epoch, given.fencing_token)
    state = await report_membership(
        db,
        worker,
        held,
        GroupSeen(
            group_id=row.group_id,
            name=row.group_name,
            privacy="default",
            join_state="invite",
            membership="member",
        ),
        OwnMemberEvidence(
            age_ms=age // timedelta(milliseconds=1),
            group_id=row.group_id,
            owner_id="usr_owner",
            user_id=row.vrchat_user_id,
            member_status="member",
            permissions=tuple(grants),
            role_ids=(),
            roles=tuple(roles),
            privacy="default",
        ),
    )
    await release_lease(db, worker, held)
    if state is not ConnectionState.ACTIVE:
        raise AssertionError(f"A member's connection is {state.value}.")
