"""Decisions against each other, against the requester and against deletion, each seen waiting; and their twins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import true
from tests.access.conftest import Door

from lastcall.access import deciding, listeners, requests
from lastcall.access.acceptance import accept_invite
from lastcall.access.deciding import (
    approve_join_request,
    delete_join_request,
    reject_join_request,
    withdraw_join_request,
)
from lastcall.access.requests import PersonSubject, record_join_request
from lastcall.clubs.permissions import Permission
from lastcall.db.database import Database
from lastcall.deadlines.signals import Signal
from lastcall.decisions.registration import JOIN_REQUESTS_GOING
from lastcall.decisions.retention.controls import archive, keep
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.errors import Conflict, NotAllowed, NotFound
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.staff import change_role


async def waits(door: Door) -> UUID:
    return (await accept_invite(door.db, door.guest, (await door.invite(approves=False)).token)).request_id


async def status(door: Door) -> str | None:
    found: str | None = await door.db.pool.fetchval(
        "select status from join_requests where club_id = $1", door.club_id
    )
    return found


@asynccontextmanager
async def held_after(
    monkeypatch: pytest.MonkeyPatch, step: str, db: Database, work: Any
) -> AsyncIterator[tuple[asyncio.Task[Any], int]]:
    """``work`` is under way and stops right after ``step`` of a decision, uncommitted; it goes on at the end."""
    done = getattr(deciding, step)
    reached: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    go_on = asyncio.Event()

    async def then_waits(*args: Any, **kwargs: Any) -> Any:
        answer = await done(*args, **kwargs)
        if not reached.done():
            async with db.transaction() as tx:
                reached.set_result(tx.raw.get_server_pid())
            await go_on.wait()
        return answer

    monkeypatch.setattr(deciding, step, then_waits)
    first = asyncio.create_task(work)
    pid = await reached
    try:
        yield first, pid
    finally:
        go_on.set()


async def approve_against(
    db: Database, door: Door, request: UUID, monkeypatch: pytest.MonkeyPatch, other: Any, waits_for: str
) -> Any:
    """``other`` begins while an approval is written and not committed, and is seen waiting for it."""
    approving = approve_join_request(db, door.owner, door.club_id, request)
    async with held_after(monkeypatch, "write_join_request_change", db, approving) as (first, pid):
        second = asyncio.create_task(other)
        await wait_until_blocked(db, waits_for, by=pid)
    await first
    (outcome,) = await asyncio.gather(second, return_exceptions=True)
    return outcome


@pytest.mark.clause("ACC-04")
async def test_of_two_who_approve_at_once_one_decided_and_the_other_is_told(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await waits(door)
    again = approve_join_request(db, door.deputy, door.club_id, request)
    outcome = await approve_against(db, door, request, monkeypatch, again, "club_gates")
    assert isinstance(outcome, Conflict)
    assert (outcome.code, outcome.fresh) == ("request_decided", "approved")
    assigned = "select count(*) from activity_log where club_id = $1 and action = $2"
    assert await db.pool.fetchval(assigned, door.club_id, "join.approved") == 1


async def test_a_withdrawal_that_comes_second_undoes_no_approval(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await waits(door)
    withdrawing = withdraw_join_request(db, door.guest, door.club_id, request)
    outcome = await approve_against(db, door, request, monkeypatch, withdrawing, "join_requests")
    assert isinstance(outcome, Conflict)
    assert outcome.fresh == "approved"
    assert (await status(door), await door.held_by(door.guest)) == ("approved", {"event_staff"})


async def test_twin_without_the_compare_somebody_holds_roles_by_a_request_that_was_withdrawn(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "IS_PENDING", true())
    request = await waits(door)
    withdrawing = withdraw_join_request(db, door.guest, door.club_id, request)
    assert await approve_against(db, door, request, monkeypatch, withdrawing, "join_requests") is None
    assert (await status(door), await door.held_by(door.guest)) == ("withdrawn", {"event_staff"})


async def test_an_approval_that_waited_for_a_withdrawal_lets_nobody_in(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await waits(door)
    withdrawing = withdraw_join_request(db, door.guest, door.club_id, request)
    async with held_after(monkeypatch, "write_join_request_change", db, withdrawing) as (first, pid):
        second = asyncio.create_task(approve_join_request(db, door.owner, door.club_id, request))
        await wait_until_blocked(db, "join_requests", by=pid)
    await first
    with pytest.raises(Conflict) as refused:
        await second
    assert refused.value.fresh == "withdrawn"
    assert await door.held_by(door.guest) == set()


async def test_a_delete_that_waited_for_an_approval_deletes_nothing(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await waits(door)
    deleting = delete_join_request(db, door.deputy, door.club_id, request)
    outcome = await approve_against(db, door, request, monkeypatch, deleting, "club_gates")
    assert isinstance(outcome, Conflict)
    assert outcome.code == "request_approved"
    assert await status(door) == "approved"


async def test_twin_without_its_guard_a_delete_removes_the_record_of_who_was_let_in(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MAY_GO", true())
    request = await waits(door)
    deleting = delete_join_request(db, door.deputy, door.club_id, request)
    assert await approve_against(db, door, request, monkeypatch, deleting, "club_gates") is None
    assert (await status(door), await door.held_by(door.guest)) == (None, {"event_staff"})


async def test_an_approval_that_waited_for_a_delete_finds_nothing(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await waits(door)
    deleting = delete_join_request(db, door.owner, door.club_id, request)
    async with held_after(monkeypatch, "remove_join_request", db, deleting) as (first, pid):
        second = asyncio.create_task(approve_join_request(db, door.deputy, door.club_id, request))
        await wait_until_blocked(db, "club_gates", by=pid)
    await first
    with pytest.raises(NotFound):
        await second
    assert await door.held_by(door.guest) == set()


# Deleting.


@pytest.mark.clause("ACC-16")
async def test_a_deleted_request_takes_its_retention_along_and_signals(db: Database, door: Door) -> None:
    for decided in (None, reject_join_request):
        request = await waits(door)
        await keep(db, door.owner, door.club_id, JOIN_REQUEST, request, seen_version=0)
        await archive(db, door.owner, door.club_id, JOIN_REQUEST, request, seen_version=1)
        if decided is not None:
            await decided(db, door.owner, door.club_id, request)
        heard: list[Signal] = []
        db.bus.subscribe(Signal, heard.append)
        await delete_join_request(db, door.owner, door.club_id, request)
        assert heard == [Signal(JOIN_REQUEST.owner)]
        assert await status(door) is None
        kept = "select count(*) from retention where club_id = $1"
        assert await db.pool.fetchval(kept, door.club_id) == 0
        used = "select request_id from invite_uses where club_id = $1"
        assert [row["request_id"] for row in await db.pool.fetch(used, door.club_id)][-1] is None
    with pytest.raises(NotFound):
        await delete_join_request(db, door.owner, door.club_id, request)


@pytest.mark.clause("ACC-16")
async def test_a_delete_that_is_rolled_back_signals_nothing(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await waits(door)
    heard: list[Signal] = []
    db.bus.subscribe(Signal, heard.append)

    async def fails(*_: object, **__: object) -> None:
        raise RuntimeError("cut off")

    monkeypatch.setattr(requests, "log", fails)
    with pytest.raises(RuntimeError, match="cut off"):
        await delete_join_request(db, door.owner, door.club_id, request)
    assert (heard, await status(door)) == ([], "pending_approval")


async def test_twin_without_its_listener_a_delete_leaves_a_deadline_for_nothing(
    db: Database, door: Door
) -> None:
    request = await waits(door)
    heard: list[Signal] = []
    db.bus.subscribe(Signal, heard.append)
    listeners._going.remove(JOIN_REQUESTS_GOING)
    try:
        await delete_join_request(db, door.owner, door.club_id, request)
    finally:
        listeners._going.append(JOIN_REQUESTS_GOING)
    assert heard == []


async def test_who_may_delete_is_who_may_decide_but_never_the_requester(db: Database, door: Door) -> None:
    await change_role(
        db, door.owner, door.club_id, door.roles["admin"], permissions=[Permission.MANAGE_STAFF]
    )
    request = await waits(door)
    with pytest.raises(NotFound) as refused:
        await delete_join_request(db, door.deputy, door.club_id, request)
    assert refused.value.code == "join_request_unknown"
    invite = await door.invite(door.deputy, approves=False)
    own = await record_join_request(db, door.club_id, invite.id, PersonSubject(door.owner.person_id, None))
    with pytest.raises(NotAllowed):
        await delete_join_request(db, door.owner, door.club_id, own)
