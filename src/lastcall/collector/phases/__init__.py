"""One pass over one connection: its phases, each in a file of its own, in their order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from lastcall.collector.account import Account, BudgetTooLow, NoAllowance
from lastcall.collector.failures import Setback, Trouble, tell, trouble_of
from lastcall.collector.leases import leased
from lastcall.collector.passes import Pass
from lastcall.collector.phases import aggregates, audit, lifecycle, operations, readiness, reads
from lastcall.collector.reporting import Reporter
from lastcall.protocol.constants import PASS_LIFE
from lastcall.protocol.messages import DueConnection
from lastcall.protocol.outcomes import Code
from lastcall.vrchat.errors import ProviderFault
from lastcall.vrchat.joining import WAITING

_log = structlog.get_logger("lastcall.collector")

WORKABLE = frozenset({"active", "degraded"})
"""The states of a connection in which operations, reads and analytics run."""


@dataclass(frozen=True)
class Phase:
    """``states``: those of the connection in which it has its turn. ``is_optional``: what goes wrong with it leaves
    the phases after it alone, and it is left out when no requests are free. ``is_telemetry``: its failures are the
    analytics' (COL-05).
    """

    run: Callable[[Pass], Awaitable[None]]
    states: frozenset[str] = WORKABLE
    is_wanted: Callable[[Pass], bool] = lambda _current: True
    is_optional: bool = False
    is_telemetry: bool = False


PHASES = (
    Phase(lifecycle.leave, frozenset({"disconnecting"})),
    Phase(lifecycle.enter, WAITING),
    Phase(operations.run),
    Phase(reads.run),
    Phase(aggregates.run, is_wanted=lambda it: it.has_analytics, is_optional=True, is_telemetry=True),
    Phase(readiness.run, is_wanted=readiness.is_wanted, is_optional=True),
    Phase(audit.run, is_wanted=audit.is_wanted, is_optional=True, is_telemetry=True),
)
"""In their order: people's work before anything optional (COL-01)."""


async def run_pass(account: Account, reporter: Reporter, due: DueConnection) -> float | None:
    """Do what this connection is due for.

    Returns ``None`` when it went well; after a fault, which the server is told of, the boot time before which VRChat
    wants to hear nothing more about it. Raises ``Stopping``, ``LeaseLost``, ``Refused`` and ``Unreachable``; the lease
    is given back in any case, as far as the server can be reached.
    """
    account.tally.passes += 1
    async with leased(account, due) as lease:
        until = account.clock.boot() + PASS_LIFE.total_seconds()
        current = Pass(account, reporter, lease, until, lease.state)
        not_before = None
        for phase in PHASES:
            if current.state not in phase.states or not current.goes_on() or not phase.is_wanted(current):
                continue
            ended = await _through(current, phase)
            if ended is not None:
                not_before = max(not_before or 0.0, ended.not_before)
                if ended.ends_pass:
                    break
        return not_before


@dataclass(frozen=True)
class _Ended:
    not_before: float
    ends_pass: bool


async def _through(current: Pass, phase: Phase) -> _Ended | None:
    """Run one phase; how it failed, unless that is of no consequence for the connection."""
    account = current.account
    try:
        await phase.run(current)
    except NoAllowance as full:
        trouble = Trouble(full.code, str(full), full.retry_after)
        if phase.is_optional:
            _log.debug("left out", phase=phase.run.__module__, reason=trouble.why)
            return None
        # That this process is at its limit is nothing that VRChat said; a day that is used up the server may show.
        if full.code is Code.RATE_LIMIT:
            return _Ended(account.clock.boot() + full.retry_after, ends_pass=True)
    except (BudgetTooLow, Setback) as error:
        trouble = trouble_of(error)
    except ProviderFault as fault:
        trouble = trouble_of(await account.look_into(fault))
    else:
        return None
    not_before = account.clock.boot() + (trouble.retry_after or 0.0)
    telemetry_only = phase.is_telemetry and current.has_more_than_analytics and not trouble.is_shared
    await tell(account, trouble, current.lease.ref, telemetry_only=telemetry_only)
    if telemetry_only:
        return None
    return _Ended(not_before, ends_pass=trouble.is_shared or not phase.is_optional)
