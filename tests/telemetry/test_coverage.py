"""Coverage: what was not observed says so, and what was seen last stays with its age."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.telemetry.conftest import people

from lastcall.connections.connect import set_features
from lastcall.connections.listeners import Coverage, TelemetryFailure, telemetry_failed
from lastcall.connections.restored import restored
from lastcall.connections.states import Feature
from lastcall.telemetry.states import FRESH, UNKNOWN_AFTER, CoverageState

MOMENT = timedelta(milliseconds=1)


async def fail(stage, coverage: Coverage = Coverage.DEGRADED) -> None:
    async with stage.db.transaction() as tx:
        await telemetry_failed(
            tx,
            TelemetryFailure(
                stage.site.club_id, stage.site.connection_id, stage.held.epoch, coverage, "schema_drift"
            ),
        )


async def test_nothing_seen_yet_is_unknown_and_not_zero(stage):
    seen = await stage.coverage()
    assert (seen.state, seen.observed_at, seen.population) == (CoverageState.UNKNOWN, None, None)


async def test_looks_in_a_row_are_one_window(stage, test_clock):
    await test_clock.freeze()
    for _ in range(3):
        await stage.sample(people(_1=5))
        await test_clock.advance(FRESH)
    assert await stage.windows() == ["observed*"]


@pytest.mark.clause("COL-10")
async def test_an_active_connection_shows_its_analytics_stale_six_minutes_after_the_last_look(
    stage, test_clock
):
    now = await test_clock.freeze()
    await stage.sample(people(_1=5), member_count=70)
    await test_clock.advance(FRESH)
    assert (await stage.coverage()).state is CoverageState.OBSERVED
    await test_clock.advance(MOMENT)
    seen = await stage.coverage()
    assert await stage.db.pool.fetchval("select state from connections") == "active"
    assert (seen.state, seen.since) == (CoverageState.STALE, now + FRESH)
    assert (seen.observed_at, seen.population, seen.member_count) == (now, 5, 70)


async def test_a_gap_is_written_down_when_the_next_look_ends_it(stage, test_clock):
    first = await test_clock.freeze()
    await stage.sample()
    await test_clock.advance(timedelta(hours=1))
    await stage.sample()
    rows = await stage.db.pool.fetch(
        "select state, started_at, ended_at from telemetry_coverage order by started_at"
    )
    again = first + timedelta(hours=1)
    assert [tuple(row) for row in rows] == [
        ("observed", first, first + FRESH),
        ("stale", first + FRESH, again),
        ("observed", again, None),
    ]


@pytest.mark.clause("COL-05")
async def test_a_failure_degrades_coverage_until_the_next_good_look(stage, test_clock):
    await test_clock.freeze()
    await stage.sample()
    await test_clock.advance(timedelta(minutes=1))
    await fail(stage)
    await fail(stage)
    assert (await stage.coverage()).state is CoverageState.DEGRADED
    await test_clock.advance(timedelta(minutes=1))
    await stage.sample()
    assert (await stage.coverage()).state is CoverageState.OBSERVED
    assert await stage.windows() == ["observed", "degraded", "observed*"]


@pytest.mark.clause("COL-05", "COL-10")
async def test_unknown_stays_unknown_through_further_failures(stage, test_clock):
    await test_clock.freeze()
    await stage.sample()
    await test_clock.advance(timedelta(minutes=1))
    await fail(stage, Coverage.UNKNOWN)
    await fail(stage)
    assert (await stage.coverage()).state is CoverageState.UNKNOWN
    assert await stage.windows() == ["observed", "unknown*"]


@pytest.mark.clause("COL-05")
async def test_the_third_failure_in_a_row_makes_what_was_seen_before_unknown(stage, test_clock):
    await test_clock.freeze()
    await stage.sample()
    for count in range(1, UNKNOWN_AFTER + 1):
        await stage.db.pool.execute("update connections set telemetry_failures = $1", count)
        await fail(stage)
    assert await stage.windows() == ["observed", "degraded", "unknown*"]


async def test_a_failure_before_anything_was_seen_is_unknown(stage):
    await fail(stage)
    assert (await stage.coverage()).state is CoverageState.UNKNOWN


async def test_a_failure_long_after_the_last_look_writes_the_gap_before_it(stage, test_clock):
    await test_clock.freeze()
    await stage.sample()
    await test_clock.advance(timedelta(minutes=20))
    await fail(stage)
    assert await stage.windows() == ["observed", "stale", "degraded*"]
    assert (await stage.coverage()).state is CoverageState.STALE


async def test_a_late_report_of_an_older_look_changes_nothing(stage, test_clock):
    await test_clock.freeze()
    await test_clock.advance(timedelta(minutes=5))
    await stage.sample(people(_1=5))
    assert await stage.sample(people(_1=9), age=timedelta(minutes=4))
    assert (await stage.coverage()).population == 5
    assert await stage.windows() == ["observed*"]


async def test_without_analytics_coverage_is_off_and_failures_write_nothing(stage):
    await stage.sample()
    rest = set(Feature) - {Feature.ANALYTICS}
    await set_features(stage.db, None, stage.site.club_id, stage.site.connection_id, rest)
    await fail(stage)
    assert (await stage.coverage()).state is CoverageState.OFF
    assert await stage.windows() == ["observed*"]


async def test_a_new_epoch_begins_without_what_was_seen_before_it(stage, test_clock):
    await test_clock.freeze()
    await stage.sample(people(_1=5))
    await test_clock.advance(timedelta(minutes=1))
    await restored(stage.db, None)
    seen = await stage.coverage()
    assert (seen.state, seen.observed_at) == (CoverageState.UNKNOWN, None)
    assert await stage.windows() == ["observed"]


async def test_the_routines_know_the_same_figures(stage):
    assert await stage.db.pool.fetchval("select telemetry_fresh()") == FRESH
    assert await stage.db.pool.fetchval("select telemetry_unknown_after()") == UNKNOWN_AFTER
