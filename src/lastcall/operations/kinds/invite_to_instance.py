"""Ask a friend of the account into an open instance. Done means that VRChat took the invite, not that it was
delivered, read or followed.
"""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.fields import InstanceId, MessageSlot, WorldId
from lastcall.operations.kinds.kind import Kind, PersonPayload, Words


class InviteToInstance(PersonPayload, frozen=True):
    world_id: WorldId
    instance_id: InstanceId
    message_slot: MessageSlot | None = None


KIND = Kind(
    name="invite_to_instance",
    payload=InviteToInstance,
    permission=Permission.MANAGE_INSTANCES,
    feature=Feature.INSTANCES,
    grants=(),
    cost=4,
    is_bulk=True,
    needs_friend=True,
    words=Words(label="Invite to instance", verb="Invite to an instance", plural="Instance invitations"),
)
