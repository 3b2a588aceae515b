"""Limits on how often something may be done: counted in PostgreSQL, so that they hold over all processes.

One statement takes one of what a key has left, in a transaction of its own, so that neither a rollback of the
caller gives it back nor a long transaction keeps others waiting. With a thousand attempts at once exactly as
many succeed as the limit says; a refused attempt writes nothing and does not prolong the wait.
"""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from datetime import timedelta

from lastcall.db.database import Database
from lastcall.errors import TooFast

SWEPT = 10
"""Windows that are over and are removed by each attempt that succeeds: it adds one at most, so the table
shrinks towards what is in use without anybody scanning it."""

SOURCE_BITS = 64
"""What one household or company has of IPv6: its addresses count as one source."""

_TAKE = """
with taken as (
    insert into rate_limits as known (name, key_hash, ends_at, count)
    values ($1, $2, (select lastcall_now()) + $3, 1)
    on conflict (name, key_hash) do update
    set count = case when known.ends_at <= excluded.ends_at - $3 then 1 else known.count + 1 end,
        ends_at = case when known.ends_at <= excluded.ends_at - $3 then excluded.ends_at else known.ends_at end
    where known.ends_at <= excluded.ends_at - $3 or known.count < $4
    returning 1
), over as materialized (
    -- The limit is read first, so this begins after the line above holds its row; and it waits for no lock.
    select name, key_hash from rate_limits
    where ends_at <= (select lastcall_now()) and (name, key_hash) <> ($1, $2)
    order by ends_at limit (select $5::bigint * count(*) from taken) for update skip locked
), swept as (
    delete from rate_limits where (name, key_hash) in (select name, key_hash from over)
)
select exists (select from taken) as is_taken,
    extract(epoch from (select ends_at from rate_limits where name = $1 and key_hash = $2)
        - (select lastcall_now()))::float8 as wait
"""


@dataclass(frozen=True)
class Limit:
    """At most ``count`` in a window of ``per`` that begins with the first of them; over any other stretch of
    that length at most twice as many. ``name`` tells the limits of the house apart.
    """

    name: str
    count: int
    per: timedelta


async def take(db: Database, limit: Limit, key: str) -> None:
    """Take one of what ``key`` has left. Raises ``TooFast`` with the seconds until the window is over.

    Only a hash of ``key`` is stored. Call it outside of a transaction: it is committed by itself.
    """
    row = await db.pool.fetchrow(_TAKE, limit.name, _hash(limit.name, key), limit.per, limit.count, SWEPT)
    if row is None or row["is_taken"]:
        return
    wait = row["wait"] if row["wait"] is not None else limit.per.total_seconds()
    raise TooFast(
        "too_fast",
        "This was tried too often in a short time.",
        advice=f"Try again in {_in_words(wait)}.",
        retry_after=max(1.0, wait),
    )


def source_of(address: str) -> str:
    """Whom limits per source count an address as: itself, or its /64 for IPv6."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    if known.ipv4_mapped:
        return str(known.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(known), SOURCE_BITS), strict=False))


def _hash(name: str, key: str) -> bytes:
    return hashlib.sha256(f"{name}\n{key}".encode()).digest()


def _in_words(seconds: float) -> str:
    minutes = -(-int(seconds) // 60)
    return "a minute" if minutes <= 1 else f"{minutes} minutes"
