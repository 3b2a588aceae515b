"""What an account is to its group, as its collector reports it, and what follows for the connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import func, select, text, update

from lastcall.clubs.activity import System, log
from lastcall.connections.connect import connection_over
from lastcall.connections.evidence import evidence_body
from lastcall.connections.leases import LeasedConnection, hold_leased
from lastcall.connections.listeners import Coverage, TelemetryFailure, telemetry_failed
from lastcall.connections.refusals import refused
from lastcall.connections.signals import CONNECTION_TOPIC
from lastcall.connections.states import USABLE, ConnectionState
from lastcall.connections.tables import Connection
from lastcall.connections.transitions import (
    LEFT,
    REMOVED,
    Standing,
    join_policy,
    next_state,
    standing_of,
    visibility_of,
)
from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Invalid
from lastcall.names import NAME_LENGTH
from lastcall.protocol.constants import WAITING_LOOK
from lastcall.protocol.membership import GroupSeen
from lastcall.protocol.messages import OwnMemberEvidence
from lastcall.protocol.outcomes import Code

COLLECTOR = System("collector")
_WAITING = frozenset(
    {ConnectionState.CONNECTING, ConnectionState.AWAITING_APPROVAL, ConnectionState.AWAITING_INVITE}
)
# The end of the pass says when it is looked at next. One that never ends, because its lease was taken away or its
# collector died, must not leave a connection that waits without a moment at which somebody looks.
_WANTED = func.coalesce(Connection.next_look_at, NOW + WAITING_LOOK)

_STORE = text("""
    select store_own_member_evidence(
        :club_id, :connection_id, :epoch, :account_id, :worker_id, cast(:body as jsonb), :observed_at)
""")
_SERVED = """
    select c.club_id, c.id, c.group_id, c.state, c.features
    from connections c
    where c.account_id = $1 and c.state <> 'disconnected'
    order by c.club_id, c.id
"""


@dataclass(frozen=True)
class ServedGroup:
    """A group that an account serves."""

    club_id: UUID
    connection_id: UUID
    group_id: str
    state: str
    features: tuple[str, ...]


async def report_membership(
    db: Database, worker: Worker, held: LeaseHeld, group: GroupSeen, evidence: OwnMemberEvidence | None
) -> ConnectionState:
    """Record a look at the group and answer the state that follows from it (``transitions.TRANSITIONS``).

    A member brings its evidence. What the group is called, how it takes people in and who sees it are kept with each
    look. Raises a refusal for a stale key, lease or epoch, ``Invalid`` for a look at another group or as somebody else.
    """
    _check_evidence(worker, group, evidence)
    async with db.transaction() as tx:
        # Before any lock is waited for: the age was true when the call came.
        arrived_at = await tx.scalar(select(NOW))
        connection = await hold_leased(tx, worker, held)
        if group.group_id != connection.group_id:
            raise _another("group.groupId", "a group other than the connection's")
        state = next_state(connection.state, group.membership, group.join_state)
        fails_on = connection.is_usable and state in USABLE and connection.fails_at_its_work
        if fails_on:
            state = connection.state
        if evidence is not None:
            await tx.execute(
                _STORE,
                {
                    "club_id": connection.club_id,
                    "connection_id": connection.id,
                    "epoch": connection.epoch,
                    "account_id": worker.account_id,
                    "worker_id": worker.worker_id,
                    "body": evidence_body(evidence),
                    "observed_at": arrived_at - timedelta(milliseconds=evidence.age_ms),
                },
            )
        await _record(tx, connection, group, state, fails_on=fails_on)
        if state is not connection.state:
            await _moved(tx, connection, state)
        tx.publish(Hint(connection.club_id, CONNECTION_TOPIC))
    return state


async def report_removed(tx: Transaction, connection: LeasedConnection) -> None:
    """A collector was told in the middle of its work that the account is no member; the caller holds the lease's
    connection. It does not join again by itself: who removed it may have meant it."""
    await tx.execute(
        update(Connection)
        .where(Connection.club_id == connection.club_id, Connection.id == connection.id)
        .values(
            state=REMOVED.to.value,
            waiting_since=NOW,
            next_look_at=_WANTED,
            last_fault=Code.MEMBERSHIP.value,
            updated_at=NOW,
        )
    )
    await _moved(tx, connection, REMOVED.to)


async def report_left(db: Database, worker: Worker, held: LeaseHeld) -> None:
    """The account has left the group: the connection that was being ended is over. Raises a refusal for a stale key,
    lease or epoch, and for a connection that nobody ended."""
    async with db.transaction() as tx:
        connection = await hold_leased(tx, worker, held)
        if connection.state not in LEFT.leaves:
            raise refused("connection_state")
        await connection_over(tx, connection.club_id, connection.id)
        await log(tx, connection.club_id, COLLECTOR, "connection.left", "connection", connection.id)


async def groups_served(db: Database, worker: Worker) -> Sequence[ServedGroup]:
    """The groups of the worker's account, those that it waits for or leaves too."""
    return [
        ServedGroup(row["club_id"], row["id"], row["group_id"], row["state"], tuple(row["features"]))
        for row in await db.pool.fetch(_SERVED, worker.account_id)
    ]


