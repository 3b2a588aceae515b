"""The one table of what a person may be allowed to do in a club.

A permission says what the *club* allows a person; what the VRChat group allows the account is a grant and is
asked elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Permission(StrEnum):
    """One thing a role can allow. The value is what is stored and what the API shows."""

    MANAGE_EVENTS = "manage_events"
    MANAGE_EVENT_MEDIA = "manage_event_media"
    VIEW_EVENT_OPERATIONS = "view_event_operations"
    MANAGE_STAFF = "manage_staff"
    MANAGE_CONNECTION = "manage_connection"
    VIEW_MEMBERS = "view_members"
    APPROVE_JOIN_REQUESTS = "approve_join_requests"
    INVITE_GROUP_MEMBERS = "invite_group_members"
    ASSIGN_VRCHAT_ROLES = "assign_vrchat_roles"
    REMOVE_GROUP_MEMBERS = "remove_group_members"
    MANAGE_BANS = "manage_bans"
    PUBLISH_POSTS = "publish_posts"
    MANAGE_INSTANCES = "manage_instances"
    MANAGE_SCHEDULED_ACTIONS = "manage_scheduled_actions"
    EXPORT_ANALYTICS = "export_analytics"
    DECIDE_ACCESS = "decide_access"
    DECIDE_APPROVALS = "decide_approvals"
    MANAGE_RETENTION = "manage_retention"
    MANAGE_AGENTS = "manage_agents"
    MANAGE_BUDGETS = "manage_budgets"

    @property
    def label(self) -> str:
        """What people read."""
        return LABELS[self]


LABELS: dict[Permission, str] = {
    Permission.MANAGE_EVENTS: "Manage events",
    Permission.MANAGE_EVENT_MEDIA: "Manage event media",
    Permission.VIEW_EVENT_OPERATIONS: "View event operations",
    Permission.MANAGE_STAFF: "Invite staff",
    Permission.MANAGE_CONNECTION: "Manage group connection",
    Permission.VIEW_MEMBERS: "View members",
    Permission.APPROVE_JOIN_REQUESTS: "Approve requests to join the VRChat group",
    Permission.INVITE_GROUP_MEMBERS: "Invite group members",
    Permission.ASSIGN_VRCHAT_ROLES: "Assign permitted VRChat roles",
    Permission.REMOVE_GROUP_MEMBERS: "Remove group members",
    Permission.MANAGE_BANS: "Ban and unban",
    Permission.PUBLISH_POSTS: "Publish posts",
    Permission.MANAGE_INSTANCES: "Create and close instances",
    Permission.MANAGE_SCHEDULED_ACTIONS: "Manage scheduled actions",
    Permission.EXPORT_ANALYTICS: "Export analytics",
    Permission.DECIDE_ACCESS: "See and decide join requests",
    Permission.DECIDE_APPROVALS: "Decide approvals",
    Permission.MANAGE_RETENTION: "Keep, archive and revive items",
    Permission.MANAGE_AGENTS: "Manage agents",
    Permission.MANAGE_BUDGETS: "Manage budgets",
}

ALL_PERMISSIONS = frozenset(Permission)


@dataclass(frozen=True)
class Preset:
    """A role that every new club starts with; afterwards it is a role like any other."""

    key: str
    name: str
    description: str
    permissions: frozenset[Permission]


PRESETS: tuple[Preset, ...] = (
    Preset("admin", "Admin", "Everything but what only the owner may do.", ALL_PERMISSIONS),
    Preset(
        "moderator",
        "Moderator",
        "Who gets in, who stays, and who does not.",
        frozenset(
            {
                Permission.VIEW_MEMBERS,
                Permission.APPROVE_JOIN_REQUESTS,
                Permission.INVITE_GROUP_MEMBERS,
                Permission.ASSIGN_VRCHAT_ROLES,
                Permission.REMOVE_GROUP_MEMBERS,
                Permission.MANAGE_BANS,
                Permission.DECIDE_ACCESS,
                Permission.MANAGE_RETENTION,
            }
        ),
    ),
    Preset(
        "event_staff",
        "Event Staff",
        "Events, posts and instances.",
        frozenset(
            {
                Permission.MANAGE_EVENTS,
                Permission.MANAGE_EVENT_MEDIA,
                Permission.VIEW_EVENT_OPERATIONS,
                Permission.PUBLISH_POSTS,
                Permission.MANAGE_INSTANCES,
            }
        ),
    ),
)
