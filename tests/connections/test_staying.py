"""What a group gave an account for one club is nothing that another club gets by connecting that group."""

from __future__ import annotations

import pytest
from tests.connections.conftest import Site, build_site

from lastcall.clubs.life import archive_club, delete_club
from lastcall.connections.accounts import set_account_state
from lastcall.connections.connect import connect_club, disconnect_club
from lastcall.connections.membership import report_left
from lastcall.connections.reassigning import reassign_connection
from lastcall.connections.registration import register
from lastcall.connections.states import AccountState, Feature
from lastcall.errors import Conflict
from lastcall.people.actor import Actor
from lastcall.testing.connecting import activate


async def connect(site: Site, actor: Actor | None, account_of: Site):
    return await connect_club(
        site.db,
        actor,
        site.club_id,
        group_id="grp_1",
        account_id=account_of.worker.account_id,
        features=[Feature.POSTS],
    )


def owner(site: Site) -> Actor:
    return Actor(site.owner_id, "Owner", is_operator=False)


@pytest.fixture
async def other(site) -> Site:
    other = await build_site(site.db, 2)
    await other.end()
    return other


async def refused(other: Site, site: Site) -> str:
    with pytest.raises(Conflict) as refusal:
        await connect(other, owner(other), site)
    return refusal.value.code


async def test_an_account_that_did_not_leave_serves_no_other_club_in_that_group(site, other):
    await site.end()
    assert await refused(other, site) == "account_stayed"
    await connect(site, owner(site), site)


async def test_an_operator_who_has_looked_may_connect_it_all_the_same(site, other):
    await site.end()
    assert await connect(other, None, site)


async def test_whoever_left_may_be_let_in_again_for_anybody(site, other):
    await site.end()
    again = await connect(site, owner(site), site)
    await activate(site.db, site.club_id, again)
    await disconnect_club(site.db, None, site.club_id, again)
    await report_left(site.db, site.worker, await Site(**{**vars(site), "connection_id": again}).lease())
    assert await connect(other, owner(other), site)


async def test_who_was_never_let_in_keeps_nobody_out(site, other):
    await site.db.pool.execute("delete from evidence")
    await site.end()
    assert await connect(other, owner(other), site)


async def test_a_deleted_clubs_account_is_in_its_group_for_nobody(site, other):
    register()
    await archive_club(site.db, None, site.club_id)
    await delete_club(site.db, None, site.club_id, confirm_slug="club-1")
    assert await refused(other, site) == "account_stayed"


async def test_a_club_that_ended_without_leaving_and_is_deleted_then_leaves_it_to_nobody(site, other):
    register()
    await site.end()
    await archive_club(site.db, None, site.club_id)
    await delete_club(site.db, None, site.club_id, confirm_slug="club-1")
    assert await refused(other, site) == "account_stayed"


async def test_an_account_that_another_took_over_from_is_in_the_group_for_that_club_still(site, other):
    await set_account_state(site.db, None, site.worker.account_id, AccountState.QUARANTINED)
    await reassign_connection(site.db, None, site.club_id, site.connection_id, other.worker.account_id)
    await set_account_state(site.db, None, site.worker.account_id, AccountState.READY)
    await disconnect_club(site.db, None, site.club_id, site.connection_id)
    taken_over = Site(**{**vars(site), "worker": other.worker})
    await report_left(site.db, other.worker, await taken_over.lease())
    assert await refused(other, site) == "account_stayed"
