"""Roles give, the gate guards what they take, and nobody hands on more than they may."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import pytest

from lastcall.clubs.permissions import ALL_PERMISSIONS, Permission
from lastcall.clubs.policy import require, require_owner, standing
from lastcall.clubs.queries import club_by_slug, clubs_of, roles_of
from lastcall.clubs.registration import register
from lastcall.clubs.service import add_club
from lastcall.clubs.staff import assign_role, revoke_role
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.people.service import add_person, block_person
from lastcall.testing.staff import change_role


@dataclass
class House:
    """A club with its owner, one person without a role, and the ids of the preset roles by key."""

    club_id: UUID
    owner: Actor
    guest: Actor
    roles: dict[str, UUID]


async def person(database: Database, name: str) -> Actor:
    return Actor(await add_person(database, f"{name}@example.org", name), name, is_operator=False)


@pytest.fixture
async def house(database: Database) -> House:
    owner, guest = await person(database, "owner"), await person(database, "guest")
    club_id = await add_club(database, None, "The Attic", "attic", "Europe/Berlin", owner.person_id)
    async with database.read() as tx:
        roles = {role.preset_key or "": role.id for role in await roles_of(tx, club_id)}
    return House(club_id, owner, guest, roles)


async def gate(database: Database, club_id: UUID) -> int:
    generation: int = await database.pool.fetchval(
        "select generation from club_gates where club_id = $1", club_id
    )
    return generation


async def sql_holds(database: Database, house: House, who: Actor, permission: str) -> bool:
    held: bool = await database.pool.fetchval(
        "select person_holds($1, $2, $3)", house.club_id, who.person_id, permission
    )
    return held


async def sql_may_assign(database: Database, house: House, who: Actor, provider_role: str) -> bool:
    may: bool = await database.pool.fetchval(
        "select may_assign from person_standing($1, $2, null, $3)",
        house.club_id,
        who.person_id,
        provider_role,
    )
    return may


async def test_a_new_club_has_its_presets_its_gate_and_its_slug(database: Database, house: House) -> None:
    assert set(house.roles) == {"admin", "moderator", "event_staff"}
    assert await gate(database, house.club_id) == 0
    with pytest.raises(Conflict) as refused:
        await add_club(database, None, "Another Attic", "attic", "UTC", house.guest.person_id)
    assert refused.value.code == "slug_taken"
    assert await database.pool.fetchval("select count(*) from clubs") == 1


@pytest.mark.parametrize(
    ("name", "slug", "zone", "field"),
    [
        ("", "attic", "UTC", "name"),
        ("Attic", "At tic", "UTC", "slug"),
        ("Attic", "-attic", "UTC", "slug"),
        ("Attic", "a" * 41, "UTC", "slug"),
        ("Attic", "attic", "Europe/Atlantis", "zone"),
        ("Attic", "attic", "../etc/passwd", "zone"),
        ("Attic", "attic", "", "zone"),
    ],
)
async def test_a_malformed_club_is_refused_with_its_field(
    database: Database, name: str, slug: str, zone: str, field: str
) -> None:
    owner = await person(database, "owner")
    with pytest.raises(Invalid) as refused:
        await add_club(database, None, name, slug, zone, owner.person_id)
    assert refused.value.field == field


async def test_only_operators_add_clubs(database: Database) -> None:
    guest = await person(database, "guest")
    with pytest.raises(NotAllowed):
        await add_club(database, guest, "Attic", "attic", "UTC", guest.person_id)


async def test_the_owner_holds_everything_and_a_stranger_sees_no_club(
    database: Database, house: House
) -> None:
    async with database.read() as tx:
        assert (await standing(tx, house.club_id, house.owner.person_id)).permissions == ALL_PERMISSIONS
        with pytest.raises(NotFound):
            await require(tx, house.guest, house.club_id, Permission.VIEW_MEMBERS, scope=Scope.READ)
        with pytest.raises(NotFound):
            await require(tx, house.owner, new_id(), Permission.VIEW_MEMBERS, scope=Scope.READ)
        with pytest.raises(NotFound):
            await club_by_slug(tx, house.guest, "attic")
        assert await clubs_of(tx, house.guest) == []
        assert [club.slug for club in await clubs_of(tx, house.owner)] == ["attic"]


async def test_an_address_that_no_club_can_have_is_unknown(database: Database, house: House) -> None:
    async with database.read() as tx:
        for slug in ("attic\x00", "\x00", "att\nic", "x" * 5000):
            with pytest.raises(NotFound):
                await club_by_slug(tx, house.owner, slug)


async def test_permissions_are_the_union_over_active_roles(database: Database, house: House) -> None:
    for role in ("moderator", "event_staff"):
        await assign_role(database, house.owner, house.club_id, house.roles[role], house.guest.person_id)
    async with database.read() as tx:
        found = await standing(tx, house.club_id, house.guest.person_id)
        assert not found.is_owner
        assert {Permission.MANAGE_BANS, Permission.PUBLISH_POSTS} <= found.permissions
        with pytest.raises(NotAllowed) as refused:
            await require(tx, house.guest, house.club_id, Permission.MANAGE_STAFF, scope=Scope.READ)
        assert Permission.MANAGE_STAFF.label in refused.value.sentence
        with pytest.raises(NotAllowed):
            await require_owner(tx, house.guest, house.club_id, scope=Scope.READ)
    await database.pool.execute(
        "update staff_roles set state = 'deleted' where id = $1", house.roles["moderator"]
    )
    async with database.read() as tx:
        found = await standing(tx, house.club_id, house.guest.person_id)
        assert Permission.MANAGE_BANS not in found.permissions
        assert Permission.PUBLISH_POSTS in found.permissions


async def test_sql_and_service_say_the_same_of_every_permission(database: Database, house: House) -> None:
    helper = await person(database, "doorkeeper")
    await assign_role(database, house.owner, house.club_id, house.roles["moderator"], helper.person_id)
    for who in (house.owner, house.guest, helper):
        async with database.read() as tx:
            found = await standing(tx, house.club_id, who.person_id)
        by_sql = {p for p in Permission if await sql_holds(database, house, who, p)}
        assert by_sql == set(found.permissions)


async def test_vrchat_roles_are_assignable_only_through_a_role_that_has_the_permission(
    database: Database, house: House
) -> None:
    role = house.roles["moderator"]
    await assign_role(database, house.owner, house.club_id, role, house.guest.person_id)
    await change_role(database, house.owner, house.club_id, role, provider_roles=["GROL_Dancer", "grol_vip"])
    assert await sql_may_assign(database, house, house.guest, "grol_DANCER")
    assert not await sql_may_assign(database, house, house.guest, "grol_admin")
    assert await sql_may_assign(database, house, house.owner, "grol_admin")
    await change_role(
        database,
        house.owner,
        house.club_id,
        role,
        permissions={Permission.VIEW_MEMBERS, Permission.MANAGE_STAFF},
    )
    assert not await sql_may_assign(database, house, house.guest, "grol_dancer")
    async with database.read() as tx:
        found = await standing(tx, house.club_id, house.guest.person_id)
    assert not found.may_assign("grol_dancer")
    # Another role with the permission but without the list does not lend it to this one.
    await assign_role(database, house.owner, house.club_id, house.roles["admin"], house.guest.person_id)
    assert not await sql_may_assign(database, house, house.guest, "grol_dancer")


async def test_a_blocked_person_holds_nothing_and_every_gate_they_stood_behind_moved(
    database: Database, house: House
) -> None:
    register()
    role = house.roles["admin"]
    await assign_role(database, house.owner, house.club_id, role, house.guest.person_id)
    await change_role(database, house.owner, house.club_id, role, provider_roles=["grol_vip"])
    assert await sql_holds(database, house, house.guest, "manage_bans")
    before = await gate(database, house.club_id)
    await block_person(database, None, house.guest.person_id)
    between = await gate(database, house.club_id)
    assert between > before
    assert not await sql_holds(database, house, house.guest, "manage_bans")
    assert not await sql_may_assign(database, house, house.guest, "grol_vip")
    await block_person(database, None, house.owner.person_id)
    assert await gate(database, house.club_id) > between
    assert not await sql_holds(database, house, house.owner, "manage_bans")
    async with database.read() as tx:
        assert not (await standing(tx, house.club_id, house.owner.person_id)).is_staff


async def test_every_change_of_authority_moves_the_gate(database: Database, house: House) -> None:
    role, guest = house.roles["moderator"], house.guest.person_id
    await assign_role(database, house.owner, house.club_id, role, guest)
    assert await gate(database, house.club_id) == 1
    await change_role(database, house.owner, house.club_id, role, permissions={Permission.VIEW_MEMBERS})
    assert await gate(database, house.club_id) == 2
    await change_role(database, house.owner, house.club_id, role, provider_roles=[])
    assert await gate(database, house.club_id) == 3
    await revoke_role(database, house.owner, house.club_id, role, guest)
    assert await gate(database, house.club_id) == 4
    with pytest.raises(NotFound):
        await revoke_role(database, house.guest, house.club_id, role, guest)
    assert await gate(database, house.club_id) == 4, "what was refused moved nothing"


async def test_staff_hand_on_only_what_a_role_of_theirs_may(database: Database, house: House) -> None:
    admin, moderator = house.roles["admin"], house.roles["moderator"]
    other = await person(database, "other")
    await assign_role(database, house.owner, house.club_id, admin, house.guest.person_id)
    with pytest.raises(NotAllowed) as refused:
        await assign_role(database, house.guest, house.club_id, moderator, other.person_id)
    assert refused.value.code == "role_not_assignable"
    await change_role(database, house.owner, house.club_id, admin, assignable=[moderator])
    await assign_role(database, house.guest, house.club_id, moderator, other.person_id)
    with pytest.raises(NotAllowed):
        await assign_role(database, house.guest, house.club_id, admin, other.person_id)
    await revoke_role(database, house.guest, house.club_id, moderator, other.person_id)
    async with database.read() as tx:
        assert not (await standing(tx, house.club_id, other.person_id)).is_staff


async def test_nobody_changes_their_own_roles_and_the_owner_holds_none(
    database: Database, house: House
) -> None:
    admin = house.roles["admin"]
    await assign_role(database, house.owner, house.club_id, admin, house.guest.person_id)
    await change_role(database, house.owner, house.club_id, admin, assignable=[admin])
    with pytest.raises(NotAllowed) as refused:
        await revoke_role(database, house.guest, house.club_id, admin, house.guest.person_id)
    assert refused.value.code == "own_roles"
    with pytest.raises(Invalid):
        await assign_role(database, house.guest, house.club_id, admin, house.owner.person_id)


async def test_a_role_of_another_club_does_not_exist(database: Database, house: House) -> None:
    other = await add_club(database, None, "The Cellar", "cellar", "UTC", house.owner.person_id)
    role = house.roles["moderator"]
    with pytest.raises(NotFound):
        await assign_role(database, house.owner, other, role, house.guest.person_id)
    with pytest.raises(NotFound):
        await change_role(database, house.owner, other, role, permissions=[])
    with pytest.raises(NotFound):
        await change_role(database, house.owner, house.club_id, role, assignable=[new_id()])


async def test_each_change_is_in_the_activity_log_with_its_actor(database: Database, house: House) -> None:
    role = house.roles["moderator"]
    await assign_role(database, house.owner, house.club_id, role, house.guest.person_id)
    await assign_role(database, house.owner, house.club_id, role, house.guest.person_id)
    await revoke_role(database, house.owner, house.club_id, role, house.guest.person_id)
    rows = await database.pool.fetch(
        "select action, actor_kind, actor_id from activity_log where club_id = $1 order by id", house.club_id
    )
    owner = house.owner.person_id
    assert [tuple(row) for row in rows] == [
        ("club.added", "system", None),
        ("staff.role_assigned", "person", owner),
        ("staff.role_revoked", "person", owner),
    ]
