"""What a worker's failure report changes: the account, or one connection."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text

from lastcall.connections.gates import lock_account, raise_gates_of_account
from lastcall.connections.leases import LeasedConnection, end_open_leases, hold_leased
from lastcall.connections.listeners import Coverage, TelemetryFailure, telemetry_failed
from lastcall.connections.membership import report_removed
from lastcall.connections.refusals import refused
from lastcall.connections.signals import ACCOUNTS_CHANGED, CONNECTION_TOPIC, key_drop, work
from lastcall.connections.states import ConnectionState, Feature
from lastcall.connections.transitions import REMOVED
from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Invalid
from lastcall.people.audit import audit
from lastcall.protocol.outcomes import Code

COOLDOWN_USUAL = timedelta(seconds=60)
"""How long an account rests after a 429 that names no time."""
COOLDOWN_MOST = timedelta(days=7)
"""Longer than any real Retry-After; a larger number is taken for this."""
BACKOFF_FIRST = timedelta(seconds=5)
BACKOFF_MOST = timedelta(minutes=15)
"""A connection's backoff doubles with each failure in a row, with a jitter of 0.8 to 1.2."""
DEGRADED_AFTER = 3
"""Failures in a row that make a connection degraded."""

_KEY_IS_CURRENT = text("select key_is_current(:account_id, :generation, lastcall_now())")
_COOL = text("""
    update accounts
    set cooldown_until = greatest(
            case when state = 'cooldown' then cooldown_until end,
            lastcall_now() + make_interval(secs => :seconds)
        ),
        state = 'cooldown', updated_at = lastcall_now()
    where id = :account_id and state in ('ready', 'cooldown')
    returning cooldown_until
""")
_SIGN_IN_AGAIN = text("""
    update accounts set state = 'auth_required', cooldown_until = null, updated_at = lastcall_now()
    where id = :account_id and state in ('ready', 'cooldown')
    returning id
""")
_SIGN_IN_LOST = text("""
    update connections set state = 'auth_required', last_fault = 'authentication', updated_at = lastcall_now()
    where account_id = :account_id and state in ('active', 'degraded')
""")
_SERVED = text("""
    select club_id, id, epoch from connections
    where account_id = :account_id and state = any (usable_states())
    order by club_id, id
""")
_BACK_OFF = text("""
    update connections
    set consecutive_failures = consecutive_failures + 1,
        state = case when state = 'active' and consecutive_failures + 1 >= :degraded_after then 'degraded'
                     else state end,
        backoff_until = lastcall_now() + make_interval(secs => greatest(
            cast(:least as double precision),
            least(cast(:most as double precision),
                  :first * power(2.0, least(consecutive_failures, 20)) * :jitter)
        )),
        last_fault = :code,
        updated_at = lastcall_now()
    where club_id = :club_id and id = :connection_id and state = any (passable_states())
""")
_COUNT_TELEMETRY = text("""
    update connections
    set telemetry_failures = telemetry_failures + 1, last_fault = :code, updated_at = lastcall_now()
    where club_id = :club_id and id = :connection_id
""")


async def record_failure(
    db: Database,
    worker: Worker,
    held: LeaseHeld | None,
    code: str,
    retry_after: float | None,
    *,
    telemetry_only: bool = False,
) -> None:
    """Record a fault. ``retry_after`` is the provider's own, in seconds.

    A rate limit stops the whole account for that time (RCV-10), a refused sign-in until a person signs it in again;
    both end its leases. Anything else is the one connection's and needs its lease: without a membership it waits to be
    let in again, with any other fault it backs off. ``telemetry_only`` says that the aggregates alone failed; it is
    believed only where that can be (COL-05), and leaves the connection as it is. Raises a refusal for a stale key or
    lease, ``Invalid`` for a fault of a connection that names none.
    """
    seconds = _seconds(retry_after)
    async with db.transaction() as tx:
        match code:
            case Code.RATE_LIMIT:
                await _stop_account(tx, worker, code, cool_for=seconds or COOLDOWN_USUAL.total_seconds())
            case Code.AUTHENTICATION:
                await _stop_account(tx, worker, code, cool_for=None)
            case _ if held is None:
                raise Invalid(
                    "lease_missing",
                    "A failure of this kind is a connection's, and the call names none.",
                    advice="Send the lease with it.",
                    field="lease",
                )
            case _:
                connection = await hold_leased(tx, worker, held)
                if code == Code.MEMBERSHIP and connection.state in REMOVED.leaves:
                    await report_removed(tx, connection)
                elif telemetry_only and _is_of_telemetry_alone(connection):
                    await _count_telemetry(tx, connection, code)
                else:
                    await _back_off(tx, connection, code, seconds)
                tx.publish(work(worker.account_id))
                tx.publish(Hint(held.club_id, CONNECTION_TOPIC))


