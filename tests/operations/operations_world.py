"""A club with an owner and a moderator, a connected group, an account with its worker and a lease."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.deadlines.owner import More, Stop
from lastcall.mail.mailer import Mailer
from lastcall.operations.kinds import KINDS
from lastcall.operations.owners import operation_owners
from lastcall.operations.schedules import Fixed, Immediate
from lastcall.operations.services.enqueue import Enqueued, enqueue
from lastcall.operations.services.worker import Claimed, ClaimHeld, WorkerSteps
from lastcall.people.actor import Actor
from lastcall.protocol.messages import OwnMemberEvidence, RoleSeen
from lastcall.testing.clock import TestClock

GROUP = "grp_00000000-0000-4000-8000-000000000001"
BOT = "usr_00000000-0000-4000-8000-00000000b070"
GROUP_OWNER = "usr_00000000-0000-4000-8000-00000000c0de"
ROLE = "grol_00000000-0000-4000-8000-000000000001"


def user(number: int) -> str:
    """A VRChat user id that is nobody's."""
    return f"usr_00000000-0000-4000-8000-{number:012d}"


def assignment(number: int = 1, role_id: str = ROLE) -> dict[str, str]:
    return {"kind": "assign_role", "targetUserId": user(number), "roleId": role_id}


def invitation(number: int = 1) -> dict[str, str]:
    return {"kind": "invite_member", "targetUserId": user(number)}


def ban(number: int = 1) -> dict[str, str]:
    return {"kind": "ban_member", "targetUserId": user(number)}


@dataclass
class World:
    """One club, made with plain rows, so that these tests stand on the tables and not on other rooms'
    services.
    """

    db: Database
    clock: TestClock
    steps: WorkerSteps
    club_id: UUID = field(default_factory=new_id)
    owner: Actor = field(default_factory=lambda: Actor(new_id(), "Owner", is_operator=False))
    moderator: Actor = field(default_factory=lambda: Actor(new_id(), "Moderator", is_operator=False))
    role_id: UUID = field(default_factory=new_id)
    account_id: UUID = field(default_factory=new_id)
    connection_id: UUID = field(default_factory=new_id)
    worker_id: UUID = field(default_factory=uuid4)
    journal_id: UUID = field(default_factory=uuid4)
    epoch: datetime = field(init=False)
    token: int = 1

    @property
    def worker(self) -> Worker:
        return Worker(self.account_id, 1, self.worker_id, BOT)

    @property
    def lease(self) -> LeaseHeld:
        return LeaseHeld(self.club_id, self.connection_id, self.epoch, self.token)

    @property
    def mailer(self) -> Mailer:
        """One that sends nothing."""
        return Mailer(self.db, None, "http://localhost")

    async def run(self, statement: str, *arguments: object) -> Any:
        return await self.db.pool.fetchval(statement, *arguments)

    async def row(self, operation_id: UUID) -> Any:
        return await self.db.pool.fetchrow(
            "select * from operations where club_id = $1 and id = $2", self.club_id, operation_id
        )

    async def state(self, operation_id: UUID) -> str:
        return str((await self.row(operation_id))["state"])

    async def enqueue(
        self,
        *payloads: dict[str, str],
        actor: Actor | None = None,
        due_at: datetime | None = None,
        key: str | None = None,
    ) -> Enqueued:
        schedule = Immediate() if due_at is None else Fixed(due_at)
        return await enqueue(
            self.db, actor or self.moderator, self.club_id, key or f"request-{uuid4()}", payloads, schedule
        )

    async def one(self, payload: dict[str, str] | None = None, **how: Any) -> UUID:
        """One pending operation."""
        return (await self.enqueue(payload or assignment(), **how)).operation_ids[0]

    async def claim(self) -> Claimed:
        claimed = await self.steps.claim(self.worker, self.lease, self.journal_id)
        assert claimed is not None
        return claimed

    def held(self, claimed: Claimed) -> ClaimHeld:
        return ClaimHeld(
            self.club_id, self.connection_id, self.epoch, self.token, claimed.operation_id, claimed.nonce
        )

    async def claimed(self, payload: dict[str, str] | None = None, **how: Any) -> tuple[UUID, ClaimHeld]:
        """One claimed operation, and its claim."""
        operation_id = await self.one(payload, **how)
        claimed = await self.claim()
        assert claimed.operation_id == operation_id
        return operation_id, self.held(claimed)

    async def submitted(self, payload: dict[str, str] | None = None, **how: Any) -> tuple[UUID, ClaimHeld]:
        """One submitted operation, and its claim."""
        operation_id, held = await self.claimed(payload, **how)
        kind = (payload or assignment())["kind"]
        verdict = await self.steps.authorize(self.worker, held, kind, self.evidence())
        assert verdict.is_authorized, verdict.code
        return operation_id, held

    async def submitted_by(self, worker: Worker, payload: dict[str, str]) -> tuple[UUID, ClaimHeld]:
        """One operation that this worker has submitted."""
        operation_id = await self.one(payload)
        claimed = await self.steps.claim(worker, self.lease, self.journal_id)
        assert claimed is not None
        held = self.held(claimed)
        verdict = await self.steps.authorize(worker, held, payload["kind"], self.evidence())
        assert verdict.is_authorized, verdict.code
        return operation_id, held

    def evidence(self, **changes: Any) -> OwnMemberEvidence:
        """What VRChat said of the account just now: a member with every grant."""
        facts: dict[str, Any] = {
            "age_ms": 0,
            "group_id": GROUP,
            "owner_id": GROUP_OWNER,
            "user_id": BOT,
            "member_status": "member",
            "permissions": ("*",),
            "role_ids": (),
            "roles": (RoleSeen(id=ROLE, name="Regular"),),
            "privacy": "default",
        }
        return OwnMemberEvidence(**{**facts, **changes})

    async def turn(self, name: str) -> None:
        """What is due for that owner of deadlines is done, to the last of it."""
        owner = next(one for one in operation_owners(self.db, self.mailer) if one.name == name)
        while isinstance(await owner.run_pass(Stop()), More):
            pass

    async def renew(self, by: timedelta = timedelta(minutes=5)) -> None:
        await self.run("update leases set expires_at = lastcall_now() + $1", by)


