"""A connection that ends: its account leaves the group, or a person ends the wait for it."""

from __future__ import annotations

import asyncio

import pytest
from tests.connections.conftest import Site, build_site
from tests.connections.membership_kit import S, next_look, put, row

from lastcall.clubs.life import archive_club, delete_club
from lastcall.connections.connect import connect_club, disconnect_club, finish_disconnect
from lastcall.connections.leases import release_lease, renew_lease
from lastcall.connections.membership import report_left
from lastcall.connections.registration import register
from lastcall.connections.states import Feature
from lastcall.errors import Conflict, NotFound


async def disconnect(site: Site) -> None:
    await disconnect_club(site.db, None, site.club_id, site.connection_id)


async def connect(site: Site):
    return await connect_club(
        site.db,
        None,
        site.club_id,
        group_id="grp_1",
        account_id=site.worker.account_id,
        features=[Feature.POSTS],
    )


async def is_taken(site: Site) -> bool:
    return bool(
        await site.db.pool.fetchval(
            "select count(*) from directory where kind = 'vrchat_group' and key = 'grp_1'"
        )
    )


@pytest.mark.clause("COL-09")
async def test_the_account_leaves_in_a_pass_of_its_own_and_then_the_group_is_free(site):
    working = await site.lease()
    await disconnect(site)
    with pytest.raises(Conflict):
        await renew_lease(site.db, site.worker, working)
    found = await row(site)
    assert (found["state"], found["disconnected_at"]) == ("disconnecting", None)
    assert sorted(found["features"]) == sorted(Feature), "what was switched on stays for the next connect"
    assert await is_taken(site)
    held = await site.lease()
    await report_left(site.db, site.worker, held)
    await release_lease(site.db, site.worker, held)
    found = await row(site)
    assert found["state"] == "disconnected"
    assert found["disconnected_at"] is not None
    assert await next_look(site) is None
    assert not await is_taken(site)
    with pytest.raises(NotFound):
        await site.lease()


async def test_a_leaving_that_failed_is_wanted_still(site):
    await disconnect(site)
    await release_lease(site.db, site.worker, await site.lease())
    assert (await row(site))["state"] == "disconnecting"
    assert (await next_look(site)).total_seconds() <= 0


@pytest.mark.parametrize("state", [S.ACTIVE, S.CONNECTING, S.AWAITING_APPROVAL])
async def test_nobody_leaves_a_group_that_was_not_disconnected(site, state):
    await put(site, state)
    with pytest.raises(Conflict) as refusal:
        await report_left(site.db, site.worker, await site.lease())
    assert refusal.value.code == "connection_state"
    assert (await row(site))["state"] == state


async def test_a_person_ends_what_the_account_cannot_leave_and_nothing_else(site):
    with pytest.raises(Conflict):
        await finish_disconnect(site.db, None, site.club_id, site.connection_id)
    await disconnect(site)
    held = await site.lease()
    await finish_disconnect(site.db, None, site.club_id, site.connection_id)
    await finish_disconnect(site.db, None, site.club_id, site.connection_id)
    assert (await row(site))["state"] == "disconnected"
    with pytest.raises(Conflict):
        await report_left(site.db, site.worker, held)
    logged = await site.db.pool.fetchval(
        "select count(*) from activity_log where action = 'connection.abandoned'"
    )
    assert logged == 1


async def test_a_club_connects_its_group_again_when_the_account_has_left_and_begins_a_new_epoch(site):
    await disconnect(site)
    with pytest.raises(Conflict) as refusal:
        await connect(site)
    assert refusal.value.code == "club_disconnecting"
    await finish_disconnect(site.db, None, site.club_id, site.connection_id)
    again = await connect(site)
    rows = await site.db.pool.fetch("select id, state, group_name from connections order by epoch")
    assert [(one["id"], one["state"], one["group_name"]) for one in rows] == [
        (site.connection_id, "disconnected", "Group 1"),
        (again, "connecting", "grp_1"),
    ]


async def test_two_who_connect_a_club_at_once_make_one_connection(site):
    await site.end()
    done = await asyncio.gather(connect(site), connect(site), return_exceptions=True)
    assert sorted(isinstance(one, Conflict) for one in done) == [False, True]


async def test_an_archived_club_leaves_its_group_and_a_deleted_one_waits_for_nobody(site):
    register()
    other = await build_site(site.db, 2)
    await archive_club(site.db, None, site.club_id)
    assert (await row(site))["state"] == "disconnecting"
    assert (await site.lease()).connection_id == site.connection_id
    await delete_club(site.db, None, site.club_id, confirm_slug="club-1")
    assert not await is_taken(site)
    assert (await row(other))["state"] == "active"
