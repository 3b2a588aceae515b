"""What reads give collectors to do: the work source that the board of ``connections/`` asks."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from lastcall.connections.work import Ready
from lastcall.db.database import Database

# One probe a connection. What nobody waits for any more is past claiming and is not named; nor is what the holder of
# the lease has in hand.
_READY = """
    select c.club_id, c.id, first.requested_at as ready_at
      from (select (select lastcall_now()) as now) n
      join accounts a on a.id = $1
      join connections c on c.account_id = a.id and c.state in ('active', 'degraded')
     cross join lateral (
           select r.requested_at
             from provider_reads r
            where r.club_id = c.club_id and r.connection_id = c.id and r.epoch = c.epoch and r.account_id = a.id
              and r.credential_generation = a.credential_generation
              and r.state in ('pending', 'running')
              and r.requested_at > n.now - interval '60 seconds' and r.requested_at <= n.now
              and (r.state = 'pending' or not lease_is_current(
                    c.club_id, c.id, a.id, r.claim_worker_id, r.claim_fencing_token, n.now))
            order by r.requested_at, r.id
            limit 1) as first
"""


class ReadWork:
    """The earliest read that could be claimed, of each of an account's connections."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def ready(self, account_id: UUID) -> Sequence[Ready]:
        rows = await self._db.pool.fetch(_READY, account_id)
        return [Ready(row["club_id"], row["id"], row["ready_at"]) for row in rows]
