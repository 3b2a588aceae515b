"""A role is edited as a whole, by one person at a time, and leaves nothing behind when it goes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from uuid import UUID

import pytest
from tests.clubs.house import House, contend, open_house, overtake, person

from lastcall.clubs import roles, staff
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import standing
from lastcall.clubs.queries import RoleView, role, roster, staff_roles
from lastcall.clubs.roles import RoleFields, create_role, delete_role, edit_role
from lastcall.clubs.staff import assign_role, revoke_role
from lastcall.clubs.visibility import Audience, Category, set_visibility, visibility_of
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.testing.clock import TestClock
from lastcall.testing.staff import change_role, fields_of


async def test_a_role_is_made_edited_and_read_as_a_whole(club: House) -> None:
    moderator = club.roles["moderator"]
    fields = RoleFields(
        "  Do\u0301or  staff ",
        "Stands at the door.",
        frozenset({Permission.VIEW_MEMBERS, Permission.ASSIGN_VRCHAT_ROLES}),
        frozenset({moderator}),
        frozenset({" GROL_One ", "grol_two"}),
    )
    before = await club.gate()
    made = await create_role(club.db, club.owner, club.club_id, fields)
    assert (made.name, made.description) == ("D\u00f3or staff", "Stands at the door.")
    assert made.permissions == fields.permissions
    assert made.assignable_role_ids == {moderator}
    assert made.provider_role_ids == {"grol_one", "grol_two"}
    less = replace(fields_of(made), permissions=frozenset({Permission.VIEW_MEMBERS}))
    edited = await edit_role(club.db, club.owner, club.club_id, made.id, less, made.updated_at)
    assert edited.permissions == {Permission.VIEW_MEMBERS}
    assert edited.updated_at > made.updated_at
    assert await club.gate() == before + 2
    async with club.db.read() as tx:
        assert await role(tx, club.deputy, club.club_id, made.id) == edited
        assert edited in await staff_roles(tx, club.deputy, club.club_id)
        with pytest.raises(NotFound):
            await staff_roles(tx, club.guest, club.club_id)
    assert (await club.actions())[-2:] == ["staff.role_created", "staff.role_edited"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (RoleFields(""), "name"),
        (RoleFields("ad\u202emin"), "name"),
        (RoleFields("Door", "x\x00"), "description"),
        (RoleFields("Door", "x" * 201), "description"),
        (RoleFields("Door", provider_role_ids=frozenset({"grol one"})), "provider_role_ids"),
        (RoleFields("Door", provider_role_ids=frozenset({"usr_1"})), "provider_role_ids"),
        (
            RoleFields("Door", provider_role_ids=frozenset(f"grol_{n}" for n in range(101))),
            "provider_role_ids",
        ),
    ],
)
async def test_a_malformed_role_is_refused_with_its_field(
    club: House, fields: RoleFields, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await create_role(club.db, club.owner, club.club_id, fields)
    assert refused.value.field == field


async def test_only_the_owner_makes_edits_and_deletes_roles(club: House) -> None:
    moderator = await club.role("moderator")
    attempts = [
        lambda who: create_role(club.db, who, club.club_id, RoleFields("Door")),
        lambda who: edit_role(
            club.db, who, club.club_id, moderator.id, fields_of(moderator), moderator.updated_at
        ),
        lambda who: delete_role(club.db, who, club.club_id, moderator.id, moderator.updated_at),
    ]
    for attempt in attempts:
        with pytest.raises(NotAllowed) as refused:
            await attempt(club.deputy)
        assert refused.value.code == "owner_only"
        with pytest.raises(NotFound):
            await attempt(club.guest)
    assert await club.role("moderator") == moderator


async def test_a_role_of_another_club_and_a_deleted_one_cannot_be_named(club: House) -> None:
    elsewhere = await open_house(club.db)
    gone = await create_role(club.db, club.owner, club.club_id, RoleFields("Gone"))
    await delete_role(club.db, club.owner, club.club_id, gone.id, gone.updated_at)
    for unknown in (elsewhere.roles["admin"], gone.id, new_id()):
        with pytest.raises(NotFound):
            await change_role(
                club.db, club.owner, club.club_id, club.roles["moderator"], assignable=[unknown]
            )
        with pytest.raises(NotFound):
            await assign_role(club.db, club.owner, club.club_id, unknown, club.guest.person_id)


def renamed(seen: RoleView, name: str) -> RoleFields:
    return replace(fields_of(seen), name=name)


async def test_of_two_who_edit_one_role_one_wins_and_the_other_gets_the_fresh_row(club: House) -> None:
    seen = await club.role("moderator")

    async def edit(name: str) -> RoleView:
        return await edit_role(
            club.db, club.owner, club.club_id, seen.id, renamed(seen, name), seen.updated_at
        )

    lost = await contend(club.db, lambda: edit("First"), lambda: edit("Second"))
    assert isinstance(lost, Conflict)
    assert lost.code == "role_moved"
    fresh = await club.role("moderator")
    assert lost.fresh == fresh
    assert fresh.name == "First"
    again = await edit_role(
        club.db, club.owner, club.club_id, seen.id, renamed(fresh, "Second"), fresh.updated_at
    )
    assert again.name == "Second"


async def test_twin_without_the_comparison_the_second_edit_undoes_the_first(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def compares_nothing(tx: object, club_id: UUID, role_id: UUID, seen: datetime) -> RoleView:
        return await roles.read_role(tx, club_id, role_id)

    monkeypatch.setattr(roles, "_read_as_seen", compares_nothing)
    seen = await club.role("moderator")
    gives = replace(fields_of(seen), permissions=frozenset({Permission.MANAGE_BANS}))
    names = renamed(seen, "Second")
    await edit_role(club.db, club.owner, club.club_id, seen.id, gives, seen.updated_at)
    await edit_role(club.db, club.owner, club.club_id, seen.id, names, seen.updated_at)
    assert (await club.role("moderator")).permissions == seen.permissions, "the first edit is lost"


async def test_each_edit_moves_the_time_forward_though_the_clock_stands_still(
    database: Database, test_clock: TestClock
) -> None:
    club = await open_house(database)
    await test_clock.freeze()
    seen = await club.role("moderator")
    times = [seen.updated_at]
    for number in range(3):
        seen = await edit_role(
            database, club.owner, club.club_id, seen.id, renamed(seen, f"Name {number}"), times[-1]
        )
        times.append(seen.updated_at)
    assert times == sorted(set(times))


async def test_a_deleted_role_leaves_nobody_and_nothing_behind(club: House) -> None:
    moderator, admin = await club.role("moderator"), club.roles["admin"]
    await assign_role(club.db, club.owner, club.club_id, moderator.id, club.guest.person_id)
    for category, chosen in (
        (Category.GROUP_SIZE, [moderator.id]),
        (Category.EVENT_RECAPS, [moderator.id, admin]),
        (Category.INDIVIDUAL_MEMBERSHIP_HISTORY, [moderator.id]),
    ):
        await set_visibility(club.db, club.owner, club.club_id, category, Audience.ROLES, chosen, None)

    deleted = await delete_role(club.db, club.owner, club.club_id, moderator.id, moderator.updated_at)

    assert deleted.people == 1
    assert deleted.owner_only == ("group_size", "individual_membership_history")
    async with club.db.read() as tx:
        assert not (await standing(tx, club.club_id, club.guest.person_id)).is_staff
        assert (
            moderator.id not in (await standing(tx, club.club_id, club.deputy.person_id)).assignable_role_ids
        )
        shown = {view.category: view for view in await visibility_of(tx, club.owner, club.club_id)}
        assert moderator.id not in {view.id for view in await staff_roles(tx, club.owner, club.club_id)}
    assert shown[Category.GROUP_SIZE].audience is Audience.OWNER
    assert (shown[Category.EVENT_RECAPS].audience, shown[Category.EVENT_RECAPS].role_ids) == (
        Audience.ROLES,
        (admin,),
    )
    named = "select count(*) from {} t where club_id = $1 and t::text like '%' || $2 || '%'"
    for table in ("staff_assignments", "visibility"):
        assert await club.run(named.format(table), str(moderator.id)) == 0
    assert (await club.actions())[-1] == "staff.role_deleted"
    with pytest.raises(NotFound):
        await delete_role(club.db, club.owner, club.club_id, moderator.id, moderator.updated_at)


async def test_a_role_that_moved_since_it_was_seen_is_not_deleted(club: House) -> None:
    seen = await club.role("moderator")
    fresh = await change_role(club.db, club.owner, club.club_id, seen.id, permissions=[])
    with pytest.raises(Conflict) as refused:
        await delete_role(club.db, club.owner, club.club_id, seen.id, seen.updated_at)
    assert refused.value.fresh == fresh


# Limits, each with the last free place taken by somebody else meanwhile.

_MORE_ROLES = """
    insert into staff_roles (club_id, id, name)
    select $1, gen_random_uuid(), 'Role ' || n from generate_series(4, 99) n
