"""A waiting request is decided once, by somebody who may, with roles that somebody may still hand on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from tests.access.conftest import Door, email_of, person

from lastcall.access import deciding, listeners
from lastcall.access.acceptance import accept_invite
from lastcall.access.deciding import approve_join_request, reject_join_request, withdraw_join_request
from lastcall.access.requests import AgentSubject, PersonSubject, record_join_request
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.life import archive_club, unarchive_club
from lastcall.clubs.permissions import Permission
from lastcall.clubs.staff import assign_role, revoke_role
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.people.service import block_person
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.staff import change_role


async def waits(door: Door, **more: Any) -> UUID:
    """The guest's request, waiting for a decision."""
    invite = await door.invite(approves=False, **more)
    return (await accept_invite(door.db, door.guest, invite.token)).request_id


async def one(door: Door) -> Any:
    (request,) = await door.requests()
    return request


@pytest.fixture
def changes() -> Iterator[list[UUID]]:
    """The requests of which the listeners heard."""
    heard: list[UUID] = []

    async def listen(_tx: Transaction, _club: UUID, ids: Any) -> None:
        heard.extend(ids)

    listeners._listeners.append(listen)
    yield heard
    listeners._listeners.remove(listen)


@pytest.mark.clause("ACC-04")
async def test_each_decision_is_told_in_its_transaction_and_signals(
    db: Database, door: Door, changes: list[UUID]
) -> None:
    heard: list[Signal] = []
    db.bus.subscribe(Signal, heard.append)
    for decide, status in ((approve_join_request, "approved"), (reject_join_request, "rejected")):
        door.guest = await person(db, "guest")
        request = await waits(door)
        changes.clear()
        heard.clear()
        await decide(db, door.owner, door.club_id, request, note="Welcome, and see you on Friday.")
        assert changes == [request]
        assert JOIN_REQUEST.owner in {signal.owner for signal in heard}
        row = await db.pool.fetchrow("select * from join_requests where id = $1", request)
        assert (row["status"], row["decided_by"]) == (status, door.owner.person_id)
        assert row["decision_note"] == "Welcome, and see you on Friday."
        assert row["archive_due_at"] is None
        assert await door.held_by(door.guest) == ({"event_staff"} if status == "approved" else set())


@pytest.mark.clause("ACC-04")
async def test_two_who_decide_at_once_make_one_decision_and_one_conflict(db: Database, door: Door) -> None:
    request = await waits(door)
    async with db.transaction() as tx:
        await bump_gate(tx, door.club_id)
        deciding_both = [
            asyncio.create_task(approve_join_request(db, door.owner, door.club_id, request)),
            asyncio.create_task(reject_join_request(db, door.deputy, door.club_id, request)),
        ]
        await wait_until_blocked(db, "club_gates", by=tx.raw.get_server_pid())
    outcomes = await asyncio.gather(*deciding_both, return_exceptions=True)
    (conflict,) = [outcome for outcome in outcomes if outcome is not None]
    row = await one(door)
    assert isinstance(conflict, Conflict)
    assert (conflict.code, conflict.fresh) == ("request_decided", row["status"])
    assert await door.held_by(door.guest) == ({"event_staff"} if row["status"] == "approved" else set())
    decided = await db.pool.fetchval(
        "select count(*) from activity_log where club_id = $1 and action in ('join.approved', 'join.rejected')",
        door.club_id,
    )
    assert decided == 1


