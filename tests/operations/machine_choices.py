"""The times and the like from which the rules of the stateful tests choose."""

from __future__ import annotations

from datetime import timedelta

from machine_things import ALL_PERMISSIONS, GRACE

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
TICK = timedelta(microseconds=1)
FIXED = (MINUTE, timedelta(0), 10 * MINUTE, -5 * MINUTE, -GRACE, -GRACE - TICK)
OFFSETS = (-HOUR, timedelta(0), 30 * MINUTE, -10 * MINUTE)
DELAYS = (
    None, timedelta(0), 30 * SECOND, 5 * MINUTE, GRACE, GRACE + SECOND, timedelta(seconds=82721), SECOND,
)  # fmt: skip
STARTS = (HOUR + MINUTE, 10 * MINUTE, 31 * MINUTE, 2 * HOUR, HOUR, -MINUTE)
STEPS_OF_CLOCK = (SECOND, MINUTE, 4 * MINUTE, 5 * MINUTE, GRACE, HOUR)
AT_ONCE = timedelta(0)
PAUSES = (
    *(AT_ONCE,) * 5, 60 * SECOND, 61 * SECOND, 2 * MINUTE, 4 * MINUTE, 4 * MINUTE - TICK, GRACE, GRACE + TICK,
)  # fmt: skip
NO_PAUSE = (AT_ONCE, AT_ONCE)
MOVES = {"move": HOUR, "move earlier": -10 * MINUTE, "move a little": MINUTE}
BETWEEN = ("", "", *MOVES, "stop", "stop and back", "forget the time", "cancel", "role", "hello")
SINGLES = ("assign_role", "invite_member", "ban_member", "create_instance")
SOME_FEATURES = (frozenset({"instances"}), frozenset({"membership_management"}))
ROLES = (
    ALL_PERMISSIONS,
    frozenset[str](),
    ALL_PERMISSIONS - {"assign_vrchat_roles"},
    ALL_PERMISSIONS - {"manage_instances"},
)
