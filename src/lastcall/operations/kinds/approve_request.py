"""Let somebody into the group who asked to join it at VRChat."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.kind import Kind, PersonPayload, Words


class ApproveRequest(PersonPayload, frozen=True):
    pass


KIND = Kind(
    name="approve_request",
    payload=ApproveRequest,
    permission=Permission.APPROVE_JOIN_REQUESTS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-invites-manage",),
    cost=2,
    is_bulk=True,
    words=Words(label="Approve join request", verb="Let in", plural="Join request approvals"),
)
