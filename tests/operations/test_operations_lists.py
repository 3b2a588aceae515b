"""The shared list: what each reader finds in it, filtered before a page is cut; and what became of one operation."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from event_kit import HOUR, make_event, move, queue_one, relative
from operations_world import World, assignment, ban, invitation, user

from lastcall.clubs.policy import Standing, standing
from lastcall.errors import Invalid, NotFound
from lastcall.operations import queries
from lastcall.operations.kinds import KINDS
from lastcall.operations.machine import State
from lastcall.operations.queries import Filter, history, subject_in, upcoming
from lastcall.operations.revisions import Happening, Moment, history_of, timeline
from lastcall.operations.schedules import Fixed, Immediate
from lastcall.operations.services.cancel import cancel, cancel_request
from lastcall.operations.services.edit import edit
from lastcall.people.actor import Actor
from lastcall.protocol.outcomes import Outcome


async def stands(world: World, actor: Actor) -> Standing:
    async with world.db.read() as tx:
        return await standing(tx, world.club_id, actor.person_id)


async def listed(
    world: World, page: Any, only: Filter = queries.ALL, actor: Actor | None = None, **how: Any
) -> list[UUID]:
    actor = actor or world.moderator
    async with world.db.read() as tx:
        reader = await standing(tx, world.club_id, actor.person_id)
        return [row.id for row in await page(tx, reader, actor, world.club_id, only, **how)]


async def ended(world: World, payload: dict[str, str], outcome: Outcome = Outcome.SUCCEEDED) -> UUID:
    operation_id, held = await world.submitted(payload)
    await world.steps.complete(
        world.worker, held, outcome, None if outcome is Outcome.SUCCEEDED else "timeout"
    )
    return operation_id


@pytest.mark.clause("EDT-09")
async def test_a_page_is_cut_from_what_the_reader_may_see(world: World) -> None:
    """Cut first and filtered afterwards, the reader of a rare kind would get an empty page before a full one."""
    now = await world.clock.now()
    for n in range(4):
        await world.one(assignment(n), due_at=now + n * HOUR)
    seen = await world.one(invitation(1), due_at=now + 9 * HOUR)
    await world.run("update staff_roles set permissions = '{invite_group_members}'")
    assert await listed(world, upcoming, limit=2) == [seen]
    assert len(await listed(world, upcoming, actor=world.owner, limit=2)) == 2
    stranger = Actor(uuid4(), "Stranger", is_operator=False)
    assert await listed(world, upcoming, actor=stranger) == []


@pytest.mark.clause("EDT-09")
async def test_each_row_is_looked_at_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the statement found a row of another kind, it goes no further."""
    await ended(world, assignment(1))
    await world.one(ban(2))
    seen = await world.one(invitation(1))
    await world.run("update staff_roles set permissions = '{invite_group_members}'")
    monkeypatch.setattr(queries, "kinds_visible_to", lambda _: list(KINDS))
    assert await listed(world, upcoming) == [seen]
    assert await listed(world, history) == []


async def test_both_lists_are_filtered_by_kind_state_request_event_and_subject(world: World) -> None:
    event = await make_event(world)
    done = await ended(world, assignment(1))
    unknown = await ended(world, ban(1), Outcome.INDETERMINATE)
    batch = await world.enqueue(assignment(1), assignment(2))
    linked = await queue_one(world, relative(event), assignment(3))
    stopped = await queue_one(world, Immediate(event.id), assignment(4))
    await cancel(world.db, world.moderator, world.club_id, stopped, 1)
    claimed = (await world.claim()).operation_id

    def upper(n: int) -> str:
        return subject_in(f"https://vrchat.com/home/user/{user(n).upper()}")

    pending = sorted({*batch.operation_ids} - {claimed})
    for page, only, found in (
        (upcoming, Filter(kinds=["assign_role"]), [*sorted(batch.operation_ids), linked]),
        (upcoming, Filter(kinds=["ban_member"]), []),
        (upcoming, Filter(states=[State.CLAIMED]), [claimed]),
        (upcoming, Filter(states=[State.PENDING]), [*pending, linked]),
        (upcoming, Filter(states=[State.SUCCEEDED]), []),
        (upcoming, Filter(request_id=batch.request_id), sorted(batch.operation_ids)),
        (upcoming, Filter(request_id=batch.request_id, states=[State.PENDING]), pending),
        (upcoming, Filter(event_id=event.id), [linked]),
        (upcoming, Filter(subject=upper(3)), [linked]),
        (upcoming, Filter(subject=upper(3), event_id=event.id), [linked]),
        (upcoming, Filter(subject=upper(2), event_id=event.id), []),
        (history, Filter(kinds=["ban_member", "invite_member"]), [unknown]),
        (history, Filter(states=[State.INDETERMINATE, State.CANCELLED]), [stopped, unknown]),
        (history, Filter(states=[State.PENDING]), []),
        (history, Filter(event_id=event.id), [stopped]),
        (history, Filter(subject=upper(1)), [unknown, done]),
        (history, Filter(subject=upper(1), kinds=["assign_role"]), [done]),
        (history, Filter(request_id=batch.request_id), []),
    ):
        assert await listed(world, page, only) == found, (page.__name__, only)


