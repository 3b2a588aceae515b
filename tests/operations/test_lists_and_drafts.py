"""What staff prepare: lists of recipients that all inviters share, and drafts that nobody but their writer sees."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from notices_kit import another_moderator
from operations_world import World, user
from sqlalchemy import Select

from lastcall.app import register
from lastcall.clubs.export import export_club
from lastcall.clubs.policy import require_staff
from lastcall.db.cursor import read_cursor
from lastcall.db.ids import encode_id, new_id
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.operations.drafts import DraftView, post_draft, post_drafts
from lastcall.operations.lists import LISTS, recipient_list, recipient_lists
from lastcall.operations.schedules import EventRelative, Fixed, Immediate, Schedule, read_schedule
from lastcall.operations.services import drafts as writing
from lastcall.operations.services import lists as keeping
from lastcall.operations.services.drafts import discard_draft, queue_draft, save_draft
from lastcall.operations.services.lists import create_list, delete_list, edit_list
from lastcall.people.actor import Actor
from lastcall.people.erasing import erase_person, export_person
from lastcall.people.personal_data import ERASED_NAME
from lastcall.people.scopes import Scope
from lastcall.testing.locks import wait_until_blocked

POST = {"title": "Tonight", "text": "Doors at nine."}
A_TIME = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


async def code_of(work: Any) -> str:
    with pytest.raises(LastcallError) as refusal:
        await work
    return refusal.value.code


# --- recipient lists -------------------------------------------------------------------------------------------


@pytest.mark.clause("ENQ-14")
async def test_a_list_is_kept_in_order_without_repeats_and_rises_by_revision(world: World) -> None:
    ids = [f" {user(2).upper().replace('USR', 'usr')} ", user(1), user(2)]
    made = await create_list(world.db, world.moderator, world.club_id, "  The   regulars ", ids)
    assert (made.name, made.user_ids, made.revision) == ("The regulars", [user(2), user(1)], 1)
    edited = await edit_list(world.db, world.owner, world.club_id, made.id, "Regulars", [user(3)], 1)
    assert (edited.name, edited.user_ids, edited.revision) == ("Regulars", [user(3)], 2)
    assert edited.updated_by_name == "Owner"
    same = await edit_list(world.db, world.owner, world.club_id, made.id, "Regulars", [user(3)], 2)
    assert same.revision == 2
    with pytest.raises(Conflict) as refusal:
        await edit_list(world.db, world.moderator, world.club_id, made.id, "Mine", [user(1)], 1)
    assert refusal.value.fresh == edited
    assert (
        await code_of(delete_list(world.db, world.moderator, world.club_id, made.id, 1)) == "revision_stale"
    )
    await delete_list(world.db, world.moderator, world.club_id, made.id, 2)
    async with world.db.read() as tx:
        standing = await require_staff(tx, world.owner, world.club_id, scope=Scope.READ)
        assert await recipient_lists(tx, standing, world.club_id) == ([], None)
        with pytest.raises(NotFound):
            await recipient_list(tx, standing, world.club_id, made.id)
    actions = await world.db.pool.fetch("select action from activity_log order by id")
    assert [row["action"] for row in actions] == ["list.created", "list.edited", "list.deleted"]


@pytest.mark.parametrize(
    ("name", "ids", "field"),
    [
        ("", [user(1)], "name"),
        ("x" * 81, [user(1)], "name"),
        ("People", [], "userIds"),
        ("People", [user(n) for n in range(101)], "userIds"),
        ("People", [user(1), "8JoV9XEdpo"], "userIds.1"),
    ],
)
async def test_a_list_has_a_name_and_one_to_a_hundred_people(
    world: World, name: str, ids: list[str], field: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        await create_list(world.db, world.moderator, world.club_id, name, ids)
    assert refusal.value.field == field


async def test_lists_are_for_those_who_may_invite(world: World) -> None:
    await create_list(world.db, world.owner, world.club_id, "People", [user(1)])
    for permission, may in (
        ("invite_group_members", True),
        ("manage_instances", True),
        ("manage_bans", False),
    ):
        await world.run("update staff_roles set permissions = array[$1]", permission)
        async with world.db.read() as tx:
            standing = await require_staff(tx, world.moderator, world.club_id, scope=Scope.READ)
            if may:
                found, _ = await recipient_lists(tx, standing, world.club_id)
                assert [one.name for one in found] == ["People"]
            else:
                with pytest.raises(NotAllowed):
                    await recipient_lists(tx, standing, world.club_id)


async def test_lists_come_page_by_page(world: World) -> None:
    for n in range(3):
        await create_list(world.db, world.owner, world.club_id, f"List {n}", [user(n)])
    async with world.db.read() as tx:
        standing = await require_staff(tx, world.owner, world.club_id, scope=Scope.READ)
        page, cursor = await recipient_lists(tx, standing, world.club_id, limit=2)
        after = read_cursor(LISTS, cursor)
        rest, end = await recipient_lists(tx, standing, world.club_id, after=after, limit=2)
    assert [one.name for one in [*page, *rest]] == ["List 2", "List 1", "List 0"]
    assert end is None


async def test_a_club_keeps_so_many_lists_and_makes_room_by_deleting_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LISTS_MOST", 2)
    made = [await create_list(world.db, world.owner, world.club_id, f"List {n}", [user(n)]) for n in range(2)]
    another = (world.db, world.owner, world.club_id, "One more", [user(3)])
    assert await code_of(create_list(*another)) == "lists_full"
    await delete_list(world.db, world.owner, world.club_id, made[0].id, 1)
    assert (await create_list(*another)).name == "One more"


async def two_edits(world: World) -> list[BaseException | Any]:
    """Two people edit the list that both saw; the first has not committed when the second comes."""
    made = await create_list(world.db, world.owner, world.club_id, "People", [user(1)])
    written, go_on = asyncio.Event(), asyncio.Event()

    async def first() -> Any:
        async with world.db.transaction():
            edited = await edit_list(world.db, world.owner, world.club_id, made.id, "First", [user(2)], 1)
            written.set()
            await go_on.wait()
            return edited

    one = asyncio.create_task(first())
    await written.wait()
    other = asyncio.create_task(
        edit_list(world.db, world.moderator, world.club_id, made.id, "Second", [user(3)], 1)
    )
    await wait_until_blocked(world.db, "recipient_lists")
    go_on.set()
    return await asyncio.gather(one, other, return_exceptions=True)


async def test_of_two_who_edit_at_once_the_second_sees_what_the_first_wrote(world: World) -> None:
    _, refusal = await two_edits(world)
    assert isinstance(refusal, Conflict)
    assert (refusal.fresh.name, refusal.fresh.revision) == ("First", 2)


async def test_without_the_lock_the_second_would_overwrite_the_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: the revision was read before the wait."""
    monkeypatch.setattr(Select, "with_for_update", lambda self: self)
    await two_edits(world)
    assert await world.run("select name from recipient_lists") == "Second"


