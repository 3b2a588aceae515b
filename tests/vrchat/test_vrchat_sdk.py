"""The official SDK, an independent client, takes the simulator for VRChat. Its retries are off, but for the
twin in ``test_vrchat_transport.py``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
import vrchatapi
from vrchatapi.exceptions import ApiException, ForbiddenException, NotFoundException, UnauthorizedException

from lastcall.clock import SYSTEM_CLOCK
from lastcall.vrchat.simulator import BOT_PASSWORD, BOT_TOTP_SECRET, BOT_USERNAME, Simulator
from lastcall.vrchat.simulator.edits import edit
from lastcall.vrchat.totp import totp


@pytest.fixture
def client(simulator: Simulator) -> Iterator[vrchatapi.ApiClient]:
    configuration = vrchatapi.Configuration(host=simulator.url, username=BOT_USERNAME, password=BOT_PASSWORD)
    configuration.retries = False
    with vrchatapi.ApiClient(configuration) as opened:
        opened.user_agent = "SdkTest/1.0 ops@example.org"
        yield opened
        opened.rest_client.pool_manager.clear()


def sign_in(client: vrchatapi.ApiClient) -> vrchatapi.CurrentUser:
    api = vrchatapi.AuthenticationApi(client)
    with pytest.raises(UnauthorizedException) as question:
        api.get_current_user()
    assert "2 Factor Authentication" in str(question.value.reason)
    code = vrchatapi.TwoFactorAuthCode(totp(BOT_TOTP_SECRET, SYSTEM_CLOCK.wall()))
    assert api.verify2_fa(two_factor_auth_code=code).verified
    return api.get_current_user()


async def in_thread(client: vrchatapi.ApiClient, act: Callable[[vrchatapi.GroupsApi], object]) -> None:
    def signed_in() -> None:
        sign_in(client)
        act(vrchatapi.GroupsApi(client))

    await asyncio.to_thread(signed_in)


async def test_the_sdk_signs_in_with_a_second_factor(
    simulator: Simulator, client: vrchatapi.ApiClient
) -> None:
    user = await asyncio.to_thread(sign_in, client)
    assert (user.id, user.display_name) == (simulator.seed.bot_id, "Lastcall")
    assert await asyncio.to_thread(vrchatapi.AuthenticationApi(client).verify_auth_token)


async def test_the_sdk_reads_group_roles_members_bans_and_audit_log(
    simulator: Simulator, client: vrchatapi.ApiClient
) -> None:
    seed = simulator.seed

    def act(groups: vrchatapi.GroupsApi) -> None:
        group = groups.get_group(seed.group_id, include_roles=True)
        assert group.owner_id == seed.owner_id
        assert group.my_member.user_id == seed.bot_id
        assert "group-bans-manage" in group.my_member.permissions
        assert [role.id for role in group.roles] == list(seed.role_ids)
        assert [role.id for role in groups.get_group_roles(seed.group_id)] == list(seed.role_ids)
        assert groups.get_group_member(seed.group_id, seed.members[0]).user.display_name == "Member 1"
        assert len(groups.get_group_members(seed.group_id, n=5, offset=5)) == 2
        groups.ban_group_member(seed.group_id, vrchatapi.BanGroupMemberRequest(seed.members[1]))
        assert [ban.user_id for ban in groups.get_group_bans(seed.group_id)] == [seed.members[1]]
        log = groups.get_group_audit_logs(seed.group_id)
        assert [entry.event_type for entry in log.results] == ["group.user.ban"]

    await in_thread(client, act)


async def test_the_sdk_gives_a_role_invites_and_bans(
    simulator: Simulator, client: vrchatapi.ApiClient
) -> None:
    seed = simulator.seed

    def act(groups: vrchatapi.GroupsApi) -> None:
        roles = groups.add_group_member_role(seed.group_id, seed.members[0], seed.role_ids[0])
        assert roles == [seed.role_ids[0]]
        invitation = vrchatapi.CreateGroupInviteRequest(user_id=seed.strangers[0])
        groups.create_group_invite(seed.group_id, invitation)
        invited = groups.get_group_invites(seed.group_id)
        assert [person.user_id for person in invited] == [seed.strangers[0]]
        banned = groups.ban_group_member(seed.group_id, vrchatapi.BanGroupMemberRequest(seed.members[1]))
        assert (banned.user_id, banned.membership_status) == (seed.members[1], "banned")
        assert groups.remove_group_member_role(seed.group_id, seed.members[0], seed.role_ids[0]) == []

    await in_thread(client, act)
    assert [(entry.action, entry.target) for entry in simulator.ledger.entries] == [
        ("group.member.role.assign", seed.members[0]),
        ("group.invite.create", seed.strangers[0]),
        ("group.user.ban", seed.members[1]),
        ("group.member.role.unassign", seed.members[0]),
    ]


async def test_the_sdk_answers_join_requests_and_takes_back_what_was_given(
    simulator: Simulator, client: vrchatapi.ApiClient
) -> None:
    seed = simulator.seed
    asker, turned_down, invited, crowded, absent = seed.strangers[:5]
    for user_id in (asker, turned_down, crowded):
        edit(simulator.clock, simulator.world, seed.group_id, "ask_to_join", user_id=user_id)
    edit(simulator.clock, simulator.world, seed.group_id, "join_many_groups", user_id=crowded)
    accept, reject = (vrchatapi.RespondGroupJoinRequest(action) for action in ("accept", "reject"))

    def act(groups: vrchatapi.GroupsApi) -> None:
        waiting = [person.user_id for person in groups.get_group_requests(seed.group_id)]
        assert waiting == [asker, turned_down, crowded]
        groups.respond_group_join_request(seed.group_id, asker, accept)
        groups.respond_group_join_request(seed.group_id, turned_down, reject)
        with pytest.raises(ForbiddenException, match="too many groups"):
            groups.respond_group_join_request(seed.group_id, crowded, accept)
        with pytest.raises(ApiException, match="hasn't requested to join"):
            groups.respond_group_join_request(seed.group_id, absent, accept)
        groups.create_group_invite(seed.group_id, vrchatapi.CreateGroupInviteRequest(user_id=invited))
        assert groups.delete_group_invite(seed.group_id, invited).success.status_code == 200
        with pytest.raises(ApiException, match="wasn't invited"):
            groups.delete_group_invite(seed.group_id, invited)
        assert groups.kick_group_member(seed.group_id, asker).success.status_code == 200
        with pytest.raises(NotFoundException):
            groups.kick_group_member(seed.group_id, asker)
        with pytest.raises(ForbiddenException):
            groups.kick_group_member(seed.group_id, seed.owner_id)
        groups.ban_group_member(seed.group_id, vrchatapi.BanGroupMemberRequest(seed.members[1]))
        assert groups.unban_group_member(seed.group_id, seed.members[1]).user_id == seed.members[1]
        with pytest.raises(ApiException, match="not banned"):
            groups.unban_group_member(seed.group_id, seed.members[1])
        assert groups.get_group_bans(seed.group_id) == []

    await in_thread(client, act)
    assert [entry.action for entry in simulator.ledger.entries] == [
        "group.member.join",
        "group.request.reject",
        "group.invite.create",
        "group.invite.cancel",
        "group.member.remove",
        "group.user.ban",
        "group.user.unban",
    ]


async def test_the_sdk_publishes_edits_and_deletes_a_post(
    simulator: Simulator, client: vrchatapi.ApiClient
) -> None:
    seed = simulator.seed

    def act(groups: vrchatapi.GroupsApi) -> None:
        words = {"title": "Tonight!", "text": "At nine.", "visibility": "group", "send_notification": True}
        asked = vrchatapi.CreateGroupPostRequest(role_ids=[seed.role_ids[0]], **words)
        post = groups.add_group_post(seed.group_id, asked)
        assert (post.group_id, post.author_id, post.text) == (seed.group_id, seed.bot_id, "At nine\u2024")
        later = vrchatapi.CreateGroupPostRequest(**words | {"text": "At ten.", "visibility": "public"})
        edited = groups.update_group_post(seed.group_id, post.id, later)
        assert (edited.id, edited.editor_id, edited.role_ids) == (post.id, seed.bot_id, [seed.role_ids[0]])
        assert [one.id for one in groups.get_group_posts(seed.group_id, public_only=True).posts] == [post.id]
        assert groups.delete_group_post(seed.group_id, post.id).success.status_code == 200
        for again in (lambda: groups.delete_group_post(seed.group_id, post.id),
                      lambda: groups.update_group_post(seed.group_id, post.id, later)):  # fmt: skip
            with pytest.raises(NotFoundException):
                again()

    await in_thread(client, act)
    assert [entry.action for entry in simulator.ledger.entries] == [
        "group.post.create",
        "group.post.update",
        "group.post.delete",
    ]


async def test_the_sdk_opens_reads_and_closes_an_instance_and_invites_a_friend_to_it(
    simulator: Simulator, client: vrchatapi.ApiClient
) -> None:
    seed = simulator.seed
    world_id, friend = seed.world_ids[0], seed.friends[0]
    asked = vrchatapi.CreateInstanceRequest(
        world_id=world_id, type="group", owner_id=seed.group_id, group_access_type="members", region="eu",
        role_ids=[seed.role_ids[0]], age_gate=True, queue_enabled=True,
    )  # fmt: skip

    def act(_groups: vrchatapi.GroupsApi) -> None:
        instances = vrchatapi.InstancesApi(client)
        assert vrchatapi.WorldsApi(client).get_world(world_id).name == "The Long Bar"
        opened = instances.create_instance(asked)
        assert (opened.world_id, opened.owner_id, opened.type) == (world_id, seed.group_id, "group")
        assert opened.instance_id.count(f"~group({seed.group_id})") == 1
        assert vrchatapi.FriendsApi(client).get_friend_status(friend).is_friend
        assert not vrchatapi.FriendsApi(client).get_friend_status(seed.strangers[0]).is_friend
        sent = vrchatapi.InviteApi(client).invite_user(
            friend, vrchatapi.InviteRequest(f"{world_id}:{opened.instance_id}", message_slot=3)
        )
        assert (sent.type, sent.sender_user_id, sent.receiver_user_id) == ("invite", seed.bot_id, friend)
        with pytest.raises(ForbiddenException, match="friends"):
            vrchatapi.InviteApi(client).invite_user(
                seed.strangers[0], vrchatapi.InviteRequest(f"{world_id}:{opened.instance_id}")
            )
        closed = instances.close_instance(world_id, opened.instance_id, hard_close=False)
        assert closed.closed_at is not None
        with pytest.raises(ForbiddenException, match="already closed"):
            instances.close_instance(world_id, opened.instance_id)
        assert instances.get_instance(world_id, "1~group(grp_unknown)") is None

    await in_thread(client, act)
    assert [entry.action for entry in simulator.ledger.entries] == [
        "group.instance.create",
        "instance.invite",
        "group.instance.close",
    ]


async def test_the_sdk_sees_vrchats_refusals(simulator: Simulator, client: vrchatapi.ApiClient) -> None:
    seed = simulator.seed

    def act(groups: vrchatapi.GroupsApi) -> None:
        ban = vrchatapi.BanGroupMemberRequest(seed.members[1])
        groups.ban_group_member(seed.group_id, ban)
        with pytest.raises(ApiException, match="already banned") as again:
            groups.ban_group_member(seed.group_id, ban)
        assert again.value.status == 400
        with pytest.raises(ForbiddenException):
            groups.ban_group_member(seed.group_id, vrchatapi.BanGroupMemberRequest(seed.owner_id))
        with pytest.raises(NotFoundException):
            groups.get_group_member(seed.group_id, seed.strangers[0])
        with pytest.raises(NotFoundException):
            groups.get_group("grp_unknown")
        edit(
            simulator.clock,
            simulator.world,
            seed.group_id,
            "take_grant",
            user_id=seed.bot_id,
            grant="group-bans-manage",
        )
        with pytest.raises(ForbiddenException):
            groups.get_group_bans(seed.group_id)

    await in_thread(client, act)
    assert len(simulator.ledger.entries) == 1
