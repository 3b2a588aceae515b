"""However a creation ends, its invitations hear of it: they go to its place, or nowhere (DEP-05)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from dependents_kit import CREATION, HOUR, PLACE, WORLD_ID, Evening, friendship, invitation
from operations_world import GROUP, user

from lastcall.deadlines.signals import Signal
from lastcall.errors import Conflict
from lastcall.operations.owners.fanout import Fanouts
from lastcall.operations.owners.lateness import Late
from lastcall.operations.owners.submissions import OpenSubmissions
from lastcall.operations.schedules import Fixed
from lastcall.operations.services import enqueue as enqueueing
from lastcall.operations.services.cancel import cancel
from lastcall.operations.services.worker import Claimed, WorkerSteps
from lastcall.operations.signals import FANOUT
from lastcall.protocol.messages import FriendshipSeen
from lastcall.protocol.outcomes import Outcome


async def rejected(evening: Evening, creation: UUID) -> None:
    world = evening.world
    held = await evening.submit(creation)
    await world.steps.complete(world.worker, held, Outcome.REJECTED, "provider_permissions")


async def unknown(evening: Evening, creation: UUID) -> None:
    world = evening.world
    held = await evening.submit(creation)
    await world.steps.complete(world.worker, held, Outcome.INDETERMINATE, "timeout")


async def cancelled(evening: Evening, creation: UUID) -> None:
    await cancel(evening.db, evening.world.owner, evening.club_id, creation, 1)


async def refused(evening: Evening, creation: UUID) -> None:
    claimed = await evening.claim()
    assert claimed is not None
    world = evening.world
    await world.steps.reject(world.worker, world.held(claimed), "group_visibility")


async def forgotten(evening: Evening, creation: UUID) -> None:
    await evening.submit(creation)
    await evening.world.clock.advance(timedelta(minutes=3))
    submissions = OpenSubmissions(evening.db)
    upto = await submissions.boundary()
    assert upto is not None
    for candidate in await submissions.page(None, upto, 10):
        await submissions.settle(candidate)


async def refused_at_last(evening: Evening, creation: UUID) -> None:
    claimed = await evening.claim()
    assert claimed is not None
    await evening.world.run("update connections set features = '{}'")
    assert not (await evening.authorize(claimed)).is_authorized
    await evening.world.run("update connections set features = '{instances}'")


@pytest.mark.clause("DEP-05")
@pytest.mark.parametrize("end", [rejected, unknown, cancelled, refused, forgotten, refused_at_last])
async def test_without_a_place_the_invitations_end_whatever_ended_the_creation(
    evening: Evening, end: Callable[[Evening, UUID], Awaitable[None]]
) -> None:
    creation = await evening.one(CREATION)
    invited = await evening.queue(*(invitation(creation, number) for number in (1, 2)))
    await end(evening, creation)
    await evening.go_through()
    for one in invited:
        assert await evening.how(one) == ("rejected", "instance_creation_failed")
    with pytest.raises(Conflict) as later:
        await evening.one(invitation(creation))
    assert later.value.code == "instance_creation_failed"


@pytest.mark.clause("DEP-05")
async def test_a_creation_that_is_missed_takes_its_later_invitations_with_it(evening: Evening) -> None:
    creation = await evening.one(CREATION)
    invited = await evening.one(invitation(creation), Fixed(await evening.world.clock.now() + 2 * HOUR))
    await evening.world.clock.advance(timedelta(minutes=16))
    late = Late(evening.db, "pending")
    upto = await late.boundary()
    assert upto is not None
    await late.settle(await late.page(None, upto, 10))
    assert await evening.how(creation) == ("missed", "late_window_elapsed")
    await evening.go_through()
    assert await evening.how(invited) == ("rejected", "instance_creation_failed")


@pytest.mark.clause("DEP-05")
@pytest.mark.parametrize(
    "place",
    [
        {"worldId": WORLD_ID.replace("1", "2"), "instanceId": PLACE["instanceId"]},
        {"worldId": WORLD_ID, "instanceId": "12345~group(grp_00000000-0000-4000-8000-000000000002)"},
        {"worldId": WORLD_ID, "instanceId": f"12345~group({GROUP})~group({GROUP})"},
        {"worldId": WORLD_ID, "instanceId": "12345"},
        {"worldId": WORLD_ID},
        {"instanceId": PLACE["instanceId"]},
    ],
)
async def test_another_place_than_the_planned_one_is_none(evening: Evening, place: dict[str, str]) -> None:
    creation = await evening.one(CREATION)
    invited = await evening.one(invitation(creation))
    await evening.create(creation, place)
    await evening.go_through()
    assert await evening.how(invited) == ("rejected", "dependency_destination_unavailable")
    with pytest.raises(Conflict) as later:
        await evening.one(invitation(creation))
    assert later.value.code == "dependency_destination_unavailable"


async def test_the_invitations_of_a_creation_are_woken_a_hundred_a_transaction(evening: Evening) -> None:
    creation = await evening.one(CREATION)
    for batch in range(3):
        numbers = range(1 + batch * 80, 81 + batch * 80)
        await evening.queue(*(invitation(creation, number) for number in numbers))
    await evening.create(creation)
    notes = Fanouts(evening.db)
    woken = []
    while (note := await notes.first(None)) is not None:
        await notes.step(note)
        woken.append(
            await evening.world.run("select count(ready_at) from operations where depends_on = $1", creation)
        )
    assert woken == [100, 200, 240]


@pytest.mark.parametrize(
    ("seen", "is_enough"),
    [
        (friendship(), True),
        (friendship(age_ms=59_000), True),
        (friendship(age_ms=61_000), False),
        (friendship(is_friend=False), False),
        (friendship(2), False),
        (None, False),
    ],
)
@pytest.mark.clause("BUD-05")
async def test_the_server_wants_to_have_seen_the_friendship_a_minute_ago_at_most(
    evening: Evening, seen: FriendshipSeen | None, is_enough: bool
) -> None:
    await evening.one({"kind": "invite_to_instance", "targetUserId": user(1), **PLACE})
    claimed = await evening.claim()
    assert claimed is not None
    verdict = await evening.authorize(claimed, seen)
    assert (verdict.is_authorized, verdict.code) == (
        is_enough,
        None if is_enough else "recipient_eligibility",
    )


async def test_an_invitation_whose_id_comes_before_its_creations_goes_the_same_way(
    evening: Evening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are made by several processes, whose clocks differ."""
    creation = await evening.one(CREATION)
    ids = iter([UUID(int=1), UUID(int=2)])
    with monkeypatch.context() as patched:
        patched.setattr(enqueueing, "new_id", lambda: next(ids))
        invited = await evening.one(invitation(creation))
    assert invited == UUID(int=2) < creation
    await evening.create(creation)
    await evening.go_through()
    claimed = await evening.claim()
    assert claimed is not None
    assert (claimed.operation_id, claimed.payload) == (invited, {"targetUserId": user(1), **PLACE})
    assert (await evening.authorize(claimed, friendship())).is_authorized


