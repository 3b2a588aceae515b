"""What a review can have looked up before anything is queued, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.web.conftest import Site, Visitor, World, user
from tests.web.reads import answer, fail, person
from tests.web.test_compose_pages import INSTANCE, WORLD, carried, reviewed, stored
from tests.web.test_members_pages import allow

from lastcall.clubs.permissions import Permission
from lastcall.testing.clock import TestClock

Visit = Callable[..., Visitor]
NEW = "/c/night-shift/new"
THREE = {"people": f"Fox {user(1)}\nOwl {user(2)}\nHen {user(3)}"}
_BANS = """
    insert into evidence (club_id, connection_id, kind, subject, epoch, body, observed_at, account_id, worker_id)
    select club_id, id, 'bans', '0+100', epoch, $1, lastcall_now(), account_id, gen_random_uuid() from connections
"""


async def pressed(visitor: Visitor, kind: str, page: str, step: str) -> str:
    """Press a button of the review that looks something up."""
    answer = await visitor.post(f"{NEW}/{kind}/review", carried(page) | {"step": step})
    assert answer.status_code == 200, answer.text
    return answer.text


def friends(*known: bool, place: str = "open") -> list[dict[str, Any]]:
    return [
        {"userId": user(n), "friendship": "friend" if is_friend else "not_friend", "destination": place}
        for n, is_friend in enumerate(known, start=1)
    ]


def row_of(page: str, name: str) -> str:
    """What the list of people says of one."""
    return page.partition(f"<b>{name}</b>")[2].partition("</li>")[0]


async def test_a_batch_is_checked_at_once_and_who_was_not_is_shown_as_unknown(
    world: World, site: Site, visit: Visit, test_clock: TestClock
) -> None:
    visitor = visit("owner")
    place = {"world": WORLD, "instance": INSTANCE}
    page = await reviewed(visitor, "invite_to_instance", THREE | place)
    assert "Not checked" in row_of(page, "Fox")
    assert await world.db.pool.fetchval("select count(*) from provider_reads") == 0
    page = await pressed(visitor, "invite_to_instance", page, "check")
    assert "Asking VRChat" in page
    assert "Not checked" in row_of(page, "Fox")
    [asked] = await world.db.pool.fetch("select kind, params::text from provider_reads")
    assert asked["kind"] == "eligibility"
    assert json.loads(asked["params"]) == {
        "targetUserIds": [user(1), user(2), user(3)],
        "worldId": WORLD,
        "instanceId": INSTANCE,
    }
    key = carried(page)["request_key"]
    await answer(world, friends(True, False))
    page = await pressed(visitor, "invite_to_instance", page, "look")
    assert "Can be invited" in row_of(page, "Fox")
    assert "No friend of the account" in row_of(page, "Owl")
    assert "Not checked" in row_of(page, "Hen")
    assert "The instance is closed." not in page
    assert carried(page)["request_key"] == key
    await test_clock.advance(timedelta(seconds=60))
    page = await pressed(visitor, "invite_to_instance", page, "look")
    assert "Not checked" in row_of(page, "Fox")
    assert "more than a minute old" in page
    assert await world.db.pool.fetchval("select count(*) from provider_reads") == 1
    # It is advice: what is confirmed is what was reviewed, and the server judges again when it is sent.
    assert (await visitor.post(f"{NEW}/invite_to_instance", carried(page))).status_code == 303
    assert len(await stored(world)) == 3


async def test_a_closed_instance_is_told_and_a_failure_says_why(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    place = {"world": WORLD, "instance": INSTANCE}
    page = await reviewed(visitor, "invite_to_instance", THREE | place)
    page = await pressed(visitor, "invite_to_instance", page, "check")
    await fail(world, "rate_limit")
    page = await pressed(visitor, "invite_to_instance", page, "look")
    assert "VRChat asked to wait" in page
    page = await pressed(visitor, "invite_to_instance", page, "check")
    await answer(world, friends(True, True, True, place="closed"))
    assert "The instance is closed." in await pressed(visitor, "invite_to_instance", page, "look")
    await world.db.pool.execute("update connections set kill_switch = true")
    await world.db.pool.execute("delete from provider_reads")
    assert "Nothing can be read from VRChat" in await pressed(visitor, "invite_to_instance", page, "check")


async def test_bans_are_read_page_by_page_and_whoever_is_banned_is_chosen_by_hand(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    page = await reviewed(visitor, "invite_member", THREE)
    assert "An invitation lifts a ban." in page
    page = await pressed(visitor, "invite_member", page, "check")
    await answer(world, [person(8, "Cat", "bannedAt")], next_offset=100)
    page = await pressed(visitor, "invite_member", page, "look")
    assert "None of these people is among the first 100 bans." in page
    page = await pressed(visitor, "invite_member", page, "check_next")
    offsets = await world.db.pool.fetch("select (params ->> 'offset')::int from provider_reads order by 1")
    assert [row[0] for row in offsets] == [0, 100]
    # The collector leaves what it read as evidence, which the review and the queue go by.
    await world.db.pool.execute(_BANS, json.dumps({"bannedUserIds": [user(2)]}))
    await answer(world, [person(2, "Owl", "bannedAt")])
    page = await pressed(visitor, "invite_member", page, "look")
    assert "1 of them is banned" in page
    refused = await visitor.post(f"{NEW}/invite_member", carried(page))
    assert refused.status_code == 422
    assert "1 of them is banned" in refused.text


async def test_who_may_not_see_the_bans_is_not_offered_to_read_them(
    world: World, site: Site, visit: Visit
) -> None:
    await allow(world, Permission.INVITE_GROUP_MEMBERS)
    visitor = visit("staff")
    page = await reviewed(visitor, "invite_member", THREE)
    assert "Check now" not in page
    # Nor does a form that says so all the same ask for anything.
    await pressed(visitor, "invite_member", page, "check")
    assert await world.db.pool.fetchval("select count(*) from provider_reads") == 0
