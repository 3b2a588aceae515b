"""What the Connection page says: states and faults in words with what to do, what a grant is called in VRChat, and what
somebody should know before a group is connected at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from lastcall.connections.states import AccountState, ConnectionState, Feature
from lastcall.connections.transitions import Standing
from lastcall.protocol.outcomes import Code
from lastcall.telemetry.states import CoverageState
from lastcall.web.looks import Look, Why, why


@dataclass(frozen=True)
class Said:
    """A state: how it looks, what it means, and what a person can do (empty: nothing)."""

    look: Look
    sentence: str
    advice: str = ""


def _look(state: ConnectionState, tone: str, icon: str) -> Look:
    return Look(tone, icon, state.label)


STATES: dict[ConnectionState, Said] = {
    ConnectionState.CONNECTING: Said(
        _look(ConnectionState.CONNECTING, "live", "turn"),
        "The account is on its way into the group.",
        "Nothing to do: its collector looks at the group and joins where it may.",
    ),
    ConnectionState.AWAITING_APPROVAL: Said(
        _look(ConnectionState.AWAITING_APPROVAL, "wait", "clock"),
        "The account asked to join the group, and nobody has let it in yet.",
        "Accept its request in VRChat, then have the group looked at. If it was turned down, let it join again.",
    ),
    ConnectionState.AWAITING_INVITE: Said(
        _look(ConnectionState.AWAITING_INVITE, "wait", "mail"),
        "The account is not a member of the group and may not join by itself.",
        "Invite it in VRChat, then have the group looked at; where anybody may join, let it join again.",
    ),
    ConnectionState.ACTIVE: Said(
        _look(ConnectionState.ACTIVE, "ok", "check"),
        "The account is a member of the group, and what you queue is sent.",
    ),
    ConnectionState.DEGRADED: Said(
        _look(ConnectionState.DEGRADED, "wait", "warning"),
        "The last looks at the group failed. What is due is still tried.",
        "If it stays so, have the group looked at, and tell whoever runs this server.",
    ),
    ConnectionState.AUTH_REQUIRED: Said(
        _look(ConnectionState.AUTH_REQUIRED, "bad", "key"),
        "VRChat no longer takes the account's sign-in, so nothing is sent.",
        "Whoever runs this server signs the account in again at its collector. You need not do anything.",
    ),
    ConnectionState.DISCONNECTING: Said(
        _look(ConnectionState.DISCONNECTING, "wait", "leave"),
        "The account is leaving the group. Nothing is sent any more.",
        "If it cannot leave, end the connection without it.",
    ),
    ConnectionState.BLOCKED: Said(
        _look(ConnectionState.BLOCKED, "bad", "ban"),
        "The group does not let the account in: it is banned there, or blocked it.",
        "Lift the ban in VRChat, then let the account join again.",
    ),
    ConnectionState.DISCONNECTED: Said(
        _look(ConnectionState.DISCONNECTED, "", "slash"), "Nothing links the club to the group."
    ),
}

_BY_ITSELF = "It is tried again by itself."
FAULTS: dict[str, Why] = {
    Code.TIMEOUT: Why("VRChat did not answer in time", _BY_ITSELF),
    Code.NETWORK: Why("VRChat could not be reached", _BY_ITSELF),
    Code.TRANSIENT: Why("VRChat had a passing fault", _BY_ITSELF),
    Code.PROVIDER_UNAVAILABLE: Why("VRChat is unavailable", _BY_ITSELF),
    Code.RATE_LIMIT: Why("VRChat asked to slow down", _BY_ITSELF),
    Code.DAILY_WRITE_CAP: Why(
        "The account's writes of the day are used up", "It goes on with the next day (UTC)."
    ),
    Code.PROVIDER_ERROR: Why("VRChat refused", f"{_BY_ITSELF} The collector's log says more."),
    Code.SCHEMA_DRIFT: Why(
        "Answer not understood",
        "VRChat answered in a form that this version does not know. Whoever runs this server may have to update it.",
    ),
    Code.VISIBILITY: Why("Group not found in VRChat", "Look whether it is still there."),
    Code.PROVIDER_PERMISSIONS: Why(
        "VRChat permission missing", "Give it to a role of the account; which one stands below."
    ),
    Code.MEMBERSHIP: Why("Account is not a member", "Invite it, or let it join again."),
    Code.AUTHENTICATION: Why("Account signed out", "Whoever runs this server signs it in again."),
    Code.BUDGET_TOO_LOW: Why(
        "Limit of requests too low", "Ask whoever runs this server for more requests a minute."
    ),
    Standing.BANNED: Why("Account banned in the group", "Lift the ban in VRChat."),
    Standing.USERBLOCKED: Why("Account blocks the group", "Whoever runs this server lifts that in VRChat."),
}
"""What went wrong with a connection, which no action was at fault for."""


def fault_of(code: str | None) -> Why | None:
    """A connection's last fault in words; one that only an action can have, in the action's."""
    return why(code) if code is None or code not in FAULTS else FAULTS[code]


ACCOUNTS: dict[AccountState, Said] = {
    AccountState.PROVISIONING: Said(
        Look("wait", "clock", "Being set up"), "Whoever runs this server has not said yet that it is ready."
    ),
    AccountState.READY: Said(Look("ok", "check", "Ready"), ""),
    AccountState.DEGRADED: Said(
        Look("wait", "warning", "Taken out of service"), "Whoever runs this server has taken it out for now."
    ),
    AccountState.COOLDOWN: Said(
        Look("wait", "clock", "Resting"), "VRChat asked it to slow down; it goes on by itself."
    ),
    AccountState.AUTH_REQUIRED: Said(
        Look("bad", "key", "Signed out"), "Whoever runs this server has to sign it in again."
    ),
    AccountState.QUARANTINED: Said(
        Look("bad", "warning", "Set aside"),
        "Whoever runs this server gives the connection to another account.",
    ),
    AccountState.RETIRING: Said(
        Look("wait", "leave", "Being retired"),
        "Whoever runs this server gives the connection to another account.",
    ),
    AccountState.RETIRED: Said(
        Look("bad", "slash", "Retired"), "Whoever runs this server gives the connection to another account."
    ),
}

COVERAGE: dict[CoverageState, Said] = {
    CoverageState.OBSERVED: Said(Look("ok", "check", "Observed"), "The figures are current."),
    CoverageState.STALE: Said(
        Look("unknown", "clock", "Stale"),
        "Nothing came for more than six minutes. These are the last figures, not the present ones.",
    ),
    CoverageState.DEGRADED: Said(
        Look("wait", "warning", "Failing"), "The last looks failed. It is tried again every minute."
    ),
    CoverageState.UNKNOWN: Said(
        Look("unknown", "question", "Unknown"),
        "Nothing was observed yet, or not for so long that nobody can tell. Missing time is not counted as empty.",
    ),
    CoverageState.OFF: Said(Look("", "slash", "Off"), "The club does not collect analytics."),
}

FEATURES: dict[Feature, str] = {
    Feature.ANALYTICS: "Counts the people in the group's instances, every one to five minutes. It names nobody.",
    Feature.MEMBERSHIP_MANAGEMENT: "Members, group requests, invitations, roles, removals and bans.",
    Feature.POSTS: "Publishes, edits and deletes the group's posts.",
    Feature.INSTANCES: "Opens and closes the group's instances, and invites people into them.",
}

GRANTS: dict[str, str] = {
    "group-announcement-manage": "Manage Group Announcement",
    "group-audit-view": "View Audit Log",
    "group-bans-manage": "Manage Group Bans",
    "group-instance-age-gated-create": "Create Age Gated Instances",
    "group-instance-calendar-link": "Link Instances and Events",
    "group-instance-manage": "Manage Group Instances",
    "group-instance-open-create": "Create Members-Only Group Instances",
    "group-instance-plus-create": "Create Group+ Instances",
    "group-instance-public-create": "Create Group Public Instances",
    "group-instance-restricted-create": "Role-Restrict Members-Only Instances",
    "group-invites-manage": "Manage Group Invites",
    "group-members-manage": "Manage Group Member Data",
    "group-members-remove": "Remove Group Members",
    "group-members-viewall": "View All Members",
    "group-roles-assign": "Assign Group Roles",
}
"""What VRChat's own pages call a grant."""

RISKS: tuple[str, ...] = (
    "VRChat promises programs nothing: it may refuse what Lastcall does, and it may limit or ban the account.",
    "Lastcall acts as an account made for this, never as you. Nobody asks for your VRChat password.",
    "VRChat's audit log shows that account. Who of your staff asked for what is in Lastcall's own log.",
    "You give the account a role in your group. Give it what you switch on here, and no more.",
)
"""Shown before anything is stored: the provider's rules and what follows from them."""
GUIDELINES = "https://hello.vrchat.com/creator-guidelines"
"""VRChat's own rules for programs."""