async def test_a_note_whose_invitations_are_over_meanwhile_is_just_gone(evening: Evening) -> None:
    creation = await evening.one(CREATION)
    invited = await evening.one(invitation(creation))
    await evening.create(creation)
    assert await evening.world.run("select count(*) from operation_fanouts") == 1
    await cancel(evening.db, evening.world.owner, evening.club_id, invited, 1)
    await evening.go_through()
    assert await evening.world.run("select count(*) from operation_fanouts") == 0
    assert await evening.how(invited) == ("cancelled", "cancelled_by_staff")


@pytest.mark.parametrize("step", ["complete", "reject", "authorize", "claim"])
async def test_a_creation_that_ends_unheard_is_gone_through_all_the_same(
    evening: Evening, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of the step that ended it is lost; without a word of it nobody would read the note, and what waits
    would be missed."""
    world = evening.world
    creation = await evening.one(CREATION)
    await evening.one(invitation(creation))
    claimed = None if step == "claim" else await evening.claim()
    if step == "complete":
        assert claimed is not None
        assert (await evening.authorize(claimed)).is_authorized
    if step == "authorize":
        await world.run("update connections set features = '{}'")
    if step == "claim":
        event_id, _ = await evening.event()
        await world.run(
            "update operations set event_id = $1, event_cancel_generation = 7, event_tba_generation = 0"
            " where id = $2",
            event_id,
            creation,
        )
    told: list[Signal] = []
    world.db.bus.subscribe(Signal, told.append)
    monkeypatch.setattr(WorkerSteps, "_ask", _unheard(WorkerSteps._ask))
    with pytest.raises(ConnectionResetError):
        await _take(evening, step, claimed)
    assert await world.run("select count(*) from operation_fanouts where subject_kind = 'creation'") == 1
    assert any(signal.owner == FANOUT and signal.deadline is not None for signal in told)


def _unheard(ask: Any) -> Any:
    async def lose(self: WorkerSteps, *arguments: Any) -> Any:
        await ask(self, *arguments)
        raise ConnectionResetError

    return lose


async def _take(evening: Evening, step: str, claimed: Claimed | None) -> None:
    world = evening.world
    if claimed is None:
        await evening.claim()
    elif step == "complete":
        await world.steps.complete(world.worker, world.held(claimed), Outcome.SUCCEEDED, None, PLACE)
    elif step == "reject":
        await world.steps.reject(world.worker, world.held(claimed), "group_visibility")
    else:
        await evening.authorize(claimed)
