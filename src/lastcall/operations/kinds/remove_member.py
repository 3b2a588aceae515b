"""Remove a member from the group; they may join again. Sent before everything else."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.kind import Kind, PersonPayload, Words


class RemoveMember(PersonPayload, frozen=True):
    pass


KIND = Kind(
    name="remove_member",
    payload=RemoveMember,
    permission=Permission.REMOVE_GROUP_MEMBERS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-members-remove", "group-members-manage"),
    cost=2,
    is_protective=True,
    is_urgent=True,
    words=Words(label="Remove from group", verb="Remove", plural="Removals"),
)
