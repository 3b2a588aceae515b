"""One request an invite, one pending request a person, and every change through the one helper."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from lastcall.access import listeners
from lastcall.access.invites import InviteKind, create_invite, revoke_invite
from lastcall.access.requests import (
    Activity,
    AgentSubject,
    Decided,
    PersonSubject,
    RequestStatus,
    record_join_request,
    write_join_request_change,
)
from lastcall.clubs.service import add_club
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.testing.locks import wait_until_blocked

APPROVED = Decided(RequestStatus.APPROVED)


async def person(database: Database, name: str) -> Actor:
    return Actor(await add_person(database, f"{name}@example.org", name), name, is_operator=False)


@pytest.fixture
async def owner(database: Database) -> Actor:
    return await person(database, "owner")


@pytest.fixture
async def club_id(database: Database, owner: Actor) -> UUID:
    return await add_club(database, None, "The Attic", "attic", "UTC", owner.person_id)


@pytest.fixture
def heard() -> Iterator[list[tuple[UUID, Sequence[UUID]]]]:
    """What the listeners of join requests are told; nobody else listens meanwhile."""
    told: list[tuple[UUID, Sequence[UUID]]] = []

    async def listener(_tx: Transaction, club: UUID, ids: Sequence[UUID]) -> None:
        told.append((club, ids))

    kept = list(listeners._listeners)
    listeners._listeners[:] = [listener]
    yield told
    listeners._listeners[:] = kept


async def invite(database: Database, owner: Actor, club_id: UUID) -> UUID:
    return (await create_invite(database, owner, club_id, (), kind=InviteKind.AGENT)).id


async def ask(
    database: Database, owner: Actor, club_id: UUID, subject: PersonSubject | AgentSubject | None = None
) -> UUID:
    invite_id = await invite(database, owner, club_id)
    return await record_join_request(database, club_id, invite_id, subject or AgentSubject("robot"))


async def test_an_invite_turns_into_one_request(database: Database, owner: Actor, club_id: UUID) -> None:
    invite_id = await invite(database, owner, club_id)
    await record_join_request(database, club_id, invite_id, AgentSubject("robot"))
    with pytest.raises(Conflict) as refused:
        await record_join_request(database, club_id, invite_id, AgentSubject("other"))
    assert refused.value.code == "invite_used"
    with pytest.raises(NotFound):
        await record_join_request(database, club_id, new_id(), AgentSubject("robot"))
    assert await database.pool.fetchval("select count(*) from join_requests") == 1


async def test_of_two_acceptances_at_once_one_wins(database: Database, owner: Actor, club_id: UUID) -> None:
    invite_id = await invite(database, owner, club_id)
    async with database.transaction() as tx:
        await record_join_request(database, club_id, invite_id, AgentSubject("first"))
        second = asyncio.create_task(
            record_join_request(database, club_id, invite_id, AgentSubject("second"))
        )
        await wait_until_blocked(database, "invites", by=tx.raw.get_server_pid())
    with pytest.raises(Conflict):
        await second
    assert await database.pool.fetchval("select string_agg(agent_name, ',') from join_requests") == "first"


async def test_a_person_has_one_pending_request_a_club_by_account_and_by_address(
    database: Database, owner: Actor, club_id: UUID
) -> None:
    guest = await person(database, "guest")
    request = await ask(database, owner, club_id, PersonSubject(guest.person_id, "Guest@Example.org"))
    for again in (PersonSubject(guest.person_id, None), PersonSubject(None, "guest@example.ORG")):
        with pytest.raises(Conflict) as refused:
            await ask(database, owner, club_id, again)
        assert refused.value.code == "request_pending"
    other = await add_club(database, None, "The Cellar", "cellar", "UTC", owner.person_id)
    await ask(database, owner, other, PersonSubject(guest.person_id, "guest@example.org"))
    await write_join_request_change(database, owner, club_id, request, APPROVED)
    await ask(database, owner, club_id, PersonSubject(guest.person_id, "guest@example.org"))
    assert await database.pool.fetchval("select count(*) from join_requests") == 3


async def test_the_conflict_leaves_the_invite_open(database: Database, owner: Actor, club_id: UUID) -> None:
    guest = await person(database, "guest")
    await ask(database, owner, club_id, PersonSubject(guest.person_id, None))
    invite_id = await invite(database, owner, club_id)
    with pytest.raises(Conflict):
        await record_join_request(database, club_id, invite_id, PersonSubject(guest.person_id, None))
    await record_join_request(database, club_id, invite_id, AgentSubject("robot"))


@pytest.mark.parametrize(
    "columns",
    [
        "'person', null, null, null",
        "'person', null, 'a@example.org', 'robot'",
        "'agent', null, null, null",
        "'agent', null, 'a@example.org', 'robot'",
        "'ghost', null, null, 'robot'",
    ],
)
async def test_the_schema_refuses_half_a_subject(
    database: Database, owner: Actor, club_id: UUID, columns: str
) -> None:
    invite_id = await invite(database, owner, club_id)
    with pytest.raises(asyncpg.CheckViolationError):
        await database.pool.execute(
            "insert into join_requests (club_id, id, invite_id, subject_kind, person_id, email, agent_name)"
            f" values ($1, $2, $3, {columns})",
            club_id,
            new_id(),
            invite_id,
        )


@pytest.mark.parametrize("name", ["", " ", "x" * 121, "a\nb", "ro\u202ebot"])
async def test_a_malformed_agent_name_is_refused_with_its_field(
    database: Database, owner: Actor, club_id: UUID, name: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await ask(database, owner, club_id, AgentSubject(name))
    assert refused.value.field == "agent_name"


async def test_a_final_request_stays_as_it_is(database: Database, owner: Actor, club_id: UUID) -> None:
    request = await ask(database, owner, club_id)
    await write_join_request_change(database, owner, club_id, request, APPROVED)
    for change in (Decided(RequestStatus.REJECTED), Activity(), APPROVED):
        with pytest.raises(Conflict) as refused:
            await write_join_request_change(database, owner, club_id, request, change)
        assert refused.value.fresh == "approved"
    with pytest.raises(NotFound):
        await write_join_request_change(database, owner, new_id(), request, APPROVED)
    assert await database.pool.fetchval("select status from join_requests") == "approved"


async def test_activity_moves_forward_only(database: Database, owner: Actor, club_id: UUID) -> None:
    request = await ask(database, owner, club_id)
    ahead = await database.pool.fetchval(
        "update join_requests set activity_at = lastcall_now() + $1 returning activity_at", timedelta(hours=1)
    )
    await write_join_request_change(database, owner, club_id, request, Activity())
    assert await database.pool.fetchval("select activity_at from join_requests") == ahead
    await database.pool.execute("update join_requests set activity_at = lastcall_now() - interval '1 hour'")
    await write_join_request_change(database, owner, club_id, request, Activity())
    age = await database.pool.fetchval("select lastcall_now() - activity_at from join_requests")
    assert age < timedelta(minutes=1)


async def test_listeners_hear_every_write_in_its_transaction(
    database: Database, owner: Actor, club_id: UUID, heard: list[tuple[UUID, Sequence[UUID]]]
) -> None:
    request = await ask(database, owner, club_id)
    await write_join_request_change(database, owner, club_id, request, Activity())
    await write_join_request_change(database, owner, club_id, request, APPROVED)
    assert heard == [(club_id, [request])] * 3


async def test_a_listener_that_fails_undoes_the_change(
    database: Database, owner: Actor, club_id: UUID, heard: list[tuple[UUID, Sequence[UUID]]]
) -> None:
    request = await ask(database, owner, club_id)

    async def fails(_tx: Transaction, _club: UUID, _ids: Sequence[UUID]) -> None:
        raise RuntimeError("no")

    listeners._listeners[:] = [fails]
    with pytest.raises(RuntimeError, match="no"):
        await write_join_request_change(database, owner, club_id, request, APPROVED)
    assert await database.pool.fetchval("select status from join_requests") == "pending_approval"


async def test_invites_are_made_and_revoked_by_those_who_manage_staff(
    database: Database, owner: Actor, club_id: UUID, heard: list[tuple[UUID, Sequence[UUID]]]
) -> None:
    guest = await person(database, "guest")
    with pytest.raises(NotFound):
        await invite(database, guest, club_id)
    invite_id = await invite(database, owner, club_id)
    with pytest.raises(NotFound):
        await revoke_invite(database, guest, club_id, invite_id)
    await revoke_invite(database, owner, club_id, invite_id)
    await revoke_invite(database, owner, club_id, invite_id)
    with pytest.raises(NotFound):
        await revoke_invite(database, owner, club_id, new_id())
    assert heard == [], "an invite's end is no signal"
