"""What hangs on the maintenance switch, and what must not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests.decisions.conftest import Desk, Door

from lastcall.app import deadline_owners, mailer
from lastcall.clock import SYSTEM_CLOCK
from lastcall.db.database import Database
from lastcall.deadlines.scheduler import Scheduler
from lastcall.decisions.retention.kinds import KINDS
from lastcall.settings import Settings
from lastcall.testing.waiting import eventually

RETENTION = {
    *(kind.owner for kind in KINDS.values()),
    "retention_refresh",
    "retention_reminder",
    "retention_digest",
    "decision_expiry",
    "data_retention",
}
"""Where one process of several keeps house, the others leave all of these to it."""

NEVER_OFF = {"operation_late_pending", "operation_late_claimed", "claim_expiry", "submission_recovery"}
"""What settles operations: off with the house-keeping, an answer that was lost would stay open for ever."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, maintenance=False)


def scheduler(database: Database, settings: Settings) -> Scheduler:
    owners = deadline_owners(settings, database, mailer(settings, database), SYSTEM_CLOCK)
    return Scheduler(database, owners)


def names(database: Database, settings: Settings) -> set[str]:
    return {status.name for status in scheduler(database, settings).status()}


@pytest.mark.clause("SCH-02")
async def test_retention_hangs_on_the_switch_and_what_settles_operations_does_not(
    database: Database, settings: Settings
) -> None:
    off = names(database, settings)
    on = names(database, dataclasses.replace(settings, maintenance=True))
    assert on - off == RETENTION
    assert off >= NEVER_OFF
    assert off <= on


@pytest.mark.clause("SCH-02")
async def test_with_the_switch_off_this_process_archives_nothing_and_with_it_on_it_does(
    database: Database, door: Door, settings: Settings
) -> None:
    desk = Desk(database, door.owner, door.club_id)
    request, approval = await door.overdue(), await desk.overdue()
    off = scheduler(database, settings)
    await off.start()
    await eventually(lambda: all(one.reads and not one.running for one in off.status()))
    assert sum(one.rows_done for one in off.status()) == 0
    assert await door.archived() == 0
    await off.stop()

    on = scheduler(database, dataclasses.replace(settings, maintenance=True))
    await on.start()
    await eventually(lambda: door.archived_at(request))
    await eventually(lambda: desk.archived_at(approval))
    await on.stop()
