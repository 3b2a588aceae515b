"""Ask for a read, or join one that somebody else asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from lastcall.clubs.policy import require
from lastcall.connections.signals import work
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.limits import Limit, take
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.errors import Conflict
from lastcall.operations.services.basis import hold_connection, require_feature
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.reads.kinds import read_kind
from lastcall.reads.kinds.fields import Params
from lastcall.reads.kinds.kind import ReadKind
from lastcall.reads.queries import Read, current_read, read_unknown
from lastcall.reads.signals import READ_EXPIRY
from lastcall.reads.states import READ_KEPT

READS_ASKED = Limit("reads", 50, timedelta(minutes=1))
"""New reads of one person; joining one that is there counts for nothing."""

# Whoever asks for the same waits here, so that the next statement sees what the other made.
_HOLD_SAME = "select pg_advisory_xact_lock(hashtextextended('lastcall.read:' || $1 || encode($2, 'hex'), 0))"
_OBSTACLE = """
    select connection_obstacle($1, $2, $3, $4, lastcall_now()) as obstacle,
           (select a.credential_generation from accounts a where a.id = $3) as generation
"""
_SAME = """
    select r.id, r.state <> 'succeeded' as is_awaited
      from provider_reads r
     cross join lateral read_standing(r, (select lastcall_now())) as s
     where r.club_id = $1 and r.connection_id = $2 and r.params_key = $3
       and r.epoch = $4 and r.account_id = $5 and r.credential_generation = $6
       and (s.state in ('pending', 'running') or s.remaining > interval '0')
     order by r.requested_at desc, r.id desc
     limit 1
"""
_INSERT = """
    insert into provider_reads
           (club_id, id, connection_id, epoch, account_id, credential_generation, kind, params, params_key,
            evidence_subject, requested_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, lastcall_now())
    returning requested_at
"""
_JOIN = """
    insert into provider_read_askers (club_id, read_id, person_id) values ($1, $2, $3) on conflict do nothing
"""


@dataclass(frozen=True)
class _Asked:
    """What is asked for, in its right form."""

    kind: ReadKind[Any, Any]
    params: Params

    @property
    def key(self) -> bytes:
        return self.kind.key(self.params)


@dataclass(frozen=True)
class _Basis:
    """Under what it is read; what is read under another is not shown."""

    connection_id: UUID
    epoch: datetime
    account_id: UUID
    generation: int


async def request_read(
    db: Database, actor: Actor, club_id: UUID, kind: str, params: Mapping[str, Any]
) -> Read:
    """Ask VRChat for one page, through the club's collector; the answer is there later (``read_of``).

    Whoever asks for what somebody asked for in the last sixty seconds gets that very read, while it waits or is fresh.
    Raises ``Invalid`` with the parameter, ``NotFound`` off the staff, ``NotAllowed`` without the permission,
    ``Conflict`` where nothing can be read, and ``TooFast`` after fifty new ones in a minute.
    """
    known = read_kind(kind)
    asked = _Asked(known, known.parse(params))
    read = await _ask(db, actor, club_id, asked, may_begin=False)
    if read is None:
        # By itself: what a limit counts outlives whatever comes after it.
        await take(db, READS_ASKED, str(actor.person_id))
        read = await _ask(db, actor, club_id, asked, may_begin=True)
    if read is None:
        raise read_unknown()
    return read


async def _ask(db: Database, actor: Actor, club_id: UUID, asked: _Asked, *, may_begin: bool) -> Read | None:
    """The read that somebody else asked for, or a new one; None when it would be new and must not."""
    async with db.transaction() as tx:
        await require(tx, actor, club_id, asked.kind.permission, scope=Scope.OPERATIONS)
        basis, now = await _basis(tx, club_id, asked)
        await tx.raw.fetch(_HOLD_SAME, str(basis.connection_id), asked.key)
        under = (basis.epoch, basis.account_id, basis.generation)
        same = await tx.raw.fetchrow(_SAME, club_id, basis.connection_id, asked.key, *under)
        if same is None and not may_begin:
            return None
        if same is None:
            read_id = await _begin(tx, club_id, asked, basis)
        else:
            read_id = same["id"]
        if same is None or same["is_awaited"]:
            await tx.raw.execute(_JOIN, club_id, read_id, actor.person_id)
            tx.publish(work(basis.account_id, now))
        return await current_read(tx, club_id, read_id)


async def _basis(tx: Transaction, club_id: UUID, asked: _Asked) -> tuple[_Basis, datetime]:
    connection = require_feature(await hold_connection(tx, club_id), asked.kind.feature)
    row = await tx.raw.fetchrow(_OBSTACLE, club_id, connection.id, connection.account_id, connection.epoch)
    assert row is not None
    if row["obstacle"] != "none":
        raise Conflict(
            "reading_stopped",
            "Nothing can be read from VRChat at present.",
            advice="The connection page says what stands against it.",
        )
    basis = _Basis(connection.id, connection.epoch, connection.account_id, row["generation"])
    return basis, connection.now


async def _begin(tx: Transaction, club_id: UUID, asked: _Asked, basis: _Basis) -> UUID:
    read_id = new_id()
    requested_at = await tx.raw.fetchval(
        _INSERT,
        club_id,
        read_id,
        basis.connection_id,
        basis.epoch,
        basis.account_id,
        basis.generation,
        asked.kind.name,
        msgspec.json.encode(asked.params).decode(),
        asked.key,
        asked.kind.subject(asked.params),
    )
    tx.publish(Signal(READ_EXPIRY, requested_at + READ_KEPT))
    return read_id
