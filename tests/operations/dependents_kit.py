"""Creations of instances and the invitations that wait for them: what the tests of both do."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
from operations_world import GROUP, World, user

from lastcall.db.ids import encode_id
from lastcall.events.queries import Publication
from lastcall.events.services.write import EventFields, create_event, edit_event
from lastcall.events.times import Timed
from lastcall.operations.owners.fanout import Fanouts
from lastcall.operations.schedules import Immediate, Schedule
from lastcall.operations.services.enqueue import enqueue
from lastcall.operations.services.worker import Claimed, ClaimHeld, Verdict
from lastcall.protocol.messages import FriendshipSeen
from lastcall.protocol.outcomes import Outcome

WORLD_ID = "wrld_00000000-0000-4000-8000-000000000001"
PLACE = {"worldId": WORLD_ID, "instanceId": f"12345~region(eu)~group({GROUP})~groupAccessType(members)"}
CREATION = {"kind": "create_instance", "worldId": WORLD_ID, "access": "members", "region": "eu"}
HOUR = timedelta(hours=1)


def invitation(creation: UUID, number: int = 1, revision: int = 1) -> dict[str, Any]:
    return {
        "kind": "invite_to_created_instance",
        "targetUserId": user(number),
        "creationOperationId": encode_id(creation),
        "creationRevision": revision,
    }


def friendship(number: int = 1, **changes: Any) -> FriendshipSeen:
    facts: dict[str, Any] = {"target_user_id": user(number), "is_friend": True, "age_ms": 0}
    return FriendshipSeen(**facts | changes)


class Evening:
    """The club's world with instances switched on, and what these tests do in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.db, self.club_id = world.db, world.club_id

    async def queue(self, *payloads: dict[str, Any], schedule: Schedule | None = None) -> list[UUID]:
        queued = await enqueue(
            self.db, self.world.owner, self.club_id, f"request-{uuid4()}", payloads, schedule or Immediate()
        )
        return list(queued.operation_ids)

    async def one(self, payload: dict[str, Any], schedule: Schedule | None = None) -> UUID:
        return (await self.queue(payload, schedule=schedule))[0]

    async def claim(self) -> Claimed | None:
        world = self.world
        return await world.steps.claim(world.worker, world.lease, world.journal_id)

    async def authorize(self, claimed: Claimed, seen: FriendshipSeen | None = None) -> Verdict:
        world = self.world
        return await world.steps.authorize(
            world.worker, world.held(claimed), claimed.kind, world.evidence(), friendship=seen
        )

    async def submit(self, operation_id: UUID) -> ClaimHeld:
        """Claim and authorize the next operation, which is this one."""
        claimed = await self.claim()
        assert claimed is not None
        assert claimed.operation_id == operation_id
        verdict = await self.authorize(claimed)
        assert verdict.is_authorized, verdict.code
        return self.world.held(claimed)

    async def create(self, operation_id: UUID, result: dict[str, str] | None = None) -> None:
        """Carry the creation out: VRChat opened this place."""
        held = await self.submit(operation_id)
        world = self.world
        await world.steps.complete(
            world.worker, held, Outcome.SUCCEEDED, None, PLACE if result is None else result
        )

    async def go_through(self) -> None:
        """What the fan-out's owner does, to its end."""
        notes = Fanouts(self.db)
        while (note := await notes.first(None)) is not None:
            await notes.step(note)

    async def row(self, operation_id: UUID) -> Any:
        return await self.world.row(operation_id)

    async def payload(self, operation_id: UUID) -> Any:
        return msgspec.json.decode((await self.row(operation_id))["payload"])

    async def how(self, operation_id: UUID) -> tuple[str, str | None]:
        row = await self.row(operation_id)
        return row["state"], row["code"]

    async def event(self, starts_in: timedelta = 3 * HOUR) -> tuple[UUID, datetime]:
        starts_at = (await self.world.clock.now()).replace(microsecond=0) + starts_in
        fields = EventFields("Evening", Timed(starts_at), "UTC")
        made = await create_event(
            self.db, self.world.owner, self.club_id, fields, publication=Publication.PUBLISHED
        )
        return made.id, starts_at

    async def move(self, event_id: UUID, starts_at: datetime) -> None:
        seen = await self.world.run("select revision from events where id = $1", event_id)
        fields = EventFields("Evening", Timed(starts_at), "UTC")
        await edit_event(self.db, self.world.owner, self.club_id, event_id, fields, seen)