@pytest.mark.parametrize("text", ["", "wulf", "usr_", "grol_00000000-0000-4000-8000-000000000001", "x" * 500])
def test_a_search_is_for_an_id_in_full(text: str) -> None:
    with pytest.raises(Invalid) as refusal:
        subject_in(text)
    assert refusal.value.field == "search"


def test_a_search_takes_ids_of_people_worlds_and_posts() -> None:
    for prefix in ("usr", "wrld", "not"):
        found = f"{prefix}_00000000-0000-4000-8000-00000000abcd"
        assert subject_in(f"  {found.upper()} please") == found


@pytest.mark.clause("EDT-05")
async def test_every_revision_is_kept_with_who_made_it(world: World) -> None:
    event = await make_event(world)
    now = await world.clock.now()
    operation_id = await world.one(assignment(1), due_at=now + HOUR)
    await edit(world.db, world.owner, world.club_id, operation_id, 1, assignment(2), relative(event))
    moved = await move(world, event, HOUR)
    assert moved.starts_at is not None
    await edit(world.db, world.owner, world.club_id, operation_id, 2, assignment(2), relative(moved))
    async with world.db.read() as tx:
        reader = (await stands(world, world.owner), world.owner, world.club_id)
        revisions = await history_of(tx, *reader, operation_id)
        assert [(one.revision, one.by_name) for one in revisions] == [
            (3, "Owner"),
            (2, "Owner"),
            (1, "Moderator"),
        ]
        assert [one.payload["targetUserId"] for one in revisions] == [user(2), user(2), user(1)]
        assert [one.due_at for one in revisions] == [
            moved.starts_at - HOUR,
            event.starts_at - HOUR,
            now + HOUR,
        ]  # type: ignore[operator]
        assert [(one.schedule_kind, one.event_id, one.offset) for one in revisions] == [
            ("event_relative", event.id, -HOUR),
            ("event_relative", event.id, -HOUR),
            ("fixed", None, None),
        ]
        with pytest.raises(NotFound):
            await history_of(tx, *reader, uuid4())


async def test_a_timeline_says_what_happened_and_who_did_it(world: World) -> None:
    await world.clock.freeze()
    steps = [await world.clock.now()]
    operation_id = await world.one(assignment(1))

    async def later() -> None:
        await world.clock.advance(timedelta(seconds=1))
        steps.append(await world.clock.now())

    await later()
    await edit(world.db, world.owner, world.club_id, operation_id, 1, assignment(2), Fixed(steps[0]))
    await later()
    held = world.held(await world.claim())
    await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    await world.clock.advance(timedelta(minutes=2))
    await later()
    submitted = await world.row(operation_id)
    await world.run(
        "select recover_submission($1, $2, $3, $4)",
        *(world.club_id, operation_id, held.nonce, submitted["claim_expires_at"]),
    )
    await later()
    await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
    reader = (await stands(world, world.moderator), world.moderator, world.club_id)
    async with world.db.read() as tx:
        assert await timeline(tx, *reader, operation_id) == [
            Moment(steps[0], Happening.QUEUED, "Moderator", revision=1),
            Moment(steps[1], Happening.EDITED, "Owner", revision=2),
            Moment(steps[2], Happening.SUBMITTED),
            Moment(steps[3], Happening.ENDED, state=State.INDETERMINATE, code="submission_outcome_unknown"),
            Moment(steps[4], Happening.REPORTED_LATE, state=State.SUCCEEDED),
        ]


@pytest.mark.parametrize("how", ["one", "request"])
async def test_a_timeline_says_who_cancelled(world: World, how: str) -> None:
    operation_id = await world.one()
    request_id = (await world.row(operation_id))["request_id"]
    if how == "one":
        await cancel(world.db, world.owner, world.club_id, operation_id, 1)
    else:
        await cancel_request(world.db, world.owner, world.club_id, request_id)
    reader = (await stands(world, world.moderator), world.moderator, world.club_id)
    async with world.db.read() as tx:
        last = (await timeline(tx, *reader, operation_id))[-1]
    assert (last.what, last.by_name, last.state) == (Happening.ENDED, "Owner", State.CANCELLED)
