"""What examples of the stateful tests stand on, and what must hold after each of their steps.

One account with two collectors serves two clubs of one owner and one moderator. Everything of an example is in clubs of
its own, which are gone when it ends, so that the owners, which look over all clubs, find only its rows.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from machine_model import Model
from machine_things import ALL_PERMISSIONS, PERMISSIONS, Claim, Club, Connection, Event, Lease, Op
from operations_world import BOT, ROLE

from lastcall.db.connect import Connection as Raw
from lastcall.db.database import Database
from lastcall.errors import LastcallError
from lastcall.operations.schedules import Schedule
from lastcall.operations.services.worker import WorkerSteps
from lastcall.people.actor import Actor
from lastcall.testing.fake_clock import FakeClock

START = datetime(2030, 1, 1, 12, tzinfo=UTC)
FEATURES = frozenset({"instances", "membership_management"})

_FACTS = """
    select o.id, o.state, o.code, o.due_at, o.ready_at, o.retry_at, o.revision, o.actor_id, o.preflight_failures,
           o.claim_nonce, o.claim_worker_id, o.claim_fencing_token, o.claim_expires_at, o.submitted_at,
           o.completed_at, o.event_id, md5(o::text) as digest,
           (select array_agg(concat_ws(' ', a.club_id, a.action, a.actor_id) order by a.id)
              from activity_log a where a.club_id = any ($1)) as logged,
           (select count(*) from operation_fanouts f where f.club_id = any ($1)) as notes,
           (select count(*) from ended_epochs e where e.club_id = any ($1)) as ended,
           (select count(*) from operation_revisions r where r.club_id = any ($1)) as revisions,
           (select count(*) from operation_notices n where n.club_id = any ($1)) as notices
      from (values (true)) as one
      left join operations o on o.club_id = any ($1) and ($2 or o.id = any ($3))
"""
_CLOCK = """
    update lastcall_testing.test_clock set anchor = $1, real_anchor = clock_timestamp(), "offset" = '0', rate = 0
