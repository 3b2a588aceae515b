"""What a worker's failure report changes: the account, or one connection."""

from __future__ import annotations

import math
import random
from datetime import timedelta

from sqlalchemy import text

from lastcall.connections.gates import lock_account, raise_gates, raise_gates_of_account
from lastcall.connections.leases import end_open_leases
from lastcall.connections.refusals import refused
from lastcall.connections.signals import CONNECTION_TOPIC, key_drop, work
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
_LEASE_IS_CURRENT = text("""
    select lease_is_current(
        :club_id, :connection_id, :account_id, :worker_id, cast(:fencing_token as bigint), lastcall_now()
    )
""")
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
_CONNECTIONS_WAIT = text("""
    update connections set state = 'auth_required', updated_at = lastcall_now()
    where account_id = :account_id and state in ('active', 'degraded')
""")
_BACK_OFF = text("""
    update connections
    set consecutive_failures = consecutive_failures + 1,
        state = case when consecutive_failures + 1 >= :degraded_after then 'degraded' else state end,
        backoff_until = lastcall_now() + make_interval(secs => greatest(
            cast(:least as double precision),
            least(cast(:most as double precision),
                  :first * power(2.0, least(consecutive_failures, 20)) * :jitter)
        )),
        updated_at = lastcall_now()
    where club_id = :club_id and id = :connection_id and state in ('active', 'degraded')
""")


async def record_failure(
    db: Database, worker: Worker, held: LeaseHeld | None, code: str, retry_after: float | None
) -> None:
    """Record a fault that ended a pass. ``retry_after`` is the provider's own, in seconds.

    A rate limit stops the whole account for that time (RCV-10), a refused sign-in until a person signs it
    in again; both end its leases. Anything else backs off the one connection and needs its lease. Raises a
    refusal for a stale key or lease, ``Invalid`` for a fault of a connection that names none.
    """
    seconds = _seconds(retry_after)
    async with db.transaction() as tx:
        match code:
            case Code.RATE_LIMIT:
                await _stop_account(tx, worker, cool_for=seconds or COOLDOWN_USUAL.total_seconds())
            case Code.AUTHENTICATION:
                await _stop_account(tx, worker, cool_for=None)
            case _ if held is None:
                raise Invalid(
                    "lease_missing",
                    "A failure of this kind is a connection's, and the call names none.",
                    advice="Send the lease with it.",
                    field="lease",
                )
            case _:
                await _back_off(tx, worker, held, seconds)


async def _stop_account(tx: Transaction, worker: Worker, *, cool_for: float | None) -> None:
    await lock_account(tx, worker.account_id)
    gates = await raise_gates_of_account(tx, worker.account_id)
    await _require_key(tx, worker)
    parameters: dict[str, object] = {"account_id": worker.account_id}
    if cool_for is None:
        changed = await tx.scalar(_SIGN_IN_AGAIN, parameters)
        await tx.execute(_CONNECTIONS_WAIT, parameters)
        action = "account.auth_required"
    else:
        changed = await tx.scalar(_COOL, {**parameters, "seconds": cool_for})
        action = "account.cooldown"
    if changed is None:
        return
    await end_open_leases(tx, gates)
    await audit(tx, None, action, str(worker.account_id), worker_id=str(worker.worker_id))
    tx.publish(key_drop(worker.account_id))
    tx.publish(work(worker.account_id, changed if cool_for is not None else None))
    for club_id in {club_id for club_id, _ in gates}:
        tx.publish(Hint(club_id, CONNECTION_TOPIC))


async def _back_off(tx: Transaction, worker: Worker, held: LeaseHeld, at_least: float) -> None:
    await raise_gates(tx, [(held.club_id, held.connection_id)])
    await _require_key(tx, worker)
    current = await tx.scalar(
        _LEASE_IS_CURRENT,
        {
            "club_id": held.club_id,
            "connection_id": held.connection_id,
            "account_id": worker.account_id,
            "worker_id": worker.worker_id,
            "fencing_token": held.fencing_token,
        },
    )
    if not current:
        raise refused("stale_lease")
    await tx.execute(
        _BACK_OFF,
        {
            "club_id": held.club_id,
            "connection_id": held.connection_id,
            "degraded_after": DEGRADED_AFTER,
            "least": at_least,
            "most": BACKOFF_MOST.total_seconds(),
            "first": BACKOFF_FIRST.total_seconds(),
            "jitter": random.uniform(0.8, 1.2),  # noqa: S311 - spreads retries, guards nothing
        },
    )
    tx.publish(work(worker.account_id))
    tx.publish(Hint(held.club_id, CONNECTION_TOPIC))


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
