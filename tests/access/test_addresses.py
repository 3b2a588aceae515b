"""Whose an address is when somebody asks to be let in: whoever has it now, verified."""

from __future__ import annotations

from tests.access.conftest import Door, email_of, person

from lastcall.access.acceptance import accept_invite
from lastcall.access.requests import PersonSubject, RequestStatus, record_join_request
from lastcall.db.database import Database


async def test_the_request_of_whoever_had_ones_address_before_is_not_ones_own(
    db: Database, door: Door
) -> None:
    email = await email_of(db, door.guest)
    before = await accept_invite(db, door.guest, (await door.invite(approves=False)).token)
    await db.pool.execute("update people set email = 'new-' || email where id = $1", door.guest.person_id)
    other = await person(db, "other")
    await db.pool.execute("update people set email = $2 where id = $1", other.person_id, email.upper())
    asked = await accept_invite(db, other, (await door.invite(approves=False)).token)
    assert asked.request_id != before.request_id
    assert [(row["person_id"], row["email"]) for row in await door.requests()] == [
        (door.guest.person_id, email),
        (other.person_id, None),
    ]
    let_in = await accept_invite(db, other, (await door.invite()).token)
    assert (let_in.request_id, let_in.status) == (asked.request_id, RequestStatus.APPROVED)
    assert [row["status"] for row in await door.requests()] == ["pending_approval", "approved"]


async def test_an_address_that_is_not_verified_is_noted_nowhere_and_finds_nothing(
    db: Database, door: Door
) -> None:
    unverified = await person(db, "somebody", verified=False)
    email = await email_of(db, unverified)
    by_address = await record_join_request(
        db, door.club_id, (await door.invite(approves=False)).id, PersonSubject(None, email)
    )
    asked = await accept_invite(db, unverified, (await door.invite(approves=False)).token)
    assert asked.request_id != by_address
    addresses = {row["id"]: row["email"] for row in await door.requests()}
    assert addresses == {by_address: email, asked.request_id: None}
