"""The audit log: read in stretches that overlap, page by page, resumed by whoever holds the lease next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.telemetry.conftest import Stage

from lastcall.connections.leases import release_lease
from lastcall.connections.worker import LeaseHeld
from lastcall.errors import Conflict, Invalid
from lastcall.telemetry.collecting import AuditLine, AuditPageDue, claim_audit_page, record_audit_page
from lastcall.telemetry.states import SCAN_BACK, SCAN_DELAY, SCAN_LEAST, SCAN_MOST, SCAN_OVERLAP

NEVER = datetime(2020, 1, 1, tzinfo=UTC)
EVIDENCE = """
    insert into evidence (club_id, connection_id, kind, subject, epoch, body, observed_at, account_id, worker_id)
    select club_id, id, 'own_member', 'usr_1', epoch, $1, lastcall_now(), account_id, gen_random_uuid() from connections
    on conflict (club_id, connection_id, kind, subject) do update
       set body = excluded.body, observed_at = excluded.observed_at
"""


@pytest.fixture
async def scan(stage: Stage, test_clock: Any) -> Scan:
    await test_clock.freeze()
    await stage.db.pool.execute(
        EVIDENCE,
        '{"groupId": "grp_1", "userId": "usr_1", "memberStatus": "member", "permissions": ["group-audit-view"]}',
    )
    return Scan(stage, stage.held)


class Scan:
    def __init__(self, stage: Stage, held: LeaseHeld) -> None:
        self.stage = stage
        self.held = held

    async def claim(self) -> AuditPageDue | None:
        return await claim_audit_page(self.stage.db, self.stage.site.worker, self.held)

    async def due(self) -> AuditPageDue:
        found = await self.claim()
        assert found is not None
        return found

    async def record(
        self, page: AuditPageDue, *lines: AuditLine, raw: int = 100, is_last: bool = False
    ) -> bool:
        return await record_audit_page(
            self.stage.db,
            self.stage.site.worker,
            self.held,
            page.scan_id,
            page.offset,
            raw_count=raw,
            is_last=is_last,
            lines=lines,
        )

    async def lease_anew(self) -> None:
        self.held = await self.stage.site.lease()

    async def entries(self) -> list[str]:
        rows = await self.stage.db.pool.fetch("select entry_id from audit_entries order by entry_id")
        return [row["entry_id"] for row in rows]


def line(number: int, at: datetime, event: str = "group.member.join") -> AuditLine:
    return AuditLine(f"gaud_{number}", at, event)


async def test_the_log_is_read_from_the_connect_on_and_not_within_a_minute_of_now(scan, test_clock):
    epoch = scan.held.epoch
    assert await scan.claim() is None, "there is no log yet"
    await test_clock.advance(timedelta(hours=2))
    await scan.lease_anew()
    page = await scan.due()
    now = await test_clock.now()
    assert (page.starts_at, page.ends_at, page.offset) == (epoch, now - SCAN_DELAY, 0)


async def test_a_stretch_is_a_day_at_most_and_the_next_one_overlaps_it(scan, test_clock):
    await test_clock.advance(timedelta(days=3))
    await scan.lease_anew()
    first = await scan.due()
    assert first.ends_at - first.starts_at == SCAN_MOST
    await scan.record(first, is_last=True)
    second = await scan.due()
    assert second.starts_at == first.ends_at - SCAN_OVERLAP
    assert second.scan_id != first.scan_id


async def test_a_log_read_up_to_date_is_left_alone_until_there_is_enough_new(scan, test_clock):
    await test_clock.advance(timedelta(hours=2))
    await scan.lease_anew()
    await scan.record(await scan.due(), is_last=True)
    await test_clock.advance(SCAN_LEAST - timedelta(milliseconds=1))
    await scan.lease_anew()
    assert await scan.claim() is None
    await test_clock.advance(timedelta(milliseconds=1))
    assert await scan.claim() is not None


async def test_a_later_lease_goes_on_where_the_last_one_stopped(scan, test_clock):
    await test_clock.advance(timedelta(hours=2))
    await scan.lease_anew()
    first = await scan.due()
    at = first.starts_at + timedelta(minutes=1)
    assert await scan.record(first, line(1, at), line(2, at), raw=100)
    await release_lease(scan.stage.db, scan.stage.site.worker, scan.held)
    await scan.lease_anew()
    second = await scan.due()
    assert (second.scan_id, second.offset) == (first.scan_id, 100)
    assert not await scan.record(first, line(1, at)), "the page that is there is not read again"
    assert await scan.record(second, line(2, at), line(3, at), raw=2, is_last=True)
    assert await scan.entries() == ["gaud_1", "gaud_2", "gaud_3"]
    assert await scan.claim() is None


async def test_lines_outside_of_the_stretch_are_left_out(scan, test_clock):
    await test_clock.advance(timedelta(hours=2))
    await scan.lease_anew()
    page = await scan.due()
    moment = timedelta(milliseconds=1)
    await scan.record(
        page,
        line(1, page.starts_at - moment),
        line(2, page.starts_at),
        line(3, page.ends_at),
        line(4, page.ends_at + moment),
    )
    assert await scan.entries() == ["gaud_2", "gaud_3"]


async def test_an_empty_page_ends_the_stretch_whatever_it_says(scan, test_clock):
    await test_clock.advance(timedelta(hours=2))
    await scan.lease_anew()
    await scan.record(await scan.due(), raw=0, is_last=False)
    assert await scan.claim() is None


async def test_a_page_further_on_than_the_next_is_refused(scan, test_clock):
    await test_clock.advance(timedelta(hours=2))
    await scan.lease_anew()
    page = await scan.due()
    ahead = AuditPageDue(page.scan_id, page.starts_at, page.ends_at, 100)
    with pytest.raises(Conflict) as refusal:
        await scan.record(ahead)
    assert refusal.value.code == "audit_page_elsewhere"


@pytest.mark.parametrize("wrong", [AuditLine("usr_1", NEVER, "a"), AuditLine("gaud_1", NEVER, "usr_1")])
async def test_a_line_that_names_a_person_refuses_the_page(scan, test_clock, wrong):
    await test_clock.advance(timedelta(hours=2))
    await scan.lease_anew()
    page = await scan.due()
    with pytest.raises(Invalid):
        await scan.record(page, line(1, page.starts_at), wrong)
    assert await scan.entries() == []


async def test_an_account_that_may_not_see_the_log_is_not_sent_there(scan, test_clock):
    await test_clock.advance(timedelta(hours=2))
    await scan.lease_anew()
    await scan.stage.db.pool.execute("update evidence set body = jsonb_set(body, '{permissions}', '[]')")
    assert await scan.claim() is None


async def test_after_a_long_silence_the_log_is_read_from_a_month_ago_on(scan, test_clock):
    await test_clock.advance(timedelta(days=90))
    await scan.lease_anew()
    assert (await scan.due()).starts_at == await test_clock.now() - SCAN_BACK


async def test_the_routines_know_the_same_durations(scan):
    row = await scan.stage.db.pool.fetchrow("select * from audit_scan_durations()")
    assert tuple(row) == (SCAN_MOST, SCAN_LEAST, SCAN_DELAY, SCAN_OVERLAP, SCAN_BACK)
