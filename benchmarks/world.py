"""Rows for the benchmarks, made by the database itself: clubs with their connections, operations, join requests.

Ids are numbers in the shape of a UUID, so that Python and SQL name the same row and new rows land at an index's
end, as they do with the product's time-ordered ids.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import asyncpg

from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.db.connect import PATIENT, connect
from lastcall.db.database import Database
from lastcall.protocol.messages import OwnMemberEvidence, RoleSeen

GROUP_OWNER = "usr_00000000-0000-4000-8000-00000000c0de"
ROLE = "grol_00000000-0000-4000-8000-000000000001"

(
    PERSON,
    CLUB,
    STAFF_ROLE,
    ASSIGNMENT,
    ACCOUNT,
    WORKER,
    JOURNAL,
    CONNECTION,
    REQUEST,
    OPERATION,
    INVITE,
    JOIN,
    APPROVAL,
) = range(1, 14)
"""The kinds of rows that have ids of their own; ``row_id`` tells them apart by these."""

OWNER, MODERATOR = 1, 2

_ROW_ID = """
create or replace function row_id(p_kind int, p_number bigint) returns uuid
language sql immutable parallel safe
return (lpad(to_hex(p_kind), 8, '0') || '-0000-7000-8000-' || lpad(to_hex(p_number), 12, '0'))::uuid
"""

_CLUBS = f"""
insert into people (id, email, display_name)
select row_id({PERSON}, n), name || '@example.test', name from (values ({OWNER}, 'owner'), ({MODERATOR}, 'moderator'))
    as p (n, name);
insert into clubs (id, slug, name, zone, owner_id)
select row_id({CLUB}, n), 'club-' || n, 'Club ' || n, 'UTC', row_id({PERSON}, {OWNER})
  from generate_series(1, %(clubs)s) as n;
insert into club_gates (club_id) select id from clubs;
insert into staff_roles (club_id, id, name, permissions, permitted_provider_role_ids)
select id, row_id({STAFF_ROLE}, 1), 'Moderator', '{{assign_vrchat_roles,manage_bans}}', '{{{ROLE}}}' from clubs;
insert into staff_assignments (club_id, id, role_id, person_id)
select id, row_id({ASSIGNMENT}, 1), row_id({STAFF_ROLE}, 1), row_id({PERSON}, {MODERATOR}) from clubs;
insert into accounts (id, alias, vrchat_user_id, state, credential_generation)
select row_id({ACCOUNT}, n), 'account-' || n, 'usr_' || row_id({ACCOUNT}, n), 'ready', 1
  from generate_series(1, %(accounts)s) as n;
insert into worker_keys (account_id, generation, key_hash) select id, 1, sha256(id::text::bytea) from accounts;
insert into connections (club_id, id, group_id, group_name, account_id, state, epoch, features)
select row_id({CLUB}, n), row_id({CONNECTION}, n), 'grp_' || row_id({CLUB}, n), 'Group ' || n,
       row_id({ACCOUNT}, 1 + (n - 1) %% %(accounts)s), 'active', lastcall_now(), '{{membership_management}}'
  from generate_series(1, %(clubs)s) as n;
insert into connection_gates (club_id, connection_id) select club_id, id from connections;
insert into leases (club_id, connection_id, account_id, worker_id, fencing_token, claimed_at, expires_at)
select row_id({CLUB}, n), row_id({CONNECTION}, n), row_id({ACCOUNT}, 1 + (n - 1) %% %(accounts)s),
       row_id({WORKER}, 1 + (n - 1) %% %(accounts)s), 1, lastcall_now(), lastcall_now() + interval '1 hour'
  from generate_series(1, %(clubs)s) as n;
"""
"""Every club has an owner, a moderator by role (the longer way through the permission check) and a lease."""


@dataclass(frozen=True)
class Connected:
    """A club's connection, and the worker that holds its lease."""

    worker: Worker
    lease: LeaseHeld
    journal_id: UUID

    @property
    def evidence(self) -> OwnMemberEvidence:
        """What VRChat said of the account a moment ago, with the grants that a moderator's work needs."""
        number = self.lease.club_id.int & 0xFFFF_FFFF_FFFF
        return OwnMemberEvidence(
            age_ms=50,
            group_id=f"grp_{row_id(CLUB, number)}",
            owner_id=GROUP_OWNER,
            user_id=self.worker.vrchat_user_id,
            member_status="member",
            permissions=(
                "group-roles-assign",
                "group-members-manage",
                "group-bans-manage",
                "group-invites-manage",
            ),
            role_ids=(ROLE,),
            roles=(RoleSeen(id=ROLE, name="Regular"),),
            privacy="default",
        )


