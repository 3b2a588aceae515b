"""Each kind of read against a club where something goes on: what it gives, what it costs, what it refuses to ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from reading import ask, change, params_of, place

from lastcall.clock import SYSTEM_CLOCK
from lastcall.vrchat import errors
from lastcall.vrchat.evidence import read_own_member
from lastcall.vrchat.reads import READS, Page, read_kind
from lastcall.vrchat.reads.posts import PostItem
from lastcall.vrchat.simulator import Simulator, faults
from lastcall.vrchat.simulator.model import Post, made_id
from lastcall.vrchat.transport import Transport


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator(members=40, is_lively=True) as running:
        yield running


def ids(page: Page) -> list[str]:
    return [row["userId"] for row in page.rows]


async def test_the_directory_is_paged_to_its_end_without_the_account(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await ask(simulator, transport, "members", {"n": 15, "offset": offset})
        assert page.total is None
        assert page.next_offset in (None, offset + len(page.items))
        seen += ids(page)
        offset = page.next_offset
    assert seen == [seed.owner_id, *seed.members]
    assert len(simulator.arrivals) == 6, "three times the group and a page"


async def test_a_member_is_shown_by_name_roles_and_date_and_nothing_else(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    await transport.send_once(
        "PUT", f"/groups/{seed.group_id}/members/{seed.members[0]}/roles/{seed.role_ids[1]}"
    )
    page = await ask(simulator, transport, "members", {"n": 1, "offset": 1})
    joined_at = simulator.world.groups[seed.group_id].members[seed.members[0]].joined_at
    (row,) = page.rows
    assert row == {
        "userId": seed.members[0],
        "displayName": "Member 1",
        "roleIds": (seed.role_ids[1],),
        "joinedAt": row["joinedAt"],
    }
    assert abs((msgspec.convert(row["joinedAt"], type=type(joined_at)) - joined_at).total_seconds()) < 0.01


async def test_search_finds_by_a_part_of_the_name_and_counts(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    first = await ask(simulator, transport, "search", {"query": "member 3", "n": 3})
    wanted = [seed.members[number - 1] for number in (3, 30, 31, 32, 33, 34, 35, 36, 37, 38)]
    assert (ids(first), first.next_offset, first.total) == (wanted[:3], 3, 10)
    last = await ask(simulator, transport, "search", {"query": "member 3", "n": 3, "offset": 9})
    assert (ids(last), last.next_offset) == (wanted[9:], None)


@pytest.mark.parametrize(("kind", "when", "count"), [("requests", "askedAt", 5), ("invites", "invitedAt", 3),
                                                     ("bans", "bannedAt", 2)])  # fmt: skip
async def test_those_at_the_door_are_read_with_name_and_date(
    simulator: Simulator, transport: Transport, kind: str, when: str, count: int
) -> None:
    page = await ask(simulator, transport, kind, {"n": 100})
    people = getattr(
        simulator.world.groups[simulator.seed.group_id], {"invites": "invitations"}.get(kind, kind)
    )
    assert ids(page) == list(people)
    assert len(page.rows) == count
    assert page.next_offset is None
    for row in page.rows:
        assert set(row) == {"userId", "displayName", when}
        assert row["displayName"] == simulator.world.users[row["userId"]].display_name
        assert row[when] is not None


async def test_what_one_person_is_to_the_group_is_said_also_when_it_is_nothing(
    simulator: Simulator, transport: Transport
) -> None:
    seed, group = simulator.seed, simulator.world.groups[simulator.seed.group_id]
    people = {
        seed.members[0]: "member",
        next(iter(group.requests)): "requested",
        next(iter(group.invitations)): "invited",
        next(iter(group.bans)): "banned",
        seed.strangers[0]: "inactive",
        made_id("usr", "nobody"): "inactive",
    }
    for user_id, status in people.items():
        page = await ask(simulator, transport, "member", {"targetUserId": user_id})
        (row,) = page.rows
        assert (row["userId"], row["status"]) == (user_id, status)
    simulator.arm(faults.say("null"), path="*/members/*")
    page = await ask(simulator, transport, "member", {"targetUserId": seed.members[0]})
    assert page.rows[0]["status"] == "inactive"


async def test_a_group_that_is_gone_is_not_a_person_who_is_gone(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    kind = read_kind("member")
    own = await read_own_member(transport, seed.group_id, seed.bot_id)
    change(simulator, "delete_group")
    with pytest.raises(errors.NoGroup):
        await kind.read(transport, own, kind.read_params({"targetUserId": seed.members[0]}), lambda: None)


@pytest.mark.parametrize("kind", ["roles", "instance_roles"])
async def test_roles_come_from_the_evidence_at_hand_and_cost_nothing_more(
    simulator: Simulator, transport: Transport, kind: str
) -> None:
    seed = simulator.seed
    page = await ask(simulator, transport, kind, {"n": 3})
    assert [row["roleId"] for row in page.rows] == list(seed.role_ids[:3])
    assert (page.next_offset, page.total) == (3, 4)
    assert page.rows[0]["name"] == "Regular"
    assert len(simulator.arrivals) == 1
    rest = await ask(simulator, transport, kind, {"n": 3, "offset": 3})
    assert ([row["roleId"] for row in rest.rows], rest.next_offset) == ([seed.role_ids[3]], None)


async def test_open_instances_are_named_and_nobody_in_them_is_counted(
    simulator: Simulator, transport: Transport
) -> None:
    page = await ask(simulator, transport, "instances", {"n": 1})
    (row,) = page.rows
    instance = next(iter(simulator.world.instances.values()))
    assert row == {"worldId": instance.world_id, "worldName": "The Long Bar", "instanceId": instance.id}
    assert (page.next_offset, page.total) == (1, 2)
    assert instance.people, "so that leaving them out means something"


async def test_one_request_answers_for_a_hundred_people_and_one_more_for_the_place(
    simulator: Simulator, transport: Transport
) -> None:
    seed = simulator.seed
    asked = [*seed.friends, *seed.members[1::2], *seed.strangers][:100]
    page = await ask(simulator, transport, "eligibility", {"targetUserIds": asked, **place(simulator)})
    assert ids(page) == asked
    assert {row["userId"] for row in page.rows if row["friendship"] == "friend"} == set(seed.friends)
    assert {row["destination"] for row in page.rows} == {"open"}
    assert len(simulator.arrivals) == 3, "group, instance, the account's friends"
    page = await ask(simulator, transport, "eligibility", {"targetUserIds": asked[:1]})
    assert page.rows[0]["destination"] == "none"
    assert len(simulator.arrivals) == 5


@pytest.mark.parametrize("change_name", ["close_instance", "empty_instance"])
async def test_a_place_that_is_over_or_unknown_is_closed(
    simulator: Simulator, transport: Transport, change_name: str
) -> None:
    there = place(simulator)
    targets = {"targetUserIds": [simulator.seed.friends[0]]}
    change(simulator, change_name, location=f"{there['worldId']}:{there['instanceId']}")
    assert (await ask(simulator, transport, "eligibility", targets | there)).rows[0][
        "destination"
    ] == "closed"
    unknown = there | {"instanceId": "9" + there["instanceId"]}
    assert (await ask(simulator, transport, "eligibility", targets | unknown)).rows[0][
        "destination"
    ] == "closed"


async def test_a_place_of_another_group_is_not_asked_about(
    simulator: Simulator, transport: Transport
) -> None:
    there = place(simulator) | {"instanceId": f"1~group({made_id('grp', 'other')})"}
    with pytest.raises(errors.DestinationScope):
        await ask(simulator, transport, "eligibility", {"targetUserIds": [simulator.seed.owner_id], **there})
    assert len(simulator.arrivals) == 1


async def test_posts_are_whole_and_in_plain_characters(simulator: Simulator, transport: Transport) -> None:
    seed = simulator.seed
    words = {"title": "Tonight!", "text": "Bar: at nine, sharp; <b>3/4</b> * of it.", "visibility": "group",
             "sendNotification": False, "roleIds": [seed.role_ids[0]]}  # fmt: skip
    await transport.send_once("POST", f"/groups/{seed.group_id}/posts", words)
    page = await ask(simulator, transport, "posts", {"n": 2})
    assert (page.next_offset, page.total) == (2, 3)
    row = page.rows[0]
    assert {name: row[name] for name in ("title", "text", "visibility", "roleIds", "imageId")} == {
        "title": words["title"],
        "text": words["text"],
        "visibility": "group",
        "roleIds": (seed.role_ids[0],),
        "imageId": None,
    }
    stored = next(reversed(simulator.world.groups[seed.group_id].posts.values()))
    assert row["postId"] == stored.id
    assert not set(stored.text) & set(".:,;</>*"), "VRChat wrote something else"


def long_posts(simulator: Simulator) -> dict[str, Post]:
    """A hundred posts that are too much for one report, instead of the seeded ones."""
    group = simulator.world.groups[simulator.seed.group_id]
    group.posts.clear()
    for number in range(100):
        post_id = made_id("not", "long", number)
        group.posts[post_id] = Post(
            post_id, group.owner_id, SYSTEM_CLOCK.wall(), "long", "w" * 9_000, "group"
        )
    return group.posts


async def test_a_page_too_large_to_report_is_cut_and_the_next_goes_on_from_there(
    simulator: Simulator, transport: Transport
) -> None:
    posts = long_posts(simulator)
    first = await ask(simulator, transport, "posts", {"n": 100})
    assert len(msgspec.json.encode(first.rows)) <= 500_000
    assert first.next_offset == len(first.items)
    assert 50 <= len(first.items) < 60
    second = await ask(simulator, transport, "posts", {"n": 100, "offset": first.next_offset})
    read = [item.post_id for page in (first, second) for item in page.items if isinstance(item, PostItem)]
    assert (read, second.next_offset) == (list(posts)[::-1], None)


async def test_twin_without_the_cut_a_page_is_larger_than_a_report_may_be(
    simulator: Simulator, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_posts(simulator)
    monkeypatch.setattr(Page, "within", lambda page, _offset, _most: page)
    page = await ask(simulator, transport, "posts", {"n": 100})
    assert len(msgspec.json.encode(page.rows)) > 500_000


@pytest.mark.parametrize("name", READS)
async def test_a_read_costs_what_it_says_and_each_request_is_charged_first(
    simulator: Simulator, transport: Transport, name: str
) -> None:
    seed = simulator.seed
    kind = read_kind(name)
    params = kind.read_params(params_of(simulator, name))
    own = await read_own_member(transport, seed.group_id, seed.bot_id)
    charged = 0

    def charge() -> None:
        nonlocal charged
        assert len(simulator.arrivals) == 1 + charged, "a request went out uncharged"
        charged += 1

    page = await kind.read(transport, own, params, charge)
    assert 1 + charged == kind.cost(params) == len(simulator.arrivals)
    assert page.items
    assert all(isinstance(item, kind.item) for item in page.items)


@pytest.mark.parametrize("name", [name for name in READS if READS[name].grants])
async def test_nothing_is_asked_without_the_grants(
    simulator: Simulator, transport: Transport, name: str
) -> None:
    params = params_of(simulator, name)
    for grant in READS[name].grants:
        change(simulator, "take_grant", user_id=simulator.seed.bot_id, grant=grant)
        simulator.arrivals.clear()
        with pytest.raises(errors.ProviderPermissions):
            await ask(simulator, transport, name, params)
        assert [arrival.path.count("/") for arrival in simulator.arrivals] == [2], "the group alone"
        change(simulator, "give_grant", user_id=simulator.seed.bot_id, grant=grant)


@pytest.mark.parametrize("name", READS)
async def test_a_stop_before_a_request_leaves_it_unsent(
    simulator: Simulator, transport: Transport, name: str
) -> None:
    class Stop(Exception):
        pass

    def stop() -> None:
        raise Stop

    kind = read_kind(name)
    params = kind.read_params(params_of(simulator, name))
    own = await read_own_member(transport, simulator.seed.group_id, simulator.seed.bot_id)
    if kind.requests(params) > 0:
        with pytest.raises(Stop):
            await kind.read(transport, own, params, stop)
    assert len(simulator.arrivals) == 1


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("members", {"n": 0}),
        ("members", {"n": 101}),
        ("members", {"offset": -1}),
        ("members", {"offset": 10_000_001}),
        ("members", {"n": 5, "sort": "joinedAt:desc"}),
        ("search", {"n": 5}),
        ("search", {"query": "ab"}),
        ("search", {"query": "a" * 101}),
        ("search", {"query": "a\nbc"}),
        ("member", {}),
        ("member", {"targetUserId": "8JoV9XEdpo"}),
        ("member", {"targetUserId": "usr_../../x"}),
        ("eligibility", {"targetUserIds": []}),
        ("eligibility", {"targetUserIds": [made_id("usr", "same")] * 101}),
        ("eligibility", {"targetUserIds": [made_id("usr", 1)], "worldId": made_id("wrld", 1)}),
        ("eligibility", {"targetUserIds": [made_id("usr", 1)], "instanceId": "1~group(grp_1)"}),
        ("posts", None),
    ],
    ids=repr,
)
def test_parameters_that_break_a_rule_are_refused(name: str, params: Any) -> None:
    with pytest.raises(errors.InvalidInput):
        read_kind(name).read_params(params)


def test_a_kind_of_a_later_release_is_unsupported() -> None:
    with pytest.raises(errors.UnsupportedOperation) as caught:
        read_kind("badges")
    assert caught.value.code == "unsupported_operation"


async def test_a_page_is_as_old_as_its_oldest_request(simulator: Simulator, transport: Transport) -> None:
    simulator.arm(faults.slow(0.2), path="/instances/*")
    before = SYSTEM_CLOCK.boot()
    page = await ask(
        simulator, transport, "eligibility", {"targetUserIds": [simulator.seed.owner_id], **place(simulator)}
    )
    assert before <= page.asked_at < SYSTEM_CLOCK.boot() - 0.15
    roles = await ask(simulator, transport, "roles", {})
    own = await read_own_member(transport, simulator.seed.group_id, simulator.seed.bot_id)
    assert roles.asked_at < own.asked_at
