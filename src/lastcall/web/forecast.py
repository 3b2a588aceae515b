"""When a batch would be done at the present allowance. An estimate: other work of the account can slow it
further.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lastcall.protocol.constants import GRACE

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Forecast:
    """``takes``: until the last target; ``in_time``: how many are sent within the grace; ``missed``: the
    rest.
    """

    per_minute: int
    takes: timedelta
    in_time: int
    missed: int


def forecast(targets: int, cost: int, per_minute: int, ahead: int = 0) -> Forecast:
    """For ``targets`` actions of ``cost`` provider requests each, with ``ahead`` requests queued before
    them.

    A minute fits whole actions only, because each reserves its requests together (BUD-01). With an
    allowance below the cost nothing is ever sent (BUD-02).
    """
    a_minute = per_minute // cost
    if a_minute == 0:
        return Forecast(per_minute, GRACE, 0, targets)
    before = -(-ahead // per_minute)
    grace = int(GRACE / MINUTE)
    in_time = max(0, min(targets, (grace - before) * a_minute))
    # The last minute's actions go out within it, so a batch that fits the first minute is done in under one.
    minutes = before + (targets - 1) / a_minute
    return Forecast(per_minute, timedelta(minutes=minutes), in_time, targets - in_time)