def row_id(kind: int, number: int) -> UUID:
    """The id of the ``number``-th row of that kind, as the database's function of this name makes it."""
    return UUID(f"{kind:08x}-0000-7000-8000-{number:012x}")


@asynccontextmanager
async def loader(db: Database) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A connection for large fixtures: no time limits, no foreign keys checked row by row, and afterwards fresh
    statistics, a clean table and a checkpoint, so that none of that happens while something is measured."""
    connection = await connect(db.url, limits=PATIENT)
    try:
        await connection.execute("set session_replication_role = replica; set synchronous_commit = off")
        yield connection
        await connection.execute("vacuum analyze")
    finally:
        await connection.close()


async def add_clubs(db: Database, clubs: int, accounts: int = 1) -> list[Connected]:
    """That many clubs, shared out among that many accounts, each with one worker."""
    async with loader(db) as connection:
        await connection.execute(_ROW_ID)
        await connection.execute(_CLUBS % {"clubs": clubs, "accounts": accounts})
    rows = await db.pool.fetch("select club_id, id, epoch, account_id from connections order by club_id")
    return [_connected(row, 1 + index % accounts) for index, row in enumerate(rows)]


def _connected(row: asyncpg.Record, account: int) -> Connected:
    return Connected(
        worker=Worker(row["account_id"], 1, row_id(WORKER, account), f"usr_{row_id(ACCOUNT, account)}"),
        lease=LeaseHeld(row["club_id"], row["id"], row["epoch"], 1),
        journal_id=row_id(JOURNAL, account),
    )


async def add_operations(
    connection: asyncpg.Connection[asyncpg.Record],
    club: int,
    first: int,
    count: int,
    *,
    due_in: timedelta = timedelta(0),
    deferred_for: timedelta = timedelta(0),
    lane: int = 3,
    succeeded: bool = False,
) -> None:
    """``count`` role assignments of that club, numbered from ``first``, in requests of a hundred.

    They fall due ``due_in`` from now (and a millisecond apart, as far as a minute), and are ready
    ``deferred_for`` later than that.
    """
    end = first + count - 1
    await connection.execute(
        f"""
        insert into operation_requests
               (club_id, id, request_key, kind, size, created_by, digest, schedule, due_at)
        select row_id({CLUB}, $1), row_id({REQUEST}, n), 'request-' || n, 'assign_role', 100,
               row_id({PERSON}, {MODERATOR}), sha256(n::text::bytea), '{{"kind": "immediate"}}', lastcall_now()
          from generate_series($2::bigint / 100, $3::bigint / 100) as n
            on conflict do nothing
        """,
        club,
        first,
        end,
    )
    await connection.execute(
        f"""
        insert into operations
               (club_id, id, request_id, position, connection_id, epoch, kind, payload, target, schedule_kind,
                due_at, ready_at, lane, actor_id,
                state, claim_nonce, claim_account_id, claim_worker_id, claim_journal_id, claim_fencing_token,
                claim_generation, claim_expires_at, submitted_at, completed_at, grants)
        select c.club_id, row_id({OPERATION}, n), row_id({REQUEST}, n / 100), n % 100, c.id, c.epoch, 'assign_role',
               jsonb_build_object('targetUserId', 'usr_' || row_id({OPERATION}, n), 'roleId', '{ROLE}'),
               'usr_' || row_id({OPERATION}, n) || '|{ROLE}', 'fixed',
               t.due, t.due + $5::interval, $6::smallint, row_id({PERSON}, {MODERATOR}),
               case when $7::boolean then 'succeeded' else 'pending' end, d.nonce, d.account, d.worker, d.journal,
               d.token, d.generation, d.at, d.at, d.at,
               '{{group-roles-assign,group-members-manage}}'
          from generate_series($2::bigint, $3::bigint) as n
          join connections c on c.club_id = row_id({CLUB}, $1)
         cross join lateral (
               select lastcall_now() + $4::interval + (n % 60000) * interval '1 millisecond' as due) as t
          left join lateral (
               select row_id(0, n) as nonce, c.account_id as account, row_id({WORKER}, 1) as worker,
                      row_id({JOURNAL}, 1) as journal, 1 as token, 1 as generation, t.due as at) as d on $7::boolean
        """,
        club,
        first,
        end,
        due_in,
        deferred_for,
        lane,
        succeeded,
    )


async def add_join_requests(
    connection: asyncpg.Connection[asyncpg.Record],
    club: int,
    first: int,
    count: int,
    *,
    activity_ago: timedelta,
    status: str = "pending_approval",
    archived: bool = False,
) -> None:
    """``count`` join requests of that club with their invites, numbered from ``first``, active a millisecond
    apart; each due ninety days after that, unless it is decided or was archived already."""
    end = first + count - 1
    await connection.execute(
        f"""
        insert into invites (club_id, id, token_hash, invited_by, expires_at, accepted_at, uses)
        select row_id({CLUB}, $1), row_id({INVITE}, n), sha256(uuid_send(gen_random_uuid())), row_id({PERSON}, {OWNER}),
               lastcall_now(), lastcall_now(), 1
          from generate_series($2::bigint, $3::bigint) as n
        """,
        club,
        first,
        end,
    )
    await connection.execute(
        f"""
        insert into join_requests
               (club_id, id, invite_id, subject_kind, email, status, activity_at, decided_at, archive_due_at)
        select row_id({CLUB}, $1), row_id({JOIN}, n), row_id({INVITE}, n), 'person', 'guest-' || n || '@example.test',
               $5, a.at, case when $5 <> 'pending_approval' then a.at end,
               case when $5 = 'pending_approval' and not $6::boolean then a.at + interval '2160 hours' end
          from generate_series($2::bigint, $3::bigint) as n
         cross join lateral (
               select lastcall_now() - $4::interval + (n - $2) * interval '1 millisecond' as at) as a
        """,
        club,
        first,
        end,
        activity_ago,
        status,
        archived,
    )
    if archived:
        await _archive(connection, "join_request", JOIN, club, first, end)


async def add_approvals(
    connection: asyncpg.Connection[asyncpg.Record],
    club: int,
    first: int,
    count: int,
    *,
    activity_ago: timedelta,
    archived: bool = False,
) -> None:
    """``count`` approvals of that club that wait, numbered from ``first``, as ``add_join_requests`` makes requests."""
    end = first + count - 1
    await connection.execute(
        f"""
        insert into approvals (club_id, id, type, title, body, requested_by_kind, requested_by_person_id, activity_at,
                               archive_due_at)
        select row_id({CLUB}, $1), row_id({APPROVAL}, n), 'question', 'May I?', '', 'person', row_id({PERSON}, {OWNER}),
               a.at, case when not $5::boolean then a.at + interval '2160 hours' end
          from generate_series($2::bigint, $3::bigint) as n
         cross join lateral (
               select lastcall_now() - $4::interval + (n - $2) * interval '1 millisecond' as at) as a
        """,
        club,
        first,
        end,
        activity_ago,
        archived,
    )
    if archived:
        await _archive(connection, "approval", APPROVAL, club, first, end)


async def _archive(
    connection: asyncpg.Connection[asyncpg.Record], source: str, kind: int, club: int, first: int, end: int
) -> None:
    """Archive that club's items of one kind, as the sweep does."""
    await connection.execute(
        f"""
        insert into retention (club_id, id, {source}_id, archived_at, archived_reason, archived_by_kind,
                               archive_version, source_activity_at)
        select s.club_id, s.id, s.id, lastcall_now(), 'idle', 'system', 1, s.activity_at
          from {source}s s
         where s.club_id = row_id({CLUB}, $1)
           and s.id between row_id({kind}, $2::bigint) and row_id({kind}, $3::bigint)
        """,
        club,
        first,
        end,
    )
