"""How a connection's state moves, as data: what a look at the group leads to, and what else moves it.

The services guard their changes with these tables; nothing else moves a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lastcall.connections.states import PASSABLE, USABLE, ConnectionState, GroupVisibility, JoinPolicy


class Standing(StrEnum):
    """What an account is to a group, in VRChat's words. A word that is not here stands for no membership."""

    MEMBER = "member"
    REQUESTED = "requested"
    INVITED = "invited"
    BANNED = "banned"
    USERBLOCKED = "userblocked"
    INACTIVE = "inactive"


_LOOKED_AT = PASSABLE - {ConnectionState.DISCONNECTING}
_SETTLES: Mapping[Standing, ConnectionState] = {
    Standing.MEMBER: ConnectionState.ACTIVE,
    Standing.REQUESTED: ConnectionState.AWAITING_APPROVAL,
    Standing.INVITED: ConnectionState.AWAITING_INVITE,
    Standing.BANNED: ConnectionState.BLOCKED,
    Standing.USERBLOCKED: ConnectionState.BLOCKED,
    Standing.INACTIVE: ConnectionState.AWAITING_INVITE,
}
# Only who is connecting tries again by itself. Whoever was let in once and is out again, or was declined, waits for an
# invitation or for a person who presses "Join again".
_TRIES_AGAIN: Mapping[JoinPolicy, ConnectionState] = {
    JoinPolicy.FREE: ConnectionState.CONNECTING,
    JoinPolicy.REQUEST: ConnectionState.CONNECTING,
    JoinPolicy.UNKNOWN: ConnectionState.CONNECTING,
    JoinPolicy.INVITE: ConnectionState.AWAITING_INVITE,
}
_POLICIES: Mapping[str, JoinPolicy] = {
    "open": JoinPolicy.FREE,
    "request": JoinPolicy.REQUEST,
    "invite": JoinPolicy.INVITE,
    "closed": JoinPolicy.INVITE,
}
_VISIBILITIES: Mapping[str, GroupVisibility] = {
    "default": GroupVisibility.PUBLIC,
    "private": GroupVisibility.PRIVATE,
}

TRANSITIONS: Mapping[tuple[ConnectionState, Standing, JoinPolicy], ConnectionState] = {
    (state, standing, policy): (
        _TRIES_AGAIN[policy]
        if (state, standing) == (ConnectionState.CONNECTING, Standing.INACTIVE)
        else _SETTLES[standing]
        if state in _LOOKED_AT
        else state
    )
    for state in ConnectionState
    for standing in Standing
    for policy in JoinPolicy
}
"""Where each state goes after a look. Those in which nobody looks, and the one that leaves, stay (COL-09)."""


def next_state(state: ConnectionState, membership: str, join_state: str) -> ConnectionState:
    """The state after a look that saw this; both words are VRChat's own."""
    return TRANSITIONS[state, standing_of(membership), join_policy(join_state)]


def standing_of(membership: str) -> Standing:
    """The standing that VRChat names so."""
    return Standing(membership) if membership in set(Standing) else Standing.INACTIVE


def join_policy(join_state: str) -> JoinPolicy:
    """How a group with this ``joinState`` takes people in."""
    return _POLICIES.get(join_state, JoinPolicy.UNKNOWN)


def visibility_of(privacy: str) -> GroupVisibility:
    """Who sees a group with this ``privacy``."""
    return _VISIBILITIES.get(privacy, GroupVisibility.UNKNOWN)


@dataclass(frozen=True)
class Move:
    """A move that no look makes: what happens, from which states, and to which."""

    event: str
    leaves: frozenset[ConnectionState]
    to: ConnectionState


_LIVING = frozenset(ConnectionState) - {ConnectionState.DISCONNECTING, ConnectionState.DISCONNECTED}
REJOIN = Move(
    "somebody lets it join again",
    frozenset({ConnectionState.AWAITING_APPROVAL, ConnectionState.AWAITING_INVITE, ConnectionState.BLOCKED}),
    ConnectionState.CONNECTING,
)
REMOVED = Move("an action or a read found no membership", USABLE, ConnectionState.AWAITING_INVITE)
FAILED_OFTEN = Move("three failures in a row", frozenset({ConnectionState.ACTIVE}), ConnectionState.DEGRADED)
WORKED_AGAIN = Move(
    "an action's read found a member", frozenset({ConnectionState.DEGRADED}), ConnectionState.ACTIVE
)
SIGN_IN_LOST = Move("VRChat refused the account's sign-in", USABLE, ConnectionState.AUTH_REQUIRED)
SIGNED_IN = Move(
    "the account is ready again", frozenset({ConnectionState.AUTH_REQUIRED}), ConnectionState.CONNECTING
)
REASSIGNED = Move("another account takes over", _LIVING, ConnectionState.CONNECTING)
DISCONNECT = Move("somebody disconnects, or the club is archived", _LIVING, ConnectionState.DISCONNECTING)
LEFT = Move(
    "the account left, or somebody ends it without",
    frozenset({ConnectionState.DISCONNECTING}),
    ConnectionState.DISCONNECTED,
)

MOVES = (
    REJOIN,
    REMOVED,
    FAILED_OFTEN,
    WORKED_AGAIN,
    SIGN_IN_LOST,
    SIGNED_IN,
    REASSIGNED,
    DISCONNECT,
    LEFT,
)
"""Every move that no look makes."""
