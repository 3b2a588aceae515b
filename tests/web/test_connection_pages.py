"""The Connection page, as whoever looks after the connection uses it."""

from __future__ import annotations

import html
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.web.conftest import ROLE, Visitor, World
from tests.web.test_club_pages import seen_on

from lastcall.clubs.permissions import Permission
from lastcall.clubs.queries import RoleView, roles_of
from lastcall.connections.connect import disconnect_club, finish_disconnect
from lastcall.connections.features import switch_feature
from lastcall.connections.states import AccountState, ConnectionState, Feature
from lastcall.db.ids import encode_id
from lastcall.operations.kinds import KINDS
from lastcall.protocol.messages import RoleSeen
from lastcall.reads.kinds import KINDS as READ_KINDS
from lastcall.telemetry.states import CoverageState
from lastcall.testing.connecting import activate
from lastcall.testing.staff import change_role
from lastcall.web.connection import needed_by
from lastcall.web.connection_words import ACCOUNTS, COVERAGE, FEATURES, GRANTS, STATES, fault_of

AT = "/c/night-shift/connection"
JUST_NOW = timedelta(0)
CONNECTING = {
    "group_id": "https://vrchat.com/home/group/grp_7",
    "accepts": "yes",
    "feature": "posts",
}


async def text(visitor: Visitor, path: str = AT) -> str:
    answer = await visitor.get(path)
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


async def leave(world: World) -> None:
    """The club without a connection."""
    await disconnect_club(world.db, None, world.club_id, world.connection_id)
    await finish_disconnect(world.db, None, world.club_id, world.connection_id)


async def staff_role(world: World, *permissions: Permission) -> RoleView:
    """The role that the staff of this world hold, allowing this."""
    async with world.db.read() as tx:
        role = (await roles_of(tx, world.club_id))[-1]
    return await change_role(world.db, world.actors["owner"], world.club_id, role.id, permissions=permissions)


async def put(world: World, state: ConnectionState) -> None:
    await world.db.pool.execute("update connections set state = $1", state.value)


def offered(page: str) -> set[str]:
    """The acts that the page offers."""
    return {
        act for act in ("check", "rejoin", "stop", "go", "disconnect", "finish") if f'"{AT}/{act}"' in page
    }


async def test_the_risk_comes_first_and_nothing_is_connected_before_it_is_accepted(
    visit: Callable[..., Visitor], world: World
) -> None:
    await leave(world)
    owner = visit("owner")
    page = await text(owner)
    assert page.index("Before you connect") < page.index('name="group_id"')
    assert "it may limit or ban the account" in page
    refused = await owner.post(AT, {**CONNECTING, "accepts": ""})
    assert refused.status_code == 422
    assert 'id="accepts-wrong"' in refused.text
    assert 'value="https://vrchat.com/home/group/grp_7"' in html.unescape(refused.text)
    live = "select count(*) from connections where state <> 'disconnected'"
    assert await world.db.pool.fetchval(live) == 0


async def test_the_address_of_the_groups_page_connects_it_with_what_was_ticked(
    visit: Callable[..., Visitor], world: World
) -> None:
    await leave(world)
    owner = visit("owner")
    assert (await owner.post(AT, CONNECTING)).status_code == 303
    row = await world.db.pool.fetchrow("select * from connections where state <> 'disconnected'")
    assert (row["group_id"], row["features"], row["state"]) == ("grp_7", ["posts"], "connecting")
    assert "The account is on its way into the group." in await text(owner)


async def test_what_is_no_group_is_named_beside_its_field(
    visit: Callable[..., Visitor], world: World
) -> None:
    await leave(world)
    refused = await visit("owner").post(AT, {**CONNECTING, "group_id": "NIGHT.1234"})
    assert refused.status_code == 422
    assert 'id="group_id-wrong"' in refused.text


@pytest.mark.parametrize(
    "state", [state for state in ConnectionState if state != ConnectionState.DISCONNECTED]
)
async def test_each_state_says_what_it_means_and_offers_what_helps(
    visit: Callable[..., Visitor], world: World, state: ConnectionState
) -> None:
    await put(world, state)
    page = await text(visit("owner"))
    assert STATES[state].sentence in page
    assert STATES[state].advice in page
    acts = offered(page)
    assert ("rejoin" in acts) is (
        state in {ConnectionState.AWAITING_APPROVAL, ConnectionState.AWAITING_INVITE, ConnectionState.BLOCKED}
    )
    assert ("finish" in acts) is (state is ConnectionState.DISCONNECTING)
    assert ("disconnect" in acts) is (state is not ConnectionState.DISCONNECTING)


@pytest.mark.parametrize("code", ["banned", "userblocked", "transient", "destination_closed"])
async def test_a_fault_stands_in_words_and_never_as_its_code(
    visit: Callable[..., Visitor], world: World, code: str
) -> None:
    await put(world, ConnectionState.BLOCKED)
    await world.db.pool.execute("update connections set last_fault = $1", code)
    page = await text(visit("owner"))
    fault = fault_of(code)
    assert fault is not None
    assert f"Last fault: <b>{fault.label}</b>" in page
    assert fault.label != code


async def test_grants_that_are_missing_are_named_as_vrchat_names_them(
    visit: Callable[..., Visitor], world: World
) -> None:
    await activate(
        world.db,
        world.club_id,
        world.connection_id,
        grants=["group-members-manage", "group-bans-manage"],
        age=JUST_NOW,
    )
    owner = visit("owner")
    page = await text(owner)
    assert '“Manage Group Announcement” <code class="id">group-announcement-manage</code>' in page
    assert "“Create Members-Only Group Instances”" in page
    assert "It cannot work without “Manage Group Member Data”" not in page
    assert page.count("It cannot work without") == 2
    for feature in (Feature.POSTS, Feature.INSTANCES):
        await switch_feature(world.db, None, world.club_id, world.connection_id, feature, is_on=False)
    assert "does not let the account do everything" not in await text(owner)


