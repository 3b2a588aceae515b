"""What becomes of coverage when a connection changes; ``app.py`` lists that it is registered."""

from __future__ import annotations

from lastcall.connections.listeners import EpochEnd, TelemetryFailure, on_epoch_end, on_telemetry_failure
from lastcall.db.transaction import Transaction

_END = """
    select note_stale_coverage(c.club_id, c.id, c.epoch, telemetry_last_observed(c.club_id, c.id, c.epoch), n.now),
           end_coverage(c.club_id, c.id, n.now)
    from (select lastcall_now() as now) n, connections c
    where c.club_id = $1 and c.id = $2
"""
_FAILED = "select coverage_failed($1, $2, $3, lastcall_now())"


def register() -> None:
    """Hang this room on ``connections/``. Doing it twice is doing it once."""
    on_epoch_end(epoch_ended)
    on_telemetry_failure(telemetry_failed)


async def epoch_ended(tx: Transaction, end: EpochEnd) -> None:
    """What comes after an epoch is another epoch's; its last window ends with it."""
    await tx.raw.execute(_END, end.club_id, end.connection_id)


async def telemetry_failed(tx: Transaction, failure: TelemetryFailure) -> None:
    """Nothing was observed where something should have been (COL-05)."""
    await tx.raw.execute(_FAILED, failure.club_id, failure.connection_id, failure.coverage.value)
