"""An invite lets in whom it is for, once, by the authority that its inviter still has; else it does nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import func, select
from tests.access.conftest import Door, email_of, open_door, person, untouched

import lastcall
import lastcall.clubs.registration
from lastcall.access import listeners
from lastcall.access.acceptance import accept_invite, accept_invite_as_agent
from lastcall.access.deciding import approve_join_request, reject_join_request, withdraw_join_request
from lastcall.access.invites import INVITE_LIFE, InviteKind, create_invite, revoke_invite
from lastcall.access.queries import invite_summary
from lastcall.access.requests import (
    AgentSubject,
    PersonSubject,
    RequestStatus,
    mark_accepted,
    record_join_request,
)
from lastcall.access.tables import JoinRequest
from lastcall.clubs.permissions import Permission
from lastcall.clubs.staff import revoke_role
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.decisions.registration import JOIN_REQUEST_COMING
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.people.service import block_person
from lastcall.people.tokens import new_token
from lastcall.testing.staff import change_role

ROBOT = AgentSubject("robot")


@pytest.mark.clause("ACC-03", "ACC-10")
async def test_an_approving_invite_lets_the_person_in_at_once(db: Database, door: Door) -> None:
    invite = await door.invite(door.deputy)
    accepted = await accept_invite(db, door.guest, invite.token)
    assert accepted.status is RequestStatus.APPROVED
    assert await door.held_by(door.guest) == {"event_staff"}
    (request,) = await door.requests()
    assert (request["id"], request["status"]) == (accepted.request_id, "approved")
    assert (request["person_id"], request["decided_by"]) == (door.guest.person_id, door.deputy.person_id)
    assert request["archive_due_at"] is None, "a decided request schedules nothing"
    actions = await db.pool.fetch(
        "select action from activity_log where club_id = $1 and created_at >= $2 order by id",
        door.club_id,
        request["created_at"],
    )
    assert [row["action"] for row in actions] == [
        "join.requested",
        "join.approved",
        "staff.role_assigned",
        "invite.accepted",
    ]


async def test_a_waiting_invite_puts_the_person_in_front_of_the_door(db: Database, door: Door) -> None:
    invite = await door.invite(approves=False)
    accepted = await accept_invite(db, door.guest, invite.token)
    assert accepted.status is RequestStatus.PENDING
    assert await door.held_by(door.guest) == set()
    await approve_join_request(db, door.deputy, door.club_id, accepted.request_id)
    assert await door.held_by(door.guest) == {"event_staff"}


@pytest.fixture
def coming() -> Iterator[list[tuple[int, list[Signal]]]]:
    """How many requests the club had, and what the transaction had signalled, just before each insert."""
    seen: list[tuple[int, list[Signal]]] = []

    async def look(tx: Transaction, club_id: UUID, _at: datetime) -> None:
        rows = await tx.scalar(select(func.count()).where(JoinRequest.club_id == club_id))
        seen.append((rows, [message for message in tx.messages if isinstance(message, Signal)]))

    kept = list(listeners._coming)
    listeners._coming.append(look)
    yield seen
    listeners._coming[:] = kept


@pytest.mark.clause("ACC-01")
@pytest.mark.parametrize("approves", [False, True])
async def test_the_signal_is_in_the_acceptance_before_the_request_is(
    db: Database, door: Door, coming: list[tuple[int, list[Signal]]], approves: bool
) -> None:
    heard: list[Signal] = []
    db.bus.subscribe(Signal, heard.append)
    await accept_invite(db, door.guest, (await door.invite(approves=approves)).token)
    ((rows, signals),) = coming
    (request,) = await door.requests()
    due = request["activity_at"] + timedelta(days=90)
    assert rows == 0
    assert [signal.owner for signal in signals] == [JOIN_REQUEST.owner]
    assert timedelta(0) <= signals[0].deadline - due < timedelta(milliseconds=1)
    assert signals[0] in heard, "and leaves with the commit"


async def test_twin_without_the_announcement_the_request_is_there_before_any_signal(
    db: Database, door: Door, coming: list[tuple[int, list[Signal]]]
) -> None:
    listeners._coming.remove(JOIN_REQUEST_COMING)
    await accept_invite(db, door.guest, (await door.invite(approves=False)).token)
    assert coming == [(0, [])]


@pytest.mark.clause("ACC-13")
async def test_an_invites_own_times_are_no_signal(db: Database, door: Door) -> None:
    heard: list[Signal] = []
    db.bus.subscribe(Signal, heard.append)
    invite, other = await door.invite(), await door.invite(approves=False)
    await revoke_invite(db, door.owner, door.club_id, invite.id)
    await db.pool.execute("update invites set expires_at = lastcall_now() where id = $1", other.id)
    waiting = await record_join_request(
        db, door.club_id, (await door.invite()).id, PersonSubject(door.guest.person_id, None)
    )
    heard.clear()
    async with db.transaction() as tx:
        await mark_accepted(tx, door.club_id, other.id, door.guest.person_id, waiting)
    assert [signal for signal in heard if signal.owner == JOIN_REQUEST.owner] == []


@pytest.mark.clause("ACC-12")
@pytest.mark.parametrize("by_address", [False, True])
async def test_whoever_waits_already_gets_that_request_back_untouched(
    db: Database, door: Door, by_address: bool
) -> None:
    first = await door.invite(approves=False)
    if by_address:
        subject = PersonSubject(None, (await email_of(db, door.guest)).upper())
        await record_join_request(db, door.club_id, first.id, subject)
    else:
        await accept_invite(db, door.guest, first.token)
    (before,) = await door.requests()
    second = await door.invite(role="moderator", approves=False)
    accepted = await accept_invite(db, door.guest, second.token)
    (after,) = await door.requests()
    assert (accepted.request_id, accepted.status) == (before["id"], RequestStatus.PENDING)
    assert after == before, "not even its version"
    (use,) = await door.uses(second)
    assert (use["person_id"], use["request_id"]) == (door.guest.person_id, before["id"])


@pytest.mark.clause("ACC-15")
async def test_an_approving_invite_settles_the_request_that_waits(db: Database, door: Door) -> None:
    waiting = await accept_invite(db, door.guest, (await door.invite(approves=False)).token)
    (before,) = await door.requests()
    accepted = await accept_invite(db, door.guest, (await door.invite(role="moderator")).token)
    (after,) = await door.requests()
    assert (accepted.request_id, accepted.status) == (waiting.request_id, RequestStatus.APPROVED)
    assert after["activity_at"] == before["activity_at"]
    assert await door.held_by(door.guest) == {"moderator"}, "the roles of the invite that approved, no others"


async def test_an_agent_always_waits(db: Database, door: Door) -> None:
    invite = await door.invite(kind=InviteKind.BOTH, approves=True)
    accepted = await accept_invite_as_agent(db, invite.token, ROBOT)
    assert accepted.status is RequestStatus.PENDING
    (request,) = await door.requests()
    assert (request["agent_name"], request["status"]) == ("robot", "pending_approval")
    with pytest.raises(NotFound):
        await accept_invite_as_agent(db, invite.token, ROBOT)
    with pytest.raises(NotAllowed, match="for a person"):
        await accept_invite_as_agent(db, (await door.invite()).token, ROBOT)


# What every unusable token answers.


async def _wrong(door: Door) -> str:
    del door
    return new_token()


async def _revoked(door: Door) -> str:
    invite = await door.invite()
    await revoke_invite(door.db, door.owner, door.club_id, invite.id)
    return invite.token


async def _expired(door: Door) -> str:
    invite = await door.invite()
    await door.db.pool.execute("update invites set expires_at = lastcall_now() where id = $1", invite.id)
    return invite.token


async def _consumed(door: Door) -> str:
    invite = await door.invite()
    await accept_invite(door.db, await person(door.db, "first"), invite.token)
    return invite.token


async def _inviter_demoted(door: Door) -> str:
    invite = await door.invite(door.deputy)
    await revoke_role(door.db, door.owner, door.club_id, door.roles["admin"], door.deputy.person_id)
    return invite.token


async def _inviter_blocked(door: Door) -> str:
    invite = await door.invite(door.deputy)
    await block_person(door.db, None, door.deputy.person_id)
    return invite.token


async def _role_deleted(door: Door) -> str:
    invite = await door.invite()
    await door.db.pool.execute(
        "update staff_roles set state = 'deleted' where id = $1", door.roles["event_staff"]
    )
    return invite.token


async def _club_archived(door: Door) -> str:
    invite = await door.invite()
    await door.db.pool.execute(
        "update clubs set state = 'archived', archived_at = lastcall_now() where id = $1", door.club_id
    )
    return invite.token


UNUSABLE = [
    _wrong,
    _revoked,
    _expired,
    _consumed,
    _inviter_demoted,
    _inviter_blocked,
    _role_deleted,
    _club_archived,
]


def words(refused: LastcallError) -> tuple[object, ...]:
    return type(refused), refused.code, refused.sentence, refused.advice, refused.field


async def test_every_unusable_token_answers_alike_and_lets_nobody_in(db: Database) -> None:
    answers = set()
    for make in UNUSABLE:
        door = await open_door(db)
        token = await make(door)
        with pytest.raises(LastcallError) as refused:
            await accept_invite(db, door.guest, token)
        answers.add(words(refused.value))
        assert await door.held_by(door.guest) == set(), make.__name__
    for make in (_wrong, _revoked, _expired, _consumed, _inviter_blocked, _club_archived):
        door = await open_door(db)
        token = await make(door)
        for viewer in (None, door.guest):
            with pytest.raises(LastcallError) as refused:
                await invite_summary(db, token, viewer)
            answers.add(words(refused.value))
    assert len(answers) == 1, answers


@pytest.mark.parametrize("who", ["inviter", "owner", "holder", "another address", "unverified", "agent only"])
async def test_who_may_not_accept_is_refused_and_the_invite_stays_open(
    db: Database, door: Door, who: str
) -> None:
    invite, visitor = await door.invite(door.deputy), door.guest
    match who:
        case "inviter":
            visitor = door.deputy
        case "owner":
            visitor = door.owner
        case "holder":
            visitor = await person(db, "holder")
            await accept_invite(db, visitor, (await door.invite()).token)
        case "another address":
            invite = await door.invite(email="somebody@else.example")
        case "unverified":
            visitor = await person(db, "newcomer", verified=False)
            invite = await door.invite(email=await email_of(db, visitor))
        case _:
            invite = await create_invite(db, door.owner, door.club_id, (), kind=InviteKind.AGENT)
    held, asked = await door.held_by(visitor), await door.requests()
    with pytest.raises((NotAllowed, Conflict)):
        await accept_invite(db, visitor, invite.token)
    assert (await door.state(invite))["accepted_at"] is None
    assert (await door.held_by(visitor), await door.requests()) == (held, asked)


async def test_an_addressed_invite_takes_that_address_in_any_case(db: Database, door: Door) -> None:
    invite = await door.invite(email=(await email_of(db, door.guest)).upper())
    assert (await accept_invite(db, door.guest, invite.token)).status is RequestStatus.APPROVED


@pytest.mark.clause("ACC-17")
async def test_acceptance_and_decision_refuse_to_run_inside_another_transaction(
    db: Database, door: Door
) -> None:
    invite = await door.invite(approves=False)
    async with db.transaction():
        with pytest.raises(RuntimeError, match="ACC-17"):
            await accept_invite(db, door.guest, invite.token)
        with pytest.raises(RuntimeError, match="ACC-17"):
            await accept_invite_as_agent(db, invite.token, ROBOT)
        for decide in (approve_join_request, reject_join_request, withdraw_join_request):
            with pytest.raises(RuntimeError, match="ACC-17"):
                await decide(db, door.owner, door.club_id, new_id())
    assert await untouched(door, invite)


# Making invites.


async def test_an_invite_gives_only_what_its_maker_may_hand_on(db: Database, door: Door) -> None:
    with pytest.raises(NotAllowed):
        await door.invite(door.deputy, "moderator")
    with pytest.raises(NotFound):
        await door.invite(door.guest)
    with pytest.raises(NotFound):
        await create_invite(db, door.owner, door.club_id, [new_id()])
    elsewhere = await open_door(db)
    with pytest.raises(NotFound):
        await create_invite(db, door.owner, door.club_id, [elsewhere.roles["moderator"]])
    with pytest.raises(Invalid) as refused:
        await create_invite(db, door.owner, door.club_id, [])
    assert refused.value.field == "roles"
    invite = await door.invite(door.deputy)
    life = await db.pool.fetchval("select expires_at - created_at from invites where id = $1", invite.id)
    assert abs(life - INVITE_LIFE) < timedelta(seconds=1)


async def test_revoking_needs_a_say_over_the_roles(db: Database, door: Door) -> None:
    of_owner = await door.invite(role="moderator")
    with pytest.raises(NotAllowed):
        await revoke_invite(db, door.deputy, door.club_id, of_owner.id)
    of_deputy = await door.invite(door.deputy)
    await revoke_invite(db, door.deputy, door.club_id, of_deputy.id)
    used = await door.invite()
    await accept_invite(db, door.guest, used.token)
    with pytest.raises(Conflict):
        await revoke_invite(db, door.owner, door.club_id, used.id)


async def test_an_invite_is_closed_by_who_may_make_one_of_its_kind(db: Database, door: Door) -> None:
    agents = await create_invite(db, door.deputy, door.club_id, (), kind=InviteKind.AGENT)
    people = await door.invite(door.deputy)
    await change_role(
        db, door.owner, door.club_id, door.roles["admin"], permissions=[Permission.MANAGE_AGENTS]
    )
    with pytest.raises(NotAllowed):
        await revoke_invite(db, door.deputy, door.club_id, people.id)
    await revoke_invite(db, door.deputy, door.club_id, agents.id)
    assert (await door.state(agents))["revoked_at"] is not None
    assert (await door.state(people))["revoked_at"] is None


@pytest.mark.clause("ACC-18")
async def test_no_statement_moves_an_invite_or_a_request_to_another_club(db: Database, door: Door) -> None:
    invite = await door.invite(approves=False)
    await accept_invite(db, door.guest, invite.token)
    elsewhere = await open_door(db)
    for table in ("invites", "join_requests"):
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await db.pool.execute(
                f"update {table} set club_id = $1 where club_id = $2", elsewhere.club_id, door.club_id
            )
    sources = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    sources += [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.sql")]
    assert not [source for source in sources if _DELETES.search(source)]


SOURCE = Path(lastcall.__file__).parent
_DELETES = re.compile(r"delete\(Invite\)|delete from invites|update invites set club_id", re.IGNORECASE)
