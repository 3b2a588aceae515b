"""What was read afterwards tells what became of a write whose outcome is unknown, to whoever may read it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.operations.operations_world import GROUP, ROLE, user
from tests.reads.reads_world import Reading

from lastcall.clubs.policy import Standing, require_staff
from lastcall.operations.kinds import KINDS as OPERATION_KINDS
from lastcall.operations.services.settle import settle_unknown
from lastcall.operations.settling import EvidenceItem, Verdict, evidence_of, findings_of
from lastcall.operations.telling import TELLING, evidence_for
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.protocol.constants import SUBMISSION_LIFE
from lastcall.protocol.outcomes import Outcome
from lastcall.reads.kinds import KINDS

WORLD_ID = "wrld_00000000-0000-4000-8000-00000000000A"
INSTANCE = f"7~group({GROUP})~region(eu)"
POST_ID = "not_00000000-0000-4000-8000-00000000000A"
POST = {"title": "Tonight", "text": "Doors at nine.", "visibility": "group", "sendNotification": False}
PERSON = {"targetUserId": user(1)}


def waits(number: int, since: str) -> dict[str, Any]:
    return {"userId": user(number), "displayName": "Robin", since: None}


def stands(status: str, *roles: str) -> dict[str, Any]:
    return {
        "userId": user(1),
        "displayName": "Robin",
        "status": status,
        "roleIds": list(roles),
        "joinedAt": None,
    }


def says(text: str, post_id: str = POST_ID) -> dict[str, Any]:
    return {
        "postId": post_id,
        "title": "Tonight",
        "text": text,
        "visibility": "group",
        "roleIds": [],
        "imageId": None,
        "createdAt": None,
    }


OPEN = {"worldId": WORLD_ID.lower(), "worldName": "Bar", "instanceId": f"7~region(eu)~group({GROUP})"}
ELSEWHERE = {**OPEN, "worldId": WORLD_ID[:-1] + "b"}

CASES = [
    ("approve_request", PERSON, "requests", waits(1, "askedAt"), waits(2, "askedAt")),
    ("reject_request", PERSON, "requests", waits(1, "askedAt"), waits(2, "askedAt")),
    ("approve_request", PERSON, "member", stands("member"), stands("inactive")),
    ("invite_member", PERSON, "invites", waits(1, "invitedAt"), waits(2, "invitedAt")),
    ("invite_member", PERSON, "member", stands("invited"), stands("inactive")),
    ("cancel_member_invite", PERSON, "invites", waits(1, "invitedAt"), waits(2, "invitedAt")),
    ("remove_member", PERSON, "member", stands("member"), stands("inactive")),
    ("ban_member", PERSON, "bans", waits(1, "bannedAt"), waits(2, "bannedAt")),
    ("ban_member", PERSON, "member", stands("banned"), stands("member")),
    ("unban_member", PERSON, "bans", waits(1, "bannedAt"), waits(2, "bannedAt")),
    ("assign_role", {**PERSON, "roleId": ROLE}, "member", stands("member", ROLE.upper()), stands("member")),
    ("remove_role", {**PERSON, "roleId": ROLE}, "member", stands("member", ROLE), stands("inactive")),
    ("publish_post", POST, "posts", says("Doors at nine.", "not_1"), says("Doors at ten.")),
    (
        "edit_post",
        {**POST, "postId": POST_ID},
        "posts",
        says("Doors at nine."),
        says("Doors at nine.", "not_1"),
    ),
    ("delete_post", {"postId": POST_ID}, "posts", says("Anything"), says("Doors at nine.", "not_1")),
    (
        "create_instance",
        {"worldId": WORLD_ID, "access": "members", "region": "eu"},
        "instances",
        OPEN,
        ELSEWHERE,
    ),
    ("close_instance", {"worldId": WORLD_ID, "instanceId": INSTANCE}, "instances", OPEN, ELSEWHERE),
]


async def unknown(reading: Reading, kind: str, payload: dict[str, Any]) -> UUID:
    """An action whose outcome nobody knows, and that cannot be on its way any more."""
    operation_id, held = await reading.world.submitted({"kind": kind, **payload})
    await reading.world.steps.complete(reading.world.worker, held, Outcome.INDETERMINATE, "timeout")
    await reading.clock.advance(SUBMISSION_LIFE)
    await reading.world.renew()
    return operation_id


async def found(reading: Reading, operation_id: UUID, actor: Actor | None = None) -> list[EvidenceItem]:
    actor = actor or reading.moderator
    async with reading.db.read() as tx:
        standing = await require_staff(tx, actor, reading.world.club_id, scope=Scope.READ)
        return await evidence_of(tx, standing, actor, reading.world.club_id, operation_id)


async def standing_of(reading: Reading) -> Standing:
    async with reading.db.read() as tx:
        return await require_staff(tx, reading.moderator, reading.world.club_id, scope=Scope.READ)


@pytest.mark.parametrize(("kind", "payload", "evidence", "there", "elsewhere"), CASES)
async def test_a_read_tells_whether_the_target_is_there(
    reading: Reading,
    kind: str,
    payload: dict[str, Any],
    evidence: str,
    there: dict[str, Any],
    elsewhere: dict[str, Any],
) -> None:
    operation_id = await unknown(reading, kind, payload)
    reads = dict(evidence_for(await standing_of(reading), kind, payload))
    said = []
    for item in (there, elsewhere):
        await reading.run("delete from provider_reads")
        await reading.clock.advance(SUBMISSION_LIFE)
        await reading.world.renew()
        await reading.answered(evidence, item, **reads[evidence])
        [seen] = await found(reading, operation_id)
        assert (seen.kind, seen.is_telling) == (evidence, True)
        said.append((seen.names_target, seen.said))
    assert [names for names, _ in said] == [True, False]
    assert said[0][1] != said[1][1]


async def test_what_was_read_is_what_a_finding_rests_on(reading: Reading) -> None:
    operation_id = await unknown(reading, "remove_member", PERSON)
    await reading.answered("member", stands("inactive"), **PERSON)
    [seen] = await found(reading, operation_id)
    finding = await settle_unknown(
        reading.db, reading.moderator, reading.world.club_id, operation_id, Verdict.HAPPENED, "", [seen.ref]
    )
    assert finding.evidence[0]["said"] == "not a member"
    # The read goes with its evidence; what the finding says stays.
    await reading.run("delete from evidence")
    async with reading.db.read() as tx:
        about = (await standing_of(reading), reading.moderator, reading.world.club_id, operation_id)
        assert [one.evidence for one in await findings_of(tx, *about)] == [finding.evidence]


async def test_a_read_about_somebody_else_says_nothing_of_the_target(reading: Reading) -> None:
    operation_id = await unknown(reading, "remove_member", PERSON)
    await reading.answered("member", {**stands("member"), "userId": user(2)}, targetUserId=user(2))
    assert await found(reading, operation_id) == []


async def test_evidence_is_shown_to_whoever_could_have_had_it_read(reading: Reading) -> None:
    operation_id = await unknown(reading, "remove_member", PERSON)
    await reading.answered("member", stands("member"), **PERSON)
    assert len(await found(reading, operation_id)) == 1
    await reading.run(
        "update staff_roles set permissions = '{remove_group_members}' where name = 'Moderator'"
    )
    assert await found(reading, operation_id) == []
    assert evidence_for(await standing_of(reading), "remove_member", PERSON) == []


async def test_what_was_read_before_the_window_ended_does_not_tell(reading: Reading) -> None:
    operation_id, held = await reading.world.submitted({"kind": "ban_member", **PERSON})
    await reading.world.steps.complete(reading.world.worker, held, Outcome.INDETERMINATE, "timeout")
    await reading.answered("bans", waits(1, "bannedAt"))
    [seen] = await found(reading, operation_id)
    assert not seen.is_telling


def test_every_kind_of_action_says_what_tells_of_it() -> None:
    assert set(TELLING) == set(OPERATION_KINDS)
    for looks in TELLING.values():
        for look in looks:
            assert KINDS[look.evidence].telling is not None
            assert KINDS[look.evidence].permission is look.permission


def test_what_the_own_permission_can_read_is_offered_first() -> None:
    for kind, looks in TELLING.items():
        own = [look.permission is OPERATION_KINDS[kind].permission for look in looks]
        assert own == sorted(own, reverse=True)
