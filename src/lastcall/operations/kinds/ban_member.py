"""Ban a person from the group. Always confirmed one at a time, and sent before everything else."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.kind import Kind, PersonPayload, Words


class BanMember(PersonPayload, frozen=True):
    pass


KIND = Kind(
    name="ban_member",
    payload=BanMember,
    permission=Permission.MANAGE_BANS,
    feature=Feature.MEMBERSHIP_MANAGEMENT,
    grants=("group-bans-manage", "group-members-manage"),
    cost=2,
    is_protective=True,
    is_urgent=True,
    words=Words(label="Ban from group", verb="Ban", plural="Bans"),
)
