"""A club has exactly one owner, whatever happens at the same time."""

from __future__ import annotations

import asyncio

import pytest
from tests.clubs.house import House, contend, open_house, overtake, person, stale

from lastcall.clubs import ownership
from lastcall.clubs.life import archive_club, delete_club
from lastcall.clubs.ownership import transfer_club
from lastcall.clubs.policy import standing
from lastcall.clubs.queries import ClubSettings
from lastcall.clubs.service import add_club
from lastcall.clubs.staff import assign_role
from lastcall.errors import Invalid, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.people.service import block_person
from lastcall.testing.locks import wait_until_blocked

OWNER = "select owner_id from clubs where id = $1"


async def hire(club: House, name: str) -> Actor:
    who = await person(club.db, name)
    await assign_role(club.db, club.owner, club.club_id, club.roles["moderator"], who.person_id)
    return who


async def test_a_transfer_makes_one_owner_of_two_people(club: House) -> None:
    before = await club.gate()
    after = await transfer_club(
        club.db,
        club.owner,
        club.club_id,
        club.deputy.person_id,
        former_owner_role_id=club.roles["moderator"],
    )
    assert isinstance(after, ClubSettings)
    assert (after.owner_id, after.owner_name) == (club.deputy.person_id, "Deputy")
    assert await club.holds(club.deputy) == set(), "the owner holds everything and no role"
    assert await club.holds(club.owner) == {"moderator"}
    assert await club.gate() == before + 1
    assert "club.transferred" in await club.actions()
    async with club.db.read() as tx:
        assert (await standing(tx, club.club_id, club.deputy.person_id)).is_owner
        assert not (await standing(tx, club.club_id, club.owner.person_id)).is_owner


async def test_a_former_owner_without_a_role_leaves_the_staff(club: House) -> None:
    await transfer_club(club.db, club.owner, club.club_id, club.deputy.person_id)
    async with club.db.read() as tx:
        assert not (await standing(tx, club.club_id, club.owner.person_id)).is_staff


async def test_who_may_give_a_club_away_and_to_whom(club: House) -> None:
    db, club_id, deputy = club.db, club.club_id, club.deputy.person_id
    elsewhere = await open_house(db)
    with pytest.raises(NotAllowed) as refused:
        await transfer_club(db, stale(club.owner), club_id, deputy)
    assert refused.value.code == "step_up_needed"
    token = Actor(club.owner.person_id, "Owner", is_operator=False, is_recent=True, scopes=frozenset(Scope))
    with pytest.raises(NotAllowed):
        await transfer_club(db, token, club_id, deputy)
    with pytest.raises(NotAllowed) as refused:
        await transfer_club(db, club.deputy, club_id, deputy)
    assert refused.value.code == "owner_only"
    with pytest.raises(NotFound):
        await transfer_club(db, elsewhere.owner, club_id, deputy)
    with pytest.raises(NotFound):
        await transfer_club(db, club.owner, club_id, club.guest.person_id)
    with pytest.raises(Invalid):
        await transfer_club(db, club.owner, club_id, club.owner.person_id)
    with pytest.raises(NotFound):
        await transfer_club(db, club.owner, club_id, deputy, former_owner_role_id=elsewhere.roles["admin"])
    assert await club.run(OWNER) == club.owner.person_id
    assert await club.holds(club.deputy) == {"admin"}, "what was refused changed nothing"
    operator = await person(db, "operator", operator=True)
    await transfer_club(db, operator, club_id, club.guest.person_id)
    assert await club.run(OWNER) == club.guest.person_id
    await transfer_club(db, None, club_id, operator.person_id)
    assert await club.run(OWNER) == operator.person_id


async def test_of_two_transfers_the_second_is_refused(club: House) -> None:
    other = await hire(club, "other")

    async def to(who: Actor) -> None:
        await transfer_club(club.db, club.owner, club.club_id, who.person_id)

    refused = await contend(club.db, lambda: to(club.deputy), lambda: to(other))
    assert isinstance(refused, NotFound), "who gave the club away is a stranger to it"
    assert await club.run(OWNER) == club.deputy.person_id
    assert await club.holds(other) == {"moderator"}


async def test_a_club_that_is_given_away_is_not_deleted_by_the_one_who_gave_it(club: House) -> None:
    await archive_club(club.db, club.owner, club.club_id)
    refused = await contend(
        club.db,
        lambda: transfer_club(club.db, club.owner, club.club_id, club.deputy.person_id),
        lambda: delete_club(club.db, club.owner, club.club_id, confirm_slug=club.slug),
    )
    assert isinstance(refused, NotFound)
    assert await club.run("select (owner_id, state) from clubs where id = $1") == (
        club.deputy.person_id,
        "archived",
    )


async def test_a_club_that_is_deleted_is_not_given_away(club: House) -> None:
    await archive_club(club.db, club.owner, club.club_id)
    refused = await contend(
        club.db,
        lambda: delete_club(club.db, club.owner, club.club_id, confirm_slug=club.slug),
        lambda: transfer_club(club.db, club.owner, club.club_id, club.deputy.person_id),
    )
    assert isinstance(refused, NotFound)
    assert await club.run(OWNER) == club.owner.person_id


async def test_somebody_who_is_being_blocked_is_given_no_club(club: House) -> None:
    refused = await contend(
        club.db,
        lambda: block_person(club.db, None, club.guest.person_id),
        lambda: transfer_club(club.db, None, club.club_id, club.guest.person_id),
        "from people",
    )
    assert isinstance(refused, NotFound)
    assert await club.run(OWNER) == club.owner.person_id


async def test_twin_without_the_lock_a_blocked_person_owns_the_club(
    club: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def looks(tx: object, person_id: object) -> bool:
        found = await tx.raw.fetchval("select id from people where id = $1 and blocked_at is null", person_id)
        return found is not None

    monkeypatch.setattr(ownership, "lock_person", looks)
    await overtake(
        club.db,
        lambda: block_person(club.db, None, club.guest.person_id),
        lambda: transfer_club(club.db, None, club.club_id, club.guest.person_id),
    )
    assert await club.run(
        "select p.blocked_at from clubs c join people p on p.id = c.owner_id where c.id = $1"
    )


async def test_a_block_passes_the_gate_of_a_club_that_its_person_is_just_being_given(club: House) -> None:
    before = await club.gate()
    async with club.db.transaction() as tx:
        await transfer_club(club.db, None, club.club_id, club.guest.person_id)
        blocking = asyncio.ensure_future(block_person(club.db, None, club.guest.person_id))
        await wait_until_blocked(club.db, "from people", by=tx.raw.get_server_pid())
    await blocking
    assert await club.run(OWNER) == club.guest.person_id
    assert await club.gate() == before + 2, "the transfer's and the block's"
    async with club.db.read() as read:
        assert not (await standing(read, club.club_id, club.guest.person_id)).is_owner


async def test_a_block_passes_the_gate_of_a_club_that_its_person_is_just_making(club: House) -> None:
    async with club.db.transaction() as tx:
        made = await add_club(club.db, None, "New", f"new-{club.slug}"[:40], "UTC", club.guest.person_id)
        blocking = asyncio.ensure_future(block_person(club.db, None, club.guest.person_id))
        await wait_until_blocked(club.db, "from people", by=tx.raw.get_server_pid())
    await blocking
    assert await club.db.pool.fetchval("select generation from club_gates where club_id = $1", made) == 1
