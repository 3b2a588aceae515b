"""When a group is looked at next, who is told, and the buttons that ask for a look."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta

import pytest
from tests.connections.conftest import Site
from tests.connections.membership_kit import S, look, looked, next_look, put, row

from lastcall.connections import looks
from lastcall.connections.connect import set_features
from lastcall.connections.failures import record_failure
from lastcall.connections.leases import release_lease
from lastcall.connections.looks import CONNECTION_CHECK, LookWork, check_now, rejoin
from lastcall.connections.states import PASSABLE, USABLE, ConnectionState, Feature
from lastcall.connections.work import Due, WorkBoard
from lastcall.errors import Conflict, Disabled, TooFast
from lastcall.people.actor import Actor
from lastcall.protocol.constants import ACTIVE_LOOK, QUIET_LOOK, WAITING_LOOK
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import WITHIN

MINUTE = timedelta(minutes=1)
SHORT = timedelta(milliseconds=50)


async def a_pass(site: Site) -> None:
    await release_lease(site.db, site.worker, await site.lease())


async def offered(site: Site) -> list[Due]:
    """What a board that knows nothing yet offers at once."""
    return await WorkBoard(site.db, [LookWork(site.db)]).wait(
        site.worker.account_id, site.worker.worker_id, SHORT
    )


@pytest.mark.clause("COL-04")
async def test_without_analytics_a_connection_that_works_is_never_looked_at_by_itself(site):
    await set_features(site.db, None, site.club_id, site.connection_id, [Feature.POSTS])
    await a_pass(site)
    assert await next_look(site) is None
    board = WorkBoard(site.db, [LookWork(site.db)])
    await board.wait(site.worker.account_id, site.worker.worker_id, SHORT)
    async with assert_quiet(site.db, 1.0):
        assert await board.wait(site.worker.account_id, site.worker.worker_id, timedelta(seconds=0.8)) == []


@pytest.mark.parametrize(("has_visitors", "between"), [(True, ACTIVE_LOOK), (False, QUIET_LOOK)])
async def test_aggregates_are_read_again_sooner_with_people_in_the_instances(
    site, test_clock, has_visitors, between
):
    await test_clock.freeze()
    await site.set("connections", has_visitors=has_visitors)
    seen = []
    for _ in range(20):
        await a_pass(site)
        seen.append(await next_look(site))
    assert all(between[0] <= one <= between[1] for one in seen)
    assert len(set(seen)) == len(seen)


async def test_a_connection_that_waits_is_looked_at_ever_more_seldom(site, test_clock):
    await test_clock.freeze()
    await put(site, S.CONNECTING)
    longest, waited = WAITING_LOOK * 5 / 3, []
    most = timedelta(minutes=36)
    for _ in range(7):
        assert await looked(site, "requested") is S.AWAITING_APPROVAL
        waited.append(await next_look(site))
        await test_clock.advance(waited[-1])
    assert WAITING_LOOK <= waited[0] <= longest
    assert all(later >= min(earlier, most) for earlier, later in itertools.pairwise(waited))
    assert all(most <= one <= timedelta(hours=1) for one in waited[-2:])


async def test_another_answer_begins_the_wait_anew(site, test_clock):
    await test_clock.freeze()
    await put(site, S.CONNECTING)
    await looked(site, "requested")
    await test_clock.advance(timedelta(hours=5))
    await looked(site, "invited")
    assert await next_look(site) <= WAITING_LOOK * 5 / 3


async def test_a_pass_that_could_not_look_is_wanted_still_and_one_that_did_is_not(site, test_clock):
    await test_clock.freeze()
    await put(site, S.CONNECTING, next_look_at=await test_clock.now())
    await a_pass(site)
    assert await next_look(site) == timedelta(0)
    await test_clock.advance(timedelta(seconds=1))
    await looked(site, "inactive", "open")
    assert await next_look(site) >= WAITING_LOOK


async def test_a_failed_pass_is_followed_by_the_next_when_its_backoff_is_over(site, test_clock):
    await test_clock.freeze()
    held = await site.lease()
    await record_failure(site.db, site.worker, held, "timeout", 700.0)
    await release_lease(site.db, site.worker, held)
    assert await next_look(site) == timedelta(seconds=700)


async def test_a_connection_without_analytics_is_offered_for_what_a_pass_can_do_there(site):
    for state in ConnectionState:
        await put(site, state, next_look_at=None)
        assert await offered(site) == [], state
        await site.db.pool.execute("update connections set next_look_at = lastcall_now()")
        expected = [Due(site.club_id, site.connection_id)] if state in PASSABLE else []
        assert await offered(site) == expected, state


async def test_a_lease_is_given_in_every_state_that_a_pass_can_serve_and_in_no_other(site):
    for state in ConnectionState:
        await put(site, state)
        obstacle = await site.db.pool.fetchval(
            "select connection_obstacle($1, $2, $3, null, lastcall_now())",
            site.club_id,
            site.connection_id,
            site.worker.account_id,
        )
        assert (obstacle == "none") == (state in USABLE), state
        if state in PASSABLE:
            await a_pass(site)
        elif state is not S.DISCONNECTED:
            with pytest.raises(Conflict) as refusal:
                await site.lease()
            assert refusal.value.code == "connection_state"


async def test_twin_with_the_rule_of_operations_nobody_could_come_in_or_leave(site):
    await site.db.pool.execute("""
        create or replace function passable_states() returns text[]
        language sql immutable as $$ select usable_states() $$""")
    for state in PASSABLE - USABLE:
        await put(site, state)
        with pytest.raises(Conflict):
            await site.lease()


async def test_a_button_brings_a_look_at_once_to_whoever_waits(site):
    await set_features(site.db, None, site.club_id, site.connection_id, [])
    board = WorkBoard(site.db, [LookWork(site.db)])
    waiting = asyncio.create_task(board.wait(site.worker.account_id, site.worker.worker_id, 5 * MINUTE))
    async with asyncio.timeout(WITHIN):
        await check_now(site.db, None, site.club_id, site.connection_id)
        assert await waiting == [Due(site.club_id, site.connection_id)]
    await a_pass(site)
    assert await next_look(site) is None, "one press is one look"


async def test_a_look_that_is_asked_for_during_a_pass_follows_it(site):
    await set_features(site.db, None, site.club_id, site.connection_id, [])
    held = await site.lease()
    await check_now(site.db, None, site.club_id, site.connection_id)
    await release_lease(site.db, site.worker, held)
    assert await offered(site) == [Due(site.club_id, site.connection_id)]
    await a_pass(site)
    assert await next_look(site) is None


async def test_one_person_asks_for_a_few_looks_a_minute(site, test_clock):
    await test_clock.freeze()
    owner = Actor(site.owner_id, "Owner", is_operator=False)
    for _ in range(CONNECTION_CHECK.count):
        await check_now(site.db, owner, site.club_id, site.connection_id)
    with pytest.raises(TooFast):
        await check_now(site.db, owner, site.club_id, site.connection_id)
    await test_clock.advance(CONNECTION_CHECK.per)
    await check_now(site.db, owner, site.club_id, site.connection_id)


async def test_nobody_is_asked_to_look_where_nobody_looks(site):
    for state in set(ConnectionState) - PASSABLE:
        await put(site, state)
        with pytest.raises(Conflict) as refusal:
            await check_now(site.db, None, site.club_id, site.connection_id)
        assert refusal.value.advice


async def test_joining_again_is_a_look_at_once_in_a_pass_of_its_own(site):
    await put(site, S.AWAITING_INVITE, last_fault="membership", consecutive_failures=2)
    decided_not_to = await site.lease()
    await rejoin(site.db, None, site.club_id, site.connection_id)
    found = await row(site)
    assert (found["state"], found["last_fault"], found["consecutive_failures"]) == ("connecting", None, 0)
    assert await offered(site) == [Due(site.club_id, site.connection_id)]
    with pytest.raises(Conflict) as refusal:
        await look(site, decided_not_to, "inactive")
    assert refusal.value.code == "stale_lease"


@pytest.mark.parametrize("state", [S.ACTIVE, S.CONNECTING, S.AUTH_REQUIRED, S.DISCONNECTING])
async def test_there_is_no_joining_again_where_nothing_ended(site, state):
    await put(site, state)
    with pytest.raises(Conflict):
        await rejoin(site.db, None, site.club_id, site.connection_id)
    assert (await row(site))["state"] == state


async def test_a_blocked_account_tries_again_when_a_person_says_so(site):
    await put(site, S.CONNECTING)
    await looked(site, "banned")
    assert await next_look(site) is None
    assert (await row(site))["last_fault"] == "banned"
    await rejoin(site.db, None, site.club_id, site.connection_id)
    assert await looked(site, "member") is S.ACTIVE


async def test_analytics_switched_on_are_read_at_once_and_switched_off_no_more(site):
    chosen = [Feature.POSTS]
    await set_features(site.db, None, site.club_id, site.connection_id, chosen)
    assert await next_look(site) is None
    await set_features(site.db, None, site.club_id, site.connection_id, [*chosen, Feature.ANALYTICS])
    assert await next_look(site) <= timedelta(0)
    await put(site, S.AWAITING_APPROVAL)
    await set_features(site.db, None, site.club_id, site.connection_id, chosen)
    assert await next_look(site) is not None, (
        "whoever waits to be let in is looked at whatever is switched on"
    )


@pytest.mark.clause("COL-12")
async def test_a_look_is_stopped_by_switch_freeze_and_cooldown_like_everything_else(site, test_clock):
    await test_clock.freeze()
    await site.db.pool.execute("update connections set next_look_at = lastcall_now()")
    await site.set("connections", kill_switch=True)
    assert await offered(site) == []
    await site.set("connections", kill_switch=False)
    await site.db.pool.execute("update connections set frozen_at = lastcall_now(), frozen_reason = 'why'")
    assert await offered(site) == []
    await site.set("connections", frozen_at=None, frozen_reason=None)
    await record_failure(site.db, site.worker, None, "rate_limit", 60.0)
    with pytest.raises(Disabled):
        await site.lease()
    await test_clock.advance(timedelta(seconds=60))
    assert await offered(site) == [Due(site.club_id, site.connection_id)]


async def test_a_look_is_found_by_the_index_of_its_account(site):
    statement = looks._READY.replace("$1", f"'{site.worker.account_id}'")
    async with site.db.transaction() as tx:
        await tx.raw.execute("set local enable_seqscan = off")
        plan = await tx.raw.fetch(f"explain {statement}")
    assert "connections_account_idx" in "\n".join(line[0] for line in plan)
