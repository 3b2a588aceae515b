"""Close an instance: nobody may join it any more, and whoever is inside stays."""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.fields import InstanceId, WorldId
from lastcall.operations.kinds.kind import Kind, Payload, Words


class CloseInstance(Payload, frozen=True):
    world_id: WorldId
    instance_id: InstanceId


KIND = Kind(
    name="close_instance",
    payload=CloseInstance,
    permission=Permission.MANAGE_INSTANCES,
    feature=Feature.INSTANCES,
    grants=("group-instance-manage",),
    cost=3,
    is_urgent=True,
    words=Words(label="Close instance", verb="Close", plural="Closed instances"),
)