"""


@dataclass(eq=False)
class Collector:
    """A worker process: its name, its journal, and the leases that it believes in."""

    id: UUID
    journal_id: UUID
    leases: list[Lease] = field(default_factory=list)


@dataclass(frozen=True)
class Handle:
    """A claim as the collector that got it remembers it, however long ago."""

    collector: Collector
    lease: Lease
    op: Op
    claim: Claim
    kind: str


@dataclass(frozen=True)
class Request:
    """What somebody asked for once, to ask for it again."""

    club: Club
    actor: Actor
    key: str
    payloads: list[dict[str, Any]]
    schedule: Schedule
    ops: list[Op]


@dataclass
class Stage:
    """What all examples share: people, an account with its key, open connections, the steps."""

    db: Database
    raw: Raw
    steps: WorkerSteps
    account_id: UUID
    owner: Actor
    moderator: Actor
    reached: set[str] = field(default_factory=set)
    """The states in which operations were seen."""

    @classmethod
    async def open(cls, db: Database) -> Stage:
        raw = await db.connect()
        owner = Actor(uuid4(), "Owner", is_operator=True, is_recent=True)
        moderator = Actor(uuid4(), "Moderator", is_operator=False)
        account_id = uuid4()
        await raw.execute(_CLOCK, START)
        for person in (owner, moderator):
            await raw.execute(
                "insert into people (id, email, display_name, is_operator) values ($1, $2, $3, $4)",
                person.person_id,
                f"{person.person_id}@example.test",
                person.display_name,
                person.is_operator,
            )
        await raw.execute(
            """
            insert into accounts (id, alias, vrchat_user_id, state, credential_generation)
            values ($1, 'doorman', $2, 'ready', 1)
            """,
            account_id,
            BOT,
        )
        await raw.execute(
            "insert into worker_keys (account_id, generation, key_hash) values ($1, 1, $2)",
            account_id,
            b"k" * 32,
        )
        return cls(db, raw, WorkerSteps(db, FakeClock()), account_id, owner, moderator)


def _setup(stage: Stage, clubs: list[Club], events: list[Event]) -> str:
    """One message for all rows that an example begins with."""
    kinds = ",".join(sorted(PERMISSIONS.values()))
    statements = []
    for club in clubs:
        connection = club.connection
        assert connection is not None
        statements.append(
            f"""
            insert into clubs (id, slug, name, zone, owner_id)
            values ('{club.id}', 'c{club.id.hex}', 'Club', 'UTC', '{stage.owner.person_id}');
            insert into club_gates (club_id) values ('{club.id}');
            insert into staff_roles (club_id, id, name, permissions, permitted_provider_role_ids)
            values ('{club.id}', '{club.role_id}', 'Moderator', '{{{kinds}}}', '{{{ROLE}}}');
            insert into staff_assignments (club_id, id, role_id, person_id)
            values ('{club.id}', '{uuid4()}', '{club.role_id}', '{stage.moderator.person_id}');
            insert into connections (club_id, id, group_id, group_name, account_id, state, epoch, features)
            values ('{club.id}', '{connection.id}', '{club.group_id}', 'Group', '{stage.account_id}', 'active',
                    lastcall_now(), '{{{",".join(sorted(FEATURES))}}}');
            insert into connection_gates (club_id, connection_id) values ('{club.id}', '{connection.id}');
            """
        )
    statements += [
        f"""
        insert into events (club_id, id, title, zone, schedule_kind, publication, created_by,
                            starts_at, sort_at, over_at)
        values ('{event.club.id}', '{event.id}', 'Evening', 'UTC', 'timed', 'published', '{stage.owner.person_id}',
                '{event.starts_at}', '{event.starts_at}', '{event.starts_at}');
        """
        for event in events
    ]
    return f"update lastcall_testing.test_clock set anchor = '{START}';" + "".join(statements)


class Stand:
    """One example: two clubs, in the database and in the model."""

    def __init__(self, stage: Stage, clubs: int = 2) -> None:
        self.stage = stage
        self.db, self.steps = stage.db, stage.steps
        self.model = Model(START, stage.owner.person_id)
        self.collectors = [Collector(uuid4(), uuid4()) for _ in range(2)]
        self.handles: list[Handle] = []
        self.requests: list[Request] = []
        self.nonces: set[UUID] = set()
        self.submissions: set[UUID] = set()
        self.ended: dict[UUID, str] = {}
        self.number = 0
        self.is_whole = clubs > 1
        """The model holds all operations, not only those of the evening."""
        for _ in range(clubs):
            club = Club(uuid4(), f"grp_{uuid4()}", uuid4(), ALL_PERMISSIONS)
            club.connection = Connection(uuid4(), club, START, FEATURES)
            self.model.clubs.append(club)
        self.ids = [club.id for club in self.model.clubs]

    async def begin(self, starts_at: datetime) -> None:
        """Set all up, with an event of the first club that begins then."""
        self.model.events.append(Event(uuid4(), self.model.clubs[0], starts_at))
        await self.stage.raw.execute(_setup(self.stage, self.model.clubs, self.model.events))

    async def remove(self) -> None:
        """All that the example left, and the switches it threw."""
        ids = ",".join(f"'{club_id}'" for club_id in self.ids)
        await self.stage.raw.execute(
            f"delete from directory where club_id in ({ids}); delete from clubs where id in ({ids});"
            "update fleet_settings set kill_switch = false; update accounts set kill_switch = false;"
            "delete from collectors; delete from unknown_submissions"
        )

    # What the two sides are compared by.

    async def check(self) -> None:
        """Everything that must hold after each step, from one statement."""
        rows = await self.stage.raw.fetch(_FACTS, self.ids, self.is_whole, list(self.model.ops))
        facts = {row["id"]: row for row in rows if row["id"] is not None}
        model = self.model
        assert facts.keys() == model.ops.keys()
        assert (rows[0]["logged"] or []) == model.log
        assert rows[0]["notes"] == len(model.notes), model.notes
        assert rows[0]["ended"] == len(model.ended), model.ended
        assert (rows[0]["revisions"], rows[0]["notices"]) == (model.revisions, model.notices)
        for op in model.ops.values():
            self._check_row(op, facts[op.id])

    def _check_row(self, op: Op, row: Any) -> None:
        stored = (row["state"], row["code"], row["due_at"], row["ready_at"], row["retry_at"])
        assert stored == (op.state, op.code, op.due, op.ready, op.retry), op
        stored = (row["revision"], row["actor_id"], row["preflight_failures"], row["event_id"])
        assert stored == (op.revision, op.actor, op.failures, op.event.id if op.event else None), op
        assert (row["submitted_at"], row["completed_at"]) == (op.submitted_at, op.completed_at), op
        claim = op.claim
        held = (
            row["claim_nonce"],
            row["claim_worker_id"],
            row["claim_fencing_token"],
            row["claim_expires_at"],
        )
        assert held == (
            (claim.nonce, claim.worker_id, claim.token, op.expires) if claim else (None, None, None, None)
        ), op
        assert (claim is not None) == (op.state == "claimed" or op.submitted_at is not None), op
        assert op.ready is None or op.ready >= op.due, op
        self.stage.reached.add(op.state)
        if op.completed_at is not None:
            assert self.ended.setdefault(op.id, row["digest"]) == row["digest"], "a terminal row changed"

    async def refusal(self, call: Awaitable[Any]) -> tuple[str | None, Any]:
        """The code with which a call is refused, and its answer if it is not."""
        try:
            return None, await call
        except LastcallError as error:
            return error.code, None

    # The clock.

    async def set_clock(self, moment: datetime) -> None:
        await self.stage.raw.execute(_CLOCK, moment)
        self.model.now = moment
