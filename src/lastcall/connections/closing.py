"""What becomes of a connection when its club closes."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import delete, select, text, update

from lastcall.clubs.activity import System
from lastcall.clubs.listeners import ClubChange
from lastcall.connections.connect import connection_over, end_connection
from lastcall.connections.states import ConnectionState
from lastcall.connections.staying import NOBODY, STAYED_DIRECTORY
from lastcall.connections.tables import AllowanceUse, Connection
from lastcall.db.tables import Directory
from lastcall.db.transaction import Transaction

CLOSING = System("club archived")


async def club_changed(tx: Transaction, club_id: UUID, change: ClubChange) -> None:
    """Archiving disconnects the club's group, and ends its leases and what was not sent. Deleting waits for no account
    that has not left its group yet, and takes the allowances, the only rows of a connection that carry no club."""
    if change not in (ClubChange.ARCHIVED, ClubChange.DELETED):
        return
    current = await tx.scalar(
        select(Connection.id).where(
            Connection.club_id == club_id, Connection.state != ConnectionState.DISCONNECTED.value
        )
    )
    if current is not None:
        await end_connection(tx, CLOSING, club_id, current)
    if change is ClubChange.DELETED:
        # The account is in those groups still, and now nobody may use what it was given there.
        await tx.execute(
            update(Directory)
            .where(Directory.kind == STAYED_DIRECTORY, Directory.club_id == club_id)
            .values(club_id=NOBODY)
        )
        if current is not None:
            await connection_over(tx, club_id, current, stayed_of=NOBODY)
        scopes = select(text("'connection:' || connections.id::text")).where(Connection.club_id == club_id)
        await tx.execute(delete(AllowanceUse).where(AllowanceUse.scope.in_(scopes)))
