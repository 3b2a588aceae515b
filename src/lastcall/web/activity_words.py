"""A club's log in words: what each kind of entry says. An entry of a kind unknown here is shown by its name rather
than hidden.
"""

from __future__ import annotations

_WORDS = {
    "club.added": "Made the club",
    "club.archived": "Archived the club",
    "club.edited": "Changed the settings",
    "club.exported": "Exported the club's data",
    "club.paused": "Paused the club",
    "club.resumed": "Let the club go on",
    "club.transferred": "Gave the club to",
    "club.unarchived": "Brought the club back",
    "connection.connected": "Connected a VRChat group",
    "connection.disconnected": "Disconnected the VRChat group",
    "connection.features": "Switched features of the connection",
    "connection.frozen": "Froze the connection",
    "connection.kill_switch": "Threw the connection's switch",
    "connection.limit": "Set the connection's limit",
    "connection.new_epoch": "Began a new epoch of the connection",
    "connection.thawed": "Unfroze the connection",
    "event.cancelled": "Cancelled an event",
    "event.created": "Added an event",
    "event.edited": "Changed an event",
    "event.published": "Published an event",
    "event.reinstated": "Reinstated an event",
    "event.removed": "Removed an event",
    "event.unpublished": "Made an event a draft again",
    "event.world_confirmed": "Confirmed the world of an event",
    "event.world_linked": "Linked a world to an event",
    "event.world_unlinked": "Unlinked a world from an event",
    "invite.accepted": "Accepted an invitation",
    "invite.created": "Made an invitation",
    "invite.revoked": "Revoked an invitation",
    "join.activity": "Was active while waiting at the door",
    "join.approved": "Approved a join request",
    "join.rejected": "Rejected a join request",
    "join.requested": "Asked to join",
    "join.withdrawn": "Withdrew a join request",
    "list.created": "Made a recipient list",
    "list.deleted": "Deleted a recipient list",
    "list.edited": "Changed a recipient list",
    "operation.cancelled": "Cancelled an action",
    "operation.edited": "Edited an action",
    "operation.settled": "Recorded what became of an action",
    "operations.cancelled": "Cancelled the rest of a batch",
    "operations.enqueued": "Queued actions",
    "retention.archived": "Archived a join request",
    "retention.kept": "Kept a join request",
    "retention.unkept": "No longer keeps a join request",
    "staff.person_erased": "Took every role from",
    "staff.role_assigned": "Gave a role to",
    "staff.role_created": "Made the role",
    "staff.role_deleted": "Deleted the role",
    "staff.role_edited": "Changed the role",
    "staff.role_revoked": "Took a role from",
    "visibility.changed": "Changed who may see",
}
FAMILIES = {
    "club": "Club",
    "staff": "Staff and roles",
    "invite": "Invitations",
    "visibility": "Data visibility",
    "join": "Join requests",
    "event": "Events",
    "list": "Recipient lists",
    "operation": "Actions",
    "operations": "Queued actions",
    "retention": "Retention",
    "connection": "Connection",
}
"""The part of an action before its dot, as the filter offers it."""


def activity_words(action: str) -> str:
    return _WORDS.get(action, action)
