"""Nothing is public unless the owner made it so, and what a reader may not see is not in the answer."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest
from msgspec import UNSET, UnsetType
from tests.clubs.house import House, contend, person

from lastcall.clubs.life import archive_club, delete_club, pause_club
from lastcall.clubs.staff import assign_role
from lastcall.clubs.visibility import (
    Audience,
    Category,
    VisibilityView,
    readable,
    set_visibility,
    visibility_of,
    visible,
)
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.people.service import block_person

STAFF_DEFAULT = frozenset(Category) - {Category.INDIVIDUAL_MEMBERSHIP_HISTORY}


async def choose(
    club: House, category: Category, audience: Audience, *keys: str, seen: VisibilityView | None = None
) -> VisibilityView:
    return await set_visibility(
        club.db,
        club.owner,
        club.club_id,
        category,
        audience,
        [club.roles[key] for key in keys],
        None if seen is None else seen.updated_at,
    )


async def seen_by(club: House, who: Actor | None) -> frozenset[Category]:
    async with club.db.read() as tx:
        return await readable(tx, club.club_id, who)


async def test_by_default_all_staff_see_all_but_single_members_and_the_public_sees_nothing(
    club: House,
) -> None:
    assert await seen_by(club, club.owner) == frozenset(Category)
    assert await seen_by(club, club.deputy) == STAFF_DEFAULT
    assert await seen_by(club, club.guest) == frozenset()
    assert await seen_by(club, None) == frozenset()
    async with club.db.read() as tx:
        assert await readable(tx, new_id(), club.owner) == frozenset()


async def test_each_audience_sees_its_category_and_no_other_does(club: House) -> None:
    helper = await person(club.db, "helper")
    await assign_role(club.db, club.owner, club.club_id, club.roles["event_staff"], helper.person_id)
    await choose(club, Category.CURRENT_POPULATION, Audience.PUBLIC)
    await choose(club, Category.GROUP_SIZE, Audience.ROLES, "event_staff", "moderator")
    await choose(club, Category.EVENT_RECAPS, Audience.OWNER)
    await choose(club, Category.INDIVIDUAL_MEMBERSHIP_HISTORY, Audience.STAFF)
    assert await seen_by(club, None) == {Category.CURRENT_POPULATION}
    assert await seen_by(club, club.guest) == {Category.CURRENT_POPULATION}
    rest = frozenset(Category) - {Category.EVENT_RECAPS}
    assert await seen_by(club, helper) == rest
    assert await seen_by(club, club.deputy) == rest - {Category.GROUP_SIZE}
    assert await seen_by(club, club.owner) == frozenset(Category)
    await block_person(club.db, None, helper.person_id)
    assert await seen_by(club, helper) == {Category.CURRENT_POPULATION}
    await block_person(club.db, None, club.owner.person_id)
    assert await seen_by(club, club.owner) == {Category.CURRENT_POPULATION}


async def test_an_archived_club_shows_the_public_nothing_and_a_deleted_one_nobody_anything(
    club: House,
) -> None:
    await choose(club, Category.GROUP_SIZE, Audience.PUBLIC)
    await pause_club(club.db, club.owner, club.club_id)
    assert await seen_by(club, None) == {Category.GROUP_SIZE}
    await archive_club(club.db, club.owner, club.club_id)
    assert await seen_by(club, None) == frozenset()
    assert await seen_by(club, club.deputy) == STAFF_DEFAULT
    await delete_club(club.db, club.owner, club.club_id, confirm_slug=club.slug)
    assert await seen_by(club, club.owner) == frozenset()


async def test_a_choice_that_makes_no_sense_is_refused(club: House) -> None:
    for category, audience, keys, field in (
        (Category.INDIVIDUAL_MEMBERSHIP_HISTORY, Audience.PUBLIC, (), "audience"),
        (Category.GROUP_SIZE, Audience.ROLES, (), "role_ids"),
        (Category.GROUP_SIZE, Audience.PUBLIC, ("admin",), "role_ids"),
    ):
        with pytest.raises(Invalid) as refused:
            await choose(club, category, audience, *keys)
        assert refused.value.field == field
    with pytest.raises(NotFound):
        await set_visibility(
            club.db, club.owner, club.club_id, Category.GROUP_SIZE, Audience.ROLES, [new_id()], None
        )
    with pytest.raises(NotAllowed):
        await set_visibility(
            club.db, club.deputy, club.club_id, Category.GROUP_SIZE, Audience.STAFF, [], None
        )
    async with club.db.read() as tx:
        with pytest.raises(NotAllowed):
            await visibility_of(tx, club.deputy, club.club_id)
        shown = await visibility_of(tx, club.owner, club.club_id)
    assert [view.audience for view in shown] == [category.default for category in Category]
    with pytest.raises(NotAllowed):
        await seen_by(
            club, Actor(club.owner.person_id, "Owner", is_operator=False, scopes=frozenset({Scope.CLUBS}))
        )


async def test_of_two_who_choose_one_wins_and_the_other_sees_what_it_is_now(club: House) -> None:
    lost = await contend(
        club.db,
        lambda: choose(club, Category.GROUP_SIZE, Audience.PUBLIC),
        lambda: choose(club, Category.GROUP_SIZE, Audience.OWNER),
    )
    assert isinstance(lost, Conflict)
    assert lost.fresh.audience is Audience.PUBLIC
    again = await choose(club, Category.GROUP_SIZE, Audience.OWNER, seen=lost.fresh)
    assert again.audience is Audience.OWNER
    assert again.updated_at is not None
    assert again.updated_at > lost.fresh.updated_at


# The filter over a response.


class Sample(msgspec.Struct):
    at: str
    population: Annotated[int | UnsetType, Category.POPULATION_HISTORY] = UNSET


class Room(msgspec.Struct, frozen=True):
    name: str
    samples: list[Sample]
    by_day: dict[str, tuple[Sample, ...]]
    members: Annotated[list[str] | UnsetType, Category.INDIVIDUAL_MEMBERSHIP_HISTORY] = UNSET


class Report(msgspec.Struct, rename="camel"):
    club_name: str
    group_size: Annotated[int | UnsetType | None, Category.GROUP_SIZE] = UNSET
    main_room: Annotated[Room | UnsetType, Category.INSTANCE_HISTORY] = UNSET
    rooms: tuple[Room, ...] = ()


def room(name: str) -> Room:
    return Room(name, [Sample("now", 12)], {"monday": (Sample("then", 7),)}, ["Ada"])


REPORT = Report("Attic", 300, room("main"), (room("side"),))


def test_a_hidden_field_is_not_in_the_answer_at_any_depth() -> None:
    shown = msgspec.json.decode(msgspec.json.encode(visible(REPORT, {Category.GROUP_SIZE})))
    assert shown == {
        "clubName": "Attic",
        "groupSize": 300,
        "rooms": [
            {"name": "side", "samples": [{"at": "now"}], "by_day": {"monday": [{"at": "then"}]}},
        ],
    }


def test_who_may_see_everything_gets_all_of_it_and_the_value_itself_is_untouched() -> None:
    before = msgspec.json.encode(REPORT)
    assert visible(REPORT, frozenset(Category)) == REPORT
    assert visible([REPORT], ())[0] != REPORT
    assert msgspec.json.encode(REPORT) == before


@pytest.mark.parametrize("allowed", [frozenset(), *[frozenset({category}) for category in Category]])
def test_no_number_of_a_hidden_category_survives(allowed: frozenset[Category]) -> None:
    text = msgspec.json.encode(visible(REPORT, allowed)).decode()
    assert ("300" in text) == (Category.GROUP_SIZE in allowed)
    assert ("12" in text) == (Category.POPULATION_HISTORY in allowed)
    assert ("main" in text) == (Category.INSTANCE_HISTORY in allowed)
    assert ("Ada" in text) == (Category.INDIVIDUAL_MEMBERSHIP_HISTORY in allowed)


def test_a_guarded_field_that_could_not_be_left_out_is_a_mistake_of_the_code() -> None:
    class Careless(msgspec.Struct):
        size: Annotated[int, Category.GROUP_SIZE]

    with pytest.raises(TypeError, match="UnsetType"):
        visible(Careless(1), ())
