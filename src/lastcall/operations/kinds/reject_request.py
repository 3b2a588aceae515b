"""Turn down somebody who asked at VRChat to join the group. They may ask again."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.kind import Kind, PersonPayload, Words


class RejectRequest(PersonPayload, frozen=True):
    pass


KIND = Kind(
    name="reject_request",
    payload=RejectRequest,
    permission=Permission.APPROVE_JOIN_REQUESTS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-invites-manage",),
    cost=2,
    is_bulk=True,
    words=Words(label="Reject join request", verb="Turn down", plural="Join request rejections"),
)
