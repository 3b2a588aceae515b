"""An evening that plays itself: each act does something, waits for what must follow, and says whether it did."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import select

from lastcall.db.ids import encode_id, new_id
from lastcall.decisions.tables import Retention
from lastcall.demo.club import forgotten_request
from lastcall.demo.stage import Stage
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.enqueue import enqueue
from lastcall.operations.tables import Operation
from lastcall.vrchat.simulator.faults import drop

BATCH = 12
KILL_AFTER = 4
"""Operations done before the collector is killed."""

IDLE = timedelta(seconds=10)
ARCHIVE_IN = timedelta(seconds=6)
PATIENCE = timedelta(seconds=40)
LATEST_ARCHIVE = timedelta(seconds=1)

Progress = Callable[[str, int, int], None]
"""Called with what is going on, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Expectation:
    """One thing that had to come true, and what was seen."""

    what: str
    seen: str
    held: bool


async def play(stage: Stage, progress: Progress) -> list[Expectation]:
    """All acts in order. The forgotten join request falls due while the others go on."""
    request_id, due_at = await forgotten_request(stage.db, stage.club, ARCHIVE_IN)
    seen: list[Expectation] = []
    seen += await _batch_with_a_kill(stage, progress)
    seen += await _unknown_ban(stage, progress)
    seen += await _archive(stage, progress, request_id, due_at)
    seen += await _idleness(stage, progress)
    return seen


async def _batch_with_a_kill(stage: Stage, progress: Progress) -> list[Expectation]:
    targets = stage.seed.members[:BATCH]
    ids = await _enqueue(stage, [_role(stage, target) for target in targets])
    label = f"Giving a role to {BATCH} people"

    async def done() -> int:
        states = await _states(stage, ids)
        return sum(states[state] for state in ("succeeded", "rejected", "indeterminate", "missed"))

    await _until(done, KILL_AFTER, lambda n: progress(label, n, BATCH))
    assert stage.collector is not None
    await stage.collector.kill()
    progress(f"{label}: collector killed", await done(), BATCH)
    await stage.start_collector()
    count = await _until(done, BATCH, lambda n: progress(label, n, BATCH))
    states = await _states(stage, ids)
    applied = Counter(entry.target for entry in await stage.simulator.ledger() if entry.target in targets)
    twice = [target for target, times in applied.items() if times > 1]
    return [
        Expectation(
            f"a batch of {BATCH} ends although its collector was killed",
            f"{count} of {BATCH} settled",
            count == BATCH,
        ),
        Expectation(
            "every role that was given is recorded as given, or as unknown for the one in the killed hand",
            ", ".join(f"{number} {state}" for state, number in states.items()),
            states["succeeded"] + states["indeterminate"] + states["rejected"] == BATCH
            and states["succeeded"] <= len(applied) <= states["succeeded"] + states["indeterminate"]
            and states["succeeded"] >= BATCH - 1,
        ),
        Expectation("VRChat saw no role given twice", f"{len(twice)} given twice", not twice),
    ]


async def _unknown_ban(stage: Stage, progress: Progress) -> list[Expectation]:
    target = stage.seed.members[-1]
    label = "Banning one person; the reply gets lost"
    await stage.simulator.arm(drop(applied=True), method="POST", path="*/bans")
    ids = await _enqueue(stage, [{"kind": "ban_member", "targetUserId": target}])

    async def unknown() -> int:
        return (await _states(stage, ids))["indeterminate"]

    count = await _until(unknown, 1, lambda n: progress(label, n, 1))
    times = sum(entry.target == target for entry in await stage.simulator.ledger())
    return [
        Expectation("a ban whose reply is lost ends as Outcome unknown", f"{count} unknown", count == 1),
        Expectation(
            "the ban was sent once and not again",
            "applied once" if times == 1 else f"applied {times} times",
            times == 1,
        ),
    ]


async def _archive(stage: Stage, progress: Progress, request_id: UUID, due_at: datetime) -> list[Expectation]:
    label = "A join request nobody decided falls due"

    async def archived() -> int:
        return int(await _archived_at(stage, request_id) is not None)

    await _until(archived, 1, lambda n: progress(label, n, 1))
    at = await _archived_at(stage, request_id)
    late = None if at is None else at - due_at
    shown = (
        "not archived" if late is None else f"{late / timedelta(milliseconds=1):.0f} ms after its deadline"
    )
    held = late is not None and timedelta(0) <= late <= LATEST_ARCHIVE
    return [Expectation("an overdue join request is archived at its deadline, not before", shown, held)]


async def _idleness(stage: Stage, progress: Progress) -> list[Expectation]:
    seconds = round(IDLE.total_seconds())
    await _until_quiet(stage)
    before = stage.db.statements
    for second in range(seconds):
        progress("Nothing to do", second, seconds)
        await asyncio.sleep(1)
    progress("Nothing to do", seconds, seconds)
    sent = stage.db.statements - before
    return [
        Expectation(
            f"{seconds} idle seconds with a collector waiting need no SQL", f"{sent} statements", sent == 0
        )
    ]


async def _enqueue(stage: Stage, payloads: Sequence[dict[str, str]]) -> list[UUID]:
    queued = await enqueue(
        stage.db, stage.club.owner, stage.club.club_id, f"demo_{encode_id(new_id())}", payloads, Immediate()
    )
    return list(queued.operation_ids)


def _role(stage: Stage, target: str) -> dict[str, str]:
    return {"kind": "assign_role", "targetUserId": target, "roleId": stage.seed.role_ids[0]}


async def _states(stage: Stage, ids: Sequence[UUID]) -> Counter[str]:
    async with stage.db.read() as tx:
        rows = await tx.execute(
            select(Operation.state).where(Operation.club_id == stage.club.club_id, Operation.id.in_(ids))
        )
    return Counter(state for (state,) in rows)


async def _archived_at(stage: Stage, request_id: UUID) -> datetime | None:
    async with stage.db.read() as tx:
        at: datetime | None = await tx.scalar(
            select(Retention.archived_at).where(
                Retention.club_id == stage.club.club_id, Retention.join_request_id == request_id
            )
        )
    return at


async def _until(
    count: Callable[[], Awaitable[int]],
    wanted: int,
    show: Callable[[int], None],
    patience: timedelta = PATIENCE,
) -> int:
    """Look until ``wanted`` is reached or patience ends; answers the last count."""
    deadline = asyncio.get_running_loop().time() + patience.total_seconds()
    while True:
        number = await count()
        show(number)
        if number >= wanted or asyncio.get_running_loop().time() > deadline:
            return number
        await asyncio.sleep(0.1)


async def _until_quiet(stage: Stage) -> None:
    """Wait until two seconds passed without a statement: what the acts set going has come to its end."""
    deadline = asyncio.get_running_loop().time() + PATIENCE.total_seconds()
    while asyncio.get_running_loop().time() < deadline:
        before = stage.db.statements
        await asyncio.sleep(2)
        if stage.db.statements == before:
            return
