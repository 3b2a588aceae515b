"""Connecting a club, its switches and limits, and what pages are shown of them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.connections.conftest import build_site
from tests.connections.test_connections_failures import evidence, store

from lastcall.connections.allowance import reserve
from lastcall.connections.connect import connect_club, disconnect_club, set_features
from lastcall.connections.evidence import evidence_body
from lastcall.connections.overview import overview
from lastcall.connections.queries import connection_card
from lastcall.connections.states import Feature
from lastcall.connections.switches import (
    set_account_limits,
    set_connection_limit,
    set_connection_switch,
    set_fleet_limit,
    set_fleet_switch,
)
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.service import add_person


async def connect(site, **changes):
    facts = {
        "group_id": "grp_new",
        "group_name": "New group",
        "account_id": site.worker.account_id,
        "features": [Feature.POSTS],
    }
    return await connect_club(site.db, None, site.club_id, **{**facts, **changes})


async def test_a_group_is_connected_to_one_club_at_a_time(site):
    other = await build_site(site.db, 2)
    await other.end()
    with pytest.raises(Conflict) as refusal:
        await connect(other, group_id="grp_1")
    assert refusal.value.code == "group_taken"
    await site.end()
    await connect(other, group_id="grp_1")


async def test_a_club_has_one_current_connection(site):
    with pytest.raises(Conflict) as refusal:
        await connect(site)
    assert refusal.value.code == "club_connected"


async def test_a_connection_that_cannot_be_is_refused_and_leaves_nothing(site):
    await site.end()
    for changes, error, code in (
        ({"group_id": "usr_1"}, Invalid, "group_malformed"),
        ({"group_id": "grp_\n"}, Invalid, "group_malformed"),
        ({"group_name": "  "}, Invalid, "name_malformed"),
        ({"group_name": "x" * 81}, Invalid, "name_malformed"),
        ({"account_id": new_id()}, NotFound, "account_unknown"),
    ):
        with pytest.raises(error) as refusal:
            await connect(site, **changes)
        assert refusal.value.code == code
    assert await site.db.pool.fetchval("select count(*) from directory where kind = 'vrchat_group'") == 0


async def test_only_who_manages_the_connection_or_operates_may_change_it(site):
    outsider = Actor(await add_person(site.db, "out@example.org", "Outsider"), "Outsider", is_operator=False)
    owner = Actor(site.owner_id, "Owner", is_operator=False)
    key = (site.club_id, site.connection_id)
    for attempt in (
        lambda actor: set_connection_switch(site.db, actor, *key, is_on=True),
        lambda actor: set_features(site.db, actor, *key, []),
        lambda actor: disconnect_club(site.db, actor, *key),
    ):
        with pytest.raises(NotFound):
            await attempt(outsider)
        await attempt(owner)
    with pytest.raises(NotAllowed):
        await set_connection_limit(site.db, owner, *key, 30)


async def test_a_limit_out_of_range_is_refused(site):
    for limit in (0, -1, 6001):
        for attempt in (
            set_fleet_limit(site.db, None, limit),
            set_account_limits(site.db, None, site.worker.account_id, requests_per_minute=limit),
            set_connection_limit(site.db, None, site.club_id, site.connection_id, limit),
        ):
            with pytest.raises(Invalid) as refusal:
                await attempt
            assert refusal.value.field == "requests_per_minute"


async def test_unknown_accounts_and_connections_are_not_found(site):
    with pytest.raises(NotFound):
        await set_account_limits(site.db, None, new_id(), requests_per_minute=5)
    with pytest.raises(NotFound):
        await set_connection_switch(site.db, None, site.club_id, new_id(), is_on=True)


async def test_the_card_shows_what_is_used_of_the_lowest_limit_and_who_holds_the_lease(site, test_clock):
    await test_clock.freeze((await test_clock.now()).replace(second=20, microsecond=0))
    held = await site.lease()
    await reserve(site.db, site.worker, 3, held)
    async with site.db.read() as tx:
        card = await connection_card(tx, site.club_id)
    assert card is not None
    assert (card.requests_per_minute, card.used_last_minute, card.obstacle) == (4, 3, "none")
    assert card.lease is not None
    assert card.lease.worker_id == site.worker.worker_id
    await test_clock.advance(timedelta(seconds=61))
    async with site.db.read() as tx:
        card = await connection_card(tx, site.club_id)
    assert card is not None
    assert card.used_last_minute == 0


async def test_the_card_names_missing_grants_only_from_evidence(site):
    await site.db.pool.execute("delete from evidence")
    held = await site.lease()
    async with site.db.read() as tx:
        card = await connection_card(tx, site.club_id)
    assert card is not None
    assert card.evidence_age is None
    assert {ready.missing_grant for ready in card.readiness} == {None}
    assert not any(ready.is_known for ready in card.readiness)

    await store(site, held, evidence_body(evidence()), timedelta(seconds=40))
    async with site.db.read() as tx:
        card = await connection_card(tx, site.club_id)
    assert card is not None
    assert card.evidence_age is not None
    assert card.evidence_age >= timedelta(seconds=40)
    assert {ready.feature: ready.missing_grant for ready in card.readiness} == {
        Feature.ANALYTICS: None,
        Feature.MEMBERSHIP_MANAGEMENT: None,
        Feature.POSTS: "group-announcement-manage",
        Feature.INSTANCES: "group-instance-open-create",
    }


async def test_a_club_without_a_connection_has_no_card(site):
    await site.end()
    async with site.db.read() as tx:
        assert await connection_card(tx, site.club_id) is None


async def test_the_overview_shows_operators_why_nothing_is_sent(site):
    await set_fleet_switch(site.db, None, is_on=True)
    operator = Actor(site.owner_id, "Owner", is_operator=True)
    await site.db.pool.execute("update people set is_operator = true where id = $1", site.owner_id)
    async with site.db.read() as tx:
        shown = await overview(tx, operator)
        with pytest.raises(NotAllowed):
            await overview(tx, Actor(site.owner_id, "Owner", is_operator=False))
    assert shown.fleet.kill_switch
    assert [(line.alias, line.obstacle, line.has_key) for line in shown.accounts] == [
        ("account-1", "fleet_switch", True)
    ]
    assert [(line.group_name, line.obstacle) for line in shown.connections] == [("Group 1", "fleet_switch")]
