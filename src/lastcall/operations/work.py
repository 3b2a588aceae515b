"""What operations give collectors to do: the work source that the board of ``connections/`` asks."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from lastcall.connections.work import Ready
from lastcall.db.database import Database

# Lane by lane, each one probe of the runnable index. What is late is past claiming and is not named.
_READY = """
    select c.club_id, c.id, min(first.ready_at) as ready_at
      from (select (select lastcall_now()) - operation_grace() as earliest) n
      join connections c on c.account_id = $1 and c.state <> 'disconnected' and c.state = any (usable_states())
      join clubs k on k.id = c.club_id and k.state in ('active', 'paused')
     cross join (values (1), (2), (3)) as l (lane)
     cross join lateral (
           select o.ready_at
             from operations o
            where o.club_id = c.club_id and o.connection_id = c.id and o.epoch = c.epoch and o.lane = l.lane
              and o.state = 'pending' and o.ready_at >= n.earliest and o.due_at >= n.earliest
            order by o.ready_at, o.id
            limit 1) as first
     group by c.club_id, c.id
"""


class OperationWork:
    """The earliest operation that could be claimed, of each of an account's connections."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def ready(self, account_id: UUID) -> Sequence[Ready]:
        rows = await self._db.pool.fetch(_READY, account_id)
        return [Ready(row["club_id"], row["id"], row["ready_at"]) for row in rows]
