"""The closed choices of this room, each stored as its value and held by a CHECK."""

from __future__ import annotations

from enum import StrEnum

from lastcall.protocol.constants import FEATURE_GRANTS


class AccountState(StrEnum):
    """Where a VRChat account stands. Only a ready one works; all others are *disabled* (WRK-07).

    A cooling account is ready again by itself once ``cooldown_until`` has passed: that is judged when it is
    asked, no clock has to write it.
    """

    PROVISIONING = "provisioning"
    READY = "ready"
    DEGRADED = "degraded"
    COOLDOWN = "cooldown"
    AUTH_REQUIRED = "auth_required"
    QUARANTINED = "quarantined"
    RETIRING = "retiring"
    RETIRED = "retired"

    @property
    def words(self) -> str:
        return self.value.replace("_", " ")


class ConnectionState(StrEnum):
    """Where a connection stands. Operations run in ``active`` and ``degraded`` only."""

    CONNECTING = "connecting"
    AWAITING_APPROVAL = "awaiting_approval"
    AWAITING_INVITE = "awaiting_invite"
    ACTIVE = "active"
    DEGRADED = "degraded"
    AUTH_REQUIRED = "auth_required"
    DISCONNECTING = "disconnecting"
    DISCONNECTED = "disconnected"
    BLOCKED = "blocked"

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = {
    ConnectionState.CONNECTING: "Connecting",
    ConnectionState.AWAITING_APPROVAL: "Waiting for the group to approve",
    ConnectionState.AWAITING_INVITE: "Waiting for an invitation",
    ConnectionState.ACTIVE: "Active",
    ConnectionState.DEGRADED: "Degraded",
    ConnectionState.AUTH_REQUIRED: "Waiting for the account to sign in",
    ConnectionState.DISCONNECTING: "Disconnecting",
    ConnectionState.DISCONNECTED: "Disconnected",
    ConnectionState.BLOCKED: "Blocked by the group",
}
"""How pages and answers name them."""


USABLE = frozenset({ConnectionState.ACTIVE, ConnectionState.DEGRADED})
"""In these operations are queued and sent."""

PASSABLE = USABLE | {
    ConnectionState.CONNECTING,
    ConnectionState.AWAITING_APPROVAL,
    ConnectionState.AWAITING_INVITE,
    ConnectionState.DISCONNECTING,
}
"""In these a collector has something to do at VRChat, if only to look, to join or to leave."""


class JoinPolicy(StrEnum):
    """How the group takes people in, as it was last read."""

    FREE = "free"
    REQUEST = "request"
    INVITE = "invite"
    UNKNOWN = "unknown"


class GroupVisibility(StrEnum):
    """Who sees the group at VRChat, as it was last read."""

    PUBLIC = "public"
    PRIVATE = "private"
    UNKNOWN = "unknown"


class Feature(StrEnum):
    """What a club lets Lastcall do in its group. Switching one off stops its unsent operations."""

    ANALYTICS = "analytics"
    MEMBERSHIP_MANAGEMENT = "membership_management"
    POSTS = "posts"
    INSTANCES = "instances"

    @property
    def label(self) -> str:
        return self.value.replace("_", " ").capitalize()


BASELINE_GRANTS: dict[Feature, str | None] = {feature: FEATURE_GRANTS[feature] for feature in Feature}
"""The VRChat grant without which nothing of a feature can work; single kinds may demand more."""
