"""An epoch that ends: what is unsent of it is rejected page by page, and goes out in no case meanwhile (WRK-11)."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from dependents_kit import CREATION, Evening
from dependents_kit import invitation as invitation_to
from epoch_kit import CHANGED, batch, disconnect, one_page, reconnect, rejected
from events_world import clean_up, owner_named, states
from operations_world import World, assignment

from lastcall.connections.restored import restored
from lastcall.db.bus import Hint
from lastcall.deadlines.scheduler import Scheduler
from lastcall.deadlines.signals import Signal
from lastcall.errors import Conflict
from lastcall.operations import listeners
from lastcall.operations.owners import epochs, operation_owners
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.cancel import cancel
from lastcall.operations.services.edit import edit
from lastcall.protocol.outcomes import Outcome
from lastcall.testing.routines import replace_routine
from lastcall.testing.waiting import eventually

listeners.register()

NOTHING = "select null where ($1, $2, $3, $4) = (null::uuid, null::uuid, null::timestamptz, null::text)"


@pytest.mark.clause("WRK-11")
async def test_what_is_unsent_is_rejected_in_pages_of_fifty_and_what_was_submitted_is_left_alone(
    world: World,
) -> None:
    submitted, held = await world.submitted(assignment(1000))
    claimed, _ = await world.claimed(assignment(1001))
    future = await world.one(assignment(1002), due_at=await world.clock.now() + timedelta(days=300))
    waiting = await batch(world, 108)
    await world.run("create sequence pages")
    await replace_routine(world.db, "operation_ended", "begin", "begin perform nextval('pages');")
    await disconnect(world)
    assert await rejected(world) == 0
    for done in (50, 100, 110):
        assert await one_page(world.db)
        assert await rejected(world) == done
    assert not await one_page(world.db)
    assert await world.run("select last_value from pages") == 3
    assert await states(world, [claimed, future, *waiting]) == [CHANGED] * 110
    assert (await world.row(claimed))["claim_nonce"] is None
    assert await world.state(submitted) == "submitted"
    assert (await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)).is_recorded


@pytest.mark.clause("WRK-11")
async def test_nothing_of_an_ended_epoch_goes_out_before_the_clean_up_comes(world: World) -> None:
    _, held = await world.claimed(assignment(1))
    _, other = await world.claimed(assignment(2))
    pending = await world.one(assignment(3))
    await disconnect(world)
    worker = world.worker
    verdict = await world.steps.authorize(worker, held, "assign_role", world.evidence())
    assert (verdict.is_authorized, verdict.state) == (False, None)
    assert not (await world.steps.reject(worker, held, "role_scope")).is_recorded
    assert not (await world.steps.defer(worker, other, "timeout", 1.0)).is_recorded
    with pytest.raises(Conflict, match="lease"):
        await world.claim()
    with pytest.raises(Conflict) as refusal:
        await edit(world.db, world.moderator, world.club_id, pending, 1, assignment(4), Immediate())
    assert refusal.value.code == "connection_changed"
    assert await world.run("select count(*) from operations where submitted_at is not null") == 0


async def test_a_disconnect_with_nothing_unsent_leaves_no_work_and_says_nothing(world: World) -> None:
    await world.submitted(assignment(1))
    done, held = await world.submitted(assignment(2))
    await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    before = await world.row(done)
    await disconnect(world)
    assert "epoch_cleanup" not in {signal.owner for signal in heard}
    assert (await owner_named(world, "epoch_cleanup").next_deadline()).deadline is None
    await reconnect(world)
    assert "epoch_cleanup" not in {signal.owner for signal in heard}
    assert await world.row(done) == before


async def test_a_disconnect_wakes_the_owner_and_each_page_tells_the_pages(world: World) -> None:
    now = await world.clock.freeze()
    await batch(world, 60)
    heard: list[object] = []
    world.db.bus.subscribe(object, heard.append)
    await disconnect(world)
    assert Signal("epoch_cleanup", now) in heard
    assert (await owner_named(world, "epoch_cleanup").next_deadline()).deadline == now
    heard.clear()
    await clean_up(world)
    assert heard.count(Hint(world.club_id, "scheduled")) == 2
    assert [signal.owner for signal in heard if isinstance(signal, Signal)] == ["operation_mail"] * 2


@pytest.mark.clause("WRK-11")
async def test_a_running_server_rejects_it_all_at_once_and_then_asks_nothing_more(world: World) -> None:
    scheduler = Scheduler(world.db, operation_owners(world.db, world.mailer))
    await batch(world, 120)
    await scheduler.start()
    try:
        await disconnect(world)

        async def is_through() -> bool:
            return await rejected(world) == 120 and await world.run(
                "select not exists (select from ended_epochs)"
            )

        await eventually(is_through)
    finally:
        await scheduler.stop()
    assert (await owner_named(world, "epoch_cleanup").next_deadline()).deadline is None


# --- reconnect and restore -------------------------------------------------------------------------------------


async def left_behind(world: World) -> tuple[UUID, UUID]:
    """An action of an earlier epoch that no clean-up knows of, and one that was queued after connecting anew."""
    old = await world.one(assignment(1), due_at=await world.clock.now() + timedelta(days=30))
    await disconnect(world)
    await world.run("delete from ended_epochs")
    await reconnect(world)
    return old, await world.one(assignment(2))


@pytest.mark.clause("WRK-11")
async def test_connecting_anew_repeats_the_clean_up_and_spares_what_is_queued_since(world: World) -> None:
    old, new = await left_behind(world)
    await clean_up(world)
    assert await states(world, [old, new]) == [CHANGED, ("pending", None)]


async def test_twin_without_the_repetition_it_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "_NOTE_EARLIER", NOTHING)
    old, _ = await left_behind(world)
    await clean_up(world)
    assert await world.state(old) == "pending"


async def test_after_a_restore_unsent_work_needs_a_new_review_whatever_follows(world: World) -> None:
    """Also where somebody disconnects, and connects anew, before the clean-up has come to it."""
    submitted, _ = await world.submitted(assignment(1))
    pending = await world.one(assignment(2))
    await restored(world.db, None)
    assert await world.run("select epoch from connections") > world.epoch
    assert await world.state(pending) == "pending"
    await disconnect(world)
    await reconnect(world)
    await clean_up(world)
    assert await states(world, [pending]) == [("rejected", "database_restored")]
    assert await world.state(submitted) == "submitted"


# --- what depends on a creation --------------------------------------------------------------------------------


async def creation_with_invitations(evening: Evening) -> list[UUID]:
    """One that is due long before its invitations, more than a page of them."""
    creation = await evening.one(CREATION)
    return [creation, *await evening.queue(*[invitation_to(creation, number) for number in range(1, 61)])]


async def fate(evening: Evening, operation_ids: list[UUID]) -> set[tuple[str, str | None]]:
    """How they end when the fan-out has its turn after each page of the clean-up."""
    await disconnect(evening.world)
    while await one_page(evening.db):
        await evening.go_through()
    return set(await states(evening.world, operation_ids))


@pytest.mark.clause("WRK-11")
async def test_a_creation_ends_after_what_waits_for_it_and_all_say_why(evening: Evening) -> None:
    operation_ids = await creation_with_invitations(evening)
    assert await fate(evening, operation_ids) == {CHANGED}
    assert await evening.world.run("select count(*) from operation_fanouts") == 0
    noticed = await evening.world.run("select count(*) from operation_notices where outcome = 'rejected'")
    assert noticed == len(operation_ids)


async def test_twin_a_creation_that_ends_first_makes_its_invitations_say_that_it_failed(
    evening: Evening,
) -> None:
    await replace_routine(evening.db, "is_awaited", "p_kind = 'create_instance'", "false")
    operation_ids = await creation_with_invitations(evening)
    assert ("rejected", "instance_creation_failed") in await fate(evening, operation_ids)


async def test_what_waits_for_a_creation_that_was_sent_is_rejected_and_the_creation_is_not(
    evening: Evening,
) -> None:
    creation = await evening.one(CREATION)
    held = await evening.submit(creation)
    waiting = await evening.one(invitation_to(creation))
    await disconnect(evening.world)
    await clean_up(evening.world)
    assert await evening.how(waiting) == CHANGED
    assert await evening.how(creation) == ("submitted", None)
    world = evening.world
    settled = await world.steps.complete(world.worker, held, Outcome.REJECTED, "group_visibility")
    assert settled.is_recorded
    await evening.go_through()
    assert await evening.how(waiting) == CHANGED


async def test_a_cancelled_action_of_an_ended_epoch_is_left_as_it_is(world: World) -> None:
    operation_id = await world.one()
    await disconnect(world)
    await cancel(world.db, world.moderator, world.club_id, operation_id, 1)
    await clean_up(world)
    assert await states(world, [operation_id]) == [("cancelled", "cancelled_by_staff")]


def test_a_page_is_fifty_rows() -> None:
    assert epochs.PAGE == 50