async def make_world(database: Database, test_clock: TestClock) -> World:
    world = World(database, test_clock, WorkerSteps(database))
    run = world.run
    for actor in (world.owner, world.moderator):
        await run(
            "insert into people (id, email, display_name) values ($1, $2, $3)",
            actor.person_id,
            f"{actor.display_name}@example.test",
            actor.display_name,
        )
    await run(
        "insert into clubs (id, slug, name, zone, owner_id) values ($1, 'club', 'Club', 'UTC', $2)",
        world.club_id,
        world.owner.person_id,
    )
    await run("insert into club_gates (club_id) values ($1)", world.club_id)
    await run(
        """
        insert into staff_roles (club_id, id, name, permissions, permitted_provider_role_ids)
        values ($1, $2, 'Moderator', $3, $4)
        """,
        world.club_id,
        world.role_id,
        [kind.permission.value for kind in KINDS.values()],
        [ROLE],
    )
    await run(
        "insert into staff_assignments (club_id, id, role_id, person_id) values ($1, $2, $3, $4)",
        world.club_id,
        new_id(),
        world.role_id,
        world.moderator.person_id,
    )
    await run(
        """
        insert into accounts (id, alias, vrchat_user_id, state, credential_generation)
        values ($1, 'doorman', $2, 'ready', 1)
        """,
        world.account_id,
        BOT,
    )
    await run(
        "insert into worker_keys (account_id, generation, key_hash) values ($1, 1, $2)",
        world.account_id,
        b"k" * 32,
    )
    world.epoch = await run(
        """
        insert into connections (club_id, id, group_id, group_name, account_id, state, epoch, features)
        values ($1, $2, $3, 'Group', $4, 'active', lastcall_now(), '{membership_management}')
        returning epoch
        """,
        world.club_id,
        world.connection_id,
        GROUP,
        world.account_id,
    )
    await run(
        "insert into connection_gates (club_id, connection_id) values ($1, $2)",
        world.club_id,
        world.connection_id,
    )
    await run(
        """
        insert into leases
               (club_id, connection_id, account_id, worker_id, fencing_token, claimed_at, expires_at)
        values ($1, $2, $3, $4, 1, lastcall_now(), lastcall_now() + interval '5 minutes')
        """,
        world.club_id,
        world.connection_id,
        world.account_id,
        world.worker_id,
    )
    return world
