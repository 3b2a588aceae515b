"""Invite a person into the group. Done means that VRChat took the invitation, not that it was read or
accepted.
"""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.kind import Kind, PersonPayload, Words


class InviteMember(PersonPayload, frozen=True):
    pass


KIND = Kind(
    name="invite_member",
    payload=InviteMember,
    permission=Permission.INVITE_GROUP_MEMBERS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-invites-manage",),
    cost=2,
    is_bulk=True,
    lifts_ban=True,
    words=Words(label="Invite to group", verb="Invite", plural="Group invitations"),
)
