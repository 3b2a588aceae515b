"""See that a transaction really waits for a lock, as the server itself reports it."""

from __future__ import annotations

from lastcall.db.database import Database
from lastcall.testing.waiting import WITHIN, eventually

_WAITING = """
select pid from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock'
  and ($1::int is null or pid = $1) and ($2::text is null or query ilike '%' || $2 || '%')
  and ($3::int is null or $3 = any (pg_blocking_pids(pid)))
limit 1
"""


async def wait_until_blocked(
    database: Database, pid_or_query: int | str, *, by: int | None = None, within: float = WITHIN
) -> int:
    """Return the pid of the backend that waits for a lock: that pid, or one whose statement contains that
    text.

    ``by`` is the pid of the backend that holds what it waits for. ``AssertionError`` when there is none in
    time.
    """
    pid = pid_or_query if isinstance(pid_or_query, int) else None
    query = pid_or_query if isinstance(pid_or_query, str) else None

    async def find() -> int | None:
        found: int | None = await database.pool.fetchval(_WAITING, pid, query, by)
        return found

    waiting: int = await eventually(
        find, within=within, message=f"nothing waits for a lock: {pid_or_query!r}, by {by}"
    )
    return waiting
