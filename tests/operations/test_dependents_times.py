"""Times and events of a creation hold for its invitations too (DEP-06 to 08, 10)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from dependents_kit import CREATION, HOUR, Evening, friendship, invitation

from lastcall.errors import Conflict, Invalid
from lastcall.events.services.write import cancel_event
from lastcall.operations.schedules import EventRelative, Fixed, Immediate
from lastcall.operations.services.edit import edit


@pytest.mark.clause("DEP-06")
async def test_an_invitation_is_not_due_before_its_creation(evening: Evening) -> None:
    at = await evening.world.clock.now() + HOUR
    creation = await evening.one(CREATION, Fixed(at))
    for early in (Immediate(), Fixed(at - timedelta(microseconds=1))):
        with pytest.raises(Invalid) as refused:
            await evening.one(invitation(creation), early)
        assert (refused.value.code, refused.value.field) == ("before_creation", "schedule.dueAt")
    invited = await evening.one(invitation(creation), Fixed(at))
    with pytest.raises(Invalid):
        await edit(
            evening.db, evening.world.owner, evening.club_id, invited, 1, invitation(creation), Immediate()
        )


@pytest.mark.clause("DEP-06")
async def test_a_creation_that_its_event_moves_behind_an_invitation_rejects_it(evening: Evening) -> None:
    event_id, starts_at = await evening.event()
    creation = await evening.one(CREATION, EventRelative(event_id, -HOUR, starts_at - HOUR))
    invited = await evening.one(invitation(creation), Fixed(starts_at))
    await evening.move(event_id, starts_at + 2 * HOUR)
    with pytest.raises(Invalid) as refused:
        await evening.one(invitation(creation, 2), Fixed(starts_at))
    assert refused.value.code == "before_creation", "judged by the event, before any row says so"
    await evening.go_through()
    assert await evening.how(invited) == ("rejected", "instance_creation_rescheduled")
    assert (await evening.row(creation))["due_at"] == starts_at + HOUR


@pytest.mark.clause("DEP-07")
async def test_the_time_of_a_submitted_creation_stays_and_a_waiting_one_follows_its_event(
    evening: Evening,
) -> None:
    event_id, starts_at = await evening.event(timedelta(minutes=30))
    at_once = EventRelative(event_id, timedelta(minutes=-29), starts_at - timedelta(minutes=29))
    sent, waiting = [await evening.one(CREATION | {"region": region}, at_once) for region in ("eu", "jp")]
    invited = await evening.one(invitation(sent), Fixed(starts_at))
    await evening.world.clock.advance(timedelta(minutes=2))
    await evening.submit(sent)
    await evening.move(event_id, starts_at + HOUR)
    await evening.go_through()
    assert (await evening.row(sent))["due_at"] == starts_at - timedelta(minutes=29)
    assert (await evening.row(waiting))["due_at"] == starts_at + timedelta(minutes=31)
    assert await evening.how(invited) == ("pending", "awaiting_instance_creation")


@pytest.mark.parametrize("by", [2 * HOUR, -HOUR])
async def test_creation_and_invitation_of_one_event_move_together_in_whatever_order(
    evening: Evening, by: timedelta
) -> None:
    event_id, starts_at = await evening.event()
    creation = await evening.one(CREATION, EventRelative(event_id, -HOUR, starts_at - HOUR))
    half = timedelta(minutes=30)
    before = await evening.one(invitation(creation), EventRelative(event_id, -half, starts_at - half))
    first = timedelta(0) - HOUR
    at_once = await evening.one(invitation(creation, 2), EventRelative(event_id, first, starts_at - HOUR))
    await evening.move(event_id, starts_at + by)
    await evening.go_through()
    for one, offset in ((creation, HOUR), (before, half), (at_once, HOUR)):
        row = await evening.row(one)
        assert (row["state"], row["due_at"]) == ("pending", starts_at + by - offset)
    assert (await evening.row(before))["ready_at"] is None


@pytest.mark.clause("DEP-08")
async def test_an_invitation_without_an_event_follows_that_of_its_creation(evening: Evening) -> None:
    event_id, starts_at = await evening.event()
    creation = await evening.one(CREATION, Immediate(event_id))
    invited = await evening.one(invitation(creation), Fixed(starts_at))
    row = await evening.row(invited)
    assert (row["event_id"], row["event_cancel_generation"], row["dependency_event_id"]) == (
        event_id, 0, event_id,
    )  # fmt: skip
    await evening.create(creation)
    await evening.go_through()
    await cancel_event(evening.db, evening.world.owner, evening.club_id, event_id)
    await evening.go_through()
    assert await evening.how(invited) == ("cancelled", "event_cancelled")
    with pytest.raises(Conflict) as later:
        await evening.one(invitation(creation))
    assert later.value.code == "event_cancelled"


@pytest.mark.clause("DEP-08")
async def test_the_event_of_the_creation_stops_also_invitations_that_name_another(evening: Evening) -> None:
    event_id, starts_at = await evening.event()
    other_id, other_start = await evening.event(4 * HOUR)
    creation = await evening.one(CREATION, Immediate(event_id))
    invited = await evening.one(invitation(creation), EventRelative(other_id, timedelta(0), other_start))
    assert (await evening.row(invited))["event_id"] == other_id
    await cancel_event(evening.db, evening.world.owner, evening.club_id, event_id)
    await evening.go_through()
    state, _ = await evening.how(invited)
    assert state in ("cancelled", "rejected")
    assert (await evening.how(creation))[0] == "cancelled"
    assert starts_at < other_start


@pytest.mark.clause("DEP-08", "DEP-10")
@pytest.mark.parametrize("is_detached", [True, False])
async def test_a_creation_that_gets_another_event_rejects_its_invitations_and_moves_none(
    evening: Evening, is_detached: bool
) -> None:
    event_id, starts_at = await evening.event()
    other_id, _ = await evening.event(4 * HOUR)
    creation = await evening.one(CREATION, Immediate(event_id))
    invited = await evening.one(invitation(creation), Fixed(starts_at))
    before = await evening.row(invited)
    schedule = Immediate(None if is_detached else other_id)
    await edit(evening.db, evening.world.owner, evening.club_id, creation, 1, CREATION, schedule)
    await evening.go_through()
    after = await evening.row(invited)
    assert (after["state"], after["code"]) == ("rejected", "dependency_unavailable")
    for column in ("due_at", "event_id", "event_cancel_generation", "schedule_kind", "dependency_event_id"):
        assert after[column] == before[column]


@pytest.mark.clause("DEP-08")
@pytest.mark.parametrize("at", ["claim", "authorize"])
async def test_the_association_that_was_reviewed_is_looked_at_even_without_a_new_revision(
    evening: Evening, at: str
) -> None:
    event_id, _ = await evening.event()
    creation = await evening.one(CREATION, Immediate(event_id))
    await evening.create(creation)
    invited = await evening.one(invitation(creation))
    detach = """
        update operations set event_id = null, event_cancel_generation = null, event_tba_generation = null
         where id = $1
    """
    if at == "claim":
        await evening.world.run(detach, creation)
        assert await evening.claim() is None
    else:
        claimed = await evening.claim()
        assert claimed is not None
        await evening.world.run(detach, creation)
        assert (await evening.authorize(claimed, friendship())).code == "dependency_unavailable"
    assert await evening.how(invited) == ("rejected", "dependency_unavailable")