def _check_evidence(worker: Worker, group: GroupSeen, evidence: OwnMemberEvidence | None) -> None:
    is_member = standing_of(group.membership) is Standing.MEMBER
    if evidence is None:
        if is_member:
            raise Invalid(
                "evidence_missing",
                "A member says what the group lets it do, and the call does not.",
                advice="Send the evidence with it.",
                field="evidence",
            )
        return
    if evidence.group_id != group.group_id:
        raise _another("evidence.groupId", "another group than the look")
    if evidence.user_id != worker.vrchat_user_id:
        raise _another("evidence.userId", "somebody else than who calls")
    if (evidence.member_status == Standing.MEMBER.value) != is_member:
        raise _another("evidence.memberStatus", "another membership than the look")


def _another(field: str, what: str) -> Invalid:
    return Invalid(
        "look_mismatch", f"The call is about {what}.", advice="Send what was read just now.", field=field
    )


async def _record(
    tx: Transaction, connection: LeasedConnection, group: GroupSeen, state: ConnectionState, *, fails_on: bool
) -> None:
    is_new = state is not connection.state
    waits = state in _WAITING
    works: dict[str, object] = {
        "last_fault": _fault(connection, group, state),
        "consecutive_failures": 0,
        "backoff_until": None,
    }
    await tx.execute(
        update(Connection)
        .where(Connection.club_id == connection.club_id, Connection.id == connection.id)
        .values(
            state=state.value,
            group_name=_shown(group.name) or connection.group_name,
            join_policy=join_policy(group.join_state).value,
            group_visibility=visibility_of(group.privacy).value,
            last_success_at=NOW,
            **({} if fails_on else works),
            waiting_since=None
            if not waits
            else NOW
            if is_new or connection.waiting_since is None
            else Connection.waiting_since,
            next_look_at=_WANTED if waits else Connection.next_look_at,
            updated_at=NOW,
        )
    )


def _fault(connection: LeasedConnection, group: GroupSeen, state: ConnectionState) -> str | None:
    """The reason shown beside the state."""
    if state is ConnectionState.BLOCKED:
        return standing_of(group.membership).value
    if connection.is_usable and state in _WAITING:
        return Code.MEMBERSHIP.value
    if state is connection.state and state in _WAITING and connection.last_fault == Code.MEMBERSHIP.value:
        return connection.last_fault
    return None


async def _moved(tx: Transaction, connection: LeasedConnection, state: ConnectionState) -> None:
    await log(
        tx,
        connection.club_id,
        COLLECTOR,
        "connection.state",
        "connection",
        connection.id,
        {"from": connection.state.value, "to": state.value},
    )
    if connection.is_usable and state not in USABLE:
        await telemetry_failed(
            tx,
            TelemetryFailure(
                connection.club_id, connection.id, connection.epoch, Coverage.UNKNOWN, Code.MEMBERSHIP.value
            ),
        )


def _shown(name: str) -> str:
    """The group's name without what a reader cannot see."""
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())[:NAME_LENGTH].strip()
