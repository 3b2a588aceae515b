"""A claim of a read holds what authorizes it, and two workers never both hold one."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.reads.reads_world import MINUTE, SECOND, TICK, Reading, another, waiting, without

from lastcall.clubs.permissions import Permission
from lastcall.errors import LastcallError
from lastcall.reads.states import READ_LIFE, ReadState
from lastcall.reads.worker import ReadHeld

REVOKE = ("update club_gates set generation = generation + 1", "delete from staff_assignments")


async def test_a_read_is_claimed_once_the_oldest_first(reading: Reading) -> None:
    first, second = await reading.ask("bans"), await reading.ask("requests")
    claimed = [await reading.claim() for _ in range(3)]
    assert [None if held is None else held.read_id for held in claimed] == [first.id, second.id, None]
    assert (await reading.look(first.id)).state is ReadState.RUNNING


async def test_a_worker_is_told_the_kind_and_exactly_what_was_asked(reading: Reading) -> None:
    await reading.ask("search", {"query": "Ro bin", "n": 7})
    claimed = await reading.steps.claim(reading.world.worker, reading.world.lease)
    assert claimed is not None
    assert (claimed.kind, claimed.params) == ("search", {"query": "Ro bin", "n": 7, "offset": 0})
    assert claimed.life == READ_LIFE


@pytest.mark.clause("COL-12")
async def test_whoever_lost_the_permission_has_nothing_read(reading: Reading) -> None:
    read = await reading.ask()
    await reading.run("delete from staff_assignments where person_id = $1", reading.moderator.person_id)
    assert await reading.claim() is None
    seen = await reading.look(read.id, reading.second)
    assert (seen.state, seen.code) == (ReadState.FAILED, "access_expired")


async def test_a_read_is_made_for_whoever_of_its_askers_may_still_have_it(reading: Reading) -> None:
    read = await reading.ask()
    assert (await reading.ask(actor=reading.second)).id == read.id
    await reading.run("delete from staff_assignments where person_id = $1", reading.moderator.person_id)
    held = await reading.claim()
    assert held is not None
    assert held.read_id == read.id


async def test_a_blocked_person_has_nothing_read(reading: Reading) -> None:
    read = await reading.ask()
    await reading.run(
        "update people set blocked_at = lastcall_now() where id = $1", reading.moderator.person_id
    )
    assert await reading.claim() is None
    assert (await reading.look(read.id, reading.second)).code == "access_expired"


async def test_a_failed_one_does_not_keep_the_next_from_being_claimed(reading: Reading) -> None:
    await reading.ask("posts")
    wanted = await reading.ask("bans")
    await reading.run("update connections set features = '{membership_management}'")
    held = await reading.claim()
    assert held is not None
    assert held.read_id == wanted.id
    assert await reading.run("select code from provider_reads where kind = 'posts'") == "feature_disabled"


async def test_what_nobody_waits_for_any_more_is_not_claimed(reading: Reading) -> None:
    await reading.clock.freeze()
    await reading.ask()
    await reading.clock.advance(READ_LIFE - TICK)
    await reading.ask("requests")
    await reading.clock.advance(TICK)
    held = await reading.claim()
    assert held is not None
    assert await reading.run("select kind from provider_reads where id = $1", held.read_id) == "requests"
    assert await reading.claim() is None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("update worker_keys set revoked_at = lastcall_now()", "worker_key_refused"),
        ("update leases set released_at = lastcall_now()", "stale_lease"),
        ("update leases set fencing_token = 2", "stale_lease"),
        ("update connections set epoch = epoch + interval '1 second'", "epoch"),
        ("update connections set state = 'connecting'", "connection_state"),
        ("update connections set kill_switch = true", "connection_switch"),
        ("update accounts set kill_switch = true", "account_switch"),
        ("update accounts set state = 'quarantined'", "account_state"),
        ("update clubs set state = 'archived', archived_at = lastcall_now()", "club_inactive"),
    ],
)
async def test_a_claim_needs_key_lease_epoch_and_connection(reading: Reading, change: str, code: str) -> None:
    await reading.ask()
    await reading.run(change)
    with pytest.raises(LastcallError) as refusal:
        await reading.claim()
    assert refusal.value.code == code


async def test_what_an_earlier_lease_left_is_claimed_anew_before_all_else(reading: Reading) -> None:
    old = await reading.claimed("bans")
    await reading.ask("requests")
    former = reading.world.worker
    await reading.take_over()
    held = await reading.claim()
    assert held is not None
    assert (held.read_id, held.nonce == old.nonce) == (old.read_id, False)
    with_old_lease = await reading.complete(old, worker=former)
    assert not with_old_lease
    assert (await reading.look(old.read_id)).state is ReadState.RUNNING
    assert await reading.complete(held)


async def test_the_holder_of_the_lease_is_not_given_what_it_has_in_hand(reading: Reading) -> None:
    await reading.claimed("bans")
    assert await reading.claim() is None


async def test_two_claims_at_once_get_two_reads(reading: Reading) -> None:
    reads = {(await reading.ask("bans")).id, (await reading.ask("requests")).id}
    async with another(reading) as other:
        first = await claim_on(reading, other)
        second = await reading.claim()
        third = await reading.claim()
    assert second is not None
    assert third is None
    assert {first, second.read_id} == reads


async def test_twin_without_passing_over_the_second_takes_the_read_out_of_the_firsts_hands(
    reading: Reading,
) -> None:
    """Both were told that it is theirs, and one of them reads for nothing."""
    await without(reading, "claim_read", "for no key update skip locked", "")
    read = await reading.ask("bans")
    async with another(reading) as other:
        first = await claim_on(reading, other)
        task = await waiting(reading, reading.claim(), other)
    second = await task
    assert (first, second.read_id) == (read.id, read.id)


async def claim_on(reading: Reading, other: object) -> object:
    """Claimed in the transaction of another session, which is not over."""
    world = reading.world
    row = await other.fetchrow(  # type: ignore[attr-defined]
        "select * from claim_read($1, 1, $2, $3, $4, $5, 1, $6, $7, $8)",
        world.account_id,
        world.worker_id,
        world.club_id,
        world.connection_id,
        world.epoch,
        ["bans", "requests"],
        [Permission.MANAGE_BANS, Permission.APPROVE_JOIN_REQUESTS],
        ["membership_management", "membership_management"],
    )
    assert row["outcome"] == "claimed"
    return row["read_id"]


async def claim_while_revoked(reading: Reading) -> ReadHeld | None:
    """A claim that begins while a role is being taken away, and ends when that is committed."""
    async with another(reading) as other:
        for statement in REVOKE:
            await other.execute(statement)
        task = await waiting(reading, reading.claim(), other)
    held: ReadHeld | None = await task
    return held


@pytest.mark.clause("COL-12")
async def test_a_permission_that_is_taken_while_a_claim_waits_is_seen(reading: Reading) -> None:
    read = await reading.ask()
    assert await claim_while_revoked(reading) is None
    assert await reading.run("select code from provider_reads where id = $1", read.id) == "access_expired"


async def test_twin_a_claim_that_does_not_hold_the_clubs_gate_reads_for_nobody(reading: Reading) -> None:
    await without(reading, "lock_for_reading", "for share of c", "")
    await reading.ask()
    async with another(reading) as other:
        for statement in REVOKE:
            await other.execute(statement)
        held = await asyncio.wait_for(reading.claim(), 20)
        assert held is not None


async def test_a_claim_is_over_after_sixty_seconds(reading: Reading) -> None:
    await reading.clock.freeze()
    held = await reading.claimed()
    await reading.world.renew(timedelta(hours=1))
    await reading.clock.advance(READ_LIFE - SECOND)
    assert (await reading.look(held.read_id)).state is ReadState.RUNNING
    await reading.clock.advance(SECOND)
    assert (await reading.look(held.read_id)).code == "not_answered"
    assert not await reading.complete(held)
    assert await reading.claim() is None
    await reading.clock.advance(MINUTE)