# --- drafts of posts -------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
async def posting(world: World) -> None:
    await world.run("update connections set features = '{membership_management,posts}'")


async def saved(
    world: World,
    draft_id: UUID,
    fields: dict[str, Any] | None = None,
    *,
    seen: int = 0,
    schedule: Schedule | None = None,
    actor: Actor | None = None,
) -> DraftView:
    return await save_draft(
        world.db,
        actor or world.moderator,
        world.club_id,
        draft_id,
        POST if fields is None else fields,
        schedule or Immediate(),
        seen=seen,
    )


async def posts(world: World) -> int:
    return int(await world.run("select count(*) from operations where kind = 'publish_post'"))


async def test_saving_the_same_again_makes_nothing_new(world: World) -> None:
    draft_id = new_id()
    first = await saved(world, draft_id)
    assert (first.fields, first.revision) == (POST, 1)
    assert await saved(world, draft_id) == first
    changed = await saved(world, draft_id, {**POST, "text": "Doors at ten."}, seen=1)
    assert changed.revision == 2
    assert await saved(world, draft_id, {**POST, "text": "Doors at ten."}, seen=1) == changed, "a repeat"
    other_time = await saved(
        world, draft_id, {**POST, "text": "Doors at ten."}, seen=2, schedule=Fixed(A_TIME)
    )
    assert other_time.revision == 3
    with pytest.raises(Conflict) as refusal:
        await saved(world, draft_id, seen=2)
    assert refusal.value.fresh == other_time


