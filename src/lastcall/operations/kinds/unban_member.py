"""Lift the ban of a person. They are no member by that."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.kind import Kind, PersonPayload, Words


class UnbanMember(PersonPayload, frozen=True):
    pass


KIND = Kind(
    name="unban_member",
    payload=UnbanMember,
    permission=Permission.MANAGE_BANS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-bans-manage", "group-members-manage"),
    cost=2,
    is_protective=True,
    words=Words(label="Unban", verb="Unban", plural="Unbans"),
)
