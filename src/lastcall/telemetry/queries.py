"""How a club's analytics stand, for pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from lastcall.db.transaction import Reader
from lastcall.telemetry.states import FRESH, CoverageState

# The bounds of observed_at keep it from walking over an earlier epoch's samples: nothing is kept that was older than 15
# minutes when it came (SAMPLE_AGE_MOST). The group's size comes every few minutes; among 300 looks, some five hours,
# there is one, or it is not shown.
_COVERAGE = text("""
    select n.now, 'analytics' = any (c.features) as is_on, w.state, w.started_at, s.observed_at, s.population,
           s.instance_count, m.member_count,
           (select max(a.ends_at) from audit_scans a
             where a.club_id = c.club_id and a.connection_id = c.id and a.epoch = c.epoch and a.ends_at > c.epoch
               and a.finished_at is not null) as log_read_to
    from (select lastcall_now() as now) n
    join connections c on c.club_id = :club_id and c.state <> 'disconnected'
    left join telemetry_coverage w
      on w.club_id = c.club_id and w.connection_id = c.id and w.epoch = c.epoch and w.ended_at is null
    left join lateral (
        select t.observed_at, t.population, t.instance_count
        from telemetry_samples t
        where t.club_id = c.club_id and t.connection_id = c.id and t.epoch = c.epoch
          and t.observed_at >= c.epoch - interval '15 minutes'
        order by t.observed_at desc
        limit 1) s on true
    left join lateral (
        select l.member_count
        from (
            select t.member_count, t.observed_at
            from telemetry_samples t
            where t.club_id = c.club_id and t.connection_id = c.id and t.epoch = c.epoch
              and t.observed_at >= c.epoch - interval '15 minutes'
            order by t.observed_at desc
            limit 300) as l
        where l.member_count is not null
        order by l.observed_at desc
        limit 1) m on true
""")


@dataclass(frozen=True)
class CoverageView:
    """How the analytics of the club's current connection stand, and what was seen last.

    ``since`` is when they came to stand so. ``observed_at`` is the last successful observation: it and the figures
    stay, with their age, while nothing new comes (COL-10). ``log_read_to``: up to when the group's audit log was read.
    """

    state: CoverageState
    since: datetime | None
    observed_at: datetime | None
    population: int | None
    instance_count: int | None
    member_count: int | None
    log_read_to: datetime | None


async def coverage_of(tx: Reader, club_id: UUID) -> CoverageView | None:
    """None without a connection. The caller has asked whether the reader may see it."""
    row = (await tx.execute(_COVERAGE, {"club_id": club_id})).one_or_none()
    if row is None:
        return None
    state, since = judge(row.is_on, row.state, row.started_at, row.observed_at, row.now)
    return CoverageView(
        state, since, row.observed_at, row.population, row.instance_count, row.member_count, row.log_read_to
    )


def judge(
    is_on: bool, state: str | None, started_at: datetime | None, observed_at: datetime | None, now: datetime
) -> tuple[CoverageState, datetime | None]:
    """What an open window means now, and since when. Without a window nothing was seen yet."""
    if not is_on:
        return CoverageState.OFF, None
    if state is None:
        return CoverageState.UNKNOWN, None
    window = CoverageState(state)
    if window in {CoverageState.OBSERVED, CoverageState.DEGRADED} and observed_at is not None:
        over = observed_at + FRESH
        if now > over:
            return CoverageState.STALE, over
    return window, started_at
