"""How completely a connection's analytics are collected, and the limits of a sample."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

INSTANCES_MOST = 200
"""Instances of one sample; VRChat shows far fewer of a group."""
SAMPLE_AGE_MOST = timedelta(minutes=15)
"""An older sample is refused: what is that old says nothing about now."""
FRESH = timedelta(minutes=6)
"""How long after the last good look its figures are shown as current."""
UNKNOWN_AFTER = 3
"""Failures in a row that make coverage unknown, as many as make a connection degraded."""

SCAN_MOST = timedelta(hours=24)
"""The longest stretch of the audit log that is read as one."""
SCAN_LEAST = timedelta(minutes=5)
"""What must be new in the log before it is read again: a quiet group's is not asked for with every look."""
SCAN_DELAY = timedelta(minutes=1)
"""A line may appear in the log so much later than it says."""
SCAN_OVERLAP = timedelta(minutes=5)
"""So much of the stretch before is read again, for lines that came later still."""
SCAN_BACK = timedelta(days=31)
"""How far a scan reaches back at most."""


class CoverageState(StrEnum):
    """How analytics stand. ``stale`` is also what an observed connection becomes by itself when nothing came for
    ``FRESH``: that is judged when it is asked, no clock has to write it.
    """

    OBSERVED = "observed"
    STALE = "stale"
    DEGRADED = "degraded"
    """The last looks failed; what was seen before them still counts."""
    UNKNOWN = "unknown"
    """Nothing was seen yet, or not for so many failures that nobody can tell."""
    OFF = "off"
    """The club does not collect analytics."""

    @property
    def is_stored(self) -> bool:
        """Whether a window may have it; ``off`` is the feature's switch and not a window's."""
        return self is not CoverageState.OFF
