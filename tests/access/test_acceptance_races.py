"""Acceptance against whoever takes something away meanwhile, against another acceptance, and cut off half way."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from tests.access.conftest import Door, person, untouched

import lastcall
import lastcall.clubs.registration
from lastcall.access import acceptance
from lastcall.access.acceptance import accept_invite
from lastcall.access.invites import revoke_invite
from lastcall.access.requests import RequestStatus
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.staff import revoke_role
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import NotFound, NotSignedIn, Unavailable
from lastcall.people.actor import Actor
from lastcall.people.service import block_person
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.waiting import eventually


@pytest.mark.clause("ACC-15")
async def test_of_two_people_with_one_token_exactly_one_gets_in(db: Database, door: Door) -> None:
    invite, other = await door.invite(), await person(db, "other")
    async with db.transaction() as tx:
        # Whoever comes first is held here, with the gate and the invite; the second is seen waiting.
        await bump_gate(tx, door.club_id)
        racing = [asyncio.create_task(accept_invite(db, who, invite.token)) for who in (door.guest, other)]
        for _ in racing:
            await wait_until_blocked(db, "update club_gates", by=tx.raw.get_server_pid())
        await eventually(lambda: _waiting(db, 2))
    outcomes = await asyncio.gather(*racing, return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert [type(one) for one in refused] == [NotFound]
    assert len(await door.requests()) == 1
    held = [await door.held_by(who) for who in (door.guest, other)]
    assert sorted(held, key=len) == [set(), {"event_staff"}]


async def _waiting(db: Database, many: int) -> bool:
    waiting = await db.pool.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and wait_event_type = 'Lock' and query ilike 'update club_gates%'"
    )
    return bool(waiting >= many)


async def _demote(door: Door) -> None:
    await revoke_role(door.db, door.owner, door.club_id, door.roles["admin"], door.deputy.person_id)


async def _block(door: Door) -> None:
    await block_person(door.db, None, door.deputy.person_id)


async def accept_during(door: Door, take_away: Any) -> Any:
    """Accept the deputy's invite while ``take_away`` has done its work and not yet committed."""
    lastcall.clubs.registration.register()
    invite = await door.invite(door.deputy)
    async with door.db.transaction() as tx:
        await take_away(door)
        accepting = asyncio.create_task(accept_invite(door.db, door.guest, invite.token))
        await wait_until_blocked(door.db, "club_gates", by=tx.raw.get_server_pid())
    (outcome,) = await asyncio.gather(accepting, return_exceptions=True)
    return invite, outcome


@pytest.mark.parametrize("take_away", [_demote, _block])
async def test_an_inviter_who_loses_authority_meanwhile_lets_nobody_in(
    db: Database, door: Door, take_away: Any
) -> None:
    invite, outcome = await accept_during(door, take_away)
    assert isinstance(outcome, NotFound)
    assert await untouched(door, invite)


async def test_twin_an_acceptance_that_judges_before_it_waits_lets_the_person_in(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = acceptance._judge

    async def too_early(tx: Transaction, club_id: UUID) -> None:
        invite = await acceptance._read(tx, club_id, await tx.scalar(_NEWEST, {"club_id": club_id}))
        guest = (await tx.execute(_GUEST, {"id": door.guest.person_id})).one()
        await judge(tx, invite, guest)
        await bump_gate(tx, club_id)

    async def not_again(*_: object) -> None:
        return None

    monkeypatch.setattr(acceptance, "bump_gate", too_early)
    monkeypatch.setattr(acceptance, "_judge", not_again)
    _, outcome = await accept_during(door, _demote)
    assert outcome.status is RequestStatus.APPROVED
    assert await door.held_by(door.guest) == {"event_staff"}


_NEWEST = text("select id from invites where club_id = :club_id order by id desc limit 1")
_GUEST = text("select id, email, email_verified_at from people where id = :id")


async def test_a_person_blocked_meanwhile_does_not_get_in(db: Database, door: Door) -> None:
    invite = await door.invite()
    async with db.transaction() as tx:
        await block_person(db, None, door.guest.person_id)
        accepting = asyncio.create_task(accept_invite(db, door.guest, invite.token))
        await wait_until_blocked(db, "from people", by=tx.raw.get_server_pid())
    with pytest.raises(NotSignedIn):
        await accepting
    assert await untouched(door, invite)


async def test_twin_without_the_persons_lock_somebody_blocked_meanwhile_gets_in(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(tx: Transaction, actor: Actor) -> Any:
        return (await tx.execute(_GUEST, {"id": actor.person_id})).one()

    monkeypatch.setattr(acceptance, "_lock_person", look)
    invite = await door.invite()
    async with db.transaction():
        await block_person(db, None, door.guest.person_id)
        await asyncio.create_task(accept_invite(db, door.guest, invite.token))
    assert await door.held_by(door.guest) == {"event_staff"}


async def test_an_invite_revoked_meanwhile_lets_nobody_in(db: Database, door: Door) -> None:
    invite = await door.invite()
    async with db.transaction() as tx:
        await revoke_invite(db, door.owner, door.club_id, invite.id)
        accepting = asyncio.create_task(accept_invite(db, door.guest, invite.token))
        await wait_until_blocked(db, "club_gates", by=tx.raw.get_server_pid())
    with pytest.raises(NotFound):
        await accepting
    assert await door.held_by(door.guest) == set()


STEPS = ("record_join_request", "write_join_request_change", "grant_roles", "log")


@pytest.mark.parametrize("step", STEPS)
async def test_an_acceptance_cut_off_between_its_statements_leaves_nothing_half_done(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The server ends the connection right after that step, as when a process or its host dies."""
    invite = await door.invite()
    done = getattr(acceptance, step)

    async def then_dies(*args: Any, **kwargs: Any) -> Any:
        answer = await done(*args, **kwargs)
        async with db.transaction() as tx:
            pid = tx.raw.get_server_pid()
        await asyncio.create_task(db.pool.execute("select pg_terminate_backend($1, 5000)", pid))
        return answer

    monkeypatch.setattr(acceptance, step, then_dies)
    with pytest.raises(Unavailable):
        await accept_invite(db, door.guest, invite.token)
    assert await untouched(door, invite)
    monkeypatch.undo()
    assert (await accept_invite(db, door.guest, invite.token)).status is RequestStatus.APPROVED
