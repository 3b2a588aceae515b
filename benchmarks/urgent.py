"""How long an urgent single action takes from its enqueue to its write at VRChat: behind a batch of a hundred that is
under way, against an idle queue, each with the same room in the allowance."""

from __future__ import annotations

import statistics
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from benchmarks.harness import RUNS, Figure
from lastcall.connections.switches import set_account_limits, set_connection_limit, set_fleet_limit
from lastcall.connections.tables import ALLOWANCE_MOST
from lastcall.demo.stage import Stage, stage
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.enqueue import enqueue
from lastcall.settings import Settings
from lastcall.testing.quiet import collector_settled
from lastcall.testing.waiting import eventually

BATCH = 100
SINGLES = 4
"""Urgent actions a run and side, one after the other."""
MEMBERS = BATCH + 2 * SINGLES * RUNS + 2
"""Owner and account are two of them."""
AT_MOST = 2
BAN = "group.user.ban"
FROM, FOR_A_BATCH, FOR_SINGLES = (timedelta(seconds=s) for s in (11, 35, 48))
"""The parts of a minute in which a side begins: the allowance grants nothing around the turn of it."""
PATIENCE = 90.0


async def run() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="lastcall-bench-") as home:
        settings = Settings(home=Path(home), port=0, simulator_port=0)
        async with stage(settings, members=MEMBERS, is_kept=False, say=lambda _: None) as running:
            await _raise_limits(running)
            await collector_settled(running.db)
            singles = Singles(running)
            pairs = [
                (await _behind_a_batch(running, singles, number), await _idle(running, singles))
                for number in range(RUNS)
            ]
    ratio = statistics.median(busy / idle for busy, idle in pairs)
    busy, idle = (statistics.median(column) for column in zip(*pairs, strict=True))
    note = f"{busy * 1000:.0f} ms against {idle * 1000:.0f} ms, medians of {SINGLES} each, from before the enqueue"
    return [Figure(f"urgent action during a batch of {BATCH}", "HTTP", ratio, at_most=AT_MOST, note=note)]


class Singles:
    """Bans the members that are in no batch, one after the other; a ban is urgent."""

    def __init__(self, running: Stage) -> None:
        self._running = running
        self._targets = iter(running.seed.members[BATCH:])

    async def time(self) -> float:
        """Seconds from before one's enqueue to its write, by the simulator's ledger."""
        target = next(self._targets)
        began = datetime.now(UTC)
        [operation] = await _enqueue(self._running, target, [{"kind": "ban_member", "targetUserId": target}])
        await _ended(self._running, [operation])
        entries = await self._running.simulator.ledger()
        entry = next(entry for entry in entries if entry.target == target and entry.action == BAN)
        return (entry.at - began).total_seconds()


async def _behind_a_batch(running: Stage, singles: Singles, number: int) -> float:
    """The median of a few urgent actions while the ``number``-th batch runs."""
    await _granting(running, FOR_A_BATCH)
    seed = running.seed
    kind = ("assign_role", "remove_role")[number % 2]
    payloads = [
        {"kind": kind, "targetUserId": target, "roleId": seed.role_ids[0]} for target in seed.members[:BATCH]
    ]
    batch = await _enqueue(running, f"batch-in-run-{number}", payloads)
    await eventually(lambda: _done(running, batch), within=PATIENCE)
    seen = [await singles.time() for _ in range(SINGLES)]
    if await _done(running, batch) == len(batch):
        raise RuntimeError("the batch was over before the urgent actions were")
    await _ended(running, batch)
    return statistics.median(seen)


async def _idle(running: Stage, singles: Singles) -> float:
    """The same with nothing else queued."""
    await _granting(running, FOR_SINGLES)
    return statistics.median([await singles.time() for _ in range(SINGLES)])


async def _raise_limits(running: Stage) -> None:
    club = running.club
    await set_fleet_limit(running.db, club.owner, ALLOWANCE_MOST)
    await set_account_limits(
        running.db, club.owner, club.account_id, requests_per_minute=ALLOWANCE_MOST, writes_per_day=100_000
    )
    await set_connection_limit(running.db, club.owner, club.club_id, club.connection_id, ALLOWANCE_MOST)


async def _granting(running: Stage, until: timedelta) -> None:
    """Return in a part of the minute in which the allowance grants, before ``until``."""

    async def is_granting() -> bool:
        now = await running.db.pool.fetchval("select lastcall_now()")
        return bool(FROM <= now - now.replace(second=0, microsecond=0) <= until)

    await eventually(is_granting, within=PATIENCE)


async def _enqueue(running: Stage, key: str, payloads: list[dict[str, str]]) -> list[UUID]:
    club = running.club
    queued = await enqueue(running.db, club.owner, club.club_id, key, payloads, Immediate())
    return list(queued.operation_ids)


async def _done(running: Stage, operations: list[UUID]) -> int:
    count = "select count(*) from operations where id = any ($1) and completed_at is not null"
    done: int = await running.db.pool.fetchval(count, operations)
    return done


async def _ended(running: Stage, operations: list[UUID]) -> None:
    async def is_over() -> bool:
        return await _done(running, operations) == len(operations)

    await eventually(is_over, within=PATIENCE)
    states = await running.db.pool.fetch(
        "select distinct state from operations where id = any ($1)", operations
    )
    if [row["state"] for row in states] != ["succeeded"]:
        raise RuntimeError(f"the actions ended as {[row['state'] for row in states]}")
