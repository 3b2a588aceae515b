"""An invitation is tied to the creation that was reviewed with it, and waits for it without asking (DEP-01 to 04)."""

from __future__ import annotations

import pytest
from dependents_kit import CREATION, HOUR, PLACE, Evening, friendship, invitation
from operations_world import GROUP, user

from lastcall.db.ids import new_id
from lastcall.errors import Conflict, Invalid
from lastcall.operations.schedules import Fixed, Immediate
from lastcall.operations.services.cancel import cancel
from lastcall.operations.services.edit import edit
from lastcall.operations.work import OperationWork
from lastcall.protocol.outcomes import Outcome


@pytest.mark.clause("DEP-01")
async def test_the_reviewed_revision_is_needed_must_match_and_is_stored(evening: Evening) -> None:
    creation = await evening.one(CREATION)
    unreviewed = {name: value for name, value in invitation(creation).items() if name != "creationRevision"}
    with pytest.raises(Invalid) as missing:
        await evening.one(unreviewed)
    assert (missing.value.code, missing.value.field) == ("creation_unreviewed", "payloads.0.creationRevision")
    with pytest.raises(Conflict) as other:
        await evening.one(invitation(creation, revision=2))
    assert other.value.code == "creation_changed"
    invited = await evening.one(invitation(creation))
    row = await evening.row(invited)
    assert (row["depends_on"], row["dependency_revision"], row["dependency_event_id"]) == (creation, 1, None)
    assert {**await evening.payload(invited), "kind": row["kind"]} == invitation(creation)


async def test_only_a_creation_of_the_clubs_present_connection_can_be_waited_for(evening: Evening) -> None:
    place = {"kind": "close_instance", **PLACE}
    for wrong in (new_id(), await evening.one(place)):
        with pytest.raises(Invalid) as refused:
            await evening.one(invitation(wrong))
        assert (refused.value.code, refused.value.field) == (
            "creation_unknown",
            "payloads.0.creationOperationId",
        )
    creation = await evening.one(CREATION)
    await evening.world.run("update connections set epoch = epoch + interval '1 second'")
    with pytest.raises(Invalid) as old:
        await evening.one(invitation(creation))
    assert old.value.code == "creation_unknown"


@pytest.mark.clause("DEP-05")
async def test_an_invitation_waits_without_a_ready_time_and_goes_to_the_place_that_was_made(
    evening: Evening,
) -> None:
    creation = await evening.one(CREATION)
    invited = await evening.one(invitation(creation))
    assert (await evening.row(invited))["ready_at"] is None
    assert await evening.how(invited) == ("pending", "awaiting_instance_creation")
    stored = (await evening.row(invited))["payload"]

    await evening.create(creation)
    assert await evening.claim() is None, "nobody has looked at what waits yet"
    await evening.go_through()
    row = await evening.row(invited)
    assert (row["ready_at"], row["code"]) == (row["due_at"], None)

    claimed = await evening.claim()
    assert claimed is not None
    assert (claimed.operation_id, claimed.kind) == (invited, "invite_to_instance")
    assert claimed.payload == {"targetUserId": user(1), **PLACE}
    assert (await evening.authorize(claimed, friendship())).is_authorized
    assert (await evening.row(invited))["payload"] == stored


async def test_an_invitation_to_a_place_that_is_there_already_waits_for_nothing(evening: Evening) -> None:
    creation = await evening.one(CREATION)
    await evening.create(creation)
    invited = await evening.one(invitation(creation))
    row = await evening.row(invited)
    assert (row["ready_at"], row["code"]) == (row["due_at"], None)
    claimed = await evening.claim()
    assert claimed is not None
    assert claimed.payload == {"targetUserId": user(1), **PLACE}


async def test_what_waits_gives_nobody_anything_to_do(evening: Evening) -> None:
    creation = await evening.one(CREATION)
    held = await evening.submit(creation)
    await evening.queue(*(invitation(creation, number) for number in range(1, 6)))
    assert await OperationWork(evening.db).ready(evening.world.account_id) == []
    before = await evening.world.run(
        "select xmin::text || ctid::text from operations order by id desc limit 1"
    )
    assert await evening.claim() is None
    await evening.go_through()
    after = await evening.world.run(
        "select xmin::text || ctid::text from operations order by id desc limit 1"
    )
    assert before == after, "waiting writes nothing"
    world = evening.world
    await world.steps.complete(world.worker, held, Outcome.SUCCEEDED, None, PLACE)
    await evening.go_through()
    assert len(await OperationWork(evening.db).ready(world.account_id)) == 1


@pytest.mark.clause("DEP-02")
async def test_an_edited_creation_rejects_its_invitations_also_when_it_leads_to_the_same_place(
    evening: Evening,
) -> None:
    creation = await evening.one(CREATION)
    invited = await evening.one(invitation(creation))
    elsewhere = CREATION | {"region": "jp"}
    await edit(evening.db, evening.world.owner, evening.club_id, creation, 1, elsewhere, Immediate())
    await edit(evening.db, evening.world.owner, evening.club_id, creation, 2, CREATION, Immediate())
    await evening.go_through()
    assert await evening.how(invited) == ("rejected", "dependency_unavailable")
    assert (await evening.how(creation))[0] == "pending"
    anew = await evening.one(invitation(creation, revision=3))
    await evening.create(creation)
    await evening.go_through()
    assert await evening.how(anew) == ("pending", None)


