"""The connection is cut during COMMIT: whatever became of the row, its deadline is armed (ACC-09)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from lastcall.db.database import Database
from lastcall.deadlines.lane import OwnerStatus
from lastcall.deadlines.scheduler import Scheduler
from lastcall.deadlines.signals import Signal
from lastcall.deadlines.sweep import SweepOwner
from lastcall.errors import Unavailable
from lastcall.testing.fake_clock import FakeClock
from lastcall.testing.proxy import Cut, CuttingProxy
from lastcall.testing.waiting import eventually
from tests.deadlines.due_rows import CLUB, DueRows

RETRY = timedelta(seconds=30)
DISTANCE = timedelta(days=90)


class Scene:
    """A scheduler that lives behind the proxy, on a clock that only the test moves."""

    def __init__(self, far: Database, clock: FakeClock) -> None:
        self.far = far
        self.clock = clock
        self.scheduler = Scheduler(far, [SweepOwner("rows", DueRows(far), clock)], clock)

    @property
    def status(self) -> OwnerStatus:
        return self.scheduler.status()[0]

    async def write(self) -> datetime:
        """Insert one row due in ninety days and say that something changed; returns its deadline."""
        async with self.far.transaction() as tx:
            due = await tx.raw.fetchval(
                """insert into due_rows (club_id, id, due_at)
                   values ($1, gen_random_uuid(), date_trunc('second', lastcall_now()) + $2) returning due_at""",
                CLUB,
                DISTANCE,
            )
            tx.publish(Signal("rows"))
        assert isinstance(due, datetime)
        return due

    async def read_again(self) -> None:
        """Let thirty seconds pass, and the read end that they bring."""
        reads = self.status.reads
        await self.clock.advance(RETRY)
        await self.read_to_its_end(reads + 1)

    async def read_to_its_end(self, reads: int) -> None:
        await eventually(lambda: self.status.reads == reads and not self.status.running)


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[CuttingProxy]:
    async with CuttingProxy(database_url) as proxy:
        yield proxy


@pytest.fixture
async def scene(rows: DueRows, proxy: CuttingProxy, clock: FakeClock) -> AsyncIterator[Scene]:
    far = await Database.open(proxy.url)
    scene = Scene(far, clock)
    await scene.scheduler.start()
    await scene.read_to_its_end(1)
    await clock.advance(RETRY)
    yield scene
    await scene.scheduler.stop()
    await far.close()


@pytest.mark.clause("ACC-09")
@pytest.mark.parametrize(("cut", "is_committed"), [(Cut.BEFORE, False), (Cut.AFTER, True)])
async def test_a_commit_that_broke_is_reread_until_its_outcome_is_known(
    scene: Scene, proxy: CuttingProxy, cut: Cut, is_committed: bool
) -> None:
    proxy.arm(cut)
    with pytest.raises(Unavailable, match="may or may not"):
        await scene.write()
    await eventually(lambda: scene.status.reads >= 2 and not scene.status.running)
    if scene.status.unclear_commits:
        await scene.read_again()
    assert scene.status.unclear_commits == 0
    assert (scene.status.deadline is not None) == is_committed
    reads = scene.status.reads
    await scene.clock.advance(timedelta(hours=5))
    assert scene.status.reads == reads


@pytest.mark.clause("ACC-09")
async def test_a_row_that_appears_late_arms_its_deadline(scene: Scene, proxy: CuttingProxy) -> None:
    proxy.arm(Cut.LATE)
    with pytest.raises(Unavailable, match="may or may not"):
        await scene.write()
    await scene.read_to_its_end(2)
    await scene.read_again()
    assert (scene.status.deadline, scene.status.unclear_commits) == (None, 1)
    await proxy.release()
    await scene.read_again()
    assert scene.status.unclear_commits == 0
    assert scene.status.deadline is not None
    reads = scene.status.reads
    await scene.clock.advance(timedelta(days=1))
    assert scene.status.reads == reads


async def test_twin_taking_an_unclear_commit_for_a_failed_one_forgets_the_late_row(
    scene: Scene, proxy: CuttingProxy
) -> None:
    scene.far.bus._unclear_handlers.clear()
    proxy.arm(Cut.LATE)
    with pytest.raises(Unavailable, match="may or may not"):
        await scene.write()
    await proxy.release()
    await scene.clock.advance(timedelta(days=1))
    assert (scene.status.deadline, scene.status.reads) == (None, 1), (
        "the row is there, and nobody waits for it"
    )


@pytest.mark.clause("ACC-09")
async def test_a_writer_cancelled_during_commit_arms_its_deadline(scene: Scene, proxy: CuttingProxy) -> None:
    proxy.arm(Cut.SILENT)
    writing = asyncio.create_task(scene.write())
    await proxy.reached.wait()
    writing.cancel()
    await proxy.release(answer=True)
    with pytest.raises(asyncio.CancelledError):
        await writing
    await scene.read_to_its_end(2)
    assert scene.status.deadline is not None


@pytest.mark.clause("ACC-09")
async def test_signals_follow_the_outermost_transaction(scene: Scene) -> None:
    async with scene.far.transaction() as outer:
        await scene.write()
        await scene.clock.rest()
        assert scene.status.signals == 0, "the savepoint is released, nothing is committed"
        assert outer.messages == [Signal("rows")]
    await scene.read_to_its_end(2)
    assert scene.status.deadline is not None
    with pytest.raises(RuntimeError, match="no"):
        async with scene.far.transaction():
            await scene.write()
            raise RuntimeError("no")
    assert scene.status.signals == 1
