"""Where a read stands, and how long it counts."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from lastcall.protocol.constants import READ_FRESH


class ReadState(StrEnum):
    """Two that wait, two that are the end."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in (ReadState.SUCCEEDED, ReadState.FAILED)


READ_LIFE = READ_FRESH
"""How long somebody waits to be claimed, how long a claim lasts, and how long what was read is shown: each time from
its own beginning, and over at the boundary. The SQL has the same."""

READ_KEPT = timedelta(minutes=15)
"""After this time from when it was asked for, nothing of a read is left."""

NOT_ANSWERED = "not_answered"
"""Nobody read it in time. Derived when somebody looks: no clock has to write it."""