async def test_what_was_read_long_ago_is_shown_with_its_age_and_not_as_ready(
    visit: Callable[..., Visitor], world: World
) -> None:
    owner = visit("owner")
    await activate(world.db, world.club_id, world.connection_id, age=JUST_NOW)
    assert "as read now" in await text(owner)
    await world.db.pool.execute("update evidence set observed_at = observed_at - interval '61 s'")
    page = await text(owner)
    assert "as read now" not in page
    assert "1 min ago" in page


async def test_the_questions_count_what_is_not_sent(visit: Callable[..., Visitor], world: World) -> None:
    await world.queue("assign_role", range(3))
    await world.queue("ban_member", [7])
    owner = visit("owner")
    label, ban = KINDS["assign_role"].words.label, KINDS["ban_member"].words.label
    for act, words in (("disconnect", "never will be"), ("stop", "Waiting now")):
        page = await text(owner, f"{AT}/{act}")
        assert words in page
        assert "4 actions" in page
        assert f"{label}: 3" in page
        assert f"{ban}: 1" in page
    page = await text(owner, f"{AT}/features/membership_management")
    assert "refused when their turn comes: 4 actions" in page
    assert "Nothing of this waits" in await text(owner, f"{AT}/features/posts")


async def test_disconnecting_is_asked_done_and_can_be_ended_without_leaving(
    visit: Callable[..., Visitor], world: World
) -> None:
    owner = visit("owner")
    assert (await owner.post(f"{AT}/disconnect")).status_code == 303
    assert STATES[ConnectionState.DISCONNECTING].sentence in await text(owner)
    assert (await owner.post(f"{AT}/finish")).status_code == 303
    assert "Before you connect" in await text(owner)


async def test_a_switch_leaves_the_others_as_they_are_meanwhile(
    visit: Callable[..., Visitor], world: World
) -> None:
    first, second = visit("owner"), visit("owner")
    await text(first), await text(second)
    await first.post(f"{AT}/features/posts", {"on": "no"})
    await second.post(f"{AT}/features/analytics", {"on": "no"})
    kept = await world.db.pool.fetchval("select features from connections")
    assert sorted(kept) == ["instances", "membership_management"]


@pytest.mark.clause("COL-10")
async def test_stale_analytics_show_as_stale_beside_an_active_connection(
    visit: Callable[..., Visitor], world: World
) -> None:
    await world.db.pool.execute(
        "insert into telemetry_samples (club_id, id, connection_id, epoch, poll_id, observed_at, member_count,"
        " population, instance_count) select club_id, gen_random_uuid(), id, epoch, 'poll',"
        " lastcall_now() - interval '7 min', 70, 12, 2 from connections"
    )
    await world.db.pool.execute(
        "insert into telemetry_coverage (club_id, id, connection_id, epoch, state, started_at)"
        " select club_id, gen_random_uuid(), id, epoch, 'observed', lastcall_now() - interval '9 min'"
        " from connections"
    )
    page = await text(visit("owner"))
    assert STATES[ConnectionState.ACTIVE].sentence in page
    assert COVERAGE[CoverageState.STALE].sentence in page
    assert COVERAGE[CoverageState.OBSERVED].sentence not in page
    assert "12 in 2 instances" in page
    assert "7 min ago" in page


async def test_the_owner_chooses_by_name_which_roles_staff_may_give(
    visit: Callable[..., Visitor], world: World
) -> None:
    role = await staff_role(world, Permission.ASSIGN_VRCHAT_ROLES, Permission.MANAGE_CONNECTION)
    await activate(
        world.db, world.club_id, world.connection_id, roles=[RoleSeen(id=ROLE, name="Regular")], age=JUST_NOW
    )
    owner, staff, at = visit("owner"), visit("staff"), f"{AT}/roles/{encode_id(role.id)}"
    assert "None yet: whoever holds it may give no role." in await text(owner)
    form = (await owner.get(at)).text
    assert "Regular" in form
    saved = await owner.post(at, {"seen": seen_on(form), "provider_role": ROLE})
    assert saved.status_code == 303
    assert "Regular" in await text(staff)
    assert (await staff.get(at)).status_code == 403
    late = await owner.post(at, {"seen": seen_on(form), "provider_role": ""})
    assert late.status_code == 409
    async with world.db.read() as tx:
        assert (await roles_of(tx, world.club_id))[-1].provider_role_ids == {ROLE}


async def test_only_who_looks_after_the_connection_is_offered_it(
    visit: Callable[..., Visitor], world: World
) -> None:
    staff = visit("staff")
    assert f'href="{AT}"' not in await text(staff, "/c/night-shift/scheduled")
    assert (await staff.get(AT)).status_code == 403
    await staff_role(world, Permission.MANAGE_CONNECTION)
    assert f'href="{AT}"' in await text(staff, "/c/night-shift/scheduled")
    assert (await staff.get(AT)).status_code == 200
    assert (await visit("stranger").get(AT)).status_code == 404


def test_every_state_feature_and_grant_has_its_words() -> None:
    assert set(STATES) == set(ConnectionState)
    assert set(ACCOUNTS) == set(AccountState)
    assert set(COVERAGE) == set(CoverageState)
    assert set(FEATURES) == set(Feature)
    for feature in Feature:
        assert set(needed_by(feature)) <= set(GRANTS)
    for kind in (*KINDS.values(), *READ_KINDS.values()):
        assert set(kind.grants) <= set(needed_by(kind.feature))