async def test_so_many_drafts_are_kept_and_those_that_are_there_can_be_written_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "DRAFTS_MOST", 1)
    first, second = new_id(), new_id()
    await saved(world, first)
    assert await code_of(saved(world, second)) == "drafts_full"
    assert (await saved(world, first, {**POST, "text": "Doors at ten."}, seen=1)).revision == 2
    await queue_draft(world.db, world.moderator, world.club_id, first, 2)
    assert (await saved(world, second)).revision == 1


async def test_a_draft_is_its_writers_own(world: World) -> None:
    draft_id = new_id()
    await saved(world, draft_id)
    other = await another_moderator(world)
    async with world.db.read() as tx:
        assert [one.id for one in (await post_drafts(tx, world.moderator, world.club_id))[0]] == [draft_id]
        for stranger in (other, world.owner):
            assert await post_drafts(tx, stranger, world.club_id) == ([], None)
            assert await code_of(post_draft(tx, stranger, world.club_id, draft_id)) == "draft_unknown"
    for attempt in (
        lambda: saved(world, draft_id, {"title": "Mine"}, actor=other),
        lambda: queue_draft(world.db, other, world.club_id, draft_id, 1),
        lambda: discard_draft(world.db, other, world.club_id, draft_id, 1),
    ):
        assert await code_of(attempt()) == "draft_unknown"
    exported = b"".join([line async for line in export_club(world.db, world.owner, world.club_id)])
    assert b'"table":"post_drafts"' in exported.replace(b" ", b"")
    assert b"Doors at nine" not in exported


async def test_drafts_go_with_their_writer_and_lists_stay(world: World) -> None:
    register()
    await saved(world, new_id())
    await saved(world, new_id(), actor=world.owner)
    await create_list(world.db, world.moderator, world.club_id, "People", [user(1)])
    exported = b"".join([line async for line in export_person(world.db, None, world.moderator.person_id)])
    assert b"Doors at nine" in exported
    assert user(1).encode() not in exported, "another person's id is theirs"
    await erase_person(world.db, None, world.moderator.person_id)
    assert await world.run("select array_agg(created_by) from post_drafts") == [world.owner.person_id]
    async with world.db.read() as tx:
        standing = await require_staff(tx, world.owner, world.club_id, scope=Scope.READ)
        [one], _ = await recipient_lists(tx, standing, world.club_id)
    assert (one.name, one.updated_by_name) == ("People", ERASED_NAME)


async def test_a_draft_may_be_unfinished_and_is_complete_when_it_is_queued(world: World) -> None:
    draft_id = new_id()
    await saved(world, draft_id, {"title": "Tonight"})
    with pytest.raises(Invalid) as refusal:
        await queue_draft(world.db, world.moderator, world.club_id, draft_id, 1)
    assert refusal.value.field == "payloads.0.text"
    assert (await saved(world, draft_id, seen=1)).revision == 2, "it is still open"
    for wrong in ({"title": "x" * 201}, {"mood": "good"}, {"visibility": "friends"}):
        with pytest.raises(Invalid):
            await saved(world, draft_id, wrong, seen=2)


