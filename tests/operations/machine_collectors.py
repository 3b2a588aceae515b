"""What collectors do with operations, through the worker's steps and in the model."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import Any

from machine_ends import complete, defer, reject
from machine_staff import WORLD_ID
from machine_stage import Collector, Handle, Stand
from machine_things import LEASE_LIFE, Claim, Connection, Lease, Op, Seen
from operations_world import BOT, GROUP_OWNER, ROLE, user

from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.operations.services.worker import Claimed, ClaimHeld
from lastcall.protocol.messages import FriendshipSeen, OwnMemberEvidence, RoleSeen
from lastcall.protocol.outcomes import Outcome


class Collectors(Stand):
    """Claim, authorize, complete, reject, defer."""

    def worker(self, collector: Collector) -> Worker:
        return Worker(self.stage.account_id, 1, collector.id, BOT)

    def lease_held(self, lease: Lease) -> LeaseHeld:
        connection = lease.connection
        return LeaseHeld(connection.club.id, connection.id, connection.epoch, lease.token)

    def claim_held(self, handle: Handle) -> ClaimHeld:
        held = self.lease_held(handle.lease)
        return ClaimHeld(
            held.club_id, held.connection_id, held.epoch, held.fencing_token, handle.op.id, handle.claim.nonce
        )

    async def claim(self, collector: Collector, lease: Lease) -> Handle | None:
        turn = self.steps._claims[lease.connection.id]
        expected = self.model.claim(lease, collector.id, turn % 3 == 2)
        code, claimed = await self.refusal(
            self.steps.claim(self.worker(collector), self.lease_held(lease), collector.journal_id)
        )
        assert code == (expected if isinstance(expected, str) else None)
        assert (claimed.operation_id if claimed else None) == (
            expected.id if isinstance(expected, Op) else None
        )
        return self._claimed(collector, lease, expected, claimed) if isinstance(expected, Op) else None

    def _claimed(self, collector: Collector, lease: Lease, op: Op, claimed: Claimed) -> Handle:
        assert claimed.nonce not in self.nonces, "a nonce came twice"
        self.nonces.add(claimed.nonce)
        op.claim = Claim(claimed.nonce, collector.id, collector.journal_id, lease.token)
        if op.is_dependent:
            assert claimed.kind == "invite_to_instance"
            assert f"~group({op.connection.club.group_id})" in claimed.payload["instanceId"]
        handle = Handle(collector, lease, op, op.claim, claimed.kind)
        self.handles.append(handle)
        return handle

    def evidence(self, connection: Connection, seen: Seen) -> OwnMemberEvidence:
        return OwnMemberEvidence(
            age_ms=(self.model.now - seen.at) // timedelta(milliseconds=1),
            group_id=connection.club.group_id,
            owner_id=GROUP_OWNER,
            user_id=BOT,
            member_status="member" if seen.is_member else "left",
            permissions=("*",) if seen.is_granted else (),
            role_ids=(),
            roles=(RoleSeen(id=ROLE, name="Regular"),) if seen.has_role else (),
            privacy="default",
        )

    async def authorize(self, handle: Handle, seen: Seen, friend_at: datetime | None = None) -> bool:
        """Whether the collector may write now."""
        op = handle.op
        friendship = None
        if friend_at is not None:
            age = (self.model.now - friend_at) // timedelta(milliseconds=1)
            friendship = FriendshipSeen(target_user_id=user(op.number), is_friend=True, age_ms=age)
        evidence = self.evidence(op.connection, seen)
        expected = self.model.authorize(op, handle.claim, handle.lease, seen, friend_at)
        worker, held = self.worker(handle.collector), self.claim_held(handle)
        code, verdict = await self.refusal(
            self.steps.authorize(worker, held, handle.kind, evidence, friendship=friendship)
        )
        if verdict is not None:
            code = "authorized" if verdict.is_authorized else verdict.code
        assert code == expected
        if code == "authorized":
            assert op.id not in self.submissions, "submitted twice"
            self.submissions.add(op.id)
        return code == "authorized"

    async def complete(self, handle: Handle, outcome: Outcome, *, is_place: bool = True) -> None:
        op = handle.op
        code = None if outcome is Outcome.SUCCEEDED else "provider_error"
        place = {"worldId": WORLD_ID, "instanceId": f"1~group({op.connection.club.group_id})~region(eu)"}
        result = place if op.kind == "create_instance" and is_place else {}
        expected = complete(self.model, op, handle.claim, outcome.value, code, is_place=bool(result))
        settled = await self.steps.complete(
            self.worker(handle.collector), self.claim_held(handle), outcome, code, result
        )
        assert settled.is_recorded == (expected == "recorded")
        if expected == "claim_unavailable":
            assert settled.code == expected
        else:
            assert settled.state is not None
            assert (settled.state.value, settled.code) == (op.state, op.code)

    async def reject(self, handle: Handle) -> None:
        expected = reject(self.model, handle.op, handle.claim, handle.lease, "provider_scope")
        await self._preflight(
            expected,
            self.steps.reject(self.worker(handle.collector), self.claim_held(handle), "provider_scope"),
        )

    async def defer(self, handle: Handle, delay: timedelta | None) -> None:
        waits = timedelta(seconds=60) if delay is None else delay
        expected = defer(self.model, handle.op, handle.claim, handle.lease, "timeout", waits)
        seconds = None if delay is None else delay.total_seconds()
        worker, held = self.worker(handle.collector), self.claim_held(handle)
        await self._preflight(expected, self.steps.defer(worker, held, "timeout", seconds))

    async def _preflight(self, expected: str, call: Awaitable[Any]) -> None:
        code, settled = await self.refusal(call)
        if settled is not None:
            code = "recorded" if settled.is_recorded else settled.code
        assert code == expected

    def leased(self, collector: Collector, connection: Connection, token: int) -> Lease:
        """What the model keeps of a lease, and what the collector remembers of it."""
        connection.lease_generation = token
        connection.lease = Lease(connection, collector.id, token, self.model.now + LEASE_LIFE)
        collector.leases.append(connection.lease)
        return connection.lease
