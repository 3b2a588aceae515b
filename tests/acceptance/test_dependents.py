"""Invitations to an instance that another action is still to create."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from lastcall.db.ids import decode_id
from lastcall.testing.routines import replace_routine
from tests.acceptance.desk import PLACE, WORLD_ID, Desk, told
from tests.api.v1_kit import check
from tests.web.conftest import user

OTHER_WORLD = "wrld_00000000-0000-4000-8000-000000000002"
CREATION = {"kind": "create_instance", "worldId": WORLD_ID, "access": "members", "region": "eu"}
HOUR = timedelta(hours=1)


def invite(creation: str, number: int = 1, revision: int = 1) -> dict[str, Any]:
    return {
        "kind": "invite_to_created_instance",
        "targetUserId": user(number),
        "creationOperationId": creation,
        "creationRevision": revision,
    }


async def a_pair(desk: Desk, **schedule: Any) -> tuple[str, str]:
    """A creation and an invitation to what it will open."""
    (creation,) = await desk.queue(CREATION, **schedule)
    (invited,) = await desk.queue(invite(creation), **schedule)
    return creation, invited


async def created(desk: Desk, creation: str, **answer: str) -> None:
    """The creation goes out, and VRChat answers with that place."""
    sent = await desk.collector.submitted()
    assert sent["operationId"] == creation
    place = {**PLACE, **answer}
    told(await desk.collector("complete", claim=sent["claim"], outcome="succeeded", result=place))
    await desk.turn("operation_fanout")


async def change(desk: Desk, creation: str, **changed: str) -> None:
    seen = await desk.seen(creation)
    body = {
        "revision": seen["revision"],
        "payload": {**CREATION, **changed},
        "schedule": {"kind": "fixed", "dueAt": seen["dueAt"]},
    }
    told(await desk.call("PUT", f"/operations/{creation}", json=body))


# --- waiting, and where it goes --------------------------------------------------------------------------------


@pytest.mark.clause("DEP-05")
async def test_an_invitation_waits_and_then_goes_to_the_very_place(desk: Desk) -> None:
    creation, invited = await a_pair(desk)
    assert await desk.state(invited) == ("pending", "awaiting_instance_creation")
    sent = await desk.collector.submitted()
    assert sent["operationId"] == creation
    assert await desk.collector.claim() is None, "it waits for the creation's answer"
    told(await desk.collector("complete", claim=sent["claim"], outcome="succeeded", result=PLACE))
    await desk.turn("operation_fanout")
    found = await desk.collector.claimed()
    assert (found["operationId"], found["kind"]) == (invited, "invite_to_instance")
    assert found["payload"] == {"targetUserId": user(1), **PLACE}
    assert told(await desk.collector.authorize(found))["isAuthorized"]
    assert told(await desk.collector.complete(found))["isRecorded"]
    stored = (await desk.seen(invited))["payload"]
    assert stored["creationOperationId"] == creation


@pytest.mark.parametrize(
    "answer",
    [
        {"worldId": OTHER_WORLD},
        {"instanceId": "12345~region(eu)~group(grp_other)~groupAccessType(members)"},
        {"instanceId": "12345~region(eu)"},
    ],
    ids=["another world", "another group", "no group"],
)
async def test_a_place_that_was_not_planned_is_no_destination(desk: Desk, answer: dict[str, str]) -> None:
    creation, invited = await a_pair(desk)
    await created(desk, creation, **answer)
    assert await desk.collector.claim() is None
    assert await desk.state(invited) == ("rejected", "dependency_destination_unavailable")


async def test_a_creation_that_fails_takes_its_invitations_along(desk: Desk) -> None:
    creation, invited = await a_pair(desk)
    sent = await desk.collector.submitted()
    told(await desk.collector("complete", claim=sent["claim"], outcome="rejected", code="provider_error"))
    await desk.turn("operation_fanout")
    assert await desk.state(invited) == ("rejected", "instance_creation_failed")
    refused = {
        "requestId": "another-one",
        "payloads": [invite(creation, 2)],
        "schedule": {"kind": "immediate"},
    }
    check(await desk.call("POST", "/requests", json=refused), 409, "instance_creation_failed")


# --- the creation is not what was reviewed any more ------------------------------------------------------------


EDITS = {"another world": {"worldId": OTHER_WORLD}, "another access": {"access": "plus"}}


@pytest.mark.clause("DEP-02")
@pytest.mark.parametrize("edit", list(EDITS))
async def test_an_edited_creation_rejects_what_was_reviewed_with_the_one_before(
    desk: Desk, edit: str
) -> None:
    now = await desk.clock.now()
    later = {"schedule": {"kind": "fixed", "dueAt": (now + HOUR).isoformat()}}
    creation, invited = await a_pair(desk, **later)
    await change(desk, creation, **EDITS[edit])
    await desk.turn("operation_fanout")
    assert await desk.state(invited) == ("rejected", "dependency_unavailable")
    stale = {"requestId": "another-one", "payloads": [invite(creation, 2)], **later}
    check(await desk.call("POST", "/requests", json=stale), 409, "creation_changed")
    (fresh,) = await desk.queue(invite(creation, 2, revision=2), **later)
    assert (await desk.state(fresh))[0] == "pending"


async def say_edited(desk: Desk, creation: str) -> None:
    """No command edits a creation that was sent; a row that says so all the same is what another release left."""
    await desk.run("update operations set revision = revision + 1 where id = $1", decode_id(creation))


async def test_an_edited_creation_is_seen_at_the_claim(desk: Desk) -> None:
    creation, invited = await a_pair(desk)
    await created(desk, creation)
    await say_edited(desk, creation)
    assert await desk.collector.claim() is None
    assert await desk.state(invited) == ("rejected", "dependency_unavailable")


async def edited_after_the_claim(desk: Desk) -> dict[str, Any]:
    """The answer to the last word."""
    creation, _ = await a_pair(desk)
    await created(desk, creation)
    held = await desk.collector.claimed()
    await say_edited(desk, creation)
    return told(await desk.collector.authorize(held))


async def test_an_edited_creation_is_seen_at_the_last_word(desk: Desk) -> None:
    answer = await edited_after_the_claim(desk)
    assert (answer["isAuthorized"], answer["code"]) == (False, "dependency_unavailable")


async def test_twin_without_the_reviewed_revision_people_are_sent_to_a_place_that_nobody_reviewed(
    desk: Desk,
) -> None:
    await replace_routine(
        desk.db, "is_as_reviewed", "and p_creation.revision = p_row.dependency_revision", ""
    )
    assert (await edited_after_the_claim(desk))["isAuthorized"]


async def test_another_creation_takes_nobodys_place(desk: Desk) -> None:
    """An edit of an invitation keeps the creation and the revision that it was reviewed with."""
    now = await desk.clock.now()
    schedule = {"kind": "fixed", "dueAt": (now + HOUR).isoformat()}
    _, invited = await a_pair(desk, schedule=schedule)
    other, _ = await a_pair(desk, schedule=schedule)
    for payload in (
        invite(other),
        invite((await desk.seen(invited))["payload"]["creationOperationId"], 1, 2),
    ):
        body = {"revision": 1, "payload": payload, "schedule": schedule}
        check(await desk.call("PUT", f"/operations/{invited}", json=body), 422, "creation_fixed")
    assert (await desk.seen(invited))["revision"] == 1


async def test_a_row_that_does_not_say_what_was_reviewed_is_never_sent(desk: Desk) -> None:
    """As an older release left them."""
    creation, invited = await a_pair(desk)
    await created(desk, creation)
    await desk.run(
        "update operations set payload = payload - 'creationRevision', dependency_revision = null where id = $1",
        decode_id(invited),
    )
    assert await desk.collector.claim() is None
    assert await desk.state(invited) == ("rejected", "dependency_unavailable")


# --- events ----------------------------------------------------------------------------------------------------


async def an_event(desk: Desk, starts_at: datetime) -> str:
    event = {
        "title": "Night",
        "zone": "UTC",
        "time": {"kind": "timed", "startsAt": starts_at.isoformat()},
        "publication": "published",
    }
    made: str = told(await desk.call("POST", "/events", json=event))["id"]
    return made


@pytest.mark.clause("DEP-08")
async def test_a_creation_that_gets_another_event_rejects_its_invitations(desk: Desk) -> None:
    now = await desk.clock.now()
    first, second = [await an_event(desk, now + hours * HOUR) for hours in (2, 3)]
    due = {"kind": "fixed", "dueAt": (now + HOUR).isoformat()}
    creation, invited = await a_pair(desk, schedule={**due, "eventId": first})
    body = {"revision": 1, "payload": CREATION, "schedule": {**due, "eventId": second}}
    told(await desk.call("PUT", f"/operations/{creation}", json=body))
    await desk.turn("operation_fanout")
    assert await desk.state(invited) == ("rejected", "dependency_unavailable")


async def test_an_invitation_without_an_event_is_stopped_with_its_creations(desk: Desk) -> None:
    now = await desk.clock.now()
    event = await an_event(desk, now + 2 * HOUR)
    due = {"kind": "fixed", "dueAt": (now + HOUR).isoformat()}
    (creation,) = await desk.queue(CREATION, schedule={**due, "eventId": event})
    (invited,) = await desk.queue(invite(creation), schedule=due)
    told(await desk.call("POST", f"/events/{event}/cancel"))
    await desk.turn("operation_fanout")
    assert await desk.state(invited) == await desk.state(creation) == ("cancelled", "event_cancelled")