async def test_a_queued_draft_is_frozen_and_queueing_it_again_is_the_same_request(world: World) -> None:
    draft_id = new_id()
    await saved(world, draft_id)
    made = await queue_draft(world.db, world.moderator, world.club_id, draft_id, 1)
    again = await queue_draft(world.db, world.moderator, world.club_id, draft_id, 1)
    assert not made.is_replay
    assert again.is_replay
    assert again.operation_ids == made.operation_ids
    assert await posts(world) == 1
    key = await world.run("select request_key from operation_requests")
    assert key == f"post_{encode_id(draft_id)}_1"
    row = await world.row(made.operation_ids[0])
    assert '"sendNotification": false' in row["payload"], "nobody is notified unless somebody says so"
    for attempt in (
        lambda: saved(world, draft_id, {"title": "Other"}, seen=1),
        lambda: discard_draft(world.db, world.moderator, world.club_id, draft_id, 1),
    ):
        assert await code_of(attempt()) == "draft_queued"
    assert (await saved(world, draft_id)).request_id == made.request_id, "a late repeat of the save"
    async with world.db.read() as tx:
        assert await post_drafts(tx, world.moderator, world.club_id) == ([], None)


async def test_what_enqueue_refuses_leaves_the_draft_open(world: World) -> None:
    draft_id = new_id()
    await saved(world, draft_id)
    await world.run("update connections set features = '{}'")
    assert (
        await code_of(queue_draft(world.db, world.moderator, world.club_id, draft_id, 1))
        == "feature_disabled"
    )
    assert (await saved(world, draft_id, {"title": "Other"}, seen=1)).revision == 2
    await discard_draft(world.db, world.moderator, world.club_id, draft_id, 2)
    assert await world.run("select count(*) from post_drafts") == 0


async def save_during_queue(world: World) -> list[BaseException | Any]:
    """Queue a draft, and before that is committed save another text over it."""
    draft_id = new_id()
    await saved(world, draft_id)
    queued, go_on = asyncio.Event(), asyncio.Event()

    async def queue() -> Any:
        async with world.db.transaction():
            made = await queue_draft(world.db, world.moderator, world.club_id, draft_id, 1)
            queued.set()
            await go_on.wait()
            return made

    one = asyncio.create_task(queue())
    await queued.wait()
    other = asyncio.create_task(saved(world, draft_id, {"title": "Other", "text": "Other"}, seen=1))
    await wait_until_blocked(world.db, "post_drafts")
    go_on.set()
    return await asyncio.gather(one, other, return_exceptions=True)


async def test_a_save_that_meets_the_queueing_waits_and_is_refused(world: World) -> None:
    _, refusal = await save_during_queue(world)
    assert isinstance(refusal, Conflict)
    assert refusal.code == "draft_queued"
    assert await world.run("select fields ->> 'title' from post_drafts") == "Tonight"


async def test_without_the_lock_a_queued_draft_would_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: what is queued is not what the draft says any more."""
    locked = writing._locked

    async def unlocked(tx: Any, actor: Actor, club_id: UUID, draft_id: UUID) -> DraftView:
        found = await writing.own_draft(tx, actor.person_id, club_id, draft_id)
        assert found is not None
        return found

    assert locked is not unlocked
    monkeypatch.setattr(writing, "_locked", unlocked)
    await save_during_queue(world)
    assert await world.run("select fields ->> 'title' from post_drafts") == "Other"


@pytest.mark.parametrize(
    "schedule",
    [
        Immediate(),
        Immediate(UUID(int=7)),
        Fixed(A_TIME),
        Fixed(A_TIME, UUID(int=7)),
        EventRelative(UUID(int=7), timedelta(minutes=-90), A_TIME),
    ],
)
def test_a_schedule_is_read_as_it_was_told(schedule: Schedule) -> None:
    assert read_schedule(schedule.as_asked(), A_TIME) == schedule


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"kind": "soon"},
        {"kind": "fixed"},
        {"kind": "fixed", "due_at": "tomorrow"},
        {"kind": "event_relative", "offset_ms": 5},
        {"kind": "immediate", "due_at": "2030-01-01T00:00:00Z"},
    ],
)
def test_what_tells_of_no_schedule_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refusal:
        read_schedule(told, A_TIME)
    assert refusal.value.code == "schedule_invalid"
