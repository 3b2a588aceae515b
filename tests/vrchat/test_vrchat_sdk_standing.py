"""The official SDK goes in and out of a group, and reads what a screen and a count are made of."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import vrchatapi
from test_vrchat_sdk import client, in_thread, sign_in
from vrchatapi.exceptions import ApiException, ForbiddenException, NotFoundException

from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_USERNAME, Simulator
from lastcall.vrchat.simulator.edits import edit

__all__ = ["client"]


def change(simulator: Simulator, name: str, **arguments: str) -> None:
    edit(simulator.clock, simulator.world, simulator.seed.group_id, name, **arguments)


async def test_the_sdk_leaves_a_group_and_comes_back_by_each_kind_of_door(
    simulator: Simulator, client: vrchatapi.ApiClient
) -> None:
    seed = simulator.seed

    def act(groups: vrchatapi.GroupsApi) -> None:
        with pytest.raises(ApiException, match="already a member"):
            groups.join_group(seed.group_id)
        groups.leave_group(seed.group_id)
        with pytest.raises(ForbiddenException, match="not a member"):
            groups.leave_group(seed.group_id)
        assert groups.get_group(seed.group_id).membership_status == "inactive"
        assert groups.join_group(seed.group_id).membership_status == "requested"
        assert groups.get_group(seed.group_id).membership_status == "requested"
        change(simulator, "withdraw_request", user_id=seed.bot_id)
        for state in ("invite", "closed"):
            change(simulator, "set_join_state", join_state=state)
            with pytest.raises(ForbiddenException):
                groups.join_group(seed.group_id)
        change(simulator, "invite", user_id=seed.bot_id)
        assert groups.get_group(seed.group_id).membership_status == "invited"
        joined = groups.join_group(seed.group_id)
        assert (joined.membership_status, joined.user_id) == ("member", seed.bot_id)
        groups.leave_group(seed.group_id)
        change(simulator, "set_join_state", join_state="open")
        change(simulator, "block", user_id=seed.bot_id)
        assert groups.get_group(seed.group_id).membership_status == "userblocked"
        with pytest.raises(ApiException, match="blocked"):
            groups.join_group(seed.group_id, confirm_override_block=False)
        assert groups.join_group(seed.group_id, confirm_override_block=True).membership_status == "member"
        change(simulator, "ban", user_id=seed.bot_id)
        with pytest.raises(ForbiddenException):
            groups.join_group(seed.group_id)
        change(simulator, "unban", user_id=seed.bot_id)
        change(simulator, "set_privacy", privacy="private")
        with pytest.raises(NotFoundException):
            groups.get_group(seed.group_id)

    await in_thread(client, act)
    assert [entry.action for entry in simulator.ledger.entries] == [
        "group.member.leave",
        "group.request.create",
        "group.member.join",
        "group.member.leave",
        "group.member.join",
    ]


async def test_the_sdk_finds_members_by_name_and_friends_in_its_own_record(
    simulator: Simulator, client: vrchatapi.ApiClient
) -> None:
    seed = simulator.seed

    def act(groups: vrchatapi.GroupsApi) -> None:
        everybody = [one.user_id for one in groups.get_group_members(seed.group_id, n=100)]
        assert everybody == [seed.owner_id, *seed.members]
        found = groups.search_group_members(seed.group_id, "MEMBER", n=2, offset=1)
        assert [one.user_id for one in found.results] == list(seed.members[1:3])
        assert found.total == len(seed.members)
        me = vrchatapi.AuthenticationApi(client).get_current_user()
        assert sorted(me.friends) == sorted(seed.friends)
        assert me.date_joined.isoformat() == "2024-01-01"

    await in_thread(client, act)


async def test_the_sdk_counts_the_people_in_the_groups_instances(
    simulator: Simulator, client: vrchatapi.ApiClient
) -> None:
    seed = simulator.seed
    change(simulator, "open_instance", world_id=seed.world_ids[0], number="1")
    change(simulator, "open_instance", world_id=seed.world_ids[1], number="2", access="plus")
    first, second = simulator.world.instances
    for user_id in seed.members[:3]:
        change(simulator, "enter_instance", location=first, user_id=user_id)

    def act(groups: vrchatapi.GroupsApi) -> None:
        listed = groups.get_group_instances(seed.group_id)
        assert [(one.location, one.member_count, one.world.name) for one in listed] == [
            (first, 3, "The Long Bar"),
            (second, 0, "Rooftop"),
        ]
        read = vrchatapi.InstancesApi(client).get_instance(listed[0].world.id, listed[0].instance_id)
        assert (read.n_users, read.user_count) == (3, 3)
        for location in (first, second):
            change(simulator, "close_instance", location=location)
        assert [one.location for one in groups.get_group_instances(seed.group_id)] == [first]
        change(simulator, "empty_instance", location=first)
        assert groups.get_group_instances(seed.group_id) == []

    await in_thread(client, act)


async def test_the_sdk_narrows_the_audit_log_by_date_event_and_person(
    simulator: Simulator, client: vrchatapi.ApiClient
) -> None:
    seed = simulator.seed
    now = simulator.clock.wall()
    group = simulator.world.groups[seed.group_id]
    for days in (3, 2, 1):
        at = now - timedelta(days=days)
        group.note(at, "group.member.join", seed.owner_id, seed.members[days], f"{days} days ago")

    def act(groups: vrchatapi.GroupsApi) -> None:
        window = {"start_date": now - timedelta(days=2, hours=1), "end_date": now - timedelta(hours=1)}
        log = groups.get_group_audit_logs(seed.group_id, **window)
        assert [entry.description for entry in log.results] == ["2 days ago", "1 days ago"][::-1]
        assert (log.total_count, log.has_next) == (2, False)
        page = groups.get_group_audit_logs(seed.group_id, n=1, **window)
        assert (len(page.results), page.total_count, page.has_next) == (1, 2, True)
        one = groups.get_group_audit_logs(seed.group_id, target_ids=seed.members[3])
        assert [entry.target_id for entry in one.results] == [seed.members[3]]
        assert groups.get_group_audit_logs(seed.group_id, event_types="group.user.ban").results == []
        assert groups.get_group_audit_logs(seed.group_id, actor_ids=seed.bot_id).results == []

    await in_thread(client, act)


async def test_a_lively_club_has_something_on_every_page() -> None:
    async with Simulator(members=40, is_lively=True) as lively:
        seed = lively.seed
        configuration = vrchatapi.Configuration(host=lively.url, username=BOT_USERNAME, password=BOT_PASSWORD)
        configuration.retries = False

        def act() -> None:
            with vrchatapi.ApiClient(configuration) as opened:
                opened.user_agent = "SdkTest/1.0 ops@example.org"
                sign_in(opened)
                groups = vrchatapi.GroupsApi(opened)
                assert len(groups.get_group_requests(seed.group_id)) == 5
                assert len(groups.get_group_invites(seed.group_id)) == 3
                assert len(groups.get_group_bans(seed.group_id)) == 2
                assert [one.member_count for one in groups.get_group_instances(seed.group_id)] == [12, 3]
                assert len(groups.get_group_posts(seed.group_id).posts) == 2
                events = {entry.event_type for entry in groups.get_group_audit_logs(seed.group_id).results}
                assert {"group.member.join", "group.member.leave", "group.user.ban"} <= events
                opened.rest_client.pool_manager.clear()

        await asyncio.to_thread(act)
        assert lively.ledger.entries == []
