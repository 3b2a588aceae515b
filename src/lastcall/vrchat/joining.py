"""Whether the account should join the group it looks at. Staff decide by connecting; the group decides by its
door."""

from __future__ import annotations

from lastcall.vrchat.groups import GroupLook

CONNECTING = "connecting"
WAITING = frozenset({CONNECTING, "awaiting_approval", "awaiting_invite"})
"""The states of a connection in which the account is not in its group yet."""

OPEN_DOORS = frozenset({"open", "request"})
"""The join states in which anybody may ask."""


def should_join(state: str, look: GroupLook) -> bool:
    """Whether a connection in ``state`` calls for joining.

    An invitation is followed wherever the connection waits. Without one the account asks only while it
    connects, so that it never comes back by itself after somebody took it out. Banned, blocked, already
    asked, already in, or a word that is not known: no.
    """
    if look.membership == "invited":
        return state in WAITING
    return state == CONNECTING and look.membership == "inactive" and look.join_state in OPEN_DOORS