"""
_MORE_PEOPLE = """
    with p as (
        insert into people (id, email, display_name)
        select gen_random_uuid(), gen_random_uuid() || '@example.org', 'Somebody' from generate_series(1, $2) n
        returning id)
    insert into staff_assignments (club_id, id, role_id, person_id)
    select $1, gen_random_uuid(), $3, p.id from p
"""
_ALL_ROLES = """
    insert into staff_assignments (club_id, id, role_id, person_id)
    select $1, gen_random_uuid(), r.id, $2 from staff_roles r where r.club_id = $1 order by r.id limit $3
"""
COUNT_ROLES = "select count(*) from staff_roles where club_id = $1 and state = 'active'"
COUNT_ASSIGNMENTS = "select count(*) from staff_assignments where club_id = $1"


async def fill_assignments(club: House, upto: int) -> None:
    await club.run(_MORE_PEOPLE, upto - 1, club.roles["event_staff"])
    assert await club.run(COUNT_ASSIGNMENTS) == upto


async def test_the_hundredth_role_is_the_last_whoever_else_makes_one(club: House) -> None:
    await club.run(_MORE_ROLES)

    async def make() -> RoleView:
        return await create_role(club.db, club.owner, club.club_id, RoleFields("One more"))

    refused = await contend(club.db, make, make)
    assert isinstance(refused, Conflict)
    assert refused.code == "roles_full"
    assert await club.run(COUNT_ROLES) == 100
    gone = await club.role("moderator")
    await delete_role(club.db, club.owner, club.club_id, gone.id, gone.updated_at)
    await make()
    assert await club.run(COUNT_ROLES) == 100


async def test_a_club_has_five_hundred_assignments_whoever_else_assigns(club: House) -> None:
    await fill_assignments(club, 499)
    others = [await person(club.db, "other") for _ in range(2)]

    async def give(number: int) -> None:
        await assign_role(
            club.db, club.owner, club.club_id, club.roles["moderator"], others[number].person_id
        )

    refused = await contend(club.db, lambda: give(0), lambda: give(1))
    assert isinstance(refused, Conflict)
    assert refused.code == "assignments_full"
    assert await club.run(COUNT_ASSIGNMENTS) == 500
    await give(0)
    async with club.db.read() as tx:
        shown = await roster(tx, club.owner, club.club_id)
    assert (len(shown.members), shown.is_cut) == (500, False)
    await revoke_role(club.db, club.owner, club.club_id, club.roles["moderator"], others[0].person_id)
    await give(1)
    assert await club.run(COUNT_ASSIGNMENTS) == 500


async def test_a_person_holds_at_most_a_hundred_roles(club: House) -> None:
    await club.run(_MORE_ROLES)
    await create_role(club.db, club.owner, club.club_id, RoleFields("The hundredth"))
    guest = club.guest.person_id
    await club.run(_ALL_ROLES, guest, 99)
    last, deleted = [
        row["id"]
        for row in await club.db.pool.fetch(
            "select id from staff_roles r where club_id = $1 order by exists (select from staff_assignments a"
            " where a.club_id = $1 and a.role_id = r.id and a.person_id = $2), id limit 2",
            club.club_id,
            guest,
        )
    ]
    await assign_role(club.db, club.owner, club.club_id, last, guest)
    gone = await roles_by_id(club, deleted)
    await delete_role(club.db, club.owner, club.club_id, deleted, gone.updated_at)
    one_more = await create_role(club.db, club.owner, club.club_id, RoleFields("One"))
    await assign_role(club.db, club.owner, club.club_id, one_more.id, guest)
    two_more = await club.run(
        "insert into staff_roles (club_id, id, name) values ($1, gen_random_uuid(), 'Two') returning id"
    )
    with pytest.raises(Conflict) as refused:
        await assign_role(club.db, club.owner, club.club_id, two_more, guest)
    assert refused.value.code == "assignments_full"


async def roles_by_id(club: House, role_id: UUID) -> RoleView:
    async with club.db.read() as tx:
        return await roles.read_role(tx, club.club_id, role_id)


async def test_twin_without_the_gate_both_take_the_last_place(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def does_nothing(*_: object) -> None: ...

    monkeypatch.setattr(staff, "bump_gate", does_nothing)
    await fill_assignments(club, 499)
    others = [await person(club.db, "other") for _ in range(2)]

    async def give(number: int) -> None:
        await assign_role(
            club.db, club.owner, club.club_id, club.roles["moderator"], others[number].person_id
        )

    await overtake(club.db, lambda: give(0), lambda: give(1))
    assert await club.run(COUNT_ASSIGNMENTS) == 501, "one more than the limit"