async def test_twin_without_locks_and_compare_both_believe_that_they_decided(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await waits(door)
    both_judged = asyncio.Barrier(2)

    async def nothing(*_: object) -> None:
        return None

    async def by_id_alone(_db: Any, _actor: Any, _club: UUID, request_id: UUID, change: Any) -> None:
        await both_judged.wait()
        async with db.transaction() as tx:
            decided = {"status": change.status.value, "id": request_id}
            await tx.execute(_BY_ID_ALONE, decided)

    for guard, replacement in (
        ("bump_gate", nothing),
        ("_lock", nothing),
        ("write_join_request_change", by_id_alone),
        ("require_readable", lambda *_, **__: nothing()),  # which would hold the gate
    ):
        monkeypatch.setattr(deciding, guard, replacement)
    outcomes = await asyncio.gather(
        approve_join_request(db, door.owner, door.club_id, request),
        reject_join_request(db, door.deputy, door.club_id, request),
        return_exceptions=True,
    )
    assert outcomes == [None, None]


_BY_ID_ALONE = text("update join_requests set status = :status, decided_at = lastcall_now() where id = :id")


async def test_without_the_permission_a_request_does_not_exist(db: Database, door: Door) -> None:
    request = await waits(door)
    stranger, staff = await person(db, "stranger"), await person(db, "staff")
    await assign_role(db, door.owner, door.club_id, door.roles["event_staff"], staff.person_id)
    for nobody in (stranger, staff, door.guest):
        for decide in (approve_join_request, reject_join_request):
            with pytest.raises(NotFound) as refused:
                await decide(db, nobody, door.club_id, request)
            assert refused.value.code == "join_request_unknown"
    assert (await one(door))["status"] == "pending_approval"


async def test_nobody_decides_their_own_request(db: Database, door: Door) -> None:
    await assign_role(db, door.owner, door.club_id, door.roles["moderator"], door.guest.person_id)
    request = await waits(door)
    for decide in (approve_join_request, reject_join_request):
        with pytest.raises(NotAllowed) as refused:
            await decide(db, door.guest, door.club_id, request)
        assert refused.value.code == "own_request"
    await withdraw_join_request(db, door.guest, door.club_id, request)
    assert (await one(door))["status"] == "withdrawn"


async def test_roles_that_neither_inviter_nor_decider_may_hand_on_are_not_given(
    db: Database, door: Door
) -> None:
    request = await waits(door, by=door.deputy)
    decider = await person(db, "decider")
    await assign_role(db, door.owner, door.club_id, door.roles["moderator"], decider.person_id)
    await revoke_role(db, door.owner, door.club_id, door.roles["admin"], door.deputy.person_id)
    with pytest.raises(NotAllowed) as refused:
        await approve_join_request(db, decider, door.club_id, request)
    assert refused.value.code == "role_not_assignable"
    assert await door.held_by(door.guest) == set()
    await change_role(
        db,
        door.owner,
        door.club_id,
        door.roles["moderator"],
        permissions={Permission.DECIDE_ACCESS, Permission.MANAGE_STAFF},
        assignable=[door.roles["event_staff"]],
    )
    await approve_join_request(db, decider, door.club_id, request)
    assert await door.held_by(door.guest) == {"event_staff"}


async def test_a_decider_who_loses_the_permission_meanwhile_decides_nothing(db: Database, door: Door) -> None:
    request = await waits(door)
    async with db.transaction() as tx:
        await revoke_role(db, door.owner, door.club_id, door.roles["admin"], door.deputy.person_id)
        approving = asyncio.create_task(approve_join_request(db, door.deputy, door.club_id, request))
        await wait_until_blocked(db, "club_gates", by=tx.raw.get_server_pid())
    with pytest.raises(NotFound):
        await approving
    assert (await one(door))["status"] == "pending_approval"


async def test_an_address_alone_is_let_in_once_somebody_showed_that_it_is_theirs(
    db: Database, door: Door
) -> None:
    newcomer = await person(db, "newcomer", verified=False)
    invite = await door.invite(approves=False)
    subject = PersonSubject(None, await email_of(db, newcomer))
    request = await record_join_request(db, door.club_id, invite.id, subject)
    with pytest.raises(Conflict) as refused:
        await approve_join_request(db, door.owner, door.club_id, request)
    assert refused.value.code == "requester_gone"
    await db.pool.execute(
        "update people set email_verified_at = lastcall_now() where id = $1", newcomer.person_id
    )
    await approve_join_request(db, door.owner, door.club_id, request)
    assert await door.held_by(newcomer) == {"event_staff"}


async def test_a_blocked_requester_is_not_let_in(db: Database, door: Door) -> None:
    request = await waits(door)
    await block_person(db, None, door.guest.person_id)
    with pytest.raises(Conflict):
        await approve_join_request(db, door.owner, door.club_id, request)
    await reject_join_request(db, door.owner, door.club_id, request)


async def test_only_the_requester_withdraws_and_a_note_is_bounded(db: Database, door: Door) -> None:
    request = await waits(door)
    with pytest.raises(NotFound):
        await withdraw_join_request(db, door.owner, door.club_id, request)
    for note in ("x" * 1001, "a\x00b"):
        with pytest.raises(Invalid) as refused:
            await reject_join_request(db, door.owner, door.club_id, request, note=note)
        assert refused.value.field == "note"
    agent = await record_join_request(db, door.club_id, (await door.invite()).id, AgentSubject("robot"))
    await reject_join_request(db, door.owner, door.club_id, agent)
    await withdraw_join_request(db, door.guest, door.club_id, request)
    with pytest.raises(Conflict):
        await withdraw_join_request(db, door.guest, door.club_id, request)


async def test_an_archived_club_invites_nobody_and_lets_nobody_in(db: Database, door: Door) -> None:
    waiting = await accept_invite(db, door.guest, (await door.invite(approves=False)).token)
    await archive_club(db, None, door.club_id)
    for attempt in (
        door.invite(),
        approve_join_request(db, door.owner, door.club_id, waiting.request_id),
    ):
        with pytest.raises(Conflict) as refused:
            await attempt
        assert refused.value.code == "club_inactive"
    assert await door.held_by(door.guest) == set()
    await unarchive_club(db, None, door.club_id)
    await approve_join_request(db, door.owner, door.club_id, waiting.request_id)
    assert await door.held_by(door.guest) == {"event_staff"}


async def test_a_person_is_given_no_grants_of_agents(db: Database, door: Door) -> None:
    asked = await accept_invite(db, door.guest, (await door.invite(approves=False)).token)
    with pytest.raises(Invalid) as refused:
        await approve_join_request(db, door.owner, door.club_id, asked.request_id, agent_grants=())
    assert refused.value.code == "grants_beyond_invite"
    assert await door.held_by(door.guest) == set()