def _is_of_telemetry_alone(connection: LeasedConnection) -> bool:
    """Whether a fault that is neither the account's nor a lost membership can be the aggregates' alone: where something
    else is switched on, and goes on meanwhile."""
    return connection.state is ConnectionState.ACTIVE and bool(connection.features - {Feature.ANALYTICS})


async def _count_telemetry(tx: Transaction, connection: LeasedConnection, code: str) -> None:
    await tx.execute(
        _COUNT_TELEMETRY, {"club_id": connection.club_id, "connection_id": connection.id, "code": code}
    )
    await _telemetry_failed(tx, connection.club_id, connection.id, connection.epoch, code)


async def _stop_account(tx: Transaction, worker: Worker, code: str, *, cool_for: float | None) -> None:
    await lock_account(tx, worker.account_id)
    gates = await raise_gates_of_account(tx, worker.account_id)
    await _require_key(tx, worker)
    parameters: dict[str, object] = {"account_id": worker.account_id}
    served = (await tx.execute(_SERVED, parameters)).all()
    if cool_for is None:
        changed = await tx.scalar(_SIGN_IN_AGAIN, parameters)
        await tx.execute(_SIGN_IN_LOST, parameters)
        action = "account.auth_required"
    else:
        changed = await tx.scalar(_COOL, {**parameters, "seconds": cool_for})
        action = "account.cooldown"
    if changed is None:
        return
    await end_open_leases(tx, gates)
    await audit(tx, None, action, str(worker.account_id), worker_id=str(worker.worker_id))
    for one in served:
        await _telemetry_failed(tx, one.club_id, one.id, one.epoch, code)
    tx.publish(key_drop(worker.account_id))
    tx.publish(ACCOUNTS_CHANGED)
    tx.publish(work(worker.account_id, changed if cool_for is not None else None))
    for club_id in {club_id for club_id, _ in gates}:
        tx.publish(Hint(club_id, CONNECTION_TOPIC))


async def _back_off(tx: Transaction, connection: LeasedConnection, code: str, at_least: float) -> None:
    await tx.execute(
        _BACK_OFF,
        {
            "club_id": connection.club_id,
            "connection_id": connection.id,
            "degraded_after": DEGRADED_AFTER,
            "least": at_least,
            "most": BACKOFF_MOST.total_seconds(),
            "first": BACKOFF_FIRST.total_seconds(),
            "jitter": random.uniform(0.8, 1.2),  # noqa: S311 - spreads retries, guards nothing
            "code": code,
        },
    )
    if connection.is_usable:
        await _telemetry_failed(tx, connection.club_id, connection.id, connection.epoch, code)


async def _telemetry_failed(
    tx: Transaction, club_id: UUID, connection_id: UUID, epoch: datetime, code: str
) -> None:
    await telemetry_failed(tx, TelemetryFailure(club_id, connection_id, epoch, Coverage.DEGRADED, code))


async def _require_key(tx: Transaction, worker: Worker) -> None:
    parameters = {"account_id": worker.account_id, "generation": worker.generation}
    if not await tx.scalar(_KEY_IS_CURRENT, parameters):
        raise refused("stale_key")


def _seconds(retry_after: float | None) -> float:
    seconds = 0.0 if retry_after is None else retry_after
    if math.isnan(seconds) or seconds < 0:
        raise Invalid(
            "retry_after_malformed",
            "The delay is not a number from 0 on.",
            advice="Leave it out where the provider named none.",
            field="retryAfterMs",
        )
    return min(seconds, COOLDOWN_MOST.total_seconds())
