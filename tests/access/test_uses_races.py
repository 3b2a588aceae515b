"""The last use of an invite, its end meanwhile, and an approval cut off in the middle, each with its twin."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import true
from sqlalchemy.exc import IntegrityError
from tests.access.conftest import Door, person

from lastcall.access import acceptance, requests
from lastcall.access.acceptance import accept_invite
from lastcall.access.deciding import (
    withdraw_join_request,
)
from lastcall.access.invites import revoke_invite
from lastcall.access.requests import PersonSubject, record_join_request
from lastcall.db.database import Database
from lastcall.errors import Conflict, NotFound
from lastcall.people.actor import Actor
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.waiting import eventually


async def status(door: Door) -> str | None:
    found: str | None = await door.db.pool.fetchval(
        "select status from join_requests where club_id = $1", door.club_id
    )
    return found


# The last use of an invite, and its end.


async def take_last_use_twice(db: Database, door: Door) -> Any:
    """Two take the last use; the second is seen waiting for the first's."""
    invite = await door.invite(approves=False, max_uses=2)
    people = [await person(db, f"guest{number}") for number in range(3)]
    subjects = [PersonSubject(one.person_id, None) for one in people]
    await record_join_request(db, door.club_id, invite.id, subjects[0])
    async with db.transaction() as tx:
        await record_join_request(db, door.club_id, invite.id, subjects[1])
        second = asyncio.create_task(record_join_request(db, door.club_id, invite.id, subjects[2]))
        await wait_until_blocked(db, "invites", by=tx.raw.get_server_pid())
    (outcome,) = await asyncio.gather(second, return_exceptions=True)
    uses = [use["number"] for use in await door.uses(invite)]
    return outcome, uses, await door.state(invite)


@pytest.mark.clause("ACC-15")
async def test_of_two_who_take_the_last_use_one_gets_it(db: Database, door: Door) -> None:
    outcome, uses, invite = await take_last_use_twice(db, door)
    assert isinstance(outcome, Conflict)
    assert outcome.code == "invite_used"
    assert (uses, invite["uses"]) == ([1, 2], 2)
    assert invite["accepted_at"] is not None
    numbers = [(row["invite_id"], row["use_number"]) for row in await door.requests()]
    assert numbers == [(invite["id"], 1), (invite["id"], 2)], "one request an acceptance"


async def test_twin_without_room_for_it_only_the_schema_stops_a_use_too_many(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "HAS_ROOM", true())
    outcome, _, _ = await take_last_use_twice(db, door)
    assert isinstance(outcome, IntegrityError), "an error that says nothing to whoever was too late"
    assert "invites_use" in str(outcome.orig)


@pytest.mark.clause("ACC-15")
async def test_one_person_has_one_use_of_an_invite_however_often_it_is_asked_for(
    db: Database, door: Door
) -> None:
    invite = await door.invite(approves=False, max_uses=5)
    answers = await asyncio.gather(*(accept_invite(db, door.guest, invite.token) for _ in range(4)))
    assert len({answer.request_id for answer in answers}) == 1
    assert (await door.state(invite))["uses"] == len(await door.requests()) == 1
    await withdraw_join_request(db, door.guest, door.club_id, answers[0].request_id)
    with pytest.raises(Conflict) as refused:
        await record_join_request(db, door.club_id, invite.id, PersonSubject(door.guest.person_id, None))
    assert refused.value.code == "invite_used"


async def accept_while_revoked(db: Database, door: Door) -> Any:
    invite = await door.invite(max_uses=2)
    async with db.transaction() as tx:
        await revoke_invite(db, door.owner, door.club_id, invite.id)
        accepting = asyncio.create_task(accept_invite(db, door.guest, invite.token))
        await wait_until_blocked(db, "club_gates", by=tx.raw.get_server_pid())
    (outcome,) = await asyncio.gather(accepting, return_exceptions=True)
    return outcome


async def test_an_acceptance_that_waited_for_a_revocation_lets_nobody_in(db: Database, door: Door) -> None:
    assert isinstance(await accept_while_revoked(db, door), NotFound)
    assert await door.held_by(door.guest) == set()


async def test_twin_an_acceptance_that_read_the_invite_before_it_waited_lets_somebody_in(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, lock = acceptance._read, acceptance.bump_gate
    seen: list[Any] = []

    async def too_early(tx: Any, club_id: UUID) -> None:
        invite_id = await tx.raw.fetchval("select id from invites where club_id = $1", club_id)
        seen.append(await read(tx, club_id, invite_id))
        await lock(tx, club_id)

    async def what_was_read(*_: object) -> Any:
        return seen[0]

    monkeypatch.setattr(acceptance, "bump_gate", too_early)
    monkeypatch.setattr(acceptance, "_read", what_was_read)
    assert (await accept_while_revoked(db, door)).status == "approved"
    assert await door.held_by(door.guest) == {"event_staff"}


# Automatic approval, cut off in the middle.


class CutOffError(Exception):
    pass


def cut_off_before_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    async def dies(*_: object, **__: object) -> None:
        raise CutOffError

    monkeypatch.setattr(acceptance, "write_join_request_change", dies)


@pytest.mark.clause("ACC-03")
async def test_an_acceptance_cut_off_between_request_and_approval_leaves_no_request(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    invite = await door.invite()
    cut_off_before_approval(monkeypatch)
    with pytest.raises(CutOffError):
        await accept_invite(db, door.guest, invite.token)
    assert await door.requests() == await door.uses(invite) == []
    monkeypatch.undo()
    assert (await accept_invite(db, door.guest, invite.token)).status == "approved"


async def test_twin_with_a_transaction_of_its_own_the_request_waits_for_nobody(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = acceptance.record_join_request

    async def committed(*args: Any) -> UUID:
        request_id: UUID = await asyncio.create_task(record(*args))
        return request_id

    async def no_gate(*_: object) -> None:
        return None

    async def no_lock(tx: Any, club_id: UUID, _token: str) -> UUID:
        found: UUID = await tx.raw.fetchval("select id from invites where club_id = $1", club_id)
        return found

    for name, replacement in (
        ("record_join_request", committed),
        ("bump_gate", no_gate),
        ("_lock_invite", no_lock),
    ):
        monkeypatch.setattr(acceptance, name, replacement)
    cut_off_before_approval(monkeypatch)
    invite = await door.invite()
    with pytest.raises(CutOffError):
        await accept_invite(db, door.guest, invite.token)
    assert await status(door) == "pending_approval"
    assert (await door.state(invite))["accepted_at"] is not None, "and the invitation is used up"


async def test_an_acceptance_waits_for_the_one_before_it_and_both_are_told_one_answer(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second press while the first is under way."""
    invite = await door.invite(max_uses=2)
    granted = acceptance.grant_roles
    go_on = asyncio.Event()
    reached = asyncio.Event()

    async def slowly(*args: Any, **kwargs: Any) -> None:
        await granted(*args, **kwargs)
        reached.set()
        await go_on.wait()

    monkeypatch.setattr(acceptance, "grant_roles", slowly)

    def accept(who: Actor) -> asyncio.Task[Any]:
        return asyncio.create_task(accept_invite(db, who, invite.token))

    first = accept(door.guest)
    await reached.wait()
    second = accept(door.guest)
    await eventually(lambda: _one_waits(db))
    go_on.set()
    assert await first == await second
    assert (await door.state(invite))["uses"] == 1


async def _one_waits(db: Database) -> bool:
    waiting = await db.pool.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and wait_event_type = 'Lock' and query ilike 'update club_gates%'"
    )
    return bool(waiting == 1)
