"""Two who connect at the same moment."""

from __future__ import annotations

import asyncio

from tests.connections.conftest import build_site

from lastcall.connections.connect import connect_club, set_features
from lastcall.connections.states import Feature
from lastcall.errors import Conflict
from lastcall.testing.locks import wait_until_blocked


def connecting(site, group_id, account_id=None):
    return asyncio.ensure_future(
        connect_club(
            site.db,
            None,
            site.club_id,
            group_id=group_id,
            account_id=account_id,
            features=[Feature.POSTS],
        )
    )


async def test_of_two_connects_of_one_club_one_is_told_that_it_is_connected(site):
    await site.end()
    async with site.db.pool.acquire() as holder:
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute("select from accounts for no key update")
        both = [connecting(site, f"grp_race_{number}") for number in range(2)]
        first = await wait_until_blocked(site.db, "accounts", by=holder.get_server_pid())
        await wait_until_blocked(site.db, "accounts", by=first)
        await transaction.rollback()
    ended = await asyncio.gather(*both, return_exceptions=True)
    refused = [one for one in ended if isinstance(one, BaseException)]
    assert [type(one) for one in refused] == [Conflict], ended
    assert refused[0].code == "club_connected"


async def test_of_two_clubs_that_connect_one_group_one_is_told_that_it_is_taken(site, database):
    other = await build_site(database, 2)
    await site.end()
    await other.end()
    ended = await asyncio.gather(
        connecting(site, "grp_Shared"), connecting(other, "grp_shared"), return_exceptions=True
    )
    refused = [one for one in ended if isinstance(one, BaseException)]
    assert [getattr(one, "code", one) for one in refused] == ["group_taken"]


async def test_a_feature_that_is_named_twice_is_switched_on_once(site):
    twice = [Feature.POSTS, Feature.POSTS]
    await set_features(site.db, None, site.club_id, site.connection_id, twice)
    assert await site.db.pool.fetchval("select features from connections") == ["posts"]
