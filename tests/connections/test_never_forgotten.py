"""No connection is forgotten: whatever interrupts a pass, what has to be looked at has a moment at which it is."""

from __future__ import annotations

import pytest
from tests.connections.conftest import Site
from tests.connections.membership_kit import S, look, looked, next_look, put, row

from lastcall.connections.connect import set_features
from lastcall.connections.failures import record_failure
from lastcall.connections.leases import release_lease
from lastcall.connections.looks import check_now
from lastcall.connections.states import ConnectionState, Feature
from lastcall.protocol.constants import LEASE_LIFE, QUIET_LOOK, WAITING_LOOK


async def removed_in_a_look(site: Site, held) -> None:
    await look(site, held, "inactive")


async def removed_in_work(site: Site, held) -> None:
    await record_failure(site.db, site.worker, held, "membership", None)


@pytest.mark.parametrize("removed", [removed_in_a_look, removed_in_work])
async def test_who_was_removed_is_looked_at_again_though_the_pass_never_ended(site, test_clock, removed):
    """Another group's 429 ends the lease before it is given back; so does a collector that dies."""
    await test_clock.freeze()
    await set_features(site.db, None, site.club_id, site.connection_id, [Feature.POSTS])
    held = await site.lease()
    await removed(site, held)
    await record_failure(site.db, site.worker, None, "rate_limit", 60.0)
    assert (await row(site))["state"] == "awaiting_invite"
    wanted = await next_look(site)
    assert wanted is not None
    assert wanted <= WAITING_LOOK


async def test_analytics_switched_on_during_a_pass_are_read_right_after_it(site, test_clock):
    await test_clock.freeze()
    await set_features(site.db, None, site.club_id, site.connection_id, [Feature.POSTS])
    held = await site.lease()
    await test_clock.advance(LEASE_LIFE / 10)
    await set_features(site.db, None, site.club_id, site.connection_id, list(Feature))
    await test_clock.advance(LEASE_LIFE / 10)
    await release_lease(site.db, site.worker, held)
    assert await next_look(site) <= LEASE_LIFE * 0


@pytest.mark.parametrize("state", [S.ACTIVE, S.AWAITING_INVITE, S.CONNECTING])
async def test_a_look_asked_for_during_a_pass_comes_after_it(site, test_clock, state: ConnectionState):
    await test_clock.freeze()
    await set_features(site.db, None, site.club_id, site.connection_id, [Feature.POSTS])
    seen = ("member",) if state is S.ACTIVE else ("inactive", "open")
    await put(site, state, next_look_at=await test_clock.now())
    held = await site.lease()
    await look(site, held, *seen)
    await test_clock.advance(LEASE_LIFE / 10)
    await check_now(site.db, None, site.club_id, site.connection_id)
    await test_clock.advance(LEASE_LIFE / 10)
    await release_lease(site.db, site.worker, held)
    assert (await next_look(site)).total_seconds() <= 0
    await test_clock.advance(LEASE_LIFE / 10)
    await looked(site, *seen)
    later = await next_look(site)
    assert later is None if state is S.ACTIVE else later >= WAITING_LOOK, "one press is one look"


async def test_a_look_that_falls_due_during_a_pass_is_that_passs_look(site, test_clock):
    await test_clock.freeze()
    await put(site, S.ACTIVE, next_look_at=await test_clock.now() + LEASE_LIFE / 10)
    held = await site.lease()
    await look(site, held)
    await test_clock.advance(LEASE_LIFE / 5)
    await release_lease(site.db, site.worker, held)
    assert await next_look(site) >= QUIET_LOOK[0]