@pytest.mark.clause("DEP-02", "DEP-04")
@pytest.mark.parametrize(
    "change",
    [
        "update operations set revision = 2 where id = $1",
        "update operations set dependency_revision = null where depends_on = $1",
        "update operations set payload = payload - 'creationRevision' where depends_on = $1",
        "update operations set depends_on = null, dependency_revision = null where depends_on = $1",
        "update operations set epoch = epoch - interval '1 second' where id = $1",
    ],
)
async def test_a_claim_gives_out_no_invitation_whose_creation_is_not_what_was_reviewed(
    evening: Evening, change: str
) -> None:
    creation = await evening.one(CREATION)
    await evening.create(creation)
    invited = await evening.one(invitation(creation))
    await evening.world.run(change, creation)
    assert await evening.claim() is None
    assert await evening.how(invited) == ("rejected", "dependency_unavailable")


@pytest.mark.clause("DEP-09", "DEP-02")
async def test_authorize_looks_at_the_creation_again(evening: Evening) -> None:
    creation = await evening.one(CREATION)
    await evening.create(creation)
    invited = await evening.one(invitation(creation))
    claimed = await evening.claim()
    assert claimed is not None
    await evening.world.run("update operations set revision = 2 where id = $1", creation)
    verdict = await evening.authorize(claimed, friendship())
    assert (verdict.is_authorized, verdict.code) == (False, "dependency_unavailable")
    assert await evening.how(invited) == ("rejected", "dependency_unavailable")


@pytest.mark.clause("DEP-03")
async def test_edits_of_an_invitation_keep_what_was_reviewed(evening: Evening) -> None:
    creation, other = await evening.one(CREATION), await evening.one(CREATION)
    invited = await evening.one(invitation(creation))
    before = await evening.row(invited)
    later = Fixed(await evening.world.clock.now() + HOUR)
    arguments = (evening.db, evening.world.owner, evening.club_id, invited, 1)
    for changed in (invitation(other), invitation(creation, revision=2)):
        with pytest.raises(Invalid) as refused:
            await edit(*arguments, changed, later)
        assert refused.value.code == "creation_fixed"
    await edit(*arguments, invitation(creation, number=7), later)
    after = await evening.row(invited)
    assert (after["revision"], after["due_at"], (await evening.payload(invited))["targetUserId"]) == (
        2,
        later.due_at,
        user(7),
    )
    assert after["ready_at"] is None
    for column in ("depends_on", "dependency_revision", "dependency_event_id"):
        assert after[column] == before[column]

    await edit(evening.db, evening.world.owner, evening.club_id, creation, 1, CREATION, Immediate())
    with pytest.raises(Conflict) as stale:
        await edit(*arguments[:4], 2, invitation(creation, number=8), later)
    assert stale.value.code == "dependency_unavailable"


@pytest.mark.clause("DEP-04")
async def test_an_older_invitation_without_review_evidence_can_only_be_cancelled(evening: Evening) -> None:
    creation = await evening.one(CREATION)
    invited = await evening.one(invitation(creation))
    await evening.world.run(
        "update operations set dependency_revision = null, payload = payload - 'creationRevision' where id = $1",
        invited,
    )
    unreviewed = {name: value for name, value in invitation(creation).items() if name != "creationRevision"}
    for payload in (unreviewed, invitation(creation)):
        with pytest.raises((Invalid, Conflict)):
            await edit(evening.db, evening.world.owner, evening.club_id, invited, 1, payload, Immediate())
    await evening.create(creation)
    await evening.go_through()
    assert await evening.how(invited) == ("rejected", "dependency_unavailable")

    second = await evening.one(CREATION)
    other = await evening.one(invitation(second))
    await evening.world.run("update operations set dependency_revision = null where id = $1", other)
    await cancel(evening.db, evening.world.owner, evening.club_id, other, 1)
    assert await evening.how(other) == ("cancelled", "cancelled_by_staff")


@pytest.mark.parametrize("kind", ["close_instance", "invite_to_instance"])
async def test_an_instance_of_another_group_is_refused_when_it_is_queued_or_edited(
    evening: Evening, kind: str
) -> None:
    person = {"targetUserId": user(1)} if kind == "invite_to_instance" else {}
    payload = {"kind": kind, **person, **PLACE}
    foreign = payload | {"instanceId": PLACE["instanceId"].replace(GROUP, "grp_" + "0" * 8)}
    with pytest.raises(Invalid) as refused:
        await evening.one(foreign)
    assert (refused.value.code, refused.value.field) == ("destination_scope", "payloads.0.instanceId")
    queued = await evening.one(payload)
    with pytest.raises(Invalid) as edited:
        await edit(evening.db, evening.world.owner, evening.club_id, queued, 1, foreign, Immediate())
    assert (edited.value.code, edited.value.field) == ("destination_scope", "payload.instanceId")
