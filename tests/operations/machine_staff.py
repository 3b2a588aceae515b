"""What staff do with operations, through the services and in the model."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from machine_ends import Asked, cancel, cancel_request, edit, enqueue_refusal, permission_refusal, tie
from machine_stage import Request, Stand
from machine_things import Club, Connection, Op
from operations_world import GROUP_OWNER, ROLE, user

import lastcall.operations.services.cancel as cancelling
import lastcall.operations.services.edit as editing
import lastcall.operations.services.enqueue as enqueuing
from lastcall.db.ids import encode_id
from lastcall.operations.kinds import KINDS
from lastcall.operations.schedules import EventRelative, Fixed, Immediate, Schedule
from lastcall.people.actor import Actor

WORLD_ID = "wrld_00000000-0000-4000-8000-000000000001"


class Staff(Stand):
    """Queue, ask again, edit, cancel."""

    def schedule(self, asked: Asked) -> Schedule:
        event_id = None if asked.event is None else asked.event.id
        if asked.kind == "immediate":
            return Immediate(event_id)
        assert asked.due is not None
        if asked.offset is not None:
            assert event_id is not None
            return EventRelative(event_id, asked.offset, asked.due)
        return Fixed(asked.due, event_id)

    def payload(
        self, kind: str, number: int, creation: Op | None = None, revision: int = 1
    ) -> dict[str, Any]:
        if kind == "create_instance":
            return {"kind": kind, "worldId": WORLD_ID, "access": "members", "region": "eu"}
        fields = {"kind": kind, "targetUserId": GROUP_OWNER if number == 0 else user(number)}
        if kind == "assign_role":
            fields["roleId"] = ROLE
        if creation is None:
            return fields
        return fields | {"creationOperationId": encode_id(creation.id), "creationRevision": revision}

    async def enqueue(
        self,
        club: Club,
        actor: Actor,
        kind: str,
        asked: Asked,
        count: int = 1,
        *,
        creation: Op | None = None,
        revision: int | None = None,
        at_owner: bool = False,
    ) -> list[Op]:
        """Ask for ``count`` operations; what was made, if it was."""
        numbers = [0] if at_owner else [self.next_number() for _ in range(count)]
        payloads = [self.payload(kind, number, creation, revision or 1) for number in numbers]
        key, schedule = f"request-{uuid4()}", self.schedule(asked)
        person = actor.person_id
        expected = permission_refusal(self.model, club, person, kind) or enqueue_refusal(
            self.model, club, person, kind, asked, creation, revision
        )
        code, made = await self.refusal(enqueuing.enqueue(self.db, actor, club.id, key, payloads, schedule))
        assert code == (expected if isinstance(expected, str) else None)
        if made is None:
            return []
        assert made.due_at == expected
        assert isinstance(expected, datetime)
        assert club.connection is not None
        ops = [
            self._new_op(
                made.request_id,
                club.connection,
                kind,
                number,
                operation_id,
                person,
                asked,
                expected,
                creation,
            )
            for number, operation_id in zip(numbers, made.operation_ids, strict=True)
        ]
        for op in ops:
            op.lane = KINDS[kind].lane(len(ops))
            op.creation_revision = revision if creation else None
            tie(op, asked)
            self.model.ops[op.id] = op
        self.requests.append(Request(club, actor, key, payloads, schedule, ops))
        self.model.did(club, "operations.enqueued", person)
        return ops

    def _new_op(
        self,
        request_id: UUID,
        connection: Connection,
        kind: str,
        number: int,
        operation_id: UUID,
        person: UUID,
        asked: Asked,
        due: datetime,
        creation: Op | None,
    ) -> Op:
        waits = creation is not None and creation.state != "succeeded"
        return Op(
            operation_id,
            request_id,
            connection,
            kind,
            number,
            person,
            2,
            asked.kind,
            due,
            None if waits else due,
            offset=asked.offset,
            creation=creation,
            creation_event=creation.event if creation else None,
            code="awaiting_instance_creation" if waits else None,
        )

    def next_number(self) -> int:
        self.number += 1
        return self.number

    async def ask_again(self, request: Request, *, is_same: bool) -> None:
        """The same request id, with the same or with other content."""
        payloads = request.payloads if is_same else [self.payload("invite_member", self.next_number())]
        kind = payloads[0]["kind"]
        expected = permission_refusal(self.model, request.club, request.actor.person_id, kind)
        if expected is None and not is_same:
            expected = "request_id_used"
        code, made = await self.refusal(
            enqueuing.enqueue(
                self.db, request.actor, request.club.id, request.key, payloads, request.schedule
            )
        )
        assert code == expected
        if made is not None:
            assert made.is_replay
            assert list(made.operation_ids) == [op.id for op in request.ops]

    async def edit(self, op: Op, actor: Actor, seen: int, asked: Asked) -> None:
        number = self.next_number()
        payload = self.payload(op.kind, number, op.creation, op.creation_revision or 1)
        schedule = self.schedule(asked)
        expected = edit(self.model, op, actor.person_id, seen, number, asked)
        club_id = op.connection.club.id
        code, _ = await self.refusal(editing.edit(self.db, actor, club_id, op.id, seen, payload, schedule))
        assert code == expected

    async def cancel(self, op: Op, actor: Actor, seen: int) -> None:
        expected = cancel(self.model, op, actor.person_id, seen)
        club_id = op.connection.club.id
        code, _ = await self.refusal(cancelling.cancel(self.db, actor, club_id, op.id, seen))
        assert code == expected

    async def cancel_request(self, request: Request, actor: Actor) -> None:
        expected = cancel_request(self.model, request.ops, actor.person_id)
        request_id = request.ops[0].request_id
        code, _ = await self.refusal(cancelling.cancel_request(self.db, actor, request.club.id, request_id))
        assert code == expected
