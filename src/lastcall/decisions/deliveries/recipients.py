"""Who in a club is told of what waits for a permission."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.db.transaction import Reader

_HOLDERS = """
    select p.id
      from people p
     where p.blocked_at is null
       and p.id in (
           select c.owner_id from clubs c where c.id = $1
            union
           select a.person_id
             from staff_assignments a
             join staff_roles r on r.club_id = a.club_id and r.id = a.role_id and r.state = 'active'
            where a.club_id = $1 and r.permissions && $2::text[])
"""


async def holders(tx: Reader, club_id: UUID, permissions: Iterable[Permission]) -> list[UUID]:
    """The club's owner and whoever holds any of these; nobody where none is named, and nobody who is blocked."""
    wanted = [permission.value for permission in permissions]
    if not wanted:
        return []
    return [row["id"] for row in await tx.raw.fetch(_HOLDERS, club_id, wanted)]
