"""One switch of a connection's features, whatever the others are meanwhile."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from lastcall.connections.connect import set_features
from lastcall.connections.gates import raise_gate
from lastcall.connections.states import Feature
from lastcall.connections.switches import connection_unknown, require_connection_manager
from lastcall.connections.tables import Connection
from lastcall.db.database import Database
from lastcall.people.actor import Actor


async def switch_feature(
    db: Database, actor: Actor | None, club_id: UUID, connection_id: UUID, feature: Feature, *, is_on: bool
) -> None:
    """Switch one feature on or off; of two people who switch two at once, neither undoes the other."""
    async with db.transaction() as tx:
        await require_connection_manager(tx, actor, club_id)
        if not await raise_gate(tx, club_id, connection_id):
            raise connection_unknown()
        stored = await tx.scalar(
            select(Connection.features).where(Connection.club_id == club_id, Connection.id == connection_id)
        )
        chosen = {Feature(name) for name in stored}
        await set_features(
            db, actor, club_id, connection_id, chosen | {feature} if is_on else chosen - {feature}
        )
