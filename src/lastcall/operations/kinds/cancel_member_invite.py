"""Take back an invitation into the group that is not accepted yet."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.kind import Kind, PersonPayload, Words


class CancelMemberInvite(PersonPayload, frozen=True):
    pass


KIND = Kind(
    name="cancel_member_invite",
    payload=CancelMemberInvite,
    permission=Permission.INVITE_GROUP_MEMBERS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-invites-manage",),
    cost=2,
    words=Words(
        label="Cancel group invitation",
        verb="Take back the invitation of",
        plural="Cancelled group invitations",
    ),
)
